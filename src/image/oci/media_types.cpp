#include "image/oci/media_types.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace holt::image {
namespace {

struct KnownType {
  std::string_view type;
  MediaKind kind;
};

constexpr auto k_known = std::to_array<KnownType>({
    {k_oci_index, MediaKind::index},
    {k_docker_index, MediaKind::index},
    {k_oci_manifest, MediaKind::manifest},
    {k_docker_manifest, MediaKind::manifest},
    {k_oci_config, MediaKind::config},
    {k_docker_config, MediaKind::config},
    {k_oci_layer, MediaKind::layer},
    {k_oci_layer_gzip, MediaKind::layer},
    {k_oci_layer_zstd, MediaKind::layer},
    {"application/vnd.oci.image.layer.nondistributable.v1.tar", MediaKind::layer},
    {"application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", MediaKind::layer},
    {"application/vnd.oci.image.layer.nondistributable.v1.tar+zstd", MediaKind::layer},
    {"application/vnd.docker.image.rootfs.diff.tar", MediaKind::layer},
    {"application/vnd.docker.image.rootfs.diff.tar.gzip", MediaKind::layer},
    {"application/vnd.docker.image.rootfs.diff.tar.zstd", MediaKind::layer},
    {"application/vnd.docker.image.rootfs.foreign.diff.tar", MediaKind::layer},
    {"application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", MediaKind::layer},
    {"application/vnd.docker.distribution.manifest.v1+json", MediaKind::schema1},
    {"application/vnd.docker.distribution.manifest.v1+prettyjws", MediaKind::schema1},
    {"", MediaKind::generic},
    {"application/json", MediaKind::generic},
    {"application/octet-stream", MediaKind::generic},
    {"text/plain", MediaKind::generic},
});

}  // namespace

std::string bare_media_type(std::string_view type) {
  type = type.substr(0, type.find(';'));
  constexpr std::string_view k_space = " \t";
  std::size_t begin = type.find_first_not_of(k_space);
  if (begin == std::string_view::npos) return {};
  std::string bare(type.substr(begin, type.find_last_not_of(k_space) - begin + 1));
  for (char& c : bare) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return bare;
}

MediaKind media_kind(std::string_view type) {
  std::string bare = bare_media_type(type);
  const auto* known = std::ranges::find(k_known, bare, &KnownType::type);
  if (known != k_known.end()) return known->kind;
  return bare.ends_with("+encrypted") ? MediaKind::encrypted : MediaKind::other;
}

}  // namespace holt::image
