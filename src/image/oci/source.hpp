// Where one image comes from: a registry, a layout, an archive. A source delivers bytes and trusts nobody;
// who asks (acquire.hpp) checks digests and sizes.
#pragma once

#include "image/oci/documents.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace holt::image {

/// Takes the bytes of one blob. What it has already, of an earlier try, is not asked for again.
class BlobSink {
 public:
  virtual ~BlobSink() = default;
  /// Bytes that it has: a fetch goes on from here.
  virtual std::uint64_t offset() const = 0;
  /// Forgets them: the source can only begin at the front.
  virtual void restart() = 0;
  /// Throws Error: DIGEST_MISMATCH for more bytes than the descriptor says, STORAGE_FULL, CANCELLED.
  virtual void write(std::string_view bytes) = 0;
  /// Whether digest and size are right, once a source has no more to write: one that can ask elsewhere may
  /// restart() and go on. Nothing else may be written behind it.
  virtual bool is_right() = 0;
};

/// A document as the source has it.
struct RawDocument {
  std::string bytes;
  std::string media_type;  ///< what the source says of it; may be empty
};

/// Throws Error with what went wrong and where: NOT_FOUND, UNAUTHORIZED, NETWORK_ERROR, LIMIT_EXCEEDED,
/// IMAGE_INVALID. One caller at a time for top() and document(); fetch() from as many threads as
/// parallel_fetches() says.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  /// For messages: "127.0.0.1:5000/app:1", "the archive app.tar". Never with a password in it.
  virtual std::string name() const = 0;
  /// The document that the image's name stands for: index or manifest, at most k_manifest_bytes.
  virtual RawDocument top() = 0;
  /// The document of a descriptor, at most `limit` bytes.
  virtual RawDocument document(const Descriptor& descriptor, std::size_t limit) = 0;
  /// Writes a blob into the sink from sink.offset() on, to its end. Retries and resumes by itself.
  virtual void fetch(const Descriptor& descriptor, BlobSink& sink) = 0;
  virtual std::size_t parallel_fetches() const { return 1; }
};

}  // namespace holt::image
