// What nothing needs goes.
#include "holt/base/disk_usage.hpp"
#include "holt/base/error.hpp"
#include "holt/image/pull.hpp"
#include "image/blob_needs.hpp"
#include "image/blobs.hpp"
#include "image/entries.hpp"
#include "image/staging.hpp"
#include "image/store_remove.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::image {
namespace fs = std::filesystem;
namespace {

/// An image that is in use now, that has gone, or that somebody is at.
bool is_passed_over(ErrorCode code) {
  return code == ErrorCode::conflict || code == ErrorCode::not_found || code == ErrorCode::timeout;
}

class Pruning {
 public:
  Pruning(const Folders& folders, const PruneOptions& options)
      : folders_(folders), blobs_(folders.images), options_(options) {}

  PruneReport run() {
    Staging clears_what_dead_builders_left(folders_.staging());
    for (const std::string& digest : read_digests(folders_)) prune_image(digest);
    prune_blobs();
    if (!options_.dry_run) prune_locks();
    return std::move(report_);
  }

 private:
  bool is_old(const fs::path& path) const {
    if (!options_.older_than) return true;
    std::error_code error;
    auto changed = fs::last_write_time(path, error);
    return !error && fs::file_time_type::clock::now() - changed >= *options_.older_than;
  }

  std::vector<std::string> names_of(const std::string& digest) const {
    std::vector<std::string> names;
    for (const ReferenceRecord& record : read_references(folders_)) {
      if (record.digest == digest) names.push_back(record.reference);
    }
    return names;
  }

  /// Also asked under the image's lock: somebody may have named it since, or made a machine of it.
  bool is_needed(const Image& image) const {
    if (!options_.all && !names_of(image.digest).empty()) return true;
    return options_.in_use && options_.in_use(image);
  }

  void prune_image(const std::string& digest) {
    Image image = read_entry(folders_, digest).value_or(Image());
    image.digest = digest;
    fs::path folder = folders_.entry(digest);
    if (!is_old(folder) || is_needed(image)) return;
    auto names = names_of(digest);
    std::uint64_t bytes = disk_bytes_below(folder);
    if (!options_.dry_run) {
      try {
        add(remove_image(folders_, digest,
                         {.in_use = [this](const Image& asked) { return is_needed(asked); }}));
      } catch (const Error& error) {
        if (is_passed_over(error.code())) return;
        throw;
      }
    }
    gone_.insert(digest);
    report_.bytes += bytes;
    if (names.empty()) names.push_back(digest);
    report_.images.insert(report_.images.end(), names.begin(), names.end());
  }

  void prune_blobs() {
    std::vector<std::string> candidates;
    for (const std::string& digest : blobs_.all()) {
      if (is_old(blobs_.path(digest))) candidates.push_back(digest);
    }
    for (const std::string& digest : blobs_.all_partial()) {
      if (is_old(blobs_.partial(digest))) candidates.push_back(digest);
    }
    std::ranges::sort(candidates);
    candidates.erase(std::ranges::unique(candidates).begin(), candidates.end());
    if (!options_.dry_run) return add(free_blobs(folders_, candidates));
    auto needed = needed_blobs(folders_, gone_);
    for (const std::string& digest : candidates) {
      if (needed.contains(digest)) continue;
      report_.blobs.push_back(digest);
      report_.bytes += disk_bytes(blobs_.path(digest)) + disk_bytes(blobs_.partial(digest));
    }
  }

  /// Files of locks outlive what they were for, since whoever waits for one has it open.
  void prune_locks() const {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folders_.locks(), error)) {
      if (!is_left_over(entry.path())) continue;
      auto lock = try_lock(entry.path());
      if (lock && is_left_over(entry.path())) ::unlink(entry.path().c_str());
    }
  }

  /// Whether it is the lock of an image or blob that is not here.
  bool is_left_over(const fs::path& lock) const {
    std::string name = lock.stem();
    bool of_blob = name.starts_with(k_blob_lock);
    for (std::string_view kind : {k_blob_lock, k_build_lock}) {
      if (name.starts_with(kind)) name.erase(0, kind.size());
    }
    std::string digest = fmt::format("sha256:{}", name);
    if (!is_digest(digest)) return false;
    return of_blob ? !blobs_.is_begun(digest) : !fs::exists(folders_.entry(digest));
  }

  void add(const FreedBlobs& freed) {
    report_.blobs.insert(report_.blobs.end(), freed.digests.begin(), freed.digests.end());
    report_.bytes += freed.bytes;
  }

  Folders folders_;
  BlobStore blobs_;
  const PruneOptions& options_;
  std::set<std::string> gone_;
  PruneReport report_;
};

}  // namespace

PruneReport prune(Store& store, const PruneOptions& options) {
  return Pruning(Folders{store.folder()}, options).run();
}

}  // namespace holt::image
