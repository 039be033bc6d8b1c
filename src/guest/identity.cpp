#include "guest/identity.hpp"

#include "holt/base/fd.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/random.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace holt::guest {
namespace {

constexpr std::size_t k_min_entropy = 32;
constexpr std::size_t k_max_entropy = 512;
constexpr std::size_t k_max_hostname = 64;
constexpr std::int64_t k_nanoseconds = 1'000'000'000;

bool write_file_at(const char* path, std::string_view text, mode_t mode) {
  Fd fd(::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode));
  return fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

bool is_missing_or_empty(const char* path) {
  struct stat status{};
  if (::stat(path, &status) != 0) return errno == ENOENT;
  return S_ISREG(status.st_mode) && status.st_size == 0;
}

/// A random UUID (version 4) with a line end, as the kernel prints it.
Outcome<std::string> random_uuid() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return refuse_errno(errno, "draw", "a boot id");
  }
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80);
  constexpr std::string_view k_digits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += k_digits[bytes[i] >> 4];
    text += k_digits[bytes[i] & 0x0f];
  }
  return text + "\n";
}

}  // namespace

Outcome<> reseed_kernel(std::string_view entropy) {
  if (entropy.size() < k_min_entropy || entropy.size() > k_max_entropy) {
    return refuse(ErrorCode::invalid_config, "the identity carries too little or too much entropy");
  }
  Fd fd(::open("/dev/urandom", O_WRONLY | O_CLOEXEC));
  // struct rand_pool_info, whose last member has no length of its own.
  const std::array<int, 2> head = {static_cast<int>(entropy.size() * 8), static_cast<int>(entropy.size())};
  static_assert(sizeof head == offsetof(rand_pool_info, buf));
  std::vector<char> buffer(sizeof head + entropy.size());
  std::memcpy(buffer.data(), head.data(), sizeof head);
  std::memcpy(buffer.data() + sizeof head, entropy.data(), entropy.size());
  bool good =
      fd && ::ioctl(fd.get(), RNDADDENTROPY, buffer.data()) == 0 && ::ioctl(fd.get(), RNDRESEEDCRNG) == 0;
  if (!good) return refuse_errno(errno, "reseed", "/dev/urandom");
  return {};
}

Outcome<> set_wall_clock(std::int64_t nanoseconds) {
  if (nanoseconds <= 0) return refuse(ErrorCode::invalid_config, "the wall clock is not after 1970");
  timespec now{.tv_sec = nanoseconds / k_nanoseconds, .tv_nsec = nanoseconds % k_nanoseconds};
  if (::clock_settime(CLOCK_REALTIME, &now) != 0) return refuse_errno(errno, "set", "the wall clock");
  return {};
}

Outcome<> set_hostname(const std::string& hostname) {
  if (hostname.empty() || hostname.size() > k_max_hostname) {
    return refuse(ErrorCode::invalid_config, "the host name is empty or longer than 64 bytes");
  }
  if (::sethostname(hostname.data(), hostname.size()) != 0)
    return refuse_errno(errno, "set", "the host name");
  return {};
}

Outcome<> renew_boot_id() {
  constexpr const char* k_kernel_file = "/proc/sys/kernel/random/boot_id";
  // The folder of shared memory is ours until the first command runs; the bind mount keeps the file when its
  // name goes.
  constexpr const char* k_source = "/dev/shm/.boot_id";
  auto uuid = random_uuid();
  if (!uuid) return std::unexpected(uuid.error());
  bool good = write_file_at(k_source, *uuid, 0444) &&
              ::mount(k_source, k_kernel_file, nullptr, MS_BIND, nullptr) == 0 &&
              ::mount(nullptr, k_kernel_file, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0;
  if (!good) return refuse_errno(errno, "renew", k_kernel_file);
  ::unlink(k_source);
  return {};
}

void complete_etc(const std::string& machine_id, const std::string& hostname) {
  ::mkdir("/etc", 0755);
  if (!machine_id.empty() && is_missing_or_empty("/etc/machine-id")) {
    write_file_at("/etc/machine-id", machine_id + "\n", 0444);
  }
  if (is_missing_or_empty("/etc/hosts")) {
    write_file_at("/etc/hosts", "127.0.0.1\tlocalhost\n::1\tlocalhost\n127.0.1.1\t" + hostname + "\n", 0644);
  }
}

}  // namespace holt::guest
