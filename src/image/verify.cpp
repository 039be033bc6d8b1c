// The store read against its own records.
#include "holt/base/error.hpp"
#include "holt/image/pull.hpp"
#include "image/blobs.hpp"
#include "image/entries.hpp"
#include "image/sized_image.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

namespace holt::image {
namespace {

class Verification {
 public:
  Verification(const Folders& folders, const std::optional<CancellationToken>& cancel)
      : folders_(folders), blobs_(folders.images), cancel_(cancel) {}

  std::vector<Damage> run() {
    auto digests = read_digests(folders_);
    for (const ReferenceRecord& record : read_references(folders_)) {
      names_[record.digest].push_back(record.reference);
      if (record.manifest.empty()) imported_.insert(record.digest);
      if (!digests.contains(record.digest)) check_lost(record);
    }
    for (const std::string& digest : digests) check_image(digest);
    for (const std::string& digest : blobs_.all()) {
      if (!checked_.contains(digest) && !is_sound_blob(digest) && blobs_.size(digest))
        add(digest, fmt::format("the blob {} has other bytes than its name says; no image needs it", digest),
            "holt image prune");
    }
    return std::move(found_);
  }

 private:
  void add(std::string reference, std::string what, std::string fix) {
    found_.push_back({.reference = std::move(reference), .what = std::move(what), .fix = std::move(fix)});
  }

  static std::string pull_command(const std::string& reference) { return "holt pull " + reference; }

  static std::string import_command(const std::string& reference) {
    return is_digest(reference) ? "holt image rm " + reference : "holt image import FILE " + reference;
  }

  void check_lost(const ReferenceRecord& record) {
    // It may have been placed, or its name taken away, since the folders were listed.
    if (std::filesystem::exists(folders_.entry(record.digest)) ||
        !read_reference(folders_, record.reference)) {
      return;
    }
    add(record.reference, "the image has gone that it names",
        record.manifest.empty() ? import_command(record.reference) : pull_command(record.reference));
  }

  /// What is not right, or cannot be read, is looked at once more while nobody may remove or replace it.
  void check_image(const std::string& digest) {
    auto before = static_cast<std::ptrdiff_t>(found_.size());
    std::optional<Error> failure;
    try {
      look_at(digest);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
      failure = error;
    }
    if (!failure && std::ssize(found_) == before) return;
    std::optional<FileLock> held = try_to_hold(digest);
    if (!held && failure) throw Error(*failure);
    if (!held) return;
    found_.erase(found_.begin() + before, found_.end());
    std::erase_if(checked_, [](const auto& blob) { return !blob.second; });
    if (std::filesystem::exists(folders_.entry(digest))) look_at(digest);
  }

  /// Nothing in a store that cannot be written to, and of an image that somebody is at for long.
  std::optional<FileLock> try_to_hold(const std::string& digest) const {
    try {
      return lock_entry(folders_, digest, Deadline::after(k_lock_wait));
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  void look_at(const std::string& digest) {
    auto names = names_.find(digest);
    const std::string& reference = names == names_.end() ? digest : names->second.front();
    auto image = read_entry(folders_, digest);
    if (!image) {
      return add(reference, "its record image.json is missing or damaged",
                 is_digest(reference) || imported_.contains(digest) ? import_command(reference)
                                                                    : pull_command(reference));
    }
    std::string fix = image->manifest_digest.empty() ? import_command(reference) : pull_command(reference);
    if (!std::filesystem::exists(image->ext4)) {
      add(reference, "its file system root.ext4 is missing", fix);
    } else if (!has_file_system(*image)) {
      add(reference, "its file system root.ext4 is cut", fix);
    } else if (!is_sound(*image, cancel_)) {
      add(reference, "its file system root.ext4 has other bytes than it was built with", fix);
    }
    for (const auto& file : damaged_sizes(folders_.entry(digest), cancel_))
      add(reference,
          fmt::format("its file system {} has other bytes than it was made with", file.filename().string()),
          fix);
    if (image->manifest_digest.empty()) return;
    check_blob(reference, "manifest", image->manifest_digest, fix);
    check_blob(reference, "configuration", image->digest, fix);
    for (const std::string& layer : image->layers) check_blob(reference, "layer", layer, fix);
  }

  void check_blob(const std::string& reference, std::string_view kind, const std::string& digest,
                  const std::string& fix) {
    if (!blobs_.size(digest)) return add(reference, fmt::format("its {} {} is missing", kind, digest), fix);
    if (is_sound_blob(digest)) return;
    add(reference, fmt::format("its {} {} has other bytes than its name says", kind, digest), fix);
  }

  /// Reads each blob once.
  bool is_sound_blob(const std::string& digest) {
    auto [known, fresh] = checked_.emplace(digest, false);
    if (fresh) known->second = blobs_.is_sound(digest, cancel_);
    return known->second;
  }

  Folders folders_;
  BlobStore blobs_;
  const std::optional<CancellationToken>& cancel_;
  std::map<std::string, std::vector<std::string>> names_;
  std::set<std::string> imported_;  ///< digests of images that have no manifest to pull them by
  std::map<std::string, bool> checked_;
  std::vector<Damage> found_;
};

}  // namespace

std::vector<Damage> verify(const Store& store, const std::optional<CancellationToken>& cancel) {
  return Verification(Folders{store.folder()}, cancel).run();
}

}  // namespace holt::image
