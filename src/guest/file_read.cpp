#include "guest/bulk_io.hpp"
#include "guest/file_service.hpp"
#include "guest/file_status.hpp"
#include "guest/reading.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace holt::guest {
namespace {

using namespace protocol;

/// Most that a file whose size reads as 0 is believed to hold (/proc, /sys).
constexpr std::uint64_t k_max_sizeless = std::uint64_t{16} << 20;

/// Files that the kernel makes up while they are read; the sizes of sysfs are invented too.
bool is_made_up(int fd) {
  struct statfs system{};
  if (::fstatfs(fd, &system) != 0) return false;
  switch (system.f_type) {
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case CGROUP2_SUPER_MAGIC:
    case DEBUGFS_MAGIC:
    case TRACEFS_MAGIC:
      return true;
    default:
      return false;
  }
}

}  // namespace

Outcome<Fd> open_regular(int folder, const std::string& name, const std::string& shown, struct stat& status) {
  // Without O_NONBLOCK a FIFO would wait for its writer; a device may do anything, so the type is looked at
  // first.
  if (::fstatat(folder, name.c_str(), &status, 0) != 0) return refuse_errno(errno, "read", shown);
  if (S_ISDIR(status.st_mode)) return refuse_errno(EISDIR, "read", shown);
  if (!S_ISREG(status.st_mode)) return refuse(ErrorCode::not_regular, "not a regular file: " + shown, shown);
  Fd fd(::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return refuse_errno(errno, "read", shown);
  if (::fstat(fd.get(), &status) != 0) return refuse_errno(errno, "read", shown);
  if (!S_ISREG(status.st_mode)) return refuse(ErrorCode::not_regular, "not a regular file: " + shown, shown);
  if (status.st_size > 0 && is_made_up(fd.get())) status.st_size = 0;
  return fd;
}

SentBytes send_file_bytes(JobStream& stream, const FileBytes& file) {
  std::uint64_t sent = 0;
  bool direct = file.size >= k_bulk_size && file.offset % k_bulk_alignment == 0 &&
                ::fcntl(file.fd, F_SETFL, O_DIRECT) == 0;
  // Kept by the thread: mapping it anew costs more than reading a small file.
  static thread_local BulkBuffer buffer;
  while (sent < file.size) {
    auto want = std::min<std::uint64_t>(file.size - sent, k_bulk_size);
    // O_DIRECT reads whole blocks; what lies behind the wanted bytes is cut off.
    auto ask = direct ? (want + k_bulk_alignment - 1) / k_bulk_alignment * k_bulk_alignment : want;
    auto count = ::pread(file.fd, buffer.bytes().data(), ask, static_cast<off_t>(file.offset + sent));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EINVAL && direct) {
      ::fcntl(file.fd, F_SETFL, 0);
      direct = false;
      continue;
    }
    if (count < 0) return {sent, refuse_errno(errno, "read", file.shown).error()};
    if (count == 0) break;
    std::string_view bytes(buffer.bytes().data(),
                           std::min<std::uint64_t>(static_cast<std::uint64_t>(count), want));
    sent += bytes.size();
    for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), k_max_payload))) {
      if (!stream.send(FrameType::output, std::string(bytes.substr(0, k_max_payload)))) return {sent};
    }
    if (direct && static_cast<std::uint64_t>(count) % k_bulk_alignment != 0) break;
  }
  return {sent};
}

Outcome<ReadFileReply> read_file(JobStream& stream, const ReadFileRequest& request) {
  struct stat status{};
  auto fd = open_regular(AT_FDCWD, request.path, request.path, status);
  if (!fd) return std::unexpected(fd.error());
  stream.send(FrameType::started, encode(file_status(status)));

  auto size = static_cast<std::uint64_t>(status.st_size);
  auto limit = request.length.value_or(UINT64_MAX);
  auto left = size > request.offset ? size - request.offset : 0;
  bool sizeless = size == 0;
  auto want = std::min(limit, sizeless ? k_max_sizeless : left);
  auto sent = send_file_bytes(stream, {fd->get(), request.offset, want, request.path});
  // A log of the kernel has nothing more for now: what it had is its content.
  bool ran_dry = sizeless && sent.failure && sent.failure->error_number == EAGAIN;
  if (sent.failure && !ran_dry) return std::unexpected(*sent.failure);
  if (!sizeless && sent.bytes < want && !stream.cancelled()) {
    return refuse(ErrorCode::conflict, "the file became shorter while it was read: " + request.path,
                  request.path);
  }
  return ReadFileReply{.bytes = sent.bytes};
}

}  // namespace holt::guest
