#include "harness/text.hpp"

#include "holt/base/encoding.hpp"

#include <algorithm>

namespace holt {
namespace {

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

std::size_t announced_length(char first) {
  auto byte = static_cast<unsigned char>(first);
  if (byte < 0x80) return 1;
  if (byte < 0xe0) return 2;
  return byte < 0xf0 ? 3 : 4;
}

}  // namespace

std::string with_commas(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (std::size_t at = 0;;) {
    std::size_t end = text.find(separator, at);
    if (end == std::string_view::npos) {
      pieces.push_back(text.substr(at));
      return pieces;
    }
    pieces.push_back(text.substr(at, end - at));
    at = end + 1;
  }
}

std::size_t count_lines(std::string_view text) {
  auto complete = static_cast<std::size_t>(std::ranges::count(text, '\n'));
  return complete + (text.empty() || text.ends_with('\n') ? 0 : 1);
}

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = announced_length(text[at]);
    if (length > 1 && !is_utf8(text.substr(at, length))) return at;
    if (at + length > text.size()) return at;
    at += length;
  }
  return std::nullopt;
}

std::string_view last_characters(std::string_view text, std::size_t count) {
  std::size_t at = text.size();
  while (at > 0 && count > 0) {
    --at;
    if (!is_continuation(text[at])) --count;
  }
  return text.substr(at);
}

std::string_view first_characters(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (!is_continuation(text[at]) && count-- == 0) break;
    ++at;
  }
  return text.substr(0, at);
}

std::string_view trim_end(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
    text.remove_suffix(1);
  }
  return text;
}

}  // namespace holt
