#include "cli/output_file.hpp"

#include "cli/errors.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>

#include <fmt/format.h>

namespace holt::cli {
namespace {

bool is_special(const std::string& path) {
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0 || S_ISDIR(facts.st_mode)) return false;
  if (!S_ISREG(facts.st_mode)) return true;
  // /dev/stdout and /proc/self/fd/3 are links, also where they lead to a file.
  bool of_kernel = path.starts_with("/dev/") || path.starts_with("/proc/");
  return of_kernel && ::lstat(path.c_str(), &facts) == 0 && S_ISLNK(facts.st_mode);
}

}  // namespace

void check_output_file(std::string_view flag, const std::string& path) {
  auto folder = std::filesystem::absolute(path).parent_path();
  std::error_code ignored;
  if (path.empty() || !std::filesystem::is_directory(folder, ignored))
    throw usage_error(fmt::format("{}: there is no folder {}", flag, printable(folder.string(), 200)));
  if (std::filesystem::is_directory(path, ignored))
    throw usage_error(fmt::format("{}: {} is a folder", flag, printable(path, 200)));
}

std::optional<Fd> open_special_file(const std::string& path) {
  if (!is_special(path)) return std::nullopt;
  Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) throw system_error(errno, fmt::format("write {}", path), path);
  return fd;
}

}  // namespace holt::cli
