#include "holt/image/store.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/base/log.hpp"
#include "holt/base/time.hpp"
#include "image/byte_source.hpp"
#include "image/image_builder.hpp"
#include "image/staging.hpp"
#include "image/store_record.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <set>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

namespace holt::image {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t k_record_bytes = std::size_t{8} << 20;
constexpr std::uint64_t k_disk_step = std::uint64_t{1} << 20;
constexpr std::uint64_t k_disk_least = std::uint64_t{64} << 20;
constexpr std::uint64_t k_disk_most = std::uint64_t{1} << 40;
/// Headers of one tar member, with those of PAX, at most; bounds a stream of members without data.
constexpr std::uint64_t k_member_overhead = 4096;
constexpr auto k_lock_wait = std::chrono::seconds(60);

std::string digest_digits(std::string_view digest) {
  return std::string(digest.substr(digest.find(':') + 1));
}

struct Layout {
  fs::path folder;

  fs::path entries() const { return folder / "entries"; }
  fs::path entry(std::string_view digest) const { return entries() / digest_digits(digest); }
  fs::path references() const { return folder / "references"; }
  /// References hold '/' and may be longer than a file name, so the file is named after their digest.
  fs::path reference(std::string_view canonical) const {
    return references() / (sha256_hex(canonical) + ".json");
  }
  fs::path lock(std::string_view digest) const {
    return folder / "locks" / (digest_digits(digest) + ".lock");
  }
  fs::path staging() const { return folder / "staging"; }
};

/// The store's key of a reference: its canonical form, or the digest itself.
std::string key_of(std::string_view reference) {
  if (is_digest(reference)) return std::string(reference);
  auto parsed = parse_reference(reference);
  if (!parsed) {
    throw Error(ErrorCode::usage,
                fmt::format("read the image name '{}': {}", printable(reference, 200), parsed.error()),
                {.subject = printable(reference, 200)});
  }
  return parsed->digest.empty() ? parsed->canonical() : parsed->digest;
}

Error not_found(std::string_view reference) {
  return {
      ErrorCode::not_found,
      fmt::format(
          "find the image '{}': it is not on this machine, and pulling from a registry is not part of "
          "this version",
          printable(reference, 200)),
      {.subject = printable(reference, 200),
       .hint = fmt::format(
           "Name no image to use {}, or import a root file system: holt-prepare image --tar FILE --name NAME",
           k_default_image)}};
}

/// The entry of a digest when all its files are there.
std::optional<Image> load_entry(const Layout& layout, const std::string& digest) {
  fs::path folder = layout.entry(digest);
  auto text = read_file_if_exists(folder / "image.json", k_record_bytes);
  if (!text) return std::nullopt;
  auto image = read_image_record(*text);
  if (!image || image->digest != digest) return std::nullopt;
  image->ext4 = folder / "root.ext4";
  struct stat status{};
  if (::stat(image->ext4.c_str(), &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<std::uint64_t>(status.st_size) != image->disk_bytes) {
    return std::nullopt;
  }
  image->size = static_cast<std::uint64_t>(status.st_blocks) * 512;
  image->reference = digest;
  return image;
}

std::vector<ReferenceRecord> read_references(const Layout& layout) {
  std::vector<ReferenceRecord> records;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(layout.references(), error)) {
    if (entry.path().extension() != ".json") continue;
    auto text = read_file_if_exists(entry.path(), k_record_bytes);
    auto record = text ? read_reference_record(*text) : std::nullopt;
    if (record && is_digest(record->digest)) {
      records.push_back(std::move(*record));
    } else if (text) {
      logger("holt.image")->warn("the image record {} is damaged", entry.path().string());
    }
  }
  std::ranges::sort(records, {}, &ReferenceRecord::reference);
  return records;
}

std::set<std::string> read_digests(const Layout& layout) {
  std::set<std::string> digests;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(layout.entries(), error)) {
    std::string digest = "sha256:" + entry.path().filename().string();
    if (is_digest(digest)) digests.insert(std::move(digest));
  }
  return digests;
}

FileLock lock_entry(const Layout& layout, std::string_view digest, Deadline deadline) {
  fs::path path = layout.lock(digest);
  make_private_directory(path.parent_path());
  return FileLock::acquire(path, deadline);
}

/// Renames a whole folder into place; what stands there, damaged, goes first.
void put_in_place(const fs::path& from, const fs::path& to) {
  make_private_directory(to.parent_path());
  remove_tree(to);
  if (::rename(from.c_str(), to.c_str()) != 0)
    throw system_error(errno, "put the image in its place", to.string());
}

void check_options(const ImportOptions& options) {
  if (options.disk_bytes < k_disk_least || options.disk_bytes > k_disk_most ||
      options.disk_bytes % k_disk_step != 0) {
    throw InvalidArgument(
        fmt::format("an image's disk has 64 MiB to 1 TiB in whole MiB, not {} bytes", options.disk_bytes));
  }
}

/// Builds the file system of a tar; the tar's digest.
std::string build(int fd, const fs::path& ext4, const ImportOptions& options) {
  FdSource input(fd, options.cancel);
  DecompressedSource unpacked(input, Compressions::layers);
  MeteredSource tar(unpacked, options.limits.unpacked_bytes + options.limits.entries * k_member_overhead);
  ImageBuilder builder(
      ext4, {.limits = options.limits, .disk_bytes = options.disk_bytes, .progress = options.progress});
  builder.apply_layer(tar);
  tar.drain();
  std::string digits = tar.digest_hex();
  builder.finish(digits);
  if (::chmod(ext4.c_str(), 0444) != 0) throw system_error(errno, "protect the image's file system");
  return "sha256:" + digits;
}

}  // namespace

