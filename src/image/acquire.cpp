#include "image/acquire.hpp"

#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "holt/base/time.hpp"
#include "image/blob_needs.hpp"
#include "image/blobs.hpp"
#include "image/content_digest.hpp"
#include "image/entries.hpp"
#include "image/holes.hpp"
#include "image/image_documents.hpp"
#include "image/layer_build.hpp"
#include "image/layer_fetches.hpp"
#include "image/layer_progress.hpp"
#include "image/sized_image.hpp"
#include "image/space.hpp"
#include "image/staging.hpp"

#include <algorithm>
#include <malloc.h>
#include <set>
#include <sys/stat.h>

#include <fmt/format.h>

namespace holt::image {
namespace fs = std::filesystem;
namespace {

/// The file system's size of an entry whose record is lost.
std::optional<std::uint64_t> size_of_file_system(const Folders& folders, const std::string& digest) {
  struct stat info{};
  if (::stat((folders.entry(digest) / "root.ext4").c_str(), &info) != 0) return std::nullopt;
  auto bytes = static_cast<std::uint64_t>(info.st_size);
  return is_disk_size(bytes) ? std::optional(bytes) : std::nullopt;
}

class Acquisition {
 public:
  Acquisition(const Store& store, ImageSource& source, const AcquireRequest& request,
              std::vector<std::string>& downloaded)
      : folders_{store.folder()},
        blobs_(store.folder()),
        source_(source),
        request_(request),
        downloaded_(downloaded),
        documents_(read_documents(source, request.reference, request.platform)),
        digest_(documents_.manifest.config.digest),
        staging_(folders_.staging()) {}

  Image run() {
    check_layer_sizes();
    hold_blobs(staging_, blob_digests());
    keep_documents();
    FileLock building = wait_for_lock(folders_.build_lock(digest_), request_.stop);
    while (true) {
      if (auto image = bring_in()) return std::move(*image);
    }
  }

 private:
  const std::vector<Descriptor>& layers() const { return documents_.manifest.layers; }

  std::set<std::string> blob_digests() const {
    std::set<std::string> digests{documents_.manifest_digest, digest_};
    for (const Descriptor& layer : layers()) digests.insert(layer.digest);
    return digests;
  }

  void check_layer_sizes() const {
    std::uint64_t most = request_.limits.unpacked_bytes + header_budget(request_.limits);
    for (const Descriptor& layer : layers()) {
      if (layer.size <= most) continue;
      throw Error(
          ErrorCode::limit_exceeded,
          fmt::format("fetch the layer {}: it has {} bytes, more than {}", layer.digest, layer.size, most),
          {.subject = layer.digest});
    }
  }

  void keep_documents() {
    downloaded_ = {documents_.manifest_digest, digest_};
    blobs_.put(documents_.manifest_digest, documents_.manifest_bytes, staging_.path(), request_.stop);
    blobs_.put(digest_, documents_.config_bytes, staging_.path(), request_.stop);
    // A build's memory is bounded: it does not carry them, nor what it took to parse them.
    std::string().swap(documents_.manifest_bytes);
    std::string().swap(documents_.config_bytes);
    ::malloc_trim(0);
  }

  /// Under the build's lock: nobody else replaces this entry, but it may be removed. Nothing when that
  /// happened to what was found here.
  std::optional<Image> bring_in() {
    auto present = find_sound();
    if (present && present->manifest_digest != documents_.manifest_digest && has_blobs(*present))
      return finish(Build::not_needed);
    bool build = !present || present->manifest_digest != documents_.manifest_digest;
    require_space(folders_.images, bytes_to_fetch(), source_.name());
    LayerProgressReporter progress(request_.progress, layers());
    LayerFetches fetches(blobs_, source_, layers(), progress, request_.stop);
    try {
      if (build) build_entry(fetches, progress, present);
      fetches.join();
    } catch (...) {
      fetches.cancel();
      note_downloads(fetches);
      fetches.join();  // the first failure is the one to tell
      throw;
    }
    note_downloads(fetches);
    return finish(!build ? Build::not_needed : present ? Build::record : Build::whole);
  }

  /// What is here and whole. Damaged smaller file systems beside it go.
  std::optional<Image> find_sound() const {
    try {
      drop_damaged_sizes(folders_.entry(digest_), request_.stop);
      auto present = load_entry(folders_, digest_);
      if (present && is_sound(*present, request_.stop)) return present;
    } catch (const Error& error) {
      bool removed_meanwhile = error.code() == ErrorCode::not_found && !load_entry(folders_, digest_);
      if (!removed_meanwhile) throw;
    }
    return std::nullopt;
  }

