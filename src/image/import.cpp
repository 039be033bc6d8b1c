// Images from files and folders of this machine.
#include "holt/base/error.hpp"
#include "holt/base/fd.hpp"
#include "holt/image/pull.hpp"
#include "image/acquire.hpp"
#include "image/entries.hpp"
#include "image/local/layout_source.hpp"
#include "image/local/location.hpp"
#include "image/local/plain_archive.hpp"
#include "image/local/root_folder.hpp"
#include "image/local/saved_source.hpp"
#include "image/local/source_files.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <fmt/format.h>

namespace holt::image {
namespace fs = std::filesystem;
namespace {

/// One import: where from, what the user wants, and what the result is called.
class Import {
 public:
  Import(Store& store, Location location, const ImportSourceOptions& options)
      : store_(store), location_(std::move(location)), options_(options) {
    if (!options.select.empty()) location_.select = options.select;
    if (!options.reference.empty()) parsed_reference(options.reference);
  }

  Image folder() {
    std::string title = location_.path.string();
    LocalKind kind = location_.kind.value_or(is_layout_folder() ? LocalKind::layout : LocalKind::root);
    if (kind == LocalKind::layout) {
      LayoutSource source(std::make_unique<FolderFiles>(location_.path), "the layout " + title,
                          location_.select, options_.platform);
      return acquire_from(source);
    }
    if (kind == LocalKind::root) {
      check_no_selection();
      return import_root_folder(store_, location_.path, root_reference(), root_options());
    }
    throw Error(ErrorCode::usage,
                fmt::format("import {}: it is a folder, docker-archive: wants a tar", title),
                {.subject = title});
  }

  Image archive(int fd, const std::string& title) {
    if (location_.kind == LocalKind::root) return root(fd);
    Fd plain = plain_archive(fd, store_.folder() / "staging", options_.limits, options_.cancel);
    check_is_tar(plain, title);
    auto files = std::make_unique<ArchiveFiles>(std::move(plain));
    switch (location_.kind.value_or(kind_of(*files))) {
      case LocalKind::layout: {
        LayoutSource source(std::move(files), title, location_.select, options_.platform);
        return acquire_from(source);
      }
      case LocalKind::saved: {
        SavedSource source(std::move(files), title, location_.select, options_.cancel);
        return acquire_from(source);
      }
      case LocalKind::root:
        break;
    }
    if (::lseek(files->tar().get(), 0, SEEK_SET) < 0) throw system_error(errno, "read " + title);
    return root(files->tar().get());
  }

 private:
  bool is_layout_folder() const {
    auto has = [&](const char* name) { return has_entry(location_.path, name); };
    return has("oci-layout") || (has("index.json") && has("blobs"));
  }

  static LocalKind kind_of(const ArchiveFiles& files) {
    if (files.has("oci-layout") || (files.has("index.json") && files.has_below("blobs")))
      return LocalKind::layout;
    return files.has("manifest.json") ? LocalKind::saved : LocalKind::root;
  }

  Image root(int fd) {
    check_no_selection();
    return store_.import_root_tar(fd, root_reference(), root_options());
  }

  void check_no_selection() const {
    if (location_.select.empty()) return;
    throw Error(ErrorCode::usage,
                fmt::format("choose the image '{}': a root file system is one image and has no names",
                            printable(location_.select, 200)));
  }

  std::string root_reference() const { return reference("").canonical(); }

  /// The name that the user wants, that the source has, or that follows from the file's.
  Reference reference(const std::string& given) const {
    if (!options_.reference.empty()) return parsed_reference(options_.reference);
    std::string file = name_after(location_.path);
    std::string wanted = given.starts_with(':') ? file + given : given;
    if (auto parsed = parse_reference(wanted)) {
      // A digest in a foreign name promises nothing.
      parsed->digest.clear();
      return parsed_reference(parsed->canonical());
    }
    if (auto parsed = parse_reference(file)) return *parsed;
    throw Error(ErrorCode::usage, "import an image: neither it nor its file has a name",
                {.hint = "Name it yourself: NAME[:TAG]."});
  }

  ImportOptions root_options() const {
    ImportOptions options{.config = options_.config,
                          .limits = options_.limits,
                          .disk_bytes = options_.disk_bytes,
                          .progress = nullptr,
                          .cancel = options_.cancel};
    if (options_.progress) {
      options.progress = [report = options_.progress](const Progress& progress) {
        report({.digest = "",
                .index = 0,
                .layers = 1,
                .step = LayerProgress::Step::unpacking,
                .done = progress.unpacked_bytes});
      };
    }
    return options;
  }

  Image acquire_from(FileSource& source) {
    AcquireRequest request{.reference = reference(source.image_name()),
                           .platform = options_.platform,
                           .limits = options_.limits,
                           .disk_bytes = options_.disk_bytes,
                           .progress = options_.progress,
                           .cancel = options_.cancel};
    return acquire(store_, source, request);
  }

  Store& store_;
  Location location_;
  const ImportSourceOptions& options_;
};

/// Opens a file, or a FIFO once somebody writes to it.
Fd open_to_read(const std::string& path, const std::optional<CancellationToken>& cancel) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd) throw system_error(errno, "open the image " + printable(path, 200), path);
  std::array<pollfd, 2> fds{{{fd.get(), POLLIN, 0}, {cancel ? cancel->fd() : -1, POLLIN, 0}}};
  while (::poll(fds.data(), fds.size(), -1) < 0) {
    if (errno != EINTR) throw system_error(errno, "wait for the image's bytes", path);
  }
  if (cancel) cancel->throw_if_cancelled();
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
  return fd;
}

Error unusable(const std::string& path) {
  return {ErrorCode::usage,
          fmt::format("import {}: it is neither a file nor a folder nor a pipe", path),
          {.subject = path}};
}

}  // namespace

Image import_image(Store& store, std::string_view source, const ImportSourceOptions& options) {
  Location location = parse_location(source);
  std::string path = location.path.string();
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0)
    throw system_error(errno, "open the image " + printable(path, 200), path);
  if (S_ISDIR(status.st_mode)) return Import(store, location, options).folder();
  // Not opened before it is known: opening a device may do something.
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) throw unusable(path);
  Fd fd = open_to_read(path, options.cancel);
  return Import(store, location, options).archive(fd.get(), "the archive " + printable(path, 200));
}

Image import_image(Store& store, int fd, const ImportSourceOptions& options) {
  return Import(store, {}, options).archive(fd, "the archive");
}

}  // namespace holt::image
