#include "cli/log_file.hpp"

#include "holt/base/error.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::cli {
namespace {

constexpr std::size_t k_piece = std::size_t{64} << 10;

Fd open_log(const std::filesystem::path& path) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file && errno != ENOENT)
    throw system_error(errno, fmt::format("open the log {}", path.string()), path);
  return file;
}

std::string read_rest(const Fd& file) {
  std::string text;
  std::string piece(k_piece, '\0');
  while (file) {
    ssize_t count = ::read(file.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_error(errno, "read the log of a machine");
    if (count == 0) break;
    text.append(piece, 0, static_cast<std::size_t>(count));
  }
  return text;
}

bool is_same_file(const Fd& a, const Fd& b) {
  struct stat x{};
  struct stat y{};
  return a && b && ::fstat(a.get(), &x) == 0 && ::fstat(b.get(), &y) == 0 && x.st_dev == y.st_dev &&
         x.st_ino == y.st_ino;
}

}  // namespace

std::filesystem::path LogFile::old_path() const {
  auto old = path_;
  old += ".1";
  return old;
}

std::string LogFile::read() {
  Fd now = open_log(path_);
  if (is_same_file(now, file_)) return read_rest(file_);
  // Begun anew since the last call, which gives what was read until now its old name; or the first call, or
  // begun anew twice: then all that is kept is new.
  std::string text = read_rest(file_);
  Fd old = open_log(old_path());
  if (old && !is_same_file(old, file_)) {
    text += read_rest(old);
    file_ = std::move(old);
  }
  // It may have got its old name between the two: then what follows it is read in the next call.
  if (now && !is_same_file(now, file_)) {
    text += read_rest(now);
    file_ = std::move(now);
  }
  return text;
}

}  // namespace holt::cli
