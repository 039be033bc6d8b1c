#include "holt/base/encoding.hpp"

#include "holt/base/error.hpp"

#include <array>
#include <cstdint>
#include <cstring>

#include <openssl/evp.h>

namespace holt {
namespace {

constexpr std::string_view k_standard = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view k_url_safe = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr std::array<signed char, 256> make_table(std::string_view alphabet) {
  std::array<signed char, 256> table{};
  for (auto& value : table) value = -1;
  for (std::size_t i = 0; i < alphabet.size(); ++i) {
    table[static_cast<unsigned char>(alphabet[i])] = static_cast<signed char>(i);
  }
  return table;
}
constexpr auto k_standard_table = make_table(k_standard);
constexpr auto k_url_safe_table = make_table(k_url_safe);

std::string digest(const EVP_MD* method, std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  unsigned size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), out.data(), &size, method, nullptr) != 1) {
    throw Error(ErrorCode::internal, "OpenSSL could not make a digest");
  }
  return {reinterpret_cast<const char*>(out.data()), size};
}

/// What stands at the front of a text: a whole character, a damaged one, or the beginning of one (Unicode 15,
/// table 3-7; a damaged part is maximal as in "U+FFFD Substitution of Maximal Subparts").
struct Unit {
  enum class Kind { valid, invalid, open } kind;
  std::size_t length;
};
Unit next_unit(std::string_view text) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = byte(0);
  if (first < 0x80) return {Unit::Kind::valid, 1};
  std::size_t length = first >= 0xc2 && first < 0xe0   ? 2
                       : first >= 0xe0 && first < 0xf0 ? 3
                       : first >= 0xf0 && first < 0xf5 ? 4
                                                       : 0;
  if (length == 0) return {Unit::Kind::invalid, 1};
  unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {Unit::Kind::open, i};
    if (byte(i) < low || byte(i) > high) return {Unit::Kind::invalid, i};
    low = 0x80;
    high = 0xbf;
  }
  return {Unit::Kind::valid, length};
}

/// Length of the run of ASCII at the front, eight bytes at a time.
std::size_t ascii_length(std::string_view text) {
  std::size_t i = 0;
  for (std::uint64_t block = 0; i + sizeof block <= text.size(); i += sizeof block) {
    std::memcpy(&block, text.data() + i, sizeof block);
    if ((block & 0x8080808080808080U) != 0) break;
  }
  while (i < text.size() && static_cast<unsigned char>(text[i]) < 0x80) ++i;
  return i;
}

constexpr std::string_view k_replacement = "\xef\xbf\xbd";

}  // namespace

std::string base64_encode(std::string_view bytes, Base64Alphabet alphabet) {
  std::string_view letters = alphabet == Base64Alphabet::standard ? k_standard : k_url_safe;
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t block = 0;
    for (std::size_t k = 0; k < 3; ++k)
      block = block << 8 | (k < n ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) out += k <= n ? letters[block >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::optional<std::string> base64_decode(std::string_view text) {
  bool url_safe = text.find_first_of("-_") != std::string_view::npos;
  const auto& table = url_safe ? k_url_safe_table : k_standard_table;
  std::size_t letters = text.find('=');
  if (letters == std::string_view::npos) letters = text.size();
  std::size_t padding = text.size() - letters;
  std::size_t rest = letters % 4;
  if (rest == 1 || padding > (rest == 0 ? 0 : 4 - rest)) return std::nullopt;
  if (text.find_first_not_of('=', letters) != std::string_view::npos) return std::nullopt;

  std::string out;
  out.reserve(letters / 4 * 3 + 3);
  std::uint32_t bits = 0;
  int held = 0;
  for (char letter : text.substr(0, letters)) {
    signed char value = table[static_cast<unsigned char>(letter)];
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    held += 6;
    if (held >= 8) {
      held -= 8;
      out += static_cast<char>(bits >> held & 0xff);
    }
  }
  if ((bits & ((1U << held) - 1)) != 0) return std::nullopt;
  return out;
}

std::string hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (unsigned char byte : bytes) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

std::string sha256(std::string_view bytes) {
  return digest(EVP_sha256(), bytes);
}
std::string sha256_hex(std::string_view bytes) {
  return hex(sha256(bytes));
}
std::string sha1_hex(std::string_view bytes) {
  return hex(digest(EVP_sha1(), bytes));
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    std::size_t plain = ascii_length(text);
    text.remove_prefix(plain);
    if (text.empty()) break;
    Unit unit = next_unit(text);
    if (unit.kind != Unit::Kind::valid) return false;
    text.remove_prefix(unit.length);
  }
  return true;
}

std::string utf8_replace(std::string_view bytes) {
  Utf8Decoder decoder;
  std::string out = decoder.feed(bytes);
  return out + decoder.finish();
}

std::size_t utf8_length(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(next_unit(text).length);
  return count;
}

std::string Utf8Decoder::feed(std::string_view bytes) {
  std::string joined;
  if (!open_.empty()) {
    joined = std::exchange(open_, {});
    joined += bytes;
    bytes = joined;
  }
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    Unit unit = next_unit(bytes);
    if (unit.kind == Unit::Kind::open) {
      open_ = bytes;
      break;
    }
    out += unit.kind == Unit::Kind::valid ? bytes.substr(0, unit.length) : k_replacement;
    bytes.remove_prefix(unit.length);
  }
  return out;
}

std::string Utf8Decoder::finish() {
  return std::exchange(open_, {}).empty() ? std::string() : std::string(k_replacement);
}

}  // namespace holt
