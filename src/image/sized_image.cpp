#include "image/sized_image.hpp"

#include "holt/base/error.hpp"
#include "holt/base/fd.hpp"
#include "holt/base/files.hpp"
#include "holt/base/process.hpp"
#include "holt/image/store.hpp"
#include "image/content_digest.hpp"
#include "image/folders.hpp"
#include "image/space.hpp"
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
/// Any, but always the same: a file that was lost comes again as its machines knew it.
constexpr const char* k_resize_time = "1000000000";
constexpr std::size_t k_digest_bytes = 128;

/// What the file had when it was made.
fs::path digest_file(fs::path ext4) {
  return ext4.replace_extension(".digest");
}

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
                   .env = {{"LC_ALL", "C"}, {"E2FSPROGS_FAKE_TIME", k_resize_time}}};
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
    require_space(folder_, image.size, image.reference);
    auto fresh = staging.path() / "root.ext4";
    copy_sparse(image.ext4, fresh, cancel);
    shrink(fresh, image, bytes, cancel);
    ::chmod(fresh.c_str(), 0444);
    Fd written(::open(fresh.c_str(), O_RDONLY | O_CLOEXEC));
    if (!written || ::fsync(written.get()) != 0) throw system_error(errno, "write the smaller image", fresh);
    write_file_atomically(digest_file(fresh), content_digest(fresh, cancel), {.mode = 0644});
    move_into_place(digest_file(fresh), digest_file(sized.ext4));
    move_into_place(fresh, sized.ext4);
    if (::stat(sized.ext4.c_str(), &info) != 0) throw system_error(errno, "look at", sized.ext4);
  }
  sized.size = static_cast<std::uint64_t>(info.st_blocks) * 512;
  return sized;
}

std::vector<fs::path> damaged_sizes(const fs::path& entry, const std::optional<CancellationToken>& cancel) {
  std::vector<fs::path> damaged;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(entry, error)) {
    if (file.path().extension() != ".ext4" || file.path().filename() == "root.ext4") continue;
    auto recorded = read_file_if_exists(digest_file(file.path()), k_digest_bytes);
    if (recorded && content_digest(file.path(), cancel) != *recorded) damaged.push_back(file.path());
  }
  return damaged;
}

void drop_damaged_sizes(const fs::path& entry, const std::optional<CancellationToken>& cancel) {
  for (const fs::path& file : damaged_sizes(entry, cancel)) {
    fs::remove(file);
    fs::remove(digest_file(file));
  }
}

}  // namespace holt::image
