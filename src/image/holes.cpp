#include "image/holes.hpp"

#include "holt/base/error.hpp"
#include "holt/base/fd.hpp"
#include "holt/base/log.hpp"
#include "image/space.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <mutex>
#include <sys/stat.h>
#include <unistd.h>

namespace holt::image {
namespace {

/// More than any file system's block.
constexpr off_t k_probe_bytes = off_t{1} << 20;

}  // namespace

bool has_holes(int fd) {
  constexpr off_t k_stat_block = 512;  // stat(2)
  struct stat status{};
  if (::fstat(fd, &status) != 0) throw system_error(errno, "look at a file of the image store");
  return status.st_blocks * k_stat_block < status.st_size;
}

bool keeps_holes(const std::filesystem::path& folder) {
  auto path = folder / "holes";
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file || ::ftruncate(file.get(), k_probe_bytes) != 0)
    throw system_error(errno, "make a file in the image store", folder.string());
  bool kept = has_holes(file.get());
  ::unlink(path.c_str());
  return kept;
}

std::uint64_t disk_bytes_in(const std::filesystem::path& images, const std::filesystem::path& scratch,
                            std::uint64_t wanted,
                            const std::function<bool(const std::filesystem::path&)>& probe) {
  if (probe(scratch)) return wanted;
  std::uint64_t bytes = std::min(wanted, k_disk_bytes_without_holes);
  static std::once_flag told;
  std::call_once(told, [&] {
    logger("holt.image")
        ->warn(
            "The image store {} is on a file system without holes: an image takes all of its {} MiB there. "
            "Move the store to another one.",
            images.string(), bytes >> 20);
  });
  require_space(images, bytes, "an image whose file system has no holes");
  return bytes;
}

}  // namespace holt::image
