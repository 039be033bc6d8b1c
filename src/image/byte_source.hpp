// Streams of bytes, stacked: file descriptor -> decompression -> digest and budget -> tar reader.
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/image/limits.hpp"
#include "image/sha256.hpp"

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct archive;

namespace holt::image {

/// A stream that is read once.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// The next piece, good until the next call; empty at the end. Throws Error.
  virtual std::string_view read() = 0;
  /// Bytes of memory that its content has made it take: the window of a compression.
  virtual std::uint64_t memory() const { return 0; }
};

/// Bytes in memory, which must outlive it.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}
  std::string_view read() override { return std::exchange(bytes_, {}); }

 private:
  std::string_view bytes_;
};

/// A descriptor, borrowed. A wait for its writer ends at cancellation.
class FdSource final : public ByteSource {
 public:
  FdSource(int fd, std::optional<CancellationToken> cancel);
  std::string_view read() override;

 private:
  int fd_;
  std::optional<CancellationToken> cancel_;
  std::string buffer_;
};

/// For an image with more bytes than Limits::unpacked_bytes or file_bytes.
inline constexpr const char* k_bytes_hint =
    "HOLT_IMAGE_MAX_BYTES allows more, as far as the image's disk goes.";

/// Counts and digests what passes through, and stops it above `limit` bytes.
class MeteredSource final : public ByteSource {
 public:
  MeteredSource(ByteSource& below, std::uint64_t limit) : below_(below), limit_(limit) {}
  std::string_view read() override;
  std::uint64_t memory() const override { return below_.memory(); }
  /// Reads what is left, so that the digest covers the whole stream.
  void drain();
  std::string digest_hex() { return digest_.finish_hex(); }
  /// Bytes that have passed.
  std::uint64_t count() const { return count_; }

 private:
  ByteSource& below_;
  std::uint64_t limit_;
  std::uint64_t count_ = 0;
  Sha256 digest_;
};

struct ArchiveDeleter {
  void operator()(archive* handle) const;
};
using ArchiveHandle = std::unique_ptr<archive, ArchiveDeleter>;

/// Feeds a libarchive reader from a source. An exception of the source cannot pass through the C library: it
/// is kept and thrown again by rethrow(), which belongs behind every failed call of libarchive.
class ArchiveFeed {
 public:
  explicit ArchiveFeed(ByteSource& source) : source_(source) {}
  ArchiveFeed(const ArchiveFeed&) = delete;
  ArchiveFeed& operator=(const ArchiveFeed&) = delete;
  /// archive_read_open with this feed; a libarchive status.
  int open(archive* handle);
  void rethrow();

 private:
  static long read_some(archive* handle, void* self, const void** out);
  ByteSource& source_;
  std::exception_ptr failure_;
};

enum class Compressions {
  layers,  ///< none, gzip, zstd: what the OCI image specification allows
  kernel,  ///< none, gzip, zstd, xz, lz4 with its legacy frame
};

/// Whether bytes begin as a compression does that DecompressedSource knows, if only to refuse it.
bool is_compressed(std::string_view beginning);

/// The bytes behind a compression that is found by its magic, or as they are when there is none. Members of
/// gzip and frames of zstd may follow each other; anything else behind them, zeros too, is IMAGE_INVALID, as
/// damaged or cut data are. Throws Error NOT_SUPPORTED for a compression that is not accepted or, of a layer,
/// inside another one, and LIMIT_EXCEEDED for a zstd window above k_zstd_window_bytes (of a layer) or 128
/// MiB.
class DecompressedSource final : public ByteSource {
 public:
  DecompressedSource(ByteSource& below, Compressions accepted);
  ~DecompressedSource() override;
  std::string_view read() override;
  std::uint64_t memory() const override { return plain_ ? plain_->memory() : 0; }

 private:
  std::unique_ptr<ByteSource> head_;  ///< what was read to find the magic, then the source below
  std::unique_ptr<ByteSource> plain_;
  bool look_inside_ = false;  ///< the next bytes are the first ones behind a layer's compression
};

/// All bytes of a source, at most `limit`. Throws LIMIT_EXCEEDED above.
std::string read_all(ByteSource& source, std::size_t limit);

}  // namespace holt::image
