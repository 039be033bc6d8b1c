// Mode, owner and time of modification of what is there.
#include "guest/file_service.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holt::guest {

using namespace protocol;

Outcome<Done> set_attributes(const SetAttributesRequest& request) {
  auto owner = find_owner(request.owner);
  if (!owner) return std::unexpected(owner.error());
  int follow = request.links == Links::keep ? O_NOFOLLOW : 0;
  // A descriptor: all three changes meet the same file.
  Fd fd(::open(request.path.c_str(), O_PATH | O_CLOEXEC | follow));
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0) return refuse_errno(errno, "change", request.path);
  if (request.mode && S_ISLNK(status.st_mode)) {
    return refuse(ErrorCode::not_supported, "a link has no mode: " + request.path, request.path);
  }
  if (*owner && ::fchownat(fd.get(), "", (*owner)->first, (*owner)->second, AT_EMPTY_PATH) != 0) {
    return refuse_errno(errno, "change the owner of", request.path);
  }
  // chmod(2) does not take a descriptor of a path only, its name in /proc does.
  auto name = "/proc/self/fd/" + std::to_string(fd.get());
  if (request.mode && ::chmod(name.c_str(), *request.mode & 07777) != 0) {
    return refuse_errno(errno, "change the mode of", request.path);
  }
  if (request.mtime_s) {
    timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                         {.tv_sec = *request.mtime_s, .tv_nsec = static_cast<long>(request.mtime_ns)}};
    if (::utimensat(fd.get(), "", times, AT_EMPTY_PATH) != 0) {
      return refuse_errno(errno, "change the time of", request.path);
    }
  }
  return Done{};
}

}  // namespace holt::guest
