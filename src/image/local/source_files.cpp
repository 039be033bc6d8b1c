#include "image/local/source_files.hpp"

#include "holt/base/error.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

namespace holt::image {
namespace {

Error invalid(std::string_view name, std::string_view reason) {
  return {ErrorCode::image_invalid, fmt::format("read '{}' of the image: {}", printable(name, 200), reason)};
}

}  // namespace

bool has_entry(const std::filesystem::path& folder, std::string_view name) {
  std::error_code error;
  return std::filesystem::symlink_status(folder / name, error).type() > std::filesystem::file_type::not_found;
}

std::optional<std::string> clean_member_name(std::string_view name) {
  if (name.starts_with('/')) return std::nullopt;
  std::vector<std::string_view> parts;
  while (!name.empty()) {
    std::size_t slash = name.find('/');
    std::string_view part = name.substr(0, slash);
    name.remove_prefix(slash == std::string_view::npos ? name.size() : slash + 1);
    if (part == "..") return std::nullopt;
    if (!part.empty() && part != ".") parts.push_back(part);
  }
  return fmt::format("{}", fmt::join(parts, "/"));
}

std::string read_at(const FileSlice& slice, std::uint64_t at, std::size_t bytes) {
  if (at >= slice.size) return {};
  std::string out(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, slice.size - at)), '\0');
  std::size_t have = 0;
  while (have < out.size()) {
    ssize_t n = ::pread(slice.file.get(), out.data() + have, out.size() - have,
                        static_cast<off_t>(slice.offset + at + have));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw system_error(errno, "read the image");
    if (n == 0) break;
    have += static_cast<std::size_t>(n);
  }
  out.resize(have);
  return out;
}

std::string read_slice(const FileSlice& slice, std::size_t limit, std::string_view name) {
  if (slice.size > limit) {
    throw Error(ErrorCode::limit_exceeded,
                fmt::format("read '{}' of the image: it has {} bytes, at most {} are read",
                            printable(name, 200), slice.size, limit));
  }
  std::string bytes = read_at(slice, 0, static_cast<std::size_t>(slice.size));
  if (bytes.size() != slice.size) throw invalid(name, "it ends too early");
  return bytes;
}

FolderFiles::FolderFiles(const std::filesystem::path& folder)
    : folder_(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  if (!folder_) throw system_error(errno, "open the image's folder", folder.string());
}

std::optional<FileSlice> FolderFiles::open(const std::string& name) const {
  auto clean = clean_member_name(name);
  if (!clean || clean->empty()) throw invalid(name, "the name leads out of the image's folder");
  open_how how{};
  // O_NONBLOCK: a FIFO would wait for its writer.
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  FileSlice slice{
      .file = Fd(static_cast<int>(::syscall(SYS_openat2, folder_.get(), clean->c_str(), &how, sizeof how)))};
  if (!slice.file) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    if (errno == ELOOP || errno == EXDEV) throw invalid(name, "it is a link, and links are not followed");
    if (errno == ENXIO) throw invalid(name, "it is no regular file");
    throw system_error(errno, fmt::format("open '{}' of the image", printable(name, 200)));
  }
  struct stat status{};
  if (::fstat(slice.file.get(), &status) != 0) throw system_error(errno, "read the image");
  if (!S_ISREG(status.st_mode)) throw invalid(name, "it is no regular file");
  slice.size = static_cast<std::uint64_t>(status.st_size);
  return slice;
}

}  // namespace holt::image
