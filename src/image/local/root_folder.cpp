#include "image/local/root_folder.hpp"

#include "holt/base/error.hpp"
#include "holt/base/fd.hpp"
#include "image/local/folder_tar.hpp"
#include "image/local/plain_archive.hpp"
#include "image/local/source_files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <sys/socket.h>
#include <thread>

#include <fmt/format.h>

namespace holt::image {
namespace fs = std::filesystem;
namespace {

/// Refuses folders that a user may take for an image by mistake.
void check_is_root(const fs::path& folder) {
  constexpr std::array<std::string_view, 6> k_of_roots{"bin", "sbin", "usr", "etc", "lib", "proc"};
  if (std::ranges::any_of(k_of_roots, [&](std::string_view name) { return has_entry(folder, name); })) return;
  std::string path = folder.string();
  if (has_entry(folder, "Dockerfile")) {
    throw Error(ErrorCode::usage,
                fmt::format("import {}: it holds a Dockerfile and no root file system", path),
                {.subject = path, .hint = k_dockerfile_hint});
  }
  if (has_entry(folder, "manifest.json") && has_entry(folder, "version")) {
    throw Error(
        ErrorCode::usage, fmt::format("import {}: it holds an image in skopeo's form dir:", path),
        {.subject = path,
         .hint = fmt::format("Make a layout of it: skopeo copy dir:{0} oci:{0}-layout:latest", path)});
  }
  if (has_entry(folder, "manifest.json")) {
    throw Error(ErrorCode::usage, fmt::format("import {}: it holds an unpacked archive of docker save", path),
                {.subject = path, .hint = fmt::format("Pack it first: tar -C {} -cf image.tar .", path)});
  }
  std::error_code error;
  if (fs::is_empty(folder, error)) {
    throw Error(ErrorCode::image_invalid, fmt::format("import {}: the folder is empty", path),
                {.subject = path});
  }
}

/// Writes to a socket until all is out; false when its reader has gone.
bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

/// Packs a folder on a thread of its own into a socket.
class Packer {
 public:
  Packer(const fs::path& folder, const std::optional<CancellationToken>& cancel) {
    std::tie(reader_, writer_) = socket_pair();
    if (cancel) registration_ = cancel->on_cancel([stop = stop_] { stop.cancel(); });
    thread_ = std::thread([this, folder] { pack(folder); });
  }
  ~Packer() {
    reader_.reset();
    join();
  }
  Packer(const Packer&) = delete;
  Packer& operator=(const Packer&) = delete;

  int fd() const { return reader_.get(); }
  /// Cancelled before the end of a tar that failed is seen, so that half of one is never taken for whole.
  const CancellationToken& stop() const { return stop_; }
  /// What went wrong; nothing when all was packed or nobody wanted the rest.
  std::exception_ptr failure() {
    reader_.reset();
    join();
    return failure_;
  }

 private:
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  void pack(const fs::path& folder) {
    try {
      FolderTar tar(folder, stop_);
      for (auto piece = tar.read(); !piece.empty(); piece = tar.read()) {
        if (!send_all(writer_.get(), piece)) break;
      }
    } catch (...) {
      failure_ = std::current_exception();
      stop_.cancel();
    }
    writer_.reset();
  }

  Fd reader_;
  Fd writer_;
  CancellationToken stop_;
  CancellationToken::Registration registration_;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace

Image import_root_folder(Store& store, const fs::path& folder, std::string_view reference,
                         const ImportOptions& options) {
  check_is_root(folder);
  Packer packer(folder, options.cancel);
  ImportOptions piped = options;
  piped.cancel = packer.stop();
  try {
    return store.import_root_tar(packer.fd(), reference, piped);
  } catch (...) {
    if (auto failure = packer.failure()) std::rethrow_exception(failure);
    throw;
  }
}

}  // namespace holt::image
