#include "image/blobs.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/base/ids.hpp"
#include "holt/image/reference.hpp"
#include "image/folders.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::image {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t k_read_bytes = std::size_t{1} << 20;

Fd open_blob(const fs::path& path) {
  return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
}

std::optional<struct stat> regular_file(const fs::path& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return info;
}

/// Digests what a file has from its present position on; the number of bytes.
std::uint64_t digest_file(int fd, Sha256& digest, const std::optional<CancellationToken>& cancel) {
  std::string buffer(k_read_bytes, '\0');
  std::uint64_t count = 0;
  while (true) {
    if (cancel) cancel->throw_if_cancelled();
    ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw system_error(errno, "read a blob of the image store");
    if (n == 0) return count;
    digest.update(std::string_view(buffer).substr(0, static_cast<std::size_t>(n)));
    count += static_cast<std::uint64_t>(n);
  }
}

std::vector<std::string> digests_in(const fs::path& folder) {
  std::vector<std::string> digests;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::string digest = "sha256:" + entry.path().filename().string();
    if (is_digest(digest)) digests.push_back(std::move(digest));
  }
  std::ranges::sort(digests);
  return digests;
}

}  // namespace

Error digest_mismatch(std::string_view digest, std::string_view reason) {
  return {ErrorCode::digest_mismatch,
          fmt::format("check {}: {}", printable(digest, 80), reason),
          {.subject = printable(digest, 80),
           .hint = "Its bytes are not what the image says; nothing of it was used."}};
}

void check_document(const Descriptor& descriptor, std::string_view bytes, std::string_view sender) {
  if (bytes.size() != descriptor.size) {
    throw digest_mismatch(descriptor.digest, fmt::format("{} sends {} bytes instead of {}", sender,
                                                         bytes.size(), descriptor.size));
  }
  if (fmt::format("sha256:{}", sha256_hex(bytes)) != descriptor.digest)
    throw digest_mismatch(descriptor.digest, fmt::format("{} sends other bytes", sender));
}

fs::path BlobStore::path(std::string_view digest) const {
  return Folders{images_}.blobs() / digest_digits(digest);
}

fs::path BlobStore::partial(std::string_view digest) const {
  return Folders{images_}.partial_blobs() / digest_digits(digest);
}

std::optional<std::uint64_t> BlobStore::size(std::string_view digest) const {
  auto info = regular_file(path(digest));
  if (!info) return std::nullopt;
  return static_cast<std::uint64_t>(info->st_size);
}

std::uint64_t BlobStore::partial_size(std::string_view digest) const {
  auto info = regular_file(partial(digest));
  return info ? static_cast<std::uint64_t>(info->st_size) : 0;
}

bool BlobStore::is_begun(std::string_view digest) const {
  return regular_file(path(digest)) || regular_file(partial(digest));
}

bool BlobStore::is_sound(std::string_view digest, const std::optional<CancellationToken>& cancel) const {
  Fd file = open_blob(path(digest));
  if (!file && (errno == ENOENT || errno == ELOOP)) return false;
  if (!file) throw system_error(errno, "read a blob of the image store", std::string(digest));
  Sha256 sum;
  digest_file(file.get(), sum, cancel);
  return sum.finish_hex() == digest_digits(digest);
}

std::optional<std::string> BlobStore::read(std::string_view digest, std::size_t limit) const {
  auto bytes = size(digest);
  if (!bytes || *bytes > limit) return std::nullopt;
  auto content = read_file_if_exists(path(digest), limit);
  if (!content || sha256_hex(*content) != digest_digits(digest)) return std::nullopt;
  return content;
}

void BlobStore::put(std::string_view digest, std::string_view bytes, const fs::path& scratch,
                    const CancellationToken& cancel) const {
  FileLock held = lock(digest, cancel);
  if (read(digest, bytes.size())) return;
  fs::path fresh = scratch / random_hex(16);
  write_file_atomically(fresh, bytes, {.mode = 0444});
  move_into_place(fresh, path(digest));
}

