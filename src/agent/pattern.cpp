#include "agent/pattern.hpp"

#include "holt/base/encoding.hpp"

// Boost's matcher keeps its states on the heap and gives up at a bound; std::regex of libstdc++ recurses for
// each character and overflows the stack on texts of some 100 KB.
#include <boost/regex.hpp>

namespace holt::detail {
namespace {

/// Code points; invalid bytes as U+FFFD.
std::wstring widen(std::string_view text) {
  static_assert(sizeof(wchar_t) == 4);
  std::string valid = utf8_replace(text);
  std::wstring out;
  for (std::size_t i = 0; i < valid.size();) {
    auto first = static_cast<unsigned char>(valid[i]);
    std::size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    std::uint32_t code = length == 1 ? first : first & (0xff >> (length + 1));
    for (std::size_t k = 1; k < length; ++k) {
      code = code << 6 | (static_cast<unsigned char>(valid[i + k]) & 0x3f);
    }
    out += static_cast<wchar_t>(code);
    i += length;
  }
  return out;
}

}  // namespace

bool contains_match(const std::string& expression, std::string_view text) {
  boost::wregex regex;
  try {
    regex.assign(widen(expression), boost::regex_constants::ECMAScript);
  } catch (const std::exception&) {
    return true;
  }
  try {
    return boost::regex_search(widen(text), regex, boost::regex_constants::match_single_line);
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace holt::detail