  bool has_blobs(const Image& image) const {
    return !image.manifest_digest.empty() && blobs_.size(image.manifest_digest) &&
           std::ranges::all_of(image.layers,
                               [&](const auto& layer) { return blobs_.size(layer).has_value(); });
  }

  std::uint64_t bytes_to_fetch() const {
    std::set<std::string_view> counted;
    std::uint64_t bytes = 0;
    for (const Descriptor& layer : layers()) {
      if (!counted.insert(layer.digest).second || blobs_.has(layer)) continue;
      bytes += layer.size - std::min(layer.size, blobs_.partial_size(layer.digest));
    }
    return bytes;
  }

  void note_downloads(LayerFetches& fetches) {
    fetches.wait();
    downloaded_.insert(downloaded_.end(), fetches.downloaded().begin(), fetches.downloaded().end());
  }

  /// What was built: nothing, a record beside the file system that is here, or both.
  enum class Build { not_needed, record, whole };

  fs::path fresh() const { return staging_.path() / "entry"; }

  /// The new entry's files, in the staging folder. What is present and sound keeps its file system.
  void build_entry(LayerFetches& fetches, LayerProgressReporter& progress,
                   const std::optional<Image>& present) const {
    auto recorded = read_entry(folders_, digest_);
    make_private_directory(fresh());
    Image image;
    image.digest = digest_;
    image.ext4 = fresh() / "root.ext4";
    auto known = recorded ? recorded->disk_bytes : size_of_file_system(folders_, digest_);
    image.disk_bytes = known ? *known : disk_bytes_in(folders_.images, staging_.path(), request_.disk_bytes);
    build_layers({.name = source_.name(),
                  .images = folders_.images,
                  .ext4 = image.ext4,
                  .documents = documents_,
                  .image_digest = digest_,
                  .limits = request_.limits,
                  .disk_bytes = image.disk_bytes},
                 fetches, progress, request_.stop);
    image.created = rfc3339(wall_now());
    image.platform = documents_.config.platform.text();
    image.manifest_digest = documents_.manifest_digest;
    for (const Descriptor& layer : layers()) image.layers.push_back(layer.digest);
    image.config = documents_.config.config;
    if (present) {
      fs::remove(image.ext4);
      image.content_digest = present->content_digest;
    } else {
      image.content_digest = content_digest(image.ext4, request_.stop);
      check_same_content(recorded, image);
    }
    write_file_atomically(fresh() / "image.json", write_image_record(image), {.mode = 0644});
  }

  std::optional<Image> finish(Build build) {
    request_.stop.throw_if_cancelled();
    FileLock lock = lock_entry(folders_, digest_, Deadline::after(k_lock_wait));
    if (build != Build::whole && !load_entry(folders_, digest_)) return std::nullopt;
    if (build != Build::not_needed) place_entry(folders_, fresh(), digest_);
    auto image = load_entry(folders_, digest_);
    if (!image) throw image_not_found(folders_, digest_);
    if (request_.reference.name.empty()) return image;
    image->reference = request_.reference.canonical();
    name_entry(folders_,
               {.reference = image->reference,
                .digest = digest_,
                .manifest = documents_.manifest_digest,
                .top = documents_.top_digest},
               staging_.path());
    return image;
  }

  Folders folders_;
  BlobStore blobs_;
  ImageSource& source_;
  const AcquireRequest& request_;
  std::vector<std::string>& downloaded_;
  ImageDocuments documents_;
  std::string digest_;
  Staging staging_;
};

}  // namespace

Image acquire(Store& store, ImageSource& source, const AcquireRequest& request) {
  check_disk_size(request.disk_bytes);
  CancellationToken::Registration linked;
  if (request.cancel) linked = request.cancel->on_cancel([stop = request.stop] { stop.cancel(); });
  std::vector<std::string> downloaded;
  try {
    return Acquisition(store, source, request, downloaded).run();
  } catch (const Error& error) {
    // Room for another try, or for something else.
    if (error.code() == ErrorCode::storage_full) free_blobs(Folders{store.folder()}, downloaded);
    throw;
  }
}

}  // namespace holt::image
