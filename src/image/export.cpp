// An image as a tar: an OCI layout, with the manifest.json that `docker load` wants beside it.
// Source: OCI image specification 1.1, image-layout.md; Docker image specification 1.2, "manifest.json".
#include "holt/base/error.hpp"
#include "holt/base/fd.hpp"
#include "holt/base/json.hpp"
#include "holt/image/pull.hpp"
#include "image/blob_needs.hpp"
#include "image/blobs.hpp"
#include "image/byte_source.hpp"
#include "image/entries.hpp"
#include "image/oci/documents.hpp"
#include "image/sha256.hpp"
#include "image/staging.hpp"

#include <cerrno>
#include <fcntl.h>
#include <memory>
#include <set>

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::string_view k_manifest_type = "application/vnd.oci.image.manifest.v1+json";
constexpr std::string_view k_index_type = "application/vnd.oci.image.index.v1+json";

struct WriterDeleter {
  void operator()(archive* handle) const { archive_write_free(handle); }
};
struct EntryDeleter {
  void operator()(archive_entry* entry) const { archive_entry_free(entry); }
};

/// A tar with members of fixed owner, mode and time: the same image gives the same bytes.
class TarOutput {
 public:
  explicit TarOutput(int fd) : handle_(archive_write_new()) {
    check(archive_write_set_format_pax_restricted(handle_.get()));
    // The same bytes into a file and into a pipe, which libarchive would fill up to 10 KiB.
    check(archive_write_set_bytes_in_last_block(handle_.get(), 1));
    check(archive_write_open_fd(handle_.get(), fd));
  }

  void folder(const std::string& path) { header(path, AE_IFDIR, 0755, 0); }
  void file(const std::string& path, std::string_view bytes) {
    begin_file(path, bytes.size());
    write(bytes);
  }
  void begin_file(const std::string& path, std::uint64_t size) { header(path, AE_IFREG, 0644, size); }
  void write(std::string_view bytes) {
    if (archive_write_data(handle_.get(), bytes.data(), bytes.size()) !=
        static_cast<la_ssize_t>(bytes.size()))
      fail();
  }
  void close() { check(archive_write_close(handle_.get())); }

 private:
  void header(const std::string& path, unsigned type, unsigned mode, std::uint64_t size) {
    std::unique_ptr<archive_entry, EntryDeleter> entry(archive_entry_new());
    archive_entry_set_pathname(entry.get(), path.c_str());
    archive_entry_set_filetype(entry.get(), type);
    archive_entry_set_perm(entry.get(), mode);
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(size));
    archive_entry_set_mtime(entry.get(), 0, 0);
    check(archive_write_header(handle_.get(), entry.get()));
  }
  void check(int status) {
    if (status != ARCHIVE_OK) fail();
  }
  [[noreturn]] void fail() {
    int number = archive_errno(handle_.get());
    throw system_error(number > 0 ? number : EIO, "write the exported image");
  }

  std::unique_ptr<archive, WriterDeleter> handle_;
};

class Export {
 public:
  Export(const Store& store, std::string_view reference, const ExportOptions& options)
      : folders_{store.folder()},
        blobs_(store.folder()),
        options_(options),
        image_(store.resolve(reference)),
        staging_(folders_.staging()) {
    if (image_.manifest_digest.empty()) {
      throw Error(
          ErrorCode::not_supported,
          fmt::format("export the image '{}': it was made of a root file system and has no layers",
                      image_.reference),
          {.subject = image_.reference,
           .hint = fmt::format("A machine of it gives a tar of its files, which can be imported: holt "
                               "create out {}; holt start out; holt cp -a out:/ - >FILE; holt rm -f out.",
                               image_.reference)});
    }
    list_blobs();
    hold_blobs(staging_, {digests_.begin(), digests_.end()});
    for (const std::string& digest : digests_) sizes_.push_back(size_of(digest));
  }

  void run(int fd) {
    TarOutput tar(fd);
    tar.folder("blobs/");
    tar.folder("blobs/sha256/");
    for (std::size_t i = 0; i < digests_.size(); ++i) add_blob(tar, digests_[i], sizes_[i]);
    tar.file("index.json", dump_json(index()));
    tar.file("manifest.json", dump_json(docker_manifest()));
    tar.file("oci-layout", R"({"imageLayoutVersion":"1.0.0"})");
    tar.close();
  }

 private:
  /// Manifest, configuration, layers; each once.
  void list_blobs() {
    std::vector<std::string> all{image_.manifest_digest, image_.digest};
    all.insert(all.end(), image_.layers.begin(), image_.layers.end());
    std::set<std::string_view> known;
    for (const std::string& digest : all) {
      if (known.insert(digest).second) digests_.push_back(digest);
    }
  }

  Error damaged(const std::string& digest) const {
    return {ErrorCode::not_found,
            fmt::format("export the image '{}': its blob {} is missing or damaged", image_.reference, digest),
            {.subject = image_.reference,
             .hint = fmt::format("holt pull {} fetches it again.", image_.reference)}};
  }

  std::uint64_t size_of(const std::string& digest) const {
    auto size = blobs_.size(digest);
    if (!size) throw damaged(digest);
    return *size;
  }

  static std::string path_of(const std::string& digest) { return "blobs/sha256/" + digest_digits(digest); }

  void add_blob(TarOutput& tar, const std::string& digest, std::uint64_t size) const {
    Fd file(::open(blobs_.path(digest).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file) throw damaged(digest);
    tar.begin_file(path_of(digest), size);
    FdSource source(file.get(), std::nullopt);
    Sha256 sum;
    for (std::string_view piece = source.read(); !piece.empty(); piece = source.read()) {
      if (options_.cancel) options_.cancel->throw_if_cancelled();
      sum.update(piece);
      tar.write(piece);
    }
    if (sum.finish_hex() != digest_digits(digest)) throw damaged(digest);
  }

  Json index() const {
    auto bytes = blobs_.read(image_.manifest_digest, k_manifest_bytes);
    if (!bytes) throw damaged(image_.manifest_digest);
    auto manifest = parse_json(*bytes);
    if (!manifest) throw damaged(image_.manifest_digest);
    Json descriptor{{"mediaType", manifest->value("mediaType", std::string(k_manifest_type))},
                    {"digest", image_.manifest_digest},
                    {"size", bytes->size()}};
    if (!is_digest(image_.reference))
      descriptor["annotations"] = {{"org.opencontainers.image.ref.name", image_.reference}};
    return {{"schemaVersion", 2}, {"mediaType", k_index_type}, {"manifests", Json::array({descriptor})}};
  }

  Json docker_manifest() const {
    Json layers = Json::array();
    for (const std::string& digest : image_.layers) layers.push_back(path_of(digest));
    Json tags = Json::array();
    bool has_tag = !is_digest(image_.reference) && !image_.reference.contains('@');
    if (has_tag) tags.push_back(image_.reference);
    return Json::array({{{"Config", path_of(image_.digest)}, {"RepoTags", tags}, {"Layers", layers}}});
  }

  Folders folders_;
  BlobStore blobs_;
  const ExportOptions& options_;
  Image image_;
  Staging staging_;
  std::vector<std::string> digests_;
  std::vector<std::uint64_t> sizes_;
};

}  // namespace

void export_image(const Store& store, std::string_view reference, int fd, const ExportOptions& options) {
  Export(store, reference, options).run(fd);
}

}  // namespace holt::image
