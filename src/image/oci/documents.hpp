// The JSON documents of an OCI image (and Docker's version 2 of them): index, manifest, configuration.
//
//   Document top = parse_document(bytes, content_type);
//   if (auto* index = std::get_if<Index>(&top)) descriptor = choose(*index, platform);
//
// All input is foreign: sizes, depth and counts are bounded before anything is kept. Throws Error
// IMAGE_INVALID or LIMIT_EXCEEDED, NOT_SUPPORTED for kinds that holt does not read.
// Source: OCI image specification 1.1; Docker image manifest version 2, schema 2.
#pragma once

#include "holt/image/platform.hpp"
#include "holt/image/store.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace holt::image {

// Published in docs/reference.md.
inline constexpr std::size_t k_manifest_bytes = std::size_t{4} << 20;
inline constexpr std::size_t k_config_bytes = std::size_t{8} << 20;
inline constexpr std::size_t k_index_depth = 4;
inline constexpr std::size_t k_layers = 1000;
inline constexpr std::size_t k_index_entries = 1000;

/// What a document says of a blob. `digest` is checked by is_digest(), so it can be made a file name.
struct Descriptor {
  std::string media_type;
  std::string digest;
  std::uint64_t size = 0;
  std::optional<Platform> platform = std::nullopt;
  std::string name = {};  ///< annotation org.opencontainers.image.ref.name, of a layout's index
};

struct Index {
  std::vector<Descriptor> manifests;
};

struct Manifest {
  Descriptor config;
  std::vector<Descriptor> layers;
};

using Document = std::variant<Index, Manifest>;

/// `content_type` is what the source says of it (empty: nothing); one that contradicts `mediaType` is refused
/// (CVE-2021-41190), as is a document that is both index and manifest.
Document parse_document(std::string_view bytes, std::string_view content_type);

/// The configuration of an image.
struct ConfigDocument {
  ImageConfig config;
  Platform platform;
  std::string created;                ///< as it says, RFC 3339; may be empty
  std::vector<std::string> diff_ids;  ///< digests of the layers' tars, lowest first
};

ConfigDocument parse_config(std::string_view bytes);

/// The first entry for a platform; attestations ("unknown/unknown") and artifacts never. Throws Error
/// NOT_FOUND that names the platforms there are.
const Descriptor& choose(const Index& index, const Platform& platform);

}  // namespace holt::image
