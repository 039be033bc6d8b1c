#include "holt/image/platform.hpp"

#include <algorithm>
#include <vector>

namespace holt::image {
namespace {

constexpr std::size_t k_word_limit = 64;

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= k_word_limit && is_alphanumeric(text.front()) &&
         std::ranges::all_of(text,
                             [](char c) { return is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; });
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    std::size_t slash = text.find('/');
    words.push_back(text.substr(0, slash));
    if (slash == std::string_view::npos) return words;
    text.remove_prefix(slash + 1);
  }
}

}  // namespace

std::string Platform::text() const {
  std::string all = os + "/" + architecture;
  if (!variant.empty()) all += "/" + variant;
  return all;
}

std::expected<Platform, std::string> parse_platform(std::string_view text) {
  auto words = split(text);
  if (words.size() < 2 || words.size() > 3) return std::unexpected("it is not OS/ARCHITECTURE[/VARIANT]");
  if (!std::ranges::all_of(words, is_word)) {
    return std::unexpected("its words are not 1 to 64 of lower-case letters, digits, '.', '_' and '-'");
  }
  Platform platform{.os = std::string(words[0]), .architecture = std::string(words[1])};
  if (words.size() == 3) platform.variant = words[2];
  if (platform.architecture == "x86_64") platform.architecture = "amd64";
  if (platform.architecture == "aarch64") platform.architecture = "arm64";
  return platform;
}

}  // namespace holt::image