FileLock BlobStore::lock(std::string_view digest, const CancellationToken& cancel) const {
  return wait_for_lock(Folders{images_}.blob_lock(digest), cancel);
}

std::optional<FileLock> BlobStore::try_lock(std::string_view digest) const {
  return image::try_lock(Folders{images_}.blob_lock(digest));
}

std::uint64_t BlobStore::discard(std::string_view digest) const {
  std::uint64_t bytes = 0;
  for (const fs::path& file : {path(digest), partial(digest)}) {
    auto info = regular_file(file);
    if (::unlink(file.c_str()) == 0) {
      if (info) bytes += static_cast<std::uint64_t>(info->st_blocks) * 512;
    } else if (errno != ENOENT) {
      throw system_error(errno, "remove a blob of the image store", std::string(digest));
    }
  }
  return bytes;
}

std::vector<std::string> BlobStore::all() const {
  return digests_in(Folders{images_}.blobs());
}

std::vector<std::string> BlobStore::all_partial() const {
  return digests_in(Folders{images_}.partial_blobs());
}

BlobDownload::BlobDownload(const BlobStore& blobs, const Descriptor& descriptor, FileLock lock,
                           BlobStream& stream, CancellationToken cancel)
    : blobs_(blobs),
      descriptor_(descriptor),
      lock_(std::move(lock)),
      stream_(stream),
      cancel_(std::move(cancel)) {
  fs::path file = blobs_.partial(descriptor_.digest);
  make_private_directory(file.parent_path());
  file_ = Fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!file_) throw system_error(errno, "write a blob of the image store", descriptor_.digest);
  digest_beginning();
  Fd reader = open_blob(file);
  if (!reader) throw system_error(errno, "read a blob of the image store", descriptor_.digest);
  stream_.open(std::move(reader), offset_);
}

void BlobDownload::digest_beginning() {
  offset_ = digest_file(file_.get(), digest_, cancel_);
  resumed_ = offset_ > 0;
  if (offset_ <= descriptor_.size) return;
  digest_ = Sha256();
  offset_ = 0;
  resumed_ = false;
  if (::ftruncate(file_.get(), 0) != 0)
    throw system_error(errno, "write a blob of the image store", descriptor_.digest);
}

void BlobDownload::restart() {
  stream_.restart();
  digest_ = Sha256();
  right_.reset();
  offset_ = 0;
  resumed_ = false;
  if (::ftruncate(file_.get(), 0) != 0)
    throw system_error(errno, "write a blob of the image store", descriptor_.digest);
}

void BlobDownload::write(std::string_view bytes) {
  cancel_.throw_if_cancelled();
  if (bytes.size() > descriptor_.size - offset_) {
    throw digest_mismatch(descriptor_.digest,
                          fmt::format("more bytes came than the {} it should have", descriptor_.size));
  }
  digest_.update(bytes);
  while (!bytes.empty()) {
    ssize_t n = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw system_error(errno, "write a blob of the image store", descriptor_.digest);
    offset_ += static_cast<std::uint64_t>(n);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  stream_.grow(offset_);
}

bool BlobDownload::is_right() {
  if (!right_)
    right_ = offset_ == descriptor_.size && digest_.finish_hex() == digest_digits(descriptor_.digest);
  return *right_;
}

void BlobDownload::commit() {
  if (!is_right()) {
    throw digest_mismatch(descriptor_.digest,
                          offset_ == descriptor_.size
                              ? "other bytes came"
                              : fmt::format("{} bytes came instead of {}", offset_, descriptor_.size));
  }
  if (::fsync(file_.get()) != 0)
    throw system_error(errno, "write a blob of the image store", descriptor_.digest);
  move_into_place(blobs_.partial(descriptor_.digest), blobs_.path(descriptor_.digest));
  // Last: a beginning that cannot be written to could not be gone on from.
  if (::fchmod(file_.get(), 0444) != 0)
    throw system_error(errno, "protect a blob of the image store", descriptor_.digest);
  stream_.finish();
}

void BlobDownload::discard() {
  ::unlink(blobs_.partial(descriptor_.digest).c_str());
}

}  // namespace holt::image
