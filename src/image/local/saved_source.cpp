#include "image/local/saved_source.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/image/reference.hpp"
#include "image/oci/media_types.hpp"
#include "image/oci/strict_json.hpp"
#include "image/sha256.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::string_view k_what = "manifest.json of the archive";
constexpr std::size_t k_piece_bytes = std::size_t{1} << 20;

/// Some writers of this format compress its layers.
std::string_view layer_type(std::string_view beginning) {
  if (beginning.starts_with("\x1f\x8b")) return k_oci_layer_gzip;
  if (beginning.starts_with("\x28\xb5\x2f\xfd")) return k_oci_layer_zstd;
  return k_oci_layer;
}

Json descriptor_json(const Descriptor& descriptor) {
  return Json{{"mediaType", descriptor.media_type}, {"digest", descriptor.digest}, {"size", descriptor.size}};
}

std::string canonical_or_same(const std::string& name) {
  auto reference = parse_reference(name);
  return reference ? reference->canonical() : name;
}

}  // namespace

struct SavedSource::Entry {
  std::string config;
  std::vector<std::string> tags;
  std::vector<std::string> layers;
};

SavedSource::SavedSource(std::unique_ptr<ArchiveFiles> files, std::string title, std::string_view select,
                         const std::optional<CancellationToken>& cancel)
    : FileSource(std::move(title)), files_(std::move(files)) {
  Entry entry = choose_entry(select);
  std::string config_bytes = read(entry.config, k_config_bytes);
  Descriptor config{.media_type = std::string(k_oci_config),
                    .digest = "sha256:" + sha256_hex(config_bytes),
                    .size = config_bytes.size()};
  members_[config.digest] = entry.config;
  Json layers = Json::array();
  for (const std::string& member : entry.layers) {
    Descriptor descriptor = layer(member, cancel);
    members_[descriptor.digest] = member;
    layers.push_back(descriptor_json(descriptor));
  }
  top_ = {.bytes = dump_json(Json{{"schemaVersion", 2},
                                  {"mediaType", std::string(k_oci_manifest)},
                                  {"config", descriptor_json(config)},
                                  {"layers", layers}}),
          .media_type = std::string(k_oci_manifest)};
  auto selected = std::ranges::find(entry.tags, canonical_or_same(std::string(select)), canonical_or_same);
  if (selected != entry.tags.end()) {
    image_name_ = *selected;
  } else if (!entry.tags.empty()) {
    image_name_ = entry.tags.front();
  }
}

FileSlice SavedSource::open(const std::string& member) const {
  auto slice = files_->open_linked(member);
  if (slice) return std::move(*slice);
  throw Error(ErrorCode::image_invalid,
              fmt::format("read {}: '{}' is missing", name(), printable(member, 200)));
}

std::string SavedSource::read(const std::string& member, std::size_t limit) const {
  return read_slice(open(member), limit, member);
}

std::vector<SavedSource::Entry> SavedSource::read_entries() const {
  Json list = parse_strict_list(read("manifest.json", k_manifest_bytes), k_what);
  if (list.size() > k_index_entries) {
    throw Error(ErrorCode::limit_exceeded, fmt::format("read {}: it holds {} images, at most {} are read",
                                                       name(), list.size(), k_index_entries));
  }
  std::vector<Entry> entries;
  for (const Json& json : list) {
    Fields fields(json, k_what);
    if (!json.is_object()) fields.refuse("an entry is not an object");
    Entry entry{.config = fields.string("Config"),
                .tags = fields.strings("RepoTags"),
                .layers = fields.strings("Layers")};
    if (entry.config.empty()) fields.refuse("an entry has no 'Config'");
    if (entry.layers.size() > k_layers) {
      throw Error(ErrorCode::limit_exceeded,
                  fmt::format("read {}: an image has {} layers, at most {} are read", name(),
                              entry.layers.size(), k_layers));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

SavedSource::Entry SavedSource::choose_entry(std::string_view select) const {
  auto entries = read_entries();
  if (entries.empty())
    throw Error(ErrorCode::image_invalid, fmt::format("read {}: it holds no image", name()));
  if (select.empty() && entries.size() == 1) return entries.front();
  std::string wanted = canonical_or_same(std::string(select));
  std::vector<std::string> names;
  for (const Entry& entry : entries) {
    bool selected =
        !select.empty() && std::ranges::find(entry.tags, wanted, canonical_or_same) != entry.tags.end();
    if (!selected && is_digest(select)) {
      selected = "sha256:" + sha256_hex(read(entry.config, k_config_bytes)) == select;
    }
    if (selected) return entry;
    names.push_back(entry.tags.empty() ? entry.config : entry.tags.front());
  }
  refuse_choice(name(), select, names);
}

Descriptor SavedSource::layer(const std::string& member,
                              const std::optional<CancellationToken>& cancel) const {
  FileSlice slice = open(member);
  Sha256 digest;
  std::uint64_t at = 0;
  std::string_view type = k_oci_layer;
  while (at < slice.size) {
    if (cancel) cancel->throw_if_cancelled();
    std::string piece = read_at(slice, at, k_piece_bytes);
    if (piece.empty()) {
      throw Error(ErrorCode::image_invalid,
                  fmt::format("read {}: it ends inside '{}'", name(), printable(member, 200)));
    }
    if (at == 0) type = layer_type(piece);
    digest.update(piece);
    at += piece.size();
  }
  return {.media_type = std::string(type), .digest = "sha256:" + digest.finish_hex(), .size = slice.size};
}

FileSlice SavedSource::blob(const std::string& digest) const {
  auto found = members_.find(digest);
  if (found != members_.end()) return open(found->second);
  throw Error(ErrorCode::image_invalid,
              fmt::format("read {}: the blob {} is missing", name(), printable(digest, 100)));
}

}  // namespace holt::image
