// Images from elsewhere: registries, archives, folders.
//
//   holt::image::Store store(holt::Directories::from_environment());
//   auto image = holt::image::pull(store, "python:3.12-alpine");
//   image = holt::image::import_image(store, "./app.tar", {.reference = "app:1"});
//
// All calls block; thread-safe and safe between processes. May depend on base/ only.
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/base/deadline.hpp"
#include "holt/image/limits.hpp"
#include "holt/image/platform.hpp"
#include "holt/image/store.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holt::image {

/// How far one layer is. Called a few times a second from the thread that works on it, one call at a time.
struct LayerProgress {
  enum class Step { waiting, downloading, unpacking, done, present };
  std::string digest;      ///< of the blob
  std::size_t index = 0;   ///< from 0, lowest first
  std::size_t layers = 0;  ///< of the image
  Step step = Step::waiting;
  std::uint64_t done = 0;   ///< bytes of the blob that are downloaded, or unpacked
  std::uint64_t total = 0;  ///< bytes of the blob; 0 when not known
};
using ProgressSink = std::function<void(const LayerProgress&)>;

/// When a registry is asked.
enum class PullPolicy {
  missing,  ///< only for an image that is not here
  always,   ///< for its documents always; what is here is read against its digests and not fetched again
  never,
};
std::optional<PullPolicy> pull_policy_from(std::string_view word);

struct Credentials {
  std::string user;
  std::string password;        ///< never printed
  std::string identity_token;  ///< an OAuth2 refresh token instead of user and password
};

/// How registries are talked to. Times are bounds on silence, not on the whole.
struct RegistryOptions {
  bool insecure = false;  ///< plain http or unchecked certificates; loopback may always
                          ///< be plain http
  std::optional<std::filesystem::path> ca_file = std::nullopt;    ///< more trusted certificates, PEM
  std::optional<std::filesystem::path> auth_file = std::nullopt;  ///< instead of the usual places
  std::optional<Credentials> credentials = std::nullopt;          ///< instead of any file
  /// Asked first, in order, for the repositories of a registry: host -> base URLs. One that fails is passed
  /// over.
  std::map<std::string, std::vector<std::string>> mirrors = {};
  Duration connect_timeout = std::chrono::seconds(10);
  Duration idle_timeout = std::chrono::seconds(30);  ///< without progress
  int retries = 5;                                   ///< of a broken transfer, each from where it broke
};

struct PullOptions {
  PullPolicy policy = PullPolicy::missing;
  Platform platform = Platform::of_machines();
  RegistryOptions registry = {};
  Limits limits = {};
  std::uint64_t disk_bytes = k_default_disk_bytes;
  ProgressSink progress = nullptr;
  std::optional<CancellationToken> cancel = std::nullopt;
};

/// The image of a reference, from its registry when the policy says so. One whose file system or record was
/// lost is built again from its blobs first, whatever the policy but `always`. Throws Error: USAGE for a bad
/// reference, NOT_FOUND, UNAUTHORIZED, NETWORK_ERROR ("got N of M bytes"), DIGEST_MISMATCH, IMAGE_INVALID,
/// LIMIT_EXCEEDED, NOT_SUPPORTED, STORAGE_FULL, STORAGE_ERROR, CANCELLED, CONFLICT when what machines stand
/// on cannot be built the same again. What was downloaded whole, and the beginning of what was not, is used
/// by the next pull.
Image pull(Store& store, std::string_view reference, const PullOptions& options = {});

/// True for what holt takes as a place of this machine and not as a name: "/...", "./...", "../..." or
/// "oci:PATH", "docker-archive:PATH", "rootfs:PATH".
bool is_local_image(std::string_view text);

struct ImportSourceOptions {
  std::string reference = {};  ///< name of the result; empty: what the source calls it
  std::string select = {};     ///< which of several images of a layout or archive
  ImageConfig config = {};     ///< of a root file system, which has none of its own
  Platform platform = Platform::of_machines();
  Limits limits = {};
  std::uint64_t disk_bytes = k_default_disk_bytes;
  ProgressSink progress = nullptr;
  std::optional<CancellationToken> cancel = std::nullopt;
};

/// An image from a file or folder of this machine: OCI layout (folder or tar), archive of `docker save`, root
/// file system (tar or folder). Which one it is, its content says; tars may be gzip or zstd. Links in it are
/// never followed out of it. Throws Error: NOT_FOUND, IMAGE_INVALID, USAGE (several images and none selected,
/// a Dockerfile), and as pull().
Image import_image(Store& store, std::string_view source, const ImportSourceOptions& options = {});
/// The same from a descriptor that is read once, to its end: a pipe will do.
Image import_image(Store& store, int fd, const ImportSourceOptions& options);

struct ExportOptions {
  std::optional<CancellationToken> cancel = std::nullopt;
};
/// Writes an image as a tar that holds an OCI layout and what `docker load` wants; the same image gives the
/// same bytes. Throws Error NOT_FOUND, also for a blob that is missing or damaged, STORAGE_ERROR when `fd`
/// cannot be written; an image that never had blobs is NOT_SUPPORTED.
void export_image(const Store& store, std::string_view reference, int fd, const ExportOptions& options = {});

struct PruneOptions {
  bool dry_run = false;
  bool all = false;  ///< also images with a name that no machine uses
  std::optional<Duration> older_than = std::nullopt;
  std::function<bool(const Image&)> in_use = nullptr;  ///< as RemoveOptions::in_use; none: none is
};
struct PruneReport {
  std::vector<std::string> images;  ///< references or digests that went
  std::vector<std::string> blobs;   ///< digests
  std::uint64_t bytes = 0;          ///< of disk that came free
};
/// Removes what nothing needs: blobs of no image, beginnings of downloads nobody is at, images without a
/// name. Never what a pull under way has or waits for.
PruneReport prune(Store& store, const PruneOptions& options = {});

/// A part of the store that is missing or not what its name says.
struct Damage {
  std::string reference;
  std::string what;  ///< half a sentence
  std::string fix;   ///< a command
};
/// Reads every blob and file system of the store against its digest or record.
std::vector<Damage> verify(const Store& store, const std::optional<CancellationToken>& cancel = std::nullopt);

}  // namespace holt::image
