// The JSON documents of an OCI image (and Docker's version 2 of them): index, manifest, configuration.
//
//   Document top = parse_document(bytes, content_type);
//   if (auto* index = std::get_if<Index>(&top)) descriptor = choose(*index, platform);
//
// All input is foreign: sizes, depth and counts are bounded before anything is kept. Throws Error
// IMAGE_INVALID or LIMIT_EXCEEDED, NOT_SUPPORTED for kinds that holt does not read (schema 1, artifacts,
// encrypted or unknown layers, digests other than sha256).
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
/// Of each of Env, Entrypoint, Cmd, ExposedPorts, Volumes, Labels, with nine bytes for each entry.
inline constexpr std::size_t k_member_bytes = std::size_t{1} << 20;
inline constexpr std::size_t k_index_depth = 4;
inline constexpr std::size_t k_layers = 1000;
inline constexpr std::size_t k_index_entries = 1000;

/// What a document says of a blob. `digest` is checked by is_digest(), so it can be made a file name. `urls`
/// and embedded `data` are not looked at.
struct Descriptor {
  std::string media_type;  ///< in lower case, without parameters; may be empty in an index
  std::string digest;
  std::uint64_t size = 0;
  std::optional<Platform> platform = std::nullopt;
  std::string name = {};       ///< annotation org.opencontainers.image.ref.name, of a layout's index
  std::string full_name = {};  ///< annotation io.containerd.image.name, e.g. "docker.io/library/python:3"
};

struct Index {
  /// Images and indexes; attestations ("unknown/unknown") and artifacts are left out.
  std::vector<Descriptor> manifests;
};

struct Manifest {
  Descriptor config;
  std::vector<Descriptor> layers;
};

using Document = std::variant<Index, Manifest>;

/// `content_type` is what the source says of it (empty: nothing); one that contradicts `mediaType` is refused
/// (CVE-2021-41190), as is a document that is both index and manifest. Types that say nothing, as
/// application/json, contradict nothing.
Document parse_document(std::string_view bytes, std::string_view content_type);

/// The configuration of an image. What it says of processes is made plain: `WorkingDir` absolute, without
/// "..", below "/"; of equal names in `Env` the last counts; entries of `Env` without a name or '=', ports
/// that are none and a stop signal that is none are left out. Members that holt does not know do not matter.
struct ConfigDocument {
  ImageConfig config;
  Platform platform;                  ///< linux/amd64 where it says nothing
  std::string created;                ///< as it says, RFC 3339; may be empty
  std::vector<std::string> diff_ids;  ///< digests of the layers' tars, lowest first
};

ConfigDocument parse_config(std::string_view bytes);

/// The first entry for a platform. An entry for any variant will do for a platform without one when none
/// fits better, and at last one that names no platform; "arm64/v8" is "arm64". Throws Error NOT_FOUND that
/// names the platforms there are.
const Descriptor& choose(const Index& index, const Platform& platform);

}  // namespace holt::image
