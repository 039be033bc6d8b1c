#include "image/oci/documents.hpp"

#include "holt/base/error.hpp"
#include "image/oci/media_types.hpp"
#include "image/oci/strict_json.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::string_view k_manifest_name = "the image's manifest";
constexpr std::size_t k_platform_word = 64;
constexpr std::size_t k_platforms_shown = 20;

std::string shown(std::string_view text) {
  return fmt::format("'{}'", printable(text, 100));
}

std::string digest_of(const Fields& fields) {
  std::string digest = fields.string("digest");
  if (is_digest(digest)) return digest;
  if (digest.starts_with("sha512:")) {
    throw Error(ErrorCode::not_supported,
                fmt::format("read {}: it has sha512 digests, holt reads sha256", k_manifest_name),
                {.hint = "Copy the image with a tool that writes sha256, e.g. skopeo."});
  }
  fields.refuse(
      fmt::format("the digest {} is not \"sha256:\" and 64 lower-case hexadecimal digits", shown(digest)));
}

std::optional<Platform> platform_of(const Fields& descriptor) {
  const Json* json = descriptor.object("platform");
  if (!json) return std::nullopt;
  Fields fields(*json, k_manifest_name);
  Platform platform{.os = fields.string("os"),
                    .architecture = fields.string("architecture"),
                    .variant = fields.string("variant")};
  for (const std::string* word : {&platform.os, &platform.architecture, &platform.variant}) {
    if (word->size() > k_platform_word) fields.refuse("a platform has a word of more than 64 bytes");
  }
  if (platform.os.empty() && platform.architecture.empty()) return std::nullopt;
  return platform;
}

Descriptor descriptor_of(const Json& json) {
  if (!json.is_object()) Fields(json, k_manifest_name).refuse("a descriptor is not an object");
  Fields fields(json, k_manifest_name);
  Descriptor descriptor{.media_type = bare_media_type(fields.string("mediaType")),
                        .digest = digest_of(fields),
                        .size = fields.size("size"),
                        .platform = platform_of(fields)};
  if (const Json* annotations = fields.object("annotations")) {
    Fields notes(*annotations, k_manifest_name);
    descriptor.name = notes.string("org.opencontainers.image.ref.name");
    descriptor.full_name = notes.string("io.containerd.image.name");
  }
  return descriptor;
}

/// An entry of an index that no machine could run: an artifact, or what a builder attests of an image.
bool is_image_entry(const Json& json, const Descriptor& descriptor) {
  Fields fields(json, k_manifest_name);
  if (descriptor.platform && descriptor.platform->os == "unknown") return false;
  if (!descriptor.platform && !fields.string("artifactType").empty()) return false;
  if (const Json* annotations = fields.object("annotations")) {
    if (Fields(*annotations, k_manifest_name).has("vnd.docker.reference.type")) return false;
  }
  MediaKind kind = media_kind(descriptor.media_type);
  return kind == MediaKind::index || kind == MediaKind::manifest || descriptor.media_type.empty();
}

Index index_of(const Fields& fields) {
  const Json* entries = fields.list("manifests");
  if (!entries) fields.refuse("the index has no 'manifests'");
  if (entries->size() > k_index_entries) {
    throw Error(ErrorCode::limit_exceeded,
                fmt::format("read {}: its index has {} entries, at most {} are read", k_manifest_name,
                            entries->size(), k_index_entries));
  }
  Index index;
  for (const Json& entry : *entries) {
    Descriptor descriptor = descriptor_of(entry);
    if (is_image_entry(entry, descriptor)) index.manifests.push_back(std::move(descriptor));
  }
  return index;
}

void check_layer(const Descriptor& layer) {
  MediaKind kind = media_kind(layer.media_type);
  if (kind == MediaKind::layer) return;
  if (kind == MediaKind::encrypted) {
    throw Error(ErrorCode::not_supported, fmt::format("read {}: its layers are encrypted", k_manifest_name));
  }
  throw Error(ErrorCode::not_supported,
              fmt::format("read {}: a layer is of the type {}, holt reads tar, gzip and "
                          "zstd",
                          k_manifest_name, shown(layer.media_type)));
}

Manifest manifest_of(const Fields& fields) {
  const Json* config = fields.object("config");
  const Json* layers = fields.list("layers");
  if (!config || !layers) fields.refuse("it has no 'config' or no 'layers'");
  Manifest manifest{.config = descriptor_of(*config), .layers = {}};
  if (media_kind(manifest.config.media_type) != MediaKind::config) {
    throw Error(ErrorCode::not_supported, fmt::format("read {}: it is not of an image but of an artifact, {}",
                                                      k_manifest_name, shown(manifest.config.media_type)));
  }
  if (layers->size() > k_layers) {
    throw Error(ErrorCode::limit_exceeded, fmt::format("read {}: it has {} layers, at most {} are read",
                                                       k_manifest_name, layers->size(), k_layers));
  }
  for (const Json& layer : *layers) {
    manifest.layers.push_back(descriptor_of(layer));
    check_layer(manifest.layers.back());
  }
  return manifest;
}

