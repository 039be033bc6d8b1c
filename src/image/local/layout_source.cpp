#include "image/local/layout_source.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/image/reference.hpp"
#include "image/blobs.hpp"
#include "image/oci/media_types.hpp"
#include "image/oci/strict_json.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::size_t k_version_bytes = std::size_t{64} << 10;

bool same_reference(std::string_view a, std::string_view b) {
  auto x = parse_reference(a);
  auto y = parse_reference(b);
  return x && y && x->canonical() == y->canonical();
}

bool is_selected(const Descriptor& entry, std::string_view select) {
  if (select == entry.digest) return true;
  return std::ranges::any_of(std::array{&entry.name, &entry.full_name}, [&](const std::string* name) {
    return !name->empty() && (select == *name || same_reference(select, *name));
  });
}

/// Entries that are one image for several platforms.
bool are_variants(const std::vector<Descriptor>& entries) {
  return std::ranges::all_of(entries, [&](const Descriptor& entry) {
    return entry.platform && entry.name == entries.front().name &&
           entry.full_name == entries.front().full_name;
  });
}

std::string shown_name(const Descriptor& entry) {
  if (!entry.full_name.empty()) return entry.full_name;
  return entry.name.empty() ? entry.digest : entry.name;
}

Descriptor choose_entry(const Index& index, std::string_view select, const Platform& platform,
                        std::string_view title) {
  std::vector<Descriptor> entries;
  std::vector<std::string> names;
  for (const Descriptor& entry : index.manifests) {
    names.push_back(shown_name(entry));
    if (select.empty() || is_selected(entry, select)) entries.push_back(entry);
  }
  if (entries.size() == 1) return entries.front();
  if (!entries.empty() && are_variants(entries)) return choose({.manifests = std::move(entries)}, platform);
  if (names.empty()) {
    throw Error(ErrorCode::image_invalid, fmt::format("read {}: its index.json lists no image", title));
  }
  refuse_choice(title, select, names);
}

/// The annotation "ref.name" is a whole reference for some writers and a tag for others.
std::string name_of(const Descriptor& entry) {
  if (!entry.full_name.empty()) return entry.full_name;
  bool whole = entry.name.find_first_of("/:@") != std::string::npos;
  return entry.name.empty() || whole ? entry.name : ":" + entry.name;
}

}  // namespace

LayoutSource::LayoutSource(std::unique_ptr<SourceFiles> files, std::string title, std::string_view select,
                           const Platform& platform)
    : FileSource(std::move(title)), files_(std::move(files)) {
  check_version();
  auto index = parse_document(read("index.json", k_manifest_bytes), k_oci_index);
  chosen_ = choose_entry(std::get<Index>(index), select, platform, name());
  image_name_ = name_of(chosen_);
}

std::string LayoutSource::read(const char* file, std::size_t limit) const {
  auto slice = files_->open(file);
  if (!slice) {
    throw Error(ErrorCode::image_invalid,
                fmt::format("read {}: it is an OCI layout without {}", name(), file));
  }
  return read_slice(*slice, limit, file);
}

void LayoutSource::check_version() const {
  constexpr std::string_view k_what = "the layout's version in oci-layout";
  Json json = parse_strict_object(read("oci-layout", k_version_bytes), k_what);
  std::string version = Fields(json, k_what).string("imageLayoutVersion");
  if (version.starts_with("1.")) return;
  throw Error(ErrorCode::not_supported,
              fmt::format("read {}: it is an OCI layout of version '{}', holt reads 1.0", name(),
                          printable(version, 50)));
}

RawDocument LayoutSource::top() {
  RawDocument raw = document(chosen_, k_manifest_bytes);
  if (raw.bytes.size() != chosen_.size) {
    throw digest_mismatch(chosen_.digest,
                          fmt::format("it has {} bytes, index.json says {}", raw.bytes.size(), chosen_.size));
  }
  std::string digest = "sha256:" + sha256_hex(raw.bytes);
  if (digest != chosen_.digest) throw digest_mismatch(chosen_.digest, "its bytes have the digest " + digest);
  return raw;
}

FileSlice LayoutSource::blob(const std::string& digest) const {
  // Only sha256 comes here: descriptors have been checked by is_digest().
  auto slice = files_->open("blobs/sha256/" + digest.substr(digest.find(':') + 1));
  if (slice) return std::move(*slice);
  throw Error(ErrorCode::image_invalid,
              fmt::format("read {}: the blob {} is missing", name(), printable(digest, 100)));
}

}  // namespace holt::image
