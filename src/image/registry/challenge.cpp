#include "image/registry/challenge.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

namespace holt::image {
namespace {

constexpr std::size_t k_challenges = 16;
constexpr std::size_t k_parameters = 16;
constexpr std::size_t k_value_bytes = 4096;

bool is_token(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool at_end() const { return text_.empty(); }
  void skip(std::string_view characters) {
    auto first = text_.find_first_not_of(characters);
    text_.remove_prefix(std::min(first, text_.size()));
  }
  bool take(char c) {
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  std::string token() {
    const auto* end = std::ranges::find_if_not(text_, is_token);
    return take_bytes(static_cast<std::size_t>(end - text_.begin()));
  }
  /// A quoted string, or what servers write without the quotes that it needs.
  std::optional<std::string> value() {
    if (!take('"')) return take_bytes(std::min(text_.find_first_of(", \t"), text_.size()));
    std::string out;
    while (!text_.empty()) {
      char c = text_.front();
      text_.remove_prefix(1);
      if (c == '"') return out;
      if (c == '\\' && !text_.empty()) {
        c = text_.front();
        text_.remove_prefix(1);
      }
      out += c;
    }
    return std::nullopt;
  }

 private:
  std::string take_bytes(std::size_t count) {
    std::string out(text_.substr(0, count));
    text_.remove_prefix(count);
    return out;
  }
  std::string_view text_;
};

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

std::string Challenge::parameter(const std::string& name) const {
  auto it = parameters.find(name);
  return it == parameters.end() ? std::string() : it->second;
}

std::vector<Challenge> parse_challenges(std::string_view text) {
  std::vector<Challenge> challenges;
  Reader reader(text);
  while (true) {
    reader.skip(", \t");
    if (reader.at_end()) break;
    std::string name = lower(reader.token());
    if (name.empty()) break;
    reader.skip(" \t");
    if (challenges.empty() || !reader.take('=')) {
      if (challenges.size() == k_challenges) break;
      challenges.push_back({.scheme = std::move(name), .parameters = {}});
      continue;
    }
    reader.skip(" \t");
    auto value = reader.value();
    auto& parameters = challenges.back().parameters;
    if (!value || value->size() > k_value_bytes || parameters.size() == k_parameters) break;
    parameters.try_emplace(std::move(name), std::move(*value));
  }
  return challenges;
}

}  // namespace holt::image
