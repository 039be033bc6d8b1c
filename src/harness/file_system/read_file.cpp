#include "harness/file_system/toolbox.hpp"
#include "harness/text.hpp"
#include "harness/wording.hpp"
#include "holt/base/encoding.hpp"
#include "holt/messages/content.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace holt::file_tools {
namespace {

constexpr std::int64_t k_max_lines = 2000;
constexpr std::size_t k_max_media_bytes = 5'000'000;
constexpr std::size_t k_max_header_path = 12500;  // characters
constexpr std::size_t k_notice_room = 200;        // characters kept for the line that says how to read on
constexpr std::size_t k_sniffed = 8192;
constexpr std::size_t k_dumped = 64;

std::string shown_path(const std::string& path) {
  if (utf8_length(path) <= k_max_header_path) return path;
  return "..." + std::string(last_characters(path, k_max_header_path));
}

/// What models take as a picture or a document, by the leading bytes.
std::optional<std::string> media_type_of(std::string_view bytes) {
  using namespace std::string_view_literals;
  if (bytes.starts_with("\x89PNG\r\n\x1a\n"sv)) return "image/png";
  if (bytes.starts_with("\xff\xd8\xff"sv)) return "image/jpeg";
  if (bytes.starts_with("GIF87a"sv) || bytes.starts_with("GIF89a"sv)) return "image/gif";
  if (bytes.starts_with("RIFF"sv) && bytes.substr(0, 12).ends_with("WEBP"sv)) return "image/webp";
  if (bytes.starts_with("%PDF-"sv)) return "application/pdf";
  return std::nullopt;
}

/// The media type that a name's extension tells.
std::string type_by_name(std::string_view path) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 40> k_types{{
      {".7z", "application/x-7z-compressed"},
      {".avi", "video/x-msvideo"},
      {".avif", "image/avif"},
      {".bin", "application/octet-stream"},
      {".bmp", "image/bmp"},
      {".css", "text/css"},
      {".csv", "text/csv"},
      {".doc", "application/msword"},
      {".dll", "application/octet-stream"},
      {".exe", "application/octet-stream"},
      {".gif", "image/gif"},
      {".gz", "application/gzip"},
      {".htm", "text/html"},
      {".html", "text/html"},
      {".ico", "image/vnd.microsoft.icon"},
      {".jpeg", "image/jpeg"},
      {".jpg", "image/jpeg"},
      {".js", "text/javascript"},
      {".json", "application/json"},
      {".md", "text/markdown"},
      {".mov", "video/quicktime"},
      {".mp3", "audio/mpeg"},
      {".mp4", "video/mp4"},
      {".o", "application/octet-stream"},
      {".pdf", "application/pdf"},
      {".png", "image/png"},
      {".ppt", "application/vnd.ms-powerpoint"},
      {".ps", "application/postscript"},
      {".py", "text/x-python"},
      {".pyc", "application/x-python-code"},
      {".so", "application/octet-stream"},
      {".svg", "image/svg+xml"},
      {".tar", "application/x-tar"},
      {".tif", "image/tiff"},
      {".tiff", "image/tiff"},
      {".txt", "text/plain"},
      {".wasm", "application/wasm"},
      {".wav", "audio/x-wav"},
      {".xml", "text/xml"},
      {".zip", "application/zip"},
  }};
  std::string_view name = path.substr(path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') + 1);
  std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return "application/octet-stream";
  std::string extension(name.substr(dot));
  std::ranges::transform(extension, extension.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  for (const auto& [known, type] : k_types) {
    if (known == extension) return std::string(type);
  }
  return "application/octet-stream";
}

ToolReturn media_answer(const std::string& path, std::string type, std::string bytes) {
  std::string header = fmt::format("[{} | {} | {} bytes]\n", shown_path(path), type, bytes.size());
  if (bytes.size() > k_max_media_bytes) {
    return text_answer(header + wording::read_media_too_large(k_max_media_bytes));
  }
  BinaryContent file{.data = std::move(bytes), .media_type = std::move(type)};
  ToolReturn answer;
  answer.return_value = Json::array({header, content_to_json(UserContentItem(std::move(file)))});
  return answer;
}

ToolReturn binary_answer(const std::string& path, std::string_view bytes) {
  std::string text = fmt::format("[{} | {} | {} bytes]\n{}\n", shown_path(path), type_by_name(path),
                                 bytes.size(), wording::k_read_binary);
  std::size_t dumped = std::min(bytes.size(), k_dumped);
  for (std::size_t row = 0; row < dumped; row += 16) {
    text += fmt::format("{:08x} ", row);
    for (std::size_t at = row; at < std::min(row + 16, dumped); ++at) {
      text += fmt::format(" {:02x}", static_cast<unsigned char>(bytes[at]));
    }
    text += '\n';
  }
  if (bytes.size() > dumped) text += wording::read_more_bytes(bytes.size() - dumped) + "\n";
  return text_answer(std::move(text));
}

struct Window {
  std::size_t offset;
  std::size_t limit;
};

/// The numbered lines of the window that fit into `budget` characters, and how to read on.
std::string numbered_lines(std::string_view text, std::size_t lines, Window window, std::size_t budget) {
  std::size_t at = 0;
  for (std::size_t skipped = 0; skipped < window.offset; ++skipped) at = text.find('\n', at) + 1;
  std::string body;
  std::size_t line = window.offset;
  for (std::size_t used = 0; line < lines && line - window.offset < window.limit; ++line) {
    std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    std::string_view content = text.substr(at, end - at);
    std::string numbered = fmt::format("{:>6}\t{}", line + 1, content);
    if (!numbered.ends_with('\n')) numbered += '\n';
    used += utf8_length(numbered);
    if (used > budget) {
      if (line == window.offset) {
        return wording::read_line_too_wide(line + 1, with_commas(utf8_length(content)), line + 1) + "\n";
      }
      break;
    }
    body += numbered;
    at = end;
  }
  if (line < lines) body += wording::read_more_lines(lines - line, line) + "\n";
  return body;
}

ToolReturn text_lines_answer(const Toolbox& box, const std::string& path, std::string_view bytes,
                             Window window) {
  std::string text = utf8_replace(bytes);
  std::size_t lines = count_lines(text);
  std::string header = fmt::format("[{} | {} lines]\n", shown_path(path), lines);
  if (lines == 0) return text_answer(header + wording::k_empty_file + "\n");
  if (window.offset >= lines) {
    throw ModelRetry(wording::read_offset_past_end(static_cast<std::int64_t>(window.offset), lines));
  }
  std::size_t taken = utf8_length(header) + k_notice_room;
  std::size_t budget = box.max_read_chars > taken ? box.max_read_chars - taken : 0;
  return text_answer(header + numbered_lines(text, lines, window, budget));
}

}  // namespace

Task<ToolReturn> read_file(const Toolbox& box, Workspace workspace, ReadFile arguments) {
  if (arguments.offset < 0) throw ModelRetry(wording::k_read_offset_negative);
  std::int64_t limit = arguments.limit.value_or(k_max_lines);
  if (limit < 1) throw ModelRetry(wording::k_read_limit_low);
  Window window{static_cast<std::size_t>(arguments.offset),
                static_cast<std::size_t>(std::min(limit, k_max_lines))};

  Target target = co_await find_target(box, workspace, arguments.path);
  std::string bytes;
  try {
    FileEntry entry = co_await workspace.stat(target.path);
    if (entry.is_dir) co_return text_answer(wording::path_not_found(arguments.path));
    if (entry.size && *entry.size > k_max_file_bytes) {
      co_return text_answer(fmt::format("[{} | {} bytes]\n{}", shown_path(arguments.path), *entry.size,
                                        wording::read_too_large(k_max_file_bytes)));
    }
    bytes = co_await workspace.read_bytes(target.path);
  } catch (const PathError& error) {
    if (error.kind() != PathErrorKind::not_found && error.kind() != PathErrorKind::not_a_directory) throw;
    co_return text_answer(wording::path_not_found(arguments.path));
  }
  if (auto type = media_type_of(bytes)) {
    co_return media_answer(arguments.path, std::move(*type), std::move(bytes));
  }
  if (std::string_view(bytes).substr(0, k_sniffed).find('\0') != std::string_view::npos) {
    co_return binary_answer(arguments.path, bytes);
  }
  co_return text_lines_answer(box, arguments.path, bytes, window);
}

}  // namespace holt::file_tools
