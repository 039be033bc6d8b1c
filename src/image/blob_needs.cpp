#include "image/blob_needs.hpp"

#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "holt/image/reference.hpp"
#include "image/entries.hpp"
#include "image/oci/documents.hpp"

#include <algorithm>
#include <sstream>

#include <fmt/ranges.h>

namespace holt::image {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view k_lease = "blobs";
/// k_layers digests, a manifest and a configuration, a line each.
constexpr std::size_t k_lease_bytes = std::size_t{1} << 20;

void add_leases(const Folders& folders, std::set<std::string>& needed) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folders.staging(), error)) {
    if (entry.path().extension() == ".lock") continue;
    auto text = read_file_if_exists(entry.path() / k_lease, k_lease_bytes);
    std::istringstream lines(text.value_or(""));
    for (std::string digest; std::getline(lines, digest);) needed.insert(digest);
  }
}

/// What a manifest names, when it is there and can be read.
void add_manifest(const BlobStore& blobs, const std::string& digest, std::set<std::string>& needed) {
  auto bytes = blobs.read(digest, k_manifest_bytes);
  if (!bytes) return;
  try {
    Document document = parse_document(*bytes, {});
    if (auto* manifest = std::get_if<Manifest>(&document)) {
      for (const Descriptor& layer : manifest->layers) needed.insert(layer.digest);
    }
  } catch (const Error&) {
    return;  // nothing can be built of it
  }
}

}  // namespace

void hold_blobs(const Staging& staging, const std::set<std::string>& digests) {
  write_file_atomically(staging.path() / k_lease, fmt::format("{}\n", fmt::join(digests, "\n")));
}

std::set<std::string> needed_blobs(const Folders& folders, const std::set<std::string>& gone) {
  std::set<std::string> needed;
  add_leases(folders, needed);
  for (const std::string& digest : read_digests(folders)) {
    if (gone.contains(digest)) continue;
    auto image = read_entry(folders, digest);
    if (!image) continue;
    needed.insert({image->digest, image->manifest_digest});
    needed.insert(image->layers.begin(), image->layers.end());
  }
  BlobStore blobs(folders.images);
  for (const ReferenceRecord& record : read_references(folders)) {
    if (gone.contains(record.digest)) continue;
    needed.insert({record.digest, record.manifest});
    // An image that lost its record is built again from what its name's manifest says.
    if (!record.manifest.empty() && !read_entry(folders, record.digest))
      add_manifest(blobs, record.manifest, needed);
  }
  return needed;
}

FreedBlobs free_blobs(const Folders& folders, const std::vector<std::string>& digests) {
  BlobStore blobs(folders.images);
  FreedBlobs freed;
  std::set<std::string> needed = needed_blobs(folders);
  for (const std::string& digest : digests) {
    if (needed.contains(digest)) continue;
    auto lock = blobs.try_lock(digest);
    if (!lock || needed_blobs(folders).contains(digest)) continue;
    if (!blobs.is_begun(digest)) continue;
    freed.bytes += blobs.discard(digest);
    freed.digests.push_back(digest);
  }
  return freed;
}

}  // namespace holt::image
