// An image at a registry: OCI distribution specification 1.1, "Pull"; Docker's Registry HTTP API V2.
//
//   RegistrySource source(reference, options, cancel);
//   RawDocument top = source.top();
#pragma once

#include "holt/image/pull.hpp"
#include "holt/image/reference.hpp"
#include "image/oci/source.hpp"
#include "image/registry/patience.hpp"
#include "image/registry/registry_client.hpp"
#include "image/registry/surroundings.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace holt::image {

/// Nothing is asked before top(). Tokens, redirects, retries and mirrors are dealt with below it:
/// authorizer.hpp, safe_http.hpp, patience.hpp. A mirror gets one try, and none more when it could not be
/// talked to or sent bytes that are not what their digest says: then the next one is asked. fetch() throws,
/// beyond what ImageSource says, DIGEST_MISMATCH when the registry itself lies, and what the sink throws.
class RegistrySource final : public ImageSource {
 public:
  RegistrySource(const Reference& reference, const RegistryOptions& options,
                 const std::optional<CancellationToken>& cancel);
  RegistrySource(const Reference& reference, const RegistryOptions& options,
                 const std::optional<CancellationToken>& cancel, const Surroundings& surroundings);

  std::string name() const override { return reference_.canonical(); }
  RawDocument top() override;
  RawDocument document(const Descriptor& descriptor, std::size_t limit) override;
  void fetch(const Descriptor& descriptor, BlobSink& sink) override;
  std::size_t parallel_fetches() const override;

 private:
  struct Place {
    std::unique_ptr<RegistryClient> client;
    std::atomic<bool> dead = false;
  };
  struct Fetched {
    RawDocument document;
    HttpHead head;
  };
  void from_each(Patience& patience, const std::function<void(RegistryClient&)>& ask);
  /// Throws DIGEST_MISMATCH for what `sender` should not have sent.
  using Check = std::function<void(const Fetched&, const std::string& sender)>;
  Fetched fetch_document(const std::string& what, const std::string& path, std::size_t limit,
                         const Check& check);

  Reference reference_;
  RegistryOptions options_;
  std::optional<CancellationToken> cancel_;
  Surroundings surroundings_;
  std::vector<std::unique_ptr<Place>> places_;  // mirrors, then the registry
};

}  // namespace holt::image
