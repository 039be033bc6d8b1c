#include "guest/machine_platform.hpp"

#include "guest/boot.hpp"
#include "guest/file_service.hpp"
#include "guest/identity.hpp"
#include "guest/paths.hpp"
#include "guest/root.hpp"
#include "guest/users.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace holt::guest {
namespace {

std::int64_t monotonic_nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Numbers first, then the two strings; both lives are the same program.
struct CarriedHeader {
  std::uint32_t next_sequence;
  std::uint32_t identity_stream;
  std::int64_t started_ns;
  std::uint64_t identity_size;
  std::uint64_t unhandled_size;
};

Outcome<Fd> write_carried_state(const CarriedState& state) {
  CarriedHeader header{state.next_sequence, state.identity_stream, state.started_ns, state.identity.size(),
                       state.unhandled.size()};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += state.identity + state.unhandled;
  // Inherited by the next life and by nothing else: no command has been started.
  Fd fd(::memfd_create("holt", 0));
  if (!fd || ::write(fd.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    return refuse_errno(errno, "carry over", "the identity");
  }
  ::lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

/// New folders belong to the user that commands run as; those of the image stay as they are.
Outcome<> make_folders(const protocol::IdentityRequest& request) {
  if (request.make_dirs.empty()) return {};
  auto user = find_user(request.user);
  if (!user) return std::unexpected(user.error());
  for (const auto& path : request.make_dirs) {
    auto absolute = absolute_path(path, "/");
    if (!absolute) return std::unexpected(absolute.error());
    bool exists = ::access(absolute->c_str(), F_OK) == 0;
    if (auto made = make_directories(without_trailing_slashes(*absolute), 0755); !made) return made;
    if (!exists && ::chown(absolute->c_str(), user->uid, user->gid) != 0) {
      return refuse_errno(errno, "give away", path);
    }
  }
  return {};
}

/// Where commands start, links resolved. A missing folder is made, as container engines do; where that cannot
/// be, each command that starts in it says so.
Outcome<std::string> working_folder(const std::string& path) {
  if (path.empty()) return "/";
  auto absolute = absolute_path(path, "/");
  auto resolved = absolute ? real_path(*absolute) : absolute;
  if (resolved) [[maybe_unused]]
    auto made = make_directories(*resolved, 0755);
  return resolved;
}

}  // namespace

Outcome<CarriedState> read_carried_state(int descriptor) {
  Fd fd(descriptor);
  std::string bytes;
  std::array<char, 65536> buffer{};
  for (ssize_t count = 0; (count = ::read(fd.get(), buffer.data(), buffer.size())) > 0;) {
    bytes.append(buffer.data(), static_cast<std::size_t>(count));
  }
  CarriedHeader header{};
  if (bytes.size() < sizeof header) return refuse(ErrorCode::internal, "the carried state is cut short");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (bytes.size() != sizeof header + header.identity_size + header.unhandled_size) {
    return refuse(ErrorCode::internal, "the carried state is cut short");
  }
  return CarriedState{.next_sequence = header.next_sequence,
                      .identity_stream = header.identity_stream,
                      .identity = bytes.substr(sizeof header, header.identity_size),
                      .unhandled = bytes.substr(sizeof header + header.identity_size),
                      .started_ns = header.started_ns};
}

Outcome<protocol::IdentityReply> MachinePlatform::become(const protocol::IdentityRequest& request,
                                                         std::uint32_t stream) {
  auto started_ns = monotonic_nanoseconds();
  if (auto seeded = reseed_kernel(request.entropy); !seeded) return std::unexpected(seeded.error());
  if (auto set = set_wall_clock(request.wall_clock_ns); !set) return std::unexpected(set.error());
  channel_.flush_blocking();
  auto state = write_carried_state({.next_sequence = channel_.next_sequence(),
                                    .identity_stream = stream,
                                    .identity = protocol::encode(request),
                                    .unhandled = channel_.take_unhandled(),
                                    .started_ns = started_ns});
  if (!state) return std::unexpected(state.error());
  int port = channel_.fd();
  ::fcntl(port, F_SETFD, 0);
  auto port_text = std::to_string(port);
  auto state_text = std::to_string(state->get());
  std::array<char*, 5> argv = {const_cast<char*>("holt-guest"), const_cast<char*>("--continue"),
                               port_text.data(), state_text.data(), nullptr};
  std::array<char*, 1> env = {nullptr};
  ::execve("/proc/self/exe", argv.data(), env.data());
  return refuse_errno(errno, "execute", "the guest program anew");
}

Outcome<protocol::IdentityReply> MachinePlatform::complete(const protocol::IdentityRequest& request,
                                                           std::int64_t started_ns) {
  protocol::IdentityReply reply{.generation = request.generation};
  if (auto named = set_hostname(request.hostname); !named) return std::unexpected(named.error());
  if (!request.root_device.empty()) {
    auto root = enter_root(request.root_device, request.root_size);
    if (!root) return std::unexpected(root.error());
    reply.root_bytes = root->bytes;
    reply.grown = root->grown;
  }
  if (auto renewed = renew_boot_id(); !renewed) return std::unexpected(renewed.error());
  complete_etc(request.machine_id, request.hostname);
  if (auto network = set_up_network(request); !network) return std::unexpected(network.error());
  if (auto made = make_folders(request); !made) return std::unexpected(made.error());
  auto folder = working_folder(request.working_dir);
  if (!folder) return std::unexpected(folder.error());
  reply.working_dir = std::move(*folder);
  if (request.address_layout == protocol::AddressLayout::fixed) {
    write_kernel_file("/proc/sys/kernel/randomize_va_space", "0");
  }
  reply.duration_us = static_cast<std::uint64_t>((monotonic_nanoseconds() - started_ns) / 1000);
  return reply;
}

Outcome<> MachinePlatform::renew(const protocol::RenewRequest& request) {
  if (auto seeded = reseed_kernel(request.entropy); !seeded) return seeded;
  return set_wall_clock(request.wall_clock_ns);
}

Outcome<> MachinePlatform::set_clock(std::int64_t wall_clock_ns) {
  return set_wall_clock(wall_clock_ns);
}

}  // namespace holt::guest
