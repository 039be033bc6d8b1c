#include "guest/root.hpp"

#include "holt/base/fd.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace holt::guest {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto k_device_limit = 3s;
constexpr auto k_device_poll = 500us;
constexpr std::uint64_t k_sector = 512;
constexpr const char* k_new_root = "/newroot";
/// From fs/ext4/ext4.h: not in the kernel's exported headers.
constexpr unsigned long k_resize_fs = _IOW('f', 16, std::uint64_t);

std::uint64_t device_size(const std::string& device) {
  Fd fd(::open(("/sys/class/block/" + device + "/size").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 32> text{};
  auto count = fd ? ::read(fd.get(), text.data(), text.size()) : -1;
  std::uint64_t sectors = 0;
  if (count > 0) std::from_chars(text.data(), text.data() + count, sectors);
  return sectors * k_sector;
}

Outcome<> wait_for_size(const std::string& device, std::uint64_t size) {
  for (auto end = Clock::now() + k_device_limit; Clock::now() < end;) {
    auto now = device_size(device);
    if (now > 0 && now >= size) return {};
    std::this_thread::sleep_for(k_device_poll);
  }
  return refuse(ErrorCode::storage_error,
                "the disk " + device + " has " + std::to_string(device_size(device)) + " bytes and not the " +
                    std::to_string(size) + " announced",
                device);
}

struct Ext4Size {
  std::uint64_t blocks = 0;
  std::uint64_t block_size = 0;
};

/// The superblock's own count: statfs leaves out what the file system needs for itself.
Outcome<Ext4Size> read_superblock(const std::string& device) {
  // Offsets of "struct ext4_super_block", Documentation/filesystems/ext4/super.rst.
  constexpr off_t k_superblock = 1024;
  constexpr std::size_t k_blocks_low = 0x4;
  constexpr std::size_t k_log_block_size = 0x18;
  constexpr std::size_t k_magic = 0x38;
  constexpr std::size_t k_blocks_high = 0x150;
  constexpr std::uint16_t k_ext4_magic = 0xef53;
  Fd fd(::open(("/dev/" + device).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> block{};
  if (!fd ||
      ::pread(fd.get(), block.data(), block.size(), k_superblock) != static_cast<ssize_t>(block.size())) {
    return refuse_errno(errno, "read the file system of", device);
  }
  auto u32 = [&](std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, block.data() + at, sizeof value);
    return value;
  };
  std::uint16_t magic = 0;
  std::memcpy(&magic, block.data() + k_magic, sizeof magic);
  if (magic != k_ext4_magic || u32(k_log_block_size) > 6) {
    return refuse(ErrorCode::storage_error, "the disk " + device + " holds no ext4 file system", device);
  }
  return Ext4Size{.blocks = std::uint64_t{u32(k_blocks_high)} << 32 | u32(k_blocks_low),
                  .block_size = std::uint64_t{1024} << u32(k_log_block_size)};
}

Outcome<RootResult> grow(const char* mount_point, const std::string& device, const Ext4Size& size) {
  std::uint64_t wanted = device_size(device) / size.block_size;
  if (wanted <= size.blocks) return RootResult{.bytes = size.blocks * size.block_size};
  Fd root(::open(mount_point, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root || ::ioctl(root.get(), k_resize_fs, &wanted) != 0) {
    return refuse_errno(errno, "grow the file system of", device);
  }
  return RootResult{.bytes = wanted * size.block_size, .grown = true};
}

/// Makes the folder where the image has none. A link would be followed out of the new root.
Outcome<> move_into(const char* mount_point) {
  auto target = std::string(k_new_root) + mount_point;
  ::mkdir(target.c_str(), 0755);
  struct stat status{};
  if (::lstat(target.c_str(), &status) != 0) return refuse_errno(errno, "make folder", mount_point);
  if (!S_ISDIR(status.st_mode)) {
    return refuse(ErrorCode::image_invalid,
                  std::string("the image has something other than a folder at ") + mount_point, mount_point);
  }
  if (::mount(mount_point, target.c_str(), nullptr, MS_MOVE, nullptr) != 0) {
    return refuse_errno(errno, "move", mount_point);
  }
  return {};
}

Outcome<> switch_root() {
  for (const char* mount_point : {"/dev", "/proc", "/sys"}) {
    if (auto moved = move_into(mount_point); !moved) return moved;
  }
  bool good = ::chdir(k_new_root) == 0 && ::mount(".", "/", nullptr, MS_MOVE, nullptr) == 0 &&
              ::chroot(".") == 0 && ::chdir("/") == 0;
  if (!good) return refuse_errno(errno, "switch to", k_new_root);
  ::mkdir("/tmp", 01777);
  ::mkdir("/run", 0755);
  return {};
}

}  // namespace

Outcome<RootResult> enter_root(const std::string& device, std::uint64_t size) {
  if (auto ready = wait_for_size(device, size); !ready) return std::unexpected(ready.error());
  auto superblock = read_superblock(device);
  if (!superblock) return std::unexpected(superblock.error());
  ::mkdir(k_new_root, 0755);
  // Lazy initialisation would write empty inode tables into the machine's overlay for minutes.
  if (::mount(("/dev/" + device).c_str(), k_new_root, "ext4", MS_NOATIME, "noinit_itable") != 0) {
    return refuse_errno(errno, "mount", device);
  }
  auto result = grow(k_new_root, device, *superblock);
  if (!result) return result;
  if (auto switched = switch_root(); !switched) return std::unexpected(switched.error());
  return result;
}

Outcome<RootResult> grow_root(const std::string& device, std::uint64_t size) {
  if (auto ready = wait_for_size(device, size); !ready) return std::unexpected(ready.error());
  auto superblock = read_superblock(device);
  if (!superblock) return std::unexpected(superblock.error());
  return grow("/", device, *superblock);
}

}  // namespace holt::guest
