#include "holt/base/encoding.hpp"
#include "holt/base/json.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

namespace holt {
namespace {

/// The code point at the front of valid UTF-8, and its length.
std::pair<std::uint32_t, std::size_t> front_character(std::string_view text) {
  auto byte = [&](std::size_t i) { return std::uint32_t{static_cast<unsigned char>(text[i])}; };
  std::uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xe0) return {(first & 0x1f) << 6 | (byte(1) & 0x3f), 2};
  if (first < 0xf0) return {(first & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f), 3};
  return {(first & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f), 4};
}

/// Bytes of a string that stand for themselves.
constexpr auto k_plain = [] {
  std::array<bool, 256> plain{};
  for (std::size_t byte = 0x20; byte < 256; ++byte) plain[byte] = byte != '"' && byte != '\\';
  return plain;
}();

class Writer {
 public:
  explicit Writer(JsonStyle style) : style_(style) {}

  void write(const Json& value) {
    switch (value.type()) {
      case Json::value_t::object:
        return write_object(value.get_ref<const Json::object_t&>());
      case Json::value_t::array:
        return write_list(value.get_ref<const Json::array_t&>());
      case Json::value_t::string:
        return write_string(value.get_ref<const std::string&>());
      case Json::value_t::boolean:
        out_ += value.get<bool>() ? "true" : "false";
        return;
      case Json::value_t::number_integer:
        return write_integer(value.get<std::int64_t>());
      case Json::value_t::number_unsigned:
        return write_integer(value.get<std::uint64_t>());
      case Json::value_t::number_float:
        out_ += json_number(value.get<double>());
        return;
      case Json::value_t::binary:
        out_ += is_json_big_integer(value) ? json_big_integer_digits(value) : "null";
        return;
      case Json::value_t::null:
      case Json::value_t::discarded:
        out_ += "null";
        return;
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void write_object(const Json::object_t& members) {
    out_ += '{';
    open(members.empty());
    bool first = true;
    for (const auto& [key, value] : members) {
      if (!first) separate();
      first = false;
      write_string(key);
      out_ += style_.spaces || style_.indent > 0 ? ": " : ":";
      write(value);
    }
    close(members.empty());
    out_ += '}';
  }

  void write_list(const Json::array_t& items) {
    out_ += '[';
    open(items.empty());
    bool first = true;
    for (const Json& item : items) {
      if (!first) separate();
      first = false;
      write(item);
    }
    close(items.empty());
    out_ += ']';
  }

  void open(bool empty) {
    ++level_;
    if (!empty) break_line();
  }
  void close(bool empty) {
    --level_;
    if (!empty) break_line();
  }
  void separate() {
    out_ += style_.spaces && style_.indent <= 0 ? ", " : ",";
    break_line();
  }
  void break_line() {
    if (style_.indent <= 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(style_.indent) * level_, ' ');
  }

  void write_integer(auto number) {
    std::array<char, 24> digits{};
    auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
    out_.append(digits.data(), end);
  }

  void write_string(std::string_view text) {
    if (is_utf8(text)) return write_valid_string(text);
    write_valid_string(utf8_replace(text));
  }

  void write_valid_string(std::string_view text) {
    out_ += '"';
    std::size_t plain = 0;  // start of the run that is copied as it is
    for (std::size_t i = 0; i < text.size();) {
      auto byte = static_cast<unsigned char>(text[i]);
      if (k_plain[byte] && (byte < 0x80 || !style_.ascii_only)) {
        ++i;
        continue;
      }
      out_.append(text, plain, i - plain);
      auto [code, length] = front_character(text.substr(i));
      write_escape(code);
      i += length;
      plain = i;
    }
    out_.append(text, plain);
    out_ += '"';
  }

  void write_escape(std::uint32_t code) {
    constexpr std::string_view k_meanings = "\"\\\b\f\n\r\t";
    constexpr std::string_view k_letters = "\"\\bfnrt";
    if (code < 0x80) {
      if (std::size_t index = k_meanings.find(static_cast<char>(code)); index != k_meanings.npos) {
        out_ += '\\';
        out_ += k_letters[index];
        return;
      }
    }
    auto unit = [&](std::uint32_t value) { fmt::format_to(std::back_inserter(out_), "\\u{:04x}", value); };
    if (code < 0x10000) return unit(code);
    unit(0xd800 + ((code - 0x10000) >> 10));
    unit(0xdc00 + ((code - 0x10000) & 0x3ff));
  }

  JsonStyle style_;
  std::string out_;
  std::size_t level_ = 0;
};

}  // namespace

std::string dump_json(const Json& value, JsonStyle style) {
  Writer writer(style);
  writer.write(value);
  return writer.take();
}

std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  std::array<char, 32> buffer{};
  auto [end, error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
  std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));  // [-]D[.DDD]e(+|-)DD
  std::string sign;
  if (text.front() == '-') {
    sign = "-";
    text.remove_prefix(1);
  }
  std::size_t e = text.find('e');
  int exponent = 0;
  std::string_view written = text.substr(e + 1);
  if (written.front() == '+') written.remove_prefix(1);
  std::from_chars(written.data(), written.data() + written.size(), exponent);
  std::string digits(1, text.front());
  if (e > 2) digits += text.substr(2, e - 2);

  if (exponent < -5 || exponent > 15) {
    std::string fraction = digits.size() > 1 ? "." + digits.substr(1) : "";
    return fmt::format("{}{}{}e{:+}", sign, digits.front(), fraction, exponent);
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  std::size_t whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

}  // namespace holt
