// Media types of images: those of the OCI image specification 1.1 (media-types.md) and Docker's of version 2,
// schema 2.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace holt::image {

inline constexpr std::string_view k_oci_index = "application/vnd.oci.image.index.v1+json";
inline constexpr std::string_view k_oci_manifest = "application/vnd.oci.image.manifest.v1+json";
inline constexpr std::string_view k_oci_config = "application/vnd.oci.image.config.v1+json";
inline constexpr std::string_view k_oci_layer = "application/vnd.oci.image.layer.v1.tar";
inline constexpr std::string_view k_oci_layer_gzip = "application/vnd.oci.image.layer.v1.tar+gzip";
inline constexpr std::string_view k_oci_layer_zstd = "application/vnd.oci.image.layer.v1.tar+zstd";
inline constexpr std::string_view k_docker_index =
    "application/vnd.docker.distribution.manifest.list.v2+json";
inline constexpr std::string_view k_docker_manifest = "application/vnd.docker.distribution.manifest.v2+json";
inline constexpr std::string_view k_docker_config = "application/vnd.docker.container.image.v1+json";

enum class MediaKind {
  index,
  manifest,
  config,
  layer,      ///< a tar, plain or as gzip or zstd
  encrypted,  ///< a layer that only the holder of a key can read
  schema1,    ///< Docker's manifest before 2016: no digests of a configuration, layers upside down
  generic,    ///< says nothing: empty, application/json, application/octet-stream, text/plain
  other,
};

/// The kind of a media type or Content-Type; parameters and letter case do not matter. Layers that may not be
/// handed on are layers: they are asked for where the image is, `urls` are never followed.
MediaKind media_kind(std::string_view type);

/// A media type without its parameters, in lower case.
std::string bare_media_type(std::string_view type);

}  // namespace holt::image
