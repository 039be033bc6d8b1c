// The images of this machine: each one a read-only ext4 file that every machine of that image shares.
//
//   holt::image::Store store(holt::Directories::from_environment());
//   auto image = store.resolve(holt::image::k_default_image);
//   image.ext4;          // backing file of a machine's overlay
//   image.config.env;    // {"PATH=/usr/local/sbin:...", "LANG=C.UTF-8"}
//
// Layout below Directories::data/images:
//
//   entries/HEX/root.ext4, image.json   one folder for each image digest, renamed into place when it is whole
//   entries/HEX/root-SIZE.ext4          the same in a smaller file system, SIZE in MiB; .digest beside it
//   references/NAME.json                one small file for each reference
//   blobs/sha256/HEX                    manifests, configurations and compressed layers, as they were fetched
//   blobs/partial/HEX                   the beginning of one that is being fetched or was cut off
//   locks/HEX.lock                      held while an entry is pinned, put in place, named or removed
//   locks/build-HEX.lock, blob-HEX.lock held while an image is built, a blob is fetched or removed
//   locks/references.lock               held while a name is given or taken
//   staging/                            what is being built; the next builder clears left-overs of dead ones
//
// May depend on base/ only.
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/base/deadline.hpp"
#include "holt/base/directories.hpp"
#include "holt/base/files.hpp"
#include "holt/image/limits.hpp"
#include "holt/image/reference.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holt::image {

/// Size of the file system of an image, bytes: that of a machine's default disk, since growing an ext4 in the
/// guest costs a second.
inline constexpr std::uint64_t k_default_disk_bytes = std::uint64_t{20} << 30;

/// What an image says about the processes in it. Field names as in the OCI image configuration.
struct ImageConfig {
  std::vector<std::string> env = {};            ///< "NAME=VALUE"
  std::string working_dir = {};                 ///< empty: "/"
  std::string user = {};                        ///< NAME or UID[:GROUP]; empty: root
  std::vector<std::string> entrypoint = {};     ///< in front of the command
  std::vector<std::string> cmd = {};            ///< command when none is given
  std::string stop_signal = {};                 ///< "SIGTERM", "RTMIN+3" or a number; empty: SIGTERM
  std::vector<std::string> exposed_ports = {};  ///< "80/tcp"; shown only
  std::vector<std::string> volumes = {};        ///< paths; shown only
  std::map<std::string, std::string> labels = {};
};

/// One image of the store. A value; the paths stay good as long as the image is in the store.
struct Image {
  std::string reference;         ///< canonical reference; "sha256:..." when asked for by digest
  std::string digest;            ///< "sha256:" + hex, of the OCI configuration; follows from tar and config
  std::filesystem::path ext4;    ///< raw ext4 file, read-only, sparse
  std::uint64_t disk_bytes = 0;  ///< apparent size of `ext4`
  std::uint64_t size = 0;        ///< bytes of `ext4` that are on disk
  std::string created;           ///< when it was built here, RFC 3339
  std::string platform;          ///< "linux/amd64"
  std::string manifest_digest;   ///< of the manifest it was pulled by; empty for an import without one
  std::vector<std::string> layers;  ///< digests of its blobs, lowest first; empty when they were not kept
  std::string content_digest;       ///< of the bytes in `ext4`; empty for one built before it was recorded
  ImageConfig config;
};

/// How far a build is. Called on the building thread, a few times a second.
struct Progress {
  std::uint64_t entries = 0;
  std::uint64_t unpacked_bytes = 0;
};

struct ImportOptions {
  ImageConfig config = {};
  Limits limits = {};
  std::uint64_t disk_bytes = k_default_disk_bytes;  ///< 64 MiB to 1 TiB, a multiple of 1 MiB
  std::function<void(const Progress&)> progress = nullptr;
  std::optional<CancellationToken> cancel = std::nullopt;
};

struct RemoveOptions {
  /// Says whether a machine still stands on the image. Asked under the entry's lock.
  std::function<bool(const Image&)> in_use = nullptr;
};

/// A folder of images. Cheap to make; holds nothing open. All calls are thread-safe and safe between
/// processes.
class Store {
 public:
  explicit Store(const Directories& directories);
  explicit Store(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Builds an image from one root file system tar (plain, gzip or zstd) and names it. Reads `fd` once to its
  /// end; a pipe will do. An image with the same bytes and configuration that is there already is kept and
  /// only named. Throws Error: USAGE for a bad reference, IMAGE_INVALID for a tar that is none or holds
  /// impossible members, NOT_SUPPORTED for other compressions, LIMIT_EXCEEDED, STORAGE_FULL, STORAGE_ERROR,
  /// CANCELLED, CONFLICT when it is there with another `disk_bytes`. After an error nothing is left in the
  /// store.
  Image import_root_tar(int fd, std::string_view reference, const ImportOptions& options = {});
  Image import_root_tar(const std::filesystem::path& tar, std::string_view reference,
                        const ImportOptions& options = {});

  /// The image of a reference, of a digest ("sha256:...", of its configuration, manifest or index; in
  /// NAME[:TAG]@DIGEST it alone counts) or of the first 12 digits or more of the configuration's. Throws
  /// Error: USAGE for a bad reference and for digits that several images have, NOT_FOUND when it is not in
  /// the store or its files are gone, with a hint.
  Image resolve(std::string_view reference) const;
  /// As resolve, nothing instead of NOT_FOUND.
  std::optional<Image> find(std::string_view reference) const;
  /// All references, sorted by name; behind them what has lost its name to a newer import, named by digest.
  /// Damaged records are left out and logged.
  std::vector<Image> list() const;

  /// Keeps an image from being removed while the result lives. A machine's creation holds it from resolve()
  /// until its own record names the digest. Throws Error TIMEOUT at the deadline, NOT_FOUND when the image
  /// has gone.
  FileLock pin(const Image& image, Deadline deadline) const;

  /// The same image in a smaller file system of `bytes`, a multiple of 1 MiB, kept beside the other for the
  /// next machine of that size. Call with the image pinned. Throws Error: INVALID_CONFIG when the image does
  /// not fit, RUNTIME_NOT_INSTALLED without resize2fs, STORAGE_FULL, CANCELLED.
  Image with_disk_size(const Image& image, std::uint64_t bytes,
                       const std::optional<CancellationToken>& cancel = std::nullopt) const;

  /// Takes a reference away, and the image with its last reference, with the blobs that nothing else needs.
  /// Of a digest, all references go. One whose files are lost can be removed too. Throws Error: USAGE,
  /// NOT_FOUND, CONFLICT when `in_use` says so of the last reference.
  void remove(std::string_view reference, const RemoveOptions& options = {});

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

}  // namespace holt::image
