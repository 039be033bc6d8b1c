#include "holt/messages/content.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace holt {
namespace {

// The table of docs/reference.md, "Media types".
constexpr std::array<std::pair<std::string_view, std::string_view>, 38> k_types = {{
    {"png", "image/png"},
    {"jpg", "image/jpeg"},
    {"jpeg", "image/jpeg"},
    {"gif", "image/gif"},
    {"webp", "image/webp"},
    {"pdf", "application/pdf"},
    {"txt", "text/plain"},
    {"csv", "text/csv"},
    {"html", "text/html"},
    {"md", "text/markdown"},
    {"mdx", "text/markdown"},
    {"asciidoc", "text/x-asciidoc"},
    {"rtf", "application/rtf"},
    {"doc", "application/msword"},
    {"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    {"xls", "application/vnd.ms-excel"},
    {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    {"yaml", "application/yaml"},
    {"yml", "application/yaml"},
    {"toml", "application/toml"},
    {"xml", "application/xml"},
    {"json", "application/json"},
    {"mp3", "audio/mpeg"},
    {"wav", "audio/wav"},
    {"oga", "audio/ogg"},
    {"ogg", "audio/ogg"},
    {"flac", "audio/flac"},
    {"aiff", "audio/aiff"},
    {"aac", "audio/aac"},
    {"mp4", "video/mp4"},
    {"mov", "video/quicktime"},
    {"webm", "video/webm"},
    {"mkv", "video/x-matroska"},
    {"flv", "video/x-flv"},
    {"mpeg", "video/mpeg"},
    {"mpg", "video/mpeg"},
    {"wmv", "video/x-ms-wmv"},
    {"three_gp", "video/3gpp"},
}};

constexpr std::array<std::string_view, 4> k_youtube_hosts = {"youtu.be", "youtube.com", "www.youtube.com",
                                                             "m.youtube.com"};

/// What stands behind "SCHEME://" up to the path; empty for anything without a scheme.
std::string_view host_of(std::string_view url) {
  std::size_t scheme = url.find("://");
  if (scheme == url.npos) return {};
  std::string_view rest = url.substr(scheme + 3);
  return rest.substr(0, rest.find_first_of("/?#"));
}

/// The path of a URL without query and fragment; anything else as it is.
std::string_view path_of(std::string_view url) {
  std::size_t scheme = url.find("://");
  if (scheme == url.npos) return url;
  std::string_view rest = url.substr(scheme + 3);
  std::size_t start = std::min(rest.find_first_of("/?#"), rest.size());
  rest.remove_prefix(start);
  return rest.substr(0, rest.find_first_of("?#"));
}

}  // namespace

std::optional<std::string> media_type_by_extension(std::string_view name) {
  std::string_view path = path_of(name);
  std::size_t slash = path.rfind('/');
  std::string_view file = slash == path.npos ? path : path.substr(slash + 1);
  std::size_t dot = file.rfind('.');
  // As in ".png", a point in front begins a name, not an extension.
  if (dot == file.npos || file.find_first_not_of('.') > dot) return std::nullopt;
  std::string extension(file.substr(dot + 1));
  for (char& c : extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  for (const auto& [each, type] : k_types) {
    if (each == extension) return std::string(type);
  }
  return std::nullopt;
}

std::optional<std::string> media_type_of(const FileUrl& url) {
  if (url.media_type) return url.media_type;
  if (url.kind == UrlKind::video &&
      std::ranges::find(k_youtube_hosts, host_of(url.url)) != k_youtube_hosts.end()) {
    return "video/mp4";
  }
  return media_type_by_extension(url.url);
}

std::string media_type_of(const UploadedFile& file) {
  if (file.media_type) return *file.media_type;
  return media_type_by_extension(file.file_id).value_or("application/octet-stream");
}

}  // namespace holt
