// The content store: manifests, configurations and compressed layers under their digests.
//
//   BlobStore blobs(store.folder());
//   if (!blobs.has(descriptor)) {
//     BlobDownload download(blobs, descriptor, blobs.lock(descriptor.digest, cancel), stream, cancel);
//     source.fetch(descriptor, download);
//     download.commit();
//   }
//
// A blob is written to blobs/partial/HEX under the lock of its digest and renamed to blobs/sha256/HEX when
// digest and size are right. Whoever finds the lock taken waits, and then finds the blob; the beginning that
// a dead holder left is gone on from, once its bytes have been digested again.
//
// All calls are thread-safe and safe between processes. Throws Error STORAGE_FULL, STORAGE_ERROR.
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/base/files.hpp"
#include "image/blob_stream.hpp"
#include "image/oci/source.hpp"
#include "image/sha256.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holt::image {

class BlobStore {
 public:
  /// `images`: Store::folder().
  explicit BlobStore(std::filesystem::path images) : images_(std::move(images)) {}
  const std::filesystem::path& images() const { return images_; }

  /// Throws InvalidArgument for what is_digest() refuses: only digests become file names.
  std::filesystem::path path(std::string_view digest) const;
  std::filesystem::path partial(std::string_view digest) const;

  /// Bytes of its file; nothing when it is not there.
  std::optional<std::uint64_t> size(std::string_view digest) const;
  /// Whether it is there with the descriptor's size. Does not read it.
  bool has(const Descriptor& descriptor) const { return size(descriptor.digest) == descriptor.size; }
  /// Whether its bytes are what its name says. Reads all of it.
  bool is_sound(std::string_view digest, const std::optional<CancellationToken>& cancel) const;
  /// Whether it or a beginning of it is there, be that empty.
  bool is_begun(std::string_view digest) const;
  /// Bytes that the next download need not ask for.
  std::uint64_t partial_size(std::string_view digest) const;

  /// A small blob, checked; nothing when it is missing, damaged or larger than `limit`.
  std::optional<std::string> read(std::string_view digest, std::size_t limit) const;
  /// Keeps a small blob whose digest the caller has checked. Its temporary file is made in `scratch`.
  /// Takes the digest's lock.
  void put(std::string_view digest, std::string_view bytes, const std::filesystem::path& scratch,
           const CancellationToken& cancel) const;

  /// Waits for the lock of a digest; CANCELLED ends it. Blobs are written and removed under it.
  FileLock lock(std::string_view digest, const CancellationToken& cancel) const;
  std::optional<FileLock> try_lock(std::string_view digest) const;
  /// Removes a blob and its beginning; bytes of disk that came free. The caller holds the lock.
  std::uint64_t discard(std::string_view digest) const;

  /// Digests of what is there, sorted.
  std::vector<std::string> all() const;
  std::vector<std::string> all_partial() const;

 private:
  std::filesystem::path images_;
};

/// One blob on its way into the store; see the top of this file. Not thread-safe.
class BlobDownload final : public BlobSink {
 public:
  /// `stream` is told of every byte; `lock` is that of the digest.
  BlobDownload(const BlobStore& blobs, const Descriptor& descriptor, FileLock lock, BlobStream& stream,
               CancellationToken cancel);

  std::uint64_t offset() const override { return offset_; }
  void restart() override;
  void write(std::string_view bytes) override;

  /// Whether bytes of an earlier try are among these.
  bool resumed() const { return resumed_; }
  /// After it only restart(), commit() and discard() make sense.
  bool is_right() override;
  /// Makes it a blob of the store, when it is_right(). Throws Error DIGEST_MISMATCH otherwise.
  void commit();
  void discard();

 private:
  void digest_beginning();

  const BlobStore& blobs_;
  Descriptor descriptor_;
  FileLock lock_;
  BlobStream& stream_;
  CancellationToken cancel_;
  Fd file_;
  Sha256 digest_;
  std::optional<bool> right_;
  std::uint64_t offset_ = 0;
  bool resumed_ = false;
};

/// For a blob or document that is not what its descriptor says.
Error digest_mismatch(std::string_view digest, std::string_view reason);

/// Throws Error DIGEST_MISMATCH, which names who sent them, for bytes that are not the descriptor's.
void check_document(const Descriptor& descriptor, std::string_view bytes, std::string_view sender);

}  // namespace holt::image
