#include "base/float_text.hpp"
#include "holt/base/encoding.hpp"
#include "holt/base/json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace holt {
namespace {

// Limits of the reference's reader (jiter): depth counts values, the outermost is 1; length counts the sign.
constexpr std::size_t k_max_depth = 201;
constexpr std::size_t k_max_integer_length = 4300;

// Below this many keys a linear look for duplicates is faster than a table.
constexpr std::size_t k_linear_keys = 16;

// The reasons of docs/reference.md, "JSON".
namespace reason {
constexpr std::string_view end_value = "ends where a value should be";
constexpr std::string_view end_object = "ends inside an object";
constexpr std::string_view end_list = "ends inside a list";
constexpr std::string_view end_string = "ends inside a string";
constexpr std::string_view no_colon = "no `:` here";
constexpr std::string_view no_object_comma = "no `,` or `}` here";
constexpr std::string_view no_list_comma = "no `,` or `]` here";
constexpr std::string_view no_value = "no value here";
constexpr std::string_view no_word = "no known word here";
constexpr std::string_view key_not_string = "a key that is no string";
constexpr std::string_view trailing_comma = "comma with nothing behind it";
constexpr std::string_view trailing_text = "text behind the value";
constexpr std::string_view malformed_number = "malformed number";
constexpr std::string_view large_number = "number too large";
constexpr std::string_view unknown_escape = "unknown escape";
constexpr std::string_view cut_escape = "cut hex escape";
constexpr std::string_view surrogate = "unpaired surrogate";
constexpr std::string_view control = "bare control character in a string";
constexpr std::string_view not_utf8 = "a string that is not UTF-8";
constexpr std::string_view depth = "nested too deeply";
}  // namespace reason

/// Bytes of a string that stand for themselves.
constexpr auto k_plain = [] {
  std::array<bool, 256> plain{};
  for (std::size_t byte = 0x20; byte < 256; ++byte) plain[byte] = byte != '"' && byte != '\\';
  return plain;
}();

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

void append_utf8(std::string& out, std::uint32_t code) {
  auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

/// The members of an object while it is read: the last of equal keys counts, at the place of the first.
class Members {
 public:
  void add(std::string key, Json value) {
    if (std::size_t* place = find(key)) {
      members_[*place].second = std::move(value);
      return;
    }
    members_.emplace_back(std::move(key), std::move(value));
    if (members_.size() == k_linear_keys) {
      for (std::size_t i = 0; i < members_.size(); ++i) places_.emplace(members_[i].first, i);
    } else if (members_.size() > k_linear_keys) {
      places_.emplace(members_.back().first, members_.size() - 1);
    }
  }

  Json take() {
    Json object = Json::object();
    auto& target = object.get_ref<Json::object_t&>();
    // Straight into the vector below nlohmann's ordered_map, whose own insert looks at every key before.
    target.reserve(members_.size());
    for (auto& [key, value] : members_) target.emplace_back(std::move(key), std::move(value));
    return object;
  }

 private:
  std::size_t* find(const std::string& key) {
    if (members_.size() >= k_linear_keys) {
      auto found = places_.find(key);
      return found == places_.end() ? nullptr : &found->second;
    }
    for (found_ = 0; found_ < members_.size(); ++found_) {
      if (members_[found_].first == key) return &found_;
    }
    return nullptr;
  }

  std::vector<std::pair<std::string, Json>> members_;
  std::unordered_map<std::string, std::size_t> places_;
  std::size_t found_ = 0;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::expected<Json, JsonError> read() {
    Json value;
    if (!read_document(value)) return std::unexpected(error());
    return value;
  }

 private:
  bool read_document(Json& value) {
    if (skip_space()) return fail(reason::end_value);
    if (!read_value(value, 1)) return false;
    return skip_space() || fail(reason::trailing_text);
  }

  // Every read_... returns false after fail(); at_ stands on the first byte of what is to be read.

  bool read_value(Json& value, std::size_t depth) {
    if (depth > k_max_depth) return fail(reason::depth);
    switch (text_[at_]) {
      case '{':
        return read_object(value, depth);
      case '[':
        return read_list(value, depth);
      case '"':
        value = std::string();
        return read_string(value.get_ref<std::string&>());
      case 't':
        value = true;
        return read_word("true");
      case 'f':
        value = false;
        return read_word("false");
      case 'n':
        value = nullptr;
        return read_word("null");
      case 'N':
        value = std::numeric_limits<double>::quiet_NaN();
        return read_word("NaN");
      case 'I':
        value = std::numeric_limits<double>::infinity();
        return read_word("Infinity");
      default:
        if (text_[at_] != '-' && !is_digit(text_[at_])) return fail(reason::no_value);
        return read_number(value);
    }
  }

  bool read_object(Json& value, std::size_t depth) {
    Members members;
    ++at_;
    if (skip_space()) return fail(reason::end_object);
    if (text_[at_] != '}') {
      while (true) {
        std::string key;
        Json member;
        if (!read_key(key) || !read_value(member, depth + 1)) return false;
        members.add(std::move(key), std::move(member));
        if (skip_space()) return fail(reason::end_object);
        if (text_[at_] == '}') break;
        if (text_[at_] != ',') return fail(reason::no_object_comma);
        ++at_;
        if (skip_space()) return fail(reason::end_value);
        if (text_[at_] == '}') return fail(reason::trailing_comma);
      }
    }
    ++at_;
    value = members.take();
    return true;
  }

  /// A key, its colon and the space behind, up to the value.
  bool read_key(std::string& key) {
    if (text_[at_] != '"') return fail(reason::key_not_string);
    if (!read_string(key)) return false;
    if (skip_space()) return fail(reason::end_object);
    if (text_[at_] != ':') return fail(reason::no_colon);
    ++at_;
    return !skip_space() || fail(reason::end_value);
  }

  bool read_list(Json& value, std::size_t depth) {
    value = Json::array();
    auto& items = value.get_ref<Json::array_t&>();
    ++at_;
    if (skip_space()) return fail(reason::end_list);
    if (text_[at_] != ']') {
      while (true) {
        if (!read_value(items.emplace_back(), depth + 1)) return false;
        if (skip_space()) return fail(reason::end_list);
        if (text_[at_] == ']') break;
        if (text_[at_] != ',') return fail(reason::no_list_comma);
        ++at_;
        if (skip_space()) return fail(reason::end_value);
        if (text_[at_] == ']') return fail(reason::trailing_comma);
      }
    }
    ++at_;
    return true;
  }

  bool read_word(std::string_view word) {
    for (char expected : word) {
      if (at_ == text_.size()) return fail(reason::end_value);
      if (text_[at_] != expected) return fail(reason::no_word);
      ++at_;
    }
    return true;
  }

  bool read_string(std::string& out) {
    std::size_t start = at_++;
    bool ascii = true;
    while (true) {
      std::size_t chunk = at_;
      const char* end = text_.data() + text_.size();
      const char* at = text_.data() + at_;
      unsigned char all = 0;
      while (at != end && k_plain[static_cast<unsigned char>(*at)]) all |= static_cast<unsigned char>(*at++);
      ascii = ascii && all < 0x80;
      at_ = static_cast<std::size_t>(at - text_.data());
      out.append(text_, chunk, at_ - chunk);
      if (at_ == text_.size()) return fail(reason::end_string);
      if (static_cast<unsigned char>(text_[at_]) < 0x20) return fail(reason::control);
      if (text_[at_] == '"') break;
      if (!read_escape(out)) return false;
    }
    ++at_;
    if (!ascii && !is_utf8(out)) return fail_at(reason::not_utf8, start);
    return true;
  }

  bool read_escape(std::string& out) {
    constexpr std::string_view k_letters = "\"\\/bfnrt";
    constexpr std::string_view k_meanings = "\"\\/\b\f\n\r\t";
    if (++at_ == text_.size()) return fail(reason::end_string);
    if (text_[at_] == 'u') return read_hex_escape(out);
    std::size_t index = k_letters.find(text_[at_]);
    if (index == k_letters.npos) return fail(reason::unknown_escape);
    out += k_meanings[index];
    ++at_;
    return true;
  }

  bool read_hex_escape(std::string& out) {
    std::uint32_t code = 0;
    if (!read_four_digits(code)) return false;
    if (code >= 0xdc00 && code < 0xe000) return fail_at(reason::surrogate, at_ - 1);
    if (code >= 0xd800 && code < 0xdc00) {
      std::string_view next = text_.substr(at_, 2);
      if (next.empty() || next == "\\") return fail_at(reason::end_string, text_.size());
      if (next.front() != '\\') return fail(reason::cut_escape);
      if (next.back() != 'u') return fail_at(reason::cut_escape, at_ + 1);
      ++at_;
      std::uint32_t low = 0;
      if (!read_four_digits(low)) return false;
      if (low < 0xdc00 || low >= 0xe000) return fail_at(reason::surrogate, at_ - 1);
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    append_utf8(out, code);
    return true;
  }

  /// The digits behind the 'u' that at_ stands on.
  bool read_four_digits(std::uint32_t& code) {
    ++at_;
    if (text_.size() - at_ < 4) return fail_at(reason::end_string, text_.size());
    for (int i = 0; i < 4; ++i, ++at_) {
      std::uint32_t digit = 0;
      auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + at_ + 1, digit, 16);
      if (error != std::errc()) return fail(reason::unknown_escape);
      code = code << 4 | digit;
    }
    return true;
  }

  bool read_number(Json& value) {
    std::size_t start = at_;
    if (text_[at_] == '-') {
      ++at_;
      if (at_ == text_.size()) return fail(reason::end_value);
      if (text_[at_] == 'I') {
        value = -std::numeric_limits<double>::infinity();
        return read_word("Infinity");
      }
      if (!is_digit(text_[at_])) return fail(reason::malformed_number);
    }
    if (text_[at_] == '0') {
      ++at_;
      if (at_ < text_.size() && is_digit(text_[at_])) return fail(reason::malformed_number);
    } else {
      skip_digits();
      if (at_ - start > k_max_integer_length) {
        return fail_at(reason::large_number, start + k_max_integer_length + 1);
      }
    }
    bool is_float = false;
    if (at_ < text_.size() && text_[at_] == '.') {
      is_float = true;
      ++at_;
      if (!need_digits()) return false;
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      is_float = true;
      ++at_;
      if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
      if (!need_digits()) return false;
    }
    std::string_view number = text_.substr(start, at_ - start);
    value = is_float ? Json(float_from_text(number).value_or(0)) : to_integer(number);
    return true;
  }

  bool need_digits() {
    if (at_ == text_.size()) return fail(reason::end_value);
    if (!is_digit(text_[at_])) return fail(reason::malformed_number);
    skip_digits();
    return true;
  }

  void skip_digits() {
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  }

  static Json to_integer(std::string_view text) {
    const char* end = text.data() + text.size();
    std::int64_t number = 0;
    if (std::from_chars(text.data(), end, number).ec == std::errc()) return number;
    std::uint64_t large = 0;
    if (std::from_chars(text.data(), end, large).ec == std::errc()) return large;
    return json_big_integer(std::string(text));
  }

  /// True at the end of the text.
  bool skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
      ++at_;
    }
    return at_ == text_.size();
  }

  bool fail(std::string_view reason) { return fail_at(reason, at_); }
  bool fail_at(std::string_view reason, std::size_t at) {
    reason_ = reason;
    at_ = at;
    return false;
  }

  /// A line feed that offends stands at column 0 of the next line, as the reference counts.
  JsonError error() const {
    std::size_t past = std::min(at_ + 1, text_.size());
    std::string_view seen = text_.substr(0, past);
    std::size_t line_feed = seen.rfind('\n');
    std::size_t line_start = line_feed == seen.npos ? 0 : line_feed + 1;
    return {.reason = std::string(reason_),
            .line = 1 + static_cast<std::size_t>(std::ranges::count(seen, '\n')),
            .column = past - line_start};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string_view reason_;
};

}  // namespace

std::string JsonError::text() const {
  return fmt::format("{} (line {}, column {})", reason, line, column);
}

std::expected<Json, JsonError> parse_json(std::string_view text) {
  return Reader(text).read();
}

}  // namespace holt