[[noreturn]] void refuse_schema1() {
  throw Error(
      ErrorCode::not_supported,
      fmt::format("read {}: it is of Docker's schema 1, which nothing writes since 2016", k_manifest_name),
      {.hint = "Pull and push the image once with a current docker or skopeo: that writes it anew."});
}

/// What the source calls the document; nothing for a word that says nothing.
std::optional<MediaKind> announced_kind(std::string_view content_type) {
  MediaKind kind = media_kind(content_type);
  if (kind == MediaKind::schema1) refuse_schema1();
  if (kind == MediaKind::generic) return std::nullopt;
  if (kind == MediaKind::index || kind == MediaKind::manifest) return kind;
  throw Error(ErrorCode::image_invalid, fmt::format("read {}: what came is {}, neither manifest nor index",
                                                    k_manifest_name, shown(content_type)));
}

MediaKind shape_of(const Fields& fields) {
  bool index = fields.has("manifests");
  bool manifest = fields.has("layers") || fields.has("config");
  if (index && manifest) fields.refuse("it is an index and a manifest at once");
  if (!index && !manifest) fields.refuse("it is neither an index nor a manifest");
  return index ? MediaKind::index : MediaKind::manifest;
}

/// The kind that the document gives itself, in agreement with what the source says and with its members.
MediaKind kind_of(const Fields& fields, std::string_view content_type) {
  auto announced = announced_kind(content_type);
  std::string media_type = bare_media_type(fields.string("mediaType"));
  MediaKind kind = media_kind(media_type);
  if (kind == MediaKind::schema1 || fields.has("fsLayers")) refuse_schema1();
  if (!media_type.empty() && kind != MediaKind::index && kind != MediaKind::manifest) {
    throw Error(ErrorCode::not_supported, fmt::format("read {}: holt does not read documents of the type {}",
                                                      k_manifest_name, shown(media_type)));
  }
  if (announced && !media_type.empty() && bare_media_type(content_type) != media_type) {
    fields.refuse(fmt::format("it came as {} and calls itself {}", shown(content_type), shown(media_type)));
  }
  MediaKind shape = shape_of(fields);
  if ((!media_type.empty() && kind != shape) || (announced && *announced != shape)) {
    fields.refuse(fmt::format("it is called {} and is {}",
                              shown(media_type.empty() ? content_type : media_type),
                              shape == MediaKind::index ? "an index" : "a manifest"));
  }
  return shape;
}

/// containerd and Docker write arm64 with and without its only variant.
std::string_view plain_variant(const Platform& platform) {
  return platform.architecture == "arm64" && platform.variant == "v8" ? ""
                                                                      : std::string_view(platform.variant);
}

bool same_family(const Platform& a, const Platform& b) {
  return a.os == b.os && a.architecture == b.architecture;
}

std::string platforms_of(const Index& index) {
  std::vector<std::string> names;
  for (const Descriptor& entry : index.manifests) {
    if (!entry.platform) continue;
    std::string name = printable(entry.platform->text(), 100);
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    if (names.size() == k_platforms_shown) {
      names.emplace_back("others");
      break;
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Document parse_document(std::string_view bytes, std::string_view content_type) {
  if (bytes.size() > k_manifest_bytes) {
    throw Error(ErrorCode::limit_exceeded, fmt::format("read {}: it has {} bytes, at most {} are read",
                                                       k_manifest_name, bytes.size(), k_manifest_bytes));
  }
  // First of all: a page of a proxy or a signed schema 1 is told better than by what is wrong with its JSON.
  announced_kind(content_type);
  Json json = parse_strict_object(bytes, k_manifest_name);
  Fields fields(json, k_manifest_name);
  MediaKind kind = kind_of(fields, content_type);
  auto version = fields.has("schemaVersion") ? fields.size("schemaVersion") : 0;
  if (version == 1) refuse_schema1();
  if (version != 2) fields.refuse("its 'schemaVersion' is not 2");
  if (kind == MediaKind::index) return index_of(fields);
  return manifest_of(fields);
}

const Descriptor& choose(const Index& index, const Platform& platform) {
  const auto& entries = index.manifests;
  auto first = [&](auto fits) { return std::ranges::find_if(entries, fits); };
  auto found = first([&](const Descriptor& entry) {
    return entry.platform && same_family(*entry.platform, platform) &&
           plain_variant(*entry.platform) == plain_variant(platform);
  });
  if (found == entries.end() && platform.variant.empty()) {
    found = first(
        [&](const Descriptor& entry) { return entry.platform && same_family(*entry.platform, platform); });
  }
  if (found == entries.end()) found = first([](const Descriptor& entry) { return !entry.platform; });
  if (found != entries.end()) return *found;
  std::string offered = platforms_of(index);
  throw Error(ErrorCode::not_found,
              fmt::format("choose the image for {}: {}", platform.text(),
                          offered.empty() ? "the index holds no image" : "there is only " + offered));
}

}  // namespace holt::image
