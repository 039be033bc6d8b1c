#include "image/local/plain_archive.hpp"

#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "image/byte_source.hpp"
#include "image/layer_build.hpp"
#include "image/local/source_files.hpp"
#include "image/staging.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::size_t k_beginning_bytes = 4096;

struct stat status_of(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) throw system_error(errno, "read the archive");
  return status;
}

std::string beginning_of(int fd, std::size_t bytes) {
  FileSlice slice{.file = duplicate(fd), .size = bytes};
  return read_at(slice, 0, bytes);
}

bool is_plain_file(int fd) {
  if (!S_ISREG(status_of(fd).st_mode) || ::lseek(fd, 0, SEEK_CUR) != 0) return false;
  return !is_compressed(beginning_of(fd, k_beginning_bytes));
}

/// A new file that has lost its name already: nothing of it stays, however this ends.
Fd nameless_file(const std::filesystem::path& staging) {
  Staging folder(staging);
  std::filesystem::path path = folder.path() / "archive.tar";
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file || ::unlink(path.c_str()) != 0) throw system_error(errno, "keep the archive", path.string());
  return file;
}

/// The first line of a Dockerfile that is no comment and no parser directive is FROM or ARG.
bool is_dockerfile(std::string_view text) {
  while (!text.empty()) {
    std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    if (line.empty() || line.front() == '#') continue;
    std::string word(line.substr(0, line.find_first_of(" \t\r")));
    std::ranges::transform(word, word.begin(),
                           [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    return word == "FROM" || word == "ARG";
  }
  return false;
}

bool is_tar(const Fd& file) {
  if (::lseek(file.get(), 0, SEEK_SET) < 0) throw system_error(errno, "read the archive");
  ArchiveHandle handle(archive_read_new());
  archive_read_support_format_tar(handle.get());
  archive_entry* entry = nullptr;
  if (archive_read_open_fd(handle.get(), file.get(), k_beginning_bytes) != ARCHIVE_OK) return false;
  return archive_read_next_header(handle.get(), &entry) != ARCHIVE_FATAL;
}

}  // namespace

Fd plain_archive(int fd, const std::filesystem::path& staging, const Limits& limits,
                 const std::optional<CancellationToken>& cancel) {
  struct stat status = status_of(fd);
  if (S_ISBLK(status.st_mode) || S_ISCHR(status.st_mode)) {
    throw Error(ErrorCode::usage, "import an image: this is a device, not a file or a pipe");
  }
  if (is_plain_file(fd)) return duplicate(fd);
  Fd file = nameless_file(staging);
  FdSource input(fd, cancel);
  DecompressedSource plain(input, Compressions::layers);
  std::uint64_t budget = limits.unpacked_bytes + header_budget(limits);
  for (std::string_view piece = plain.read(); !piece.empty(); piece = plain.read()) {
    if (piece.size() > budget) {
      throw Error(ErrorCode::limit_exceeded,
                  fmt::format("the archive unpacks to more than {} bytes", limits.unpacked_bytes));
    }
    budget -= piece.size();
    write_all(file.get(), piece);
  }
  return file;
}

void check_is_tar(const Fd& file, const std::string& title) {
  if (status_of(file.get()).st_size == 0) {
    throw Error(ErrorCode::image_invalid, fmt::format("read {}: it is empty", title));
  }
  if (is_tar(file)) return;
  if (is_dockerfile(beginning_of(file.get(), k_beginning_bytes))) {
    throw Error(ErrorCode::usage, fmt::format("read {}: it is a Dockerfile, not an image", title),
                {.hint = k_dockerfile_hint});
  }
  throw Error(
      ErrorCode::image_invalid, fmt::format("read {}: it is no tar, nor one behind gzip or zstd", title),
      {.hint =
           "An image is an OCI layout, an archive of docker save, or a root file system as tar or folder."});
}

}  // namespace holt::image
