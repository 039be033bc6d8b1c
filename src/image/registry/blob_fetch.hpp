// One blob from one registry, in as many pieces as it takes.
#pragma once

#include "image/oci/source.hpp"
#include "image/registry/patience.hpp"
#include "image/registry/registry_client.hpp"

#include <cstdint>
#include <string>

namespace holt::image {

/// Goes on from what the sink has: by Range, with If-Range once the server has given the blob an ETag. An
/// answer that is not the rest of the same bytes makes it begin again, so that nothing is ever put behind
/// what it does not belong to. Source: RFC 9110, 13.1.5, 14.2 and 14.4. Bytes that make a wrong blob are
/// thrown away, so that the next client begins at the front.
class BlobFetch {
 public:
  BlobFetch(std::string what, const Descriptor& descriptor, BlobSink& sink, Patience& patience)
      : what_(std::move(what)), descriptor_(descriptor), sink_(sink), patience_(patience) {}

  /// One try; a second one from the front where bytes that another client began with made a wrong blob.
  /// Throws as RegistryClient::get(), what the sink throws, and Error DIGEST_MISMATCH for wrong bytes of this
  /// client alone.
  void attempt(RegistryClient& client);

 private:
  void transfer(RegistryClient& client);
  void restart();
  void begin(const HttpHead& head, std::uint64_t offset);
  [[noreturn]] void begin_again(const std::string& reason);

  std::string what_;
  const Descriptor& descriptor_;
  BlobSink& sink_;
  Patience& patience_;
  const RegistryClient* client_ = nullptr;  ///< the last one asked
  std::string etag_;                        ///< of its blob
  bool begun_elsewhere_ = false;            ///< the sink has bytes that are not from it
};

/// The first byte of a Content-Range "bytes FIRST-LAST/SIZE"; nothing for anything else.
std::optional<std::uint64_t> first_byte(std::string_view content_range);

}  // namespace holt::image
