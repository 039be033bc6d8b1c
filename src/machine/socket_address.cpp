#include "machine/socket_address.hpp"

#include "holt/base/error.hpp"

#include <cerrno>
#include <fcntl.h>

#include <fmt/format.h>

namespace holt::machine {

SocketAddress::SocketAddress(const MachineFolder& folder)
    : folder_(::open(folder.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  if (!folder_) {
    auto name = folder.path().filename().string();
    if (errno == ENOENT)
      throw Error(ErrorCode::not_found, fmt::format("There is no machine {}", name), {.subject = name});
    throw system_error(errno, fmt::format("open the folder {}", folder.path().string()), folder.path());
  }
  address_.sun_family = AF_UNIX;
  *fmt::format_to_n(address_.sun_path, sizeof address_.sun_path - 1, "/proc/self/fd/{}/{}", folder_.get(),
                    k_socket_name)
       .out = '\0';
}

}  // namespace holt::machine
