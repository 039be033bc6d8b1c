#include "holt/base/error.hpp"
#include "holt/base/fd.hpp"
#include "holt/base/files.hpp"
#include "holt/base/process.hpp"
#include "holt/image/store.hpp"
#include "image/staging.hpp"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::image {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Half a second for an image of 500 MB; what takes minutes hangs.
constexpr auto k_resize_deadline = 5min;
constexpr std::size_t k_piece = std::size_t{1} << 20;

/// Data only: the copy has the holes of the original.
void copy_sparse(const fs::path& from, const fs::path& to, const std::optional<CancellationToken>& cancel) {
  Fd source(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  Fd target(::open(to.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  struct stat info{};
  if (!source || !target || ::fstat(source.get(), &info) != 0 ||
      ::ftruncate(target.get(), info.st_size) != 0) {
    throw system_error(errno, fmt::format("copy {}", from.string()), to);
  }
  off_t data = 0;
  while ((data = ::lseek(source.get(), data, SEEK_DATA)) >= 0) {
    off_t end = ::lseek(source.get(), data, SEEK_HOLE);
    off_t written = data;
    while (data < end) {
      if (cancel) cancel->throw_if_cancelled();
      auto count = std::min<std::size_t>(k_piece, static_cast<std::size_t>(end - data));
      auto copied = ::copy_file_range(source.get(), &data, target.get(), &written, count, 0);
      if (copied <= 0)
        throw system_error(copied < 0 ? errno : EIO, fmt::format("copy {}", from.string()), to);
    }
  }
}

fs::path find_resize2fs() {
  for (const char* folder : {"/sbin", "/usr/sbin", "/usr/local/sbin"}) {
    auto path = fs::path(folder) / "resize2fs";
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  throw Error(ErrorCode::runtime_not_installed, "resize2fs is not installed",
              {.subject = "resize2fs", .hint = "Install e2fsprogs, or leave the disk at its default size."});
}

void shrink(const fs::path& file, const Image& image, std::uint64_t bytes,
            const std::optional<CancellationToken>& cancel) {
  // Forced: the file has just been written by our own builder, and a check of it first would find nothing.
  ProcessSpec spec{.argv = {find_resize2fs().string(), "-f", file.string(), fmt::format("{}K", bytes >> 10)},
                   .env = {{"LC_ALL", "C"}}};
  auto result = run_process(spec, {.deadline = Deadline::after(k_resize_deadline), .cancel = cancel});
  if (result.status.exit_code == 0) return;
  bool too_small = result.err.find("smaller than minimum") != std::string::npos ||
                   result.err.find("No space left") != std::string::npos ||
                   result.err.find("Not enough space") != std::string::npos;
  if (too_small) {
    throw Error(ErrorCode::invalid_config,
                fmt::format("The image {} does not fit a disk of {} GiB", image.reference, bytes >> 30),
                {.subject = image.reference, .hint = "Choose a larger disk."});
  }
  throw Error(ErrorCode::storage_error, "The image could not be made smaller",
              {.subject = image.reference, .causes = {printable(result.err, 400)}});
}

}  // namespace

Image Store::with_disk_size(const Image& image, std::uint64_t bytes,
                            const std::optional<CancellationToken>& cancel) const {
  auto sized = image;
  sized.disk_bytes = bytes;
  sized.ext4 = image.ext4.parent_path() / fmt::format("root-{}.ext4", bytes >> 20);
  struct stat info{};
  if (::stat(sized.ext4.c_str(), &info) != 0) {
    Staging staging(folder_ / "staging");
    auto fresh = staging.path() / "root.ext4";
    copy_sparse(image.ext4, fresh, cancel);
    shrink(fresh, image, bytes, cancel);
    ::chmod(fresh.c_str(), 0444);
    Fd written(::open(fresh.c_str(), O_RDONLY | O_CLOEXEC));
    if (!written || ::fsync(written.get()) != 0) throw system_error(errno, "write the smaller image", fresh);
    if (::rename(fresh.c_str(), sized.ext4.c_str()) != 0)
      throw system_error(errno, "keep the smaller image", sized.ext4);
    if (::stat(sized.ext4.c_str(), &info) != 0) throw system_error(errno, "look at", sized.ext4);
  }
  sized.size = static_cast<std::uint64_t>(info.st_blocks) * 512;
  return sized;
}

}  // namespace holt::image