Store::Store(const Directories& directories) : folder_(directories.data / "images") {}

Image Store::import_root_tar(const fs::path& tar, std::string_view reference, const ImportOptions& options) {
  Fd fd(::open(tar.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) throw system_error(errno, "open the archive", tar.string());
  struct stat status{};
  if (::fstat(fd.get(), &status) == 0 && S_ISDIR(status.st_mode)) {
    throw Error(ErrorCode::not_supported,
                fmt::format("import the folder {}: only a tar can be imported", tar.string()),
                {.subject = tar.string(), .hint = "Pack it first: tar -C FOLDER -cf root.tar ."});
  }
  return import_root_tar(fd.get(), reference, options);
}

Image Store::import_root_tar(int fd, std::string_view reference, const ImportOptions& options) {
  check_options(options);
  std::string key = key_of(reference);
  if (is_digest(key)) {
    throw Error(ErrorCode::usage,
                "import an image: name it by NAME[:TAG], its digest follows from its content",
                {.subject = key});
  }
  Layout layout{folder_};
  Staging staging(layout.staging());
  fs::path fresh = staging.path() / "entry";
  make_private_directory(fresh);
  std::string layer = build(fd, fresh / "root.ext4", options);

  Image image;
  image.digest = "sha256:" + sha256_hex(oci_config(options.config, layer));
  image.disk_bytes = options.disk_bytes;
  image.created = rfc3339(wall_now());
  image.platform = "linux/amd64";
  image.config = options.config;
  write_file_atomically(fresh / "image.json", write_image_record(image), {.mode = 0644});

  FileLock lock = lock_entry(layout, image.digest, Deadline::after(k_lock_wait));
  auto present = load_entry(layout, image.digest);
  if (present && present->disk_bytes != image.disk_bytes) {
    // The disks of its machines are laid over this very file.
    throw Error(ErrorCode::conflict,
                fmt::format("import the image '{}': the same content is there with a disk of {} MiB", key,
                            present->disk_bytes >> 20),
                {.subject = key, .hint = "Import it with that size, or remove the image first."});
  }
  if (!present) put_in_place(fresh, layout.entry(image.digest));
  make_private_directory(layout.references());
  write_file_atomically(layout.reference(key),
                        write_reference_record({.reference = key, .digest = image.digest}), {.mode = 0644});
  return resolve(key);
}

std::optional<Image> Store::find(std::string_view reference) const {
  Layout layout{folder_};
  std::string key = key_of(reference);
  if (is_digest(key)) return load_entry(layout, key);
  auto text = read_file_if_exists(layout.reference(key), k_record_bytes);
  auto record = text ? read_reference_record(*text) : std::nullopt;
  if (!record || !is_digest(record->digest)) return std::nullopt;
  auto image = load_entry(layout, record->digest);
  if (image) image->reference = key;
  return image;
}

Image Store::resolve(std::string_view reference) const {
  auto image = find(reference);
  if (!image) throw not_found(reference);
  return std::move(*image);
}

std::vector<Image> Store::list() const {
  Layout layout{folder_};
  std::vector<Image> images;
  std::set<std::string> unnamed = read_digests(layout);
  for (const ReferenceRecord& record : read_references(layout)) {
    unnamed.erase(record.digest);
    auto image = load_entry(layout, record.digest);
    if (!image) {
      logger("holt.image")->warn("the files of the image {} are missing or damaged", record.reference);
      continue;
    }
    image->reference = record.reference;
    images.push_back(std::move(*image));
  }
  for (const std::string& digest : unnamed) {
    if (auto image = load_entry(layout, digest)) images.push_back(std::move(*image));
  }
  return images;
}

FileLock Store::pin(const Image& image, Deadline deadline) const {
  Layout layout{folder_};
  FileLock lock = lock_entry(layout, image.digest, deadline);
  if (!load_entry(layout, image.digest)) throw not_found(image.reference);
  return lock;
}

void Store::remove(std::string_view reference, const RemoveOptions& options) {
  Layout layout{folder_};
  Image image = resolve(reference);
  FileLock lock = lock_entry(layout, image.digest, Deadline::after(k_lock_wait));
  auto references = read_references(layout);
  std::erase_if(references, [&](const ReferenceRecord& record) { return record.digest != image.digest; });
  bool by_digest = image.reference == image.digest;
  bool last = by_digest || references.size() <= 1;
  if (last && options.in_use && options.in_use(image)) {
    throw Error(ErrorCode::conflict,
                fmt::format("remove the image '{}': a machine still stands on it", image.reference),
                {.subject = image.reference, .hint = "Remove its machines first; holt ls -a shows them."});
  }
  for (const ReferenceRecord& record : references) {
    if (by_digest || record.reference == image.reference) fs::remove(layout.reference(record.reference));
  }
  if (!last) return;
  // Renamed away first: a half-removed entry is never under its name.
  Staging staging(layout.staging());
  fs::path gone = staging.path() / "removed";
  if (::rename(layout.entry(image.digest).c_str(), gone.c_str()) != 0 && errno != ENOENT) {
    throw system_error(errno, "remove the image", image.reference);
  }
}

}  // namespace holt::image
