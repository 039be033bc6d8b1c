#include "guest/paths.hpp"

#include <array>
#include <cerrno>
#include <deque>
#include <linux/limits.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace holt::guest {
namespace {

constexpr int k_max_links = 40;

std::optional<std::string> read_link(const std::string& path) {
  std::array<char, PATH_MAX> buffer{};
  auto count = ::readlink(path.c_str(), buffer.data(), buffer.size());
  if (count < 0) return std::nullopt;
  return std::string(buffer.data(), static_cast<std::size_t>(count));
}

std::deque<std::string> components(std::string_view path) {
  std::deque<std::string> list;
  while (!path.empty()) {
    auto end = path.find('/');
    auto piece = path.substr(0, end);
    if (!piece.empty() && piece != ".") list.emplace_back(piece);
    path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
  }
  return list;
}

}  // namespace

Outcome<std::string> absolute_path(std::string_view path, std::string_view base) {
  if (path.empty()) return refuse(ErrorCode::invalid_config, "the path is empty");
  if (path.find('\0') != std::string_view::npos)
    return refuse(ErrorCode::invalid_config, "the path holds NUL");
  std::string absolute;
  if (path.front() != '/') {
    absolute = base;
    if (!absolute.ends_with('/')) absolute += '/';
  }
  absolute += path;
  if (absolute.size() >= PATH_MAX) return refuse(ErrorCode::too_large, "the path has 4,096 bytes or more");
  return absolute;
}

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

std::pair<std::string, std::string> split_path(const std::string& absolute) {
  auto slash = absolute.rfind('/');
  return {slash == 0 ? "/" : absolute.substr(0, slash), absolute.substr(slash + 1)};
}

Outcome<std::string> real_path(std::string_view absolute) {
  auto rest = components(absolute);
  std::string resolved;
  int links = 0;
  while (!rest.empty()) {
    auto name = std::move(rest.front());
    rest.pop_front();
    if (name == "..") {
      resolved.resize(resolved.empty() ? 0 : resolved.rfind('/'));
      continue;
    }
    auto next = resolved + "/" + name;
    if (next.size() >= PATH_MAX) return refuse_errno(ENAMETOOLONG, "resolve", absolute);
    auto link = read_link(next);
    // A name that cannot be looked at, EINVAL apart, which says that it is no link.
    if (!link && errno == EACCES) return refuse_errno(EACCES, "resolve", next);
    if (!link) {
      resolved = std::move(next);
      continue;
    }
    if (++links > k_max_links) return refuse_errno(ELOOP, "resolve", absolute);
    auto target = components(*link);
    rest.insert(rest.begin(), target.begin(), target.end());
    if (link->starts_with('/')) resolved.clear();
  }
  return resolved.empty() ? "/" : resolved;
}

Outcome<std::string> write_target(std::string absolute) {
  if (absolute.ends_with('/')) return refuse_errno(EISDIR, "write", absolute);
  for (int links = 0; links <= k_max_links; ++links) {
    auto link = read_link(absolute);
    if (!link) return absolute;
    auto folder = split_path(absolute).first;
    absolute = link->starts_with('/') ? *link : folder + "/" + *link;
    if (absolute.size() >= PATH_MAX) return refuse_errno(ENAMETOOLONG, "write", absolute);
  }
  return refuse_errno(ELOOP, "write", absolute);
}

}  // namespace holt::guest
