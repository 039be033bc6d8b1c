// Images of root file system tars, which have one layer and no manifest.
#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/base/fd.hpp"
#include "holt/base/files.hpp"
#include "holt/base/time.hpp"
#include "holt/image/store.hpp"
#include "image/byte_source.hpp"
#include "image/content_digest.hpp"
#include "image/entries.hpp"
#include "image/holes.hpp"
#include "image/image_builder.hpp"
#include "image/layer_build.hpp"
#include "image/sized_image.hpp"
#include "image/space.hpp"
#include "image/staging.hpp"
#include "image/store_record.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::image {
namespace fs = std::filesystem;
namespace {

/// Bytes of a file behind its present position; 0 of a pipe.
std::uint64_t unread_bytes(int fd) {
  struct stat status{};
  off_t at = ::lseek(fd, 0, SEEK_CUR);
  bool is_file = at >= 0 && ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && at < status.st_size;
  return is_file ? static_cast<std::uint64_t>(status.st_size - at) : 0;
}

/// One image on its way from a tar into a file system.
struct RootTar {
  int fd;
  const fs::path& images;
  const std::string& name;
};

/// Builds the file system of a tar; the tar's digest.
std::string build(const RootTar& from, const fs::path& ext4, const ImportOptions& options) {
  FdSource input(from.fd, options.cancel);
  DecompressedSource unpacked(input, Compressions::layers);
  MeteredSource tar(unpacked, options.limits.unpacked_bytes + header_budget(options.limits));
  ImageBuilder builder(ext4, {.limits = options.limits,
                              .disk_bytes = options.disk_bytes,
                              .progress = options.progress,
                              .cancel = options.cancel});
  try {
    builder.apply_layer(tar);
    tar.drain();
    if (tar.count() == 0) throw Error(ErrorCode::image_invalid, "import an image: its tar has no bytes");
    std::string digits = tar.digest_hex();
    builder.finish(digits);
    return "sha256:" + digits;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::storage_full) throw;
    throw with_space_need(error, {.folder = from.images,
                                  .file = ext4,
                                  .bytes = builder.known_bytes(unread_bytes(from.fd)),
                                  .what = fmt::format("the image {}", from.name)});
  }
}

}  // namespace

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

Image Store::import_root_tar(int fd, std::string_view reference, const ImportOptions& given) {
  check_disk_size(given.disk_bytes);
  std::string key = key_of(reference);
  if (is_digest(key) || key.contains('@')) {
    throw Error(ErrorCode::usage,
                "import an image: name it by NAME[:TAG], its digest follows from its content",
                {.subject = key});
  }
  Folders folders{folder_};
  Staging staging(folders.staging());
  ImportOptions options = given;
  options.disk_bytes = disk_bytes_in(folder_, staging.path(), given.disk_bytes);
  fs::path fresh = staging.path() / "entry";
  make_private_directory(fresh);
  std::string layer = build({.fd = fd, .images = folder_, .name = key}, fresh / "root.ext4", options);

  Image image;
  image.digest = "sha256:" + sha256_hex(oci_config(options.config, layer));
  image.disk_bytes = options.disk_bytes;
  image.created = rfc3339(wall_now());
  image.platform = "linux/amd64";
  image.content_digest = content_digest(fresh / "root.ext4", options.cancel);
  image.config = options.config;
  write_file_atomically(fresh / "image.json", write_image_record(image), {.mode = 0644});

  FileLock lock = lock_entry(folders, image.digest, Deadline::after(k_lock_wait));
  drop_damaged_sizes(folders.entry(image.digest), options.cancel);
  auto present = load_entry(folders, image.digest);
  if (present && present->disk_bytes != image.disk_bytes) {
    // The disks of its machines are laid over this very file.
    throw Error(ErrorCode::conflict,
                fmt::format("import the image '{}': the same content is there with a disk of {} MiB", key,
                            present->disk_bytes >> 20),
                {.subject = key, .hint = "Import it with that size, or remove the image first."});
  }
  if (!present || !is_sound(*present, options.cancel)) {
    check_same_content(read_entry(folders, image.digest), image);
    place_entry(folders, fresh, image.digest);
  }
  name_entry(folders, {.reference = key, .digest = image.digest}, staging.path());
  return resolve(key);
}

}  // namespace holt::image
