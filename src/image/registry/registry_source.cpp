#include "image/registry/registry_source.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/log.hpp"
#include "image/blobs.hpp"
#include "image/oci/media_types.hpp"
#include "image/registry/blob_fetch.hpp"

#include <charconv>

#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::size_t k_parallel_fetches = 3;

bool is_elsewhere_perhaps(ErrorCode code) {
  return code == ErrorCode::not_found || code == ErrorCode::unauthorized ||
         code == ErrorCode::network_error || code == ErrorCode::limit_exceeded ||
         code == ErrorCode::image_invalid || code == ErrorCode::digest_mismatch;
}

std::string accepted_manifests() {
  return fmt::format("{}, {}, {}, {}", k_oci_index, k_oci_manifest, k_docker_index, k_docker_manifest);
}

[[noreturn]] void throw_too_long(const std::string& what, const std::string& registry, std::size_t limit) {
  throw Error(ErrorCode::limit_exceeded,
              fmt::format("fetch {} from {}: it is longer than the {} bytes that one may have", what,
                          registry, limit),
              {.subject = registry});
}

void check_length(const HttpHead& head, const std::string& what, const std::string& registry,
                  std::size_t limit) {
  auto text = head.header("content-length");
  std::uint64_t length = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (error == std::errc() && length > limit) throw_too_long(what, registry, limit);
}

}  // namespace

RegistrySource::RegistrySource(const Reference& reference, const RegistryOptions& options,
                               const std::optional<CancellationToken>& cancel)
    : RegistrySource(reference, options, cancel, Surroundings::of_process()) {}

RegistrySource::RegistrySource(const Reference& reference, const RegistryOptions& options,
                               const std::optional<CancellationToken>& cancel,
                               const Surroundings& surroundings)
    : reference_(reference), options_(options), cancel_(cancel), surroundings_(surroundings) {
  auto add = [&](Endpoint endpoint, const RegistryOptions& how) {
    auto place = std::make_unique<Place>();
    place->client = std::make_unique<RegistryClient>(std::move(endpoint), how, surroundings_, cancel_);
    places_.push_back(std::move(place));
  };
  if (options_.ca_file && !std::filesystem::exists(*options_.ca_file)) {
    throw Error(
        ErrorCode::not_found,
        fmt::format("trust the certificates in {}: there is no such file", options_.ca_file->string()),
        {.subject = options_.ca_file->string()});
  }
  if (auto it = options_.mirrors.find(reference_.registry()); it != options_.mirrors.end()) {
    // What the caller gave is the registry's own; a mirror's stands under its host in a file.
    RegistryOptions of_mirrors = options_;
    of_mirrors.credentials.reset();
    for (const auto& base : it->second) add(mirror_endpoint(base, reference_.repository()), of_mirrors);
  }
  add({.registry = reference_.registry(), .repository = reference_.repository()}, options_);
}

std::size_t RegistrySource::parallel_fetches() const {
  return k_parallel_fetches;
}

/// A mirror that fails or lies is passed over; what the registry itself says is final.
void RegistrySource::from_each(Patience& patience, const std::function<void(RegistryClient&)>& ask) {
  for (auto& place : places_) {
    if (place == places_.back()) return patience.with([&] { ask(*place->client); });
    if (place->dead) continue;
    try {
      return ask(*place->client);
    } catch (const Error& error) {
      if (!is_elsewhere_perhaps(error.code())) throw;
      bool is_bad = error.code() == ErrorCode::network_error || error.code() == ErrorCode::digest_mismatch;
      if (is_bad) place->dead = true;
      logger("holt.image")
          ->log(is_bad ? spdlog::level::warn : spdlog::level::info, "The mirror {} is passed over: {}",
                place->client->registry(), error.what());
    }
  }
}

RegistrySource::Fetched RegistrySource::fetch_document(const std::string& what, const std::string& path,
                                                       std::size_t limit, const Check& check) {
  Fetched fetched;
  Patience patience(options_.retries, surroundings_, cancel_);
  from_each(patience, [&](RegistryClient& client) {
    auto& bytes = fetched.document.bytes;
    fetched.head = client.get({.what = what,
                               .path = path,
                               .headers = {{"Accept", accepted_manifests()}},
                               .on_head =
                                   [&](const HttpHead& head) {
                                     bytes.clear();
                                     check_length(head, what, client.registry(), limit);
                                   },
                               .on_body =
                                   [&](std::string_view piece) {
                                     if (piece.size() > limit - bytes.size()) {
                                       throw_too_long(what, client.registry(), limit);
                                     }
                                     bytes += piece;
                                   }});
    check(fetched, client.registry());
  });
  fetched.document.media_type = fetched.head.header("content-type");
  return fetched;
}

RawDocument RegistrySource::top() {
  std::string what = "the manifest of " + name();
  auto check = [&](const Fetched& fetched, const std::string& sender) {
    std::string actual = "sha256:" + sha256_hex(fetched.document.bytes);
    auto promised = fetched.head.header("docker-content-digest");
    for (std::string_view wanted : {std::string_view(reference_.digest), promised}) {
      if (!is_digest(wanted) || wanted == actual) continue;
      throw digest_mismatch(wanted, fmt::format("{} sends {} for {}", sender, actual, name()));
    }
  };
  return std::move(
      fetch_document(what, "manifests/" + (reference_.digest.empty() ? reference_.tag : reference_.digest),
                     k_manifest_bytes, check)
          .document);
}

RawDocument RegistrySource::document(const Descriptor& descriptor, std::size_t limit) {
  auto kind = media_kind(descriptor.media_type);
  bool is_manifest = kind == MediaKind::index || kind == MediaKind::manifest || kind == MediaKind::schema1;
  auto check = [&](const Fetched& fetched, const std::string& sender) {
    check_document(descriptor, fetched.document.bytes, sender);
  };
  return std::move(fetch_document(fmt::format("the document {} of {}", descriptor.digest, name()),
                                  (is_manifest ? "manifests/" : "blobs/") + descriptor.digest, limit, check)
                       .document);
}

void RegistrySource::fetch(const Descriptor& descriptor, BlobSink& sink) {
  Patience patience(options_.retries, surroundings_, cancel_);
  BlobFetch blob(fmt::format("the blob {} of {}", descriptor.digest, name()), descriptor, sink, patience);
  try {
    from_each(patience, [&](RegistryClient& client) { blob.attempt(client); });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::network_error) throw;
    throw Error(ErrorCode::network_error,
                fmt::format("{}; got {} of {} bytes", error.what(), sink.offset(), descriptor.size),
                {.subject = descriptor.digest, .hint = error.hint(), .retryable = true});
  }
}

}  // namespace holt::image
