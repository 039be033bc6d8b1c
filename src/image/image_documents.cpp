#include "image/image_documents.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "image/blobs.hpp"

#include <map>
#include <variant>

#include <fmt/format.h>

namespace holt::image {
namespace {

std::string digest_of(std::string_view bytes) {
  return "sha256:" + sha256_hex(bytes);
}

/// A document that is what its descriptor says.
RawDocument fetch_document(ImageSource& source, const Descriptor& descriptor, std::size_t limit) {
  if (descriptor.size > limit) {
    throw Error(ErrorCode::limit_exceeded,
                fmt::format("fetch {} from {}: it has {} bytes, more than {}", descriptor.digest,
                            source.name(), descriptor.size, limit),
                {.subject = descriptor.digest});
  }
  RawDocument raw = source.document(descriptor, limit);
  check_document(descriptor, raw.bytes, source.name());
  return raw;
}

/// A configuration may leave its platform out; one that names another cannot run.
void check_platform(const ImageSource& source, const Platform& found, const Platform& wanted) {
  bool same = (found.os.empty() || found.os == wanted.os) &&
              (found.architecture.empty() || found.architecture == wanted.architecture) &&
              (wanted.variant.empty() || found.variant.empty() || found.variant == wanted.variant);
  if (same) return;
  throw Error(ErrorCode::not_found,
              fmt::format("find an image for {} in {}: there is only {}", wanted.text(), source.name(),
                          printable(found.text(), 80)),
              {.subject = source.name()});
}

/// A blob that two layers share is one blob.
void check_sizes(const Manifest& manifest) {
  std::map<std::string_view, std::uint64_t> sizes;
  for (const Descriptor& layer : manifest.layers) {
    auto [known, fresh] = sizes.emplace(layer.digest, layer.size);
    if (fresh || known->second == layer.size) continue;
    throw Error(ErrorCode::image_invalid,
                fmt::format("read the manifest: it gives {} two sizes", layer.digest),
                {.subject = layer.digest});
  }
}

}  // namespace

ImageDocuments read_documents(ImageSource& source, const Reference& reference, const Platform& platform) {
  ImageDocuments documents;
  RawDocument raw = source.top();
  documents.top_digest = digest_of(raw.bytes);
  if (!reference.digest.empty() && documents.top_digest != reference.digest)
    throw digest_mismatch(reference.digest, fmt::format("{} sends {}", source.name(), documents.top_digest));
  documents.manifest_digest = documents.top_digest;

  Document document = parse_document(raw.bytes, raw.media_type);
  for (std::size_t depth = 1; auto* index = std::get_if<Index>(&document); ++depth) {
    if (depth > k_index_depth) {
      throw Error(
          ErrorCode::limit_exceeded,
          fmt::format("read {}: its indexes are nested more than {} deep", source.name(), k_index_depth),
          {.subject = source.name()});
    }
    Descriptor chosen = choose(*index, platform);
    raw = fetch_document(source, chosen, k_manifest_bytes);
    documents.manifest_digest = chosen.digest;
    document = parse_document(raw.bytes, raw.media_type.empty() ? chosen.media_type : raw.media_type);
  }
  documents.manifest = std::get<Manifest>(std::move(document));
  documents.manifest_bytes = std::move(raw.bytes);
  check_sizes(documents.manifest);

  documents.config_bytes = fetch_document(source, documents.manifest.config, k_config_bytes).bytes;
  documents.config = parse_config(documents.config_bytes);
  check_platform(source, documents.config.platform, platform);
  std::size_t layers = documents.manifest.layers.size();
  if (documents.config.diff_ids.size() != layers) {
    throw Error(ErrorCode::image_invalid,
                fmt::format("read {}: its manifest has {} layers and its configuration {}", source.name(),
                            layers, documents.config.diff_ids.size()),
                {.subject = source.name()});
  }
  return documents;
}

}  // namespace holt::image
