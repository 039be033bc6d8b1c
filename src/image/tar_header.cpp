#include "image/tar_header.hpp"

#include "holt/base/error.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include <fmt/format.h>

namespace holt::image {
namespace {

bool is_padding(char c) {
  return c == ' ' || c == '\0';
}

std::optional<std::int64_t> octal(std::string_view text) {
  std::size_t first = std::min(text.find_first_not_of(' '), text.size());
  text.remove_prefix(first);
  std::size_t digits = std::min(text.find_first_not_of("01234567"), text.size());
  std::string_view rest = text.substr(digits);
  if (digits == 0)
    return std::ranges::all_of(rest, is_padding) ? std::optional<std::int64_t>(0) : std::nullopt;
  // Behind the digits: spaces, then the end or a NUL, behind which nothing counts.
  std::size_t end = rest.find_first_not_of(' ');
  if (end != std::string_view::npos && rest[end] != '\0') return std::nullopt;
  std::int64_t value = 0;
  std::string_view number = text.substr(0, digits);
  auto [at, error] = std::from_chars(number.data(), number.data() + number.size(), value, 8);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> base_256(std::string_view bytes) {
  bool negative = (static_cast<unsigned char>(bytes[0]) & 0x40U) != 0;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto byte = static_cast<unsigned char>(bytes[i]);
    if (negative) byte = static_cast<unsigned char>(~byte);
    if (i == 0) byte &= 0x7fU;
    if (value >> 56U != 0) return std::nullopt;
    value = value << 8U | byte;
  }
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return static_cast<std::int64_t>(negative ? ~value : value);
}

bool is_integer(std::string_view text) {
  std::int64_t value = 0;
  auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && at == text.data() + text.size();
}

/// "-12.5": pax's decimal seconds.
bool is_time(std::string_view text) {
  std::size_t dot = std::min(text.find('.'), text.size());
  std::string_view fraction = text.substr(std::min(dot + 1, text.size()));
  return is_integer(text.substr(0, dot)) &&
         fraction.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_name(std::string_view key) {
  constexpr std::array<std::string_view, 5> k_names{"path", "linkpath", "uname", "gname", "GNU.sparse.name"};
  return std::ranges::find(k_names, key) != k_names.end();
}

bool is_well_formed(std::string_view key, std::string_view value) {
  if (key.empty() || key.find('\0') != std::string_view::npos) return false;
  if (is_name(key)) return value.find('\0') == std::string_view::npos;
  if (key == "size" || key == "uid" || key == "gid") return is_integer(value);
  if (key == "mtime" || key == "atime" || key == "ctime") return is_time(value);
  return true;
}

}  // namespace

std::optional<std::int64_t> tar_number(std::string_view block, TarField field) {
  std::string_view bytes = block.substr(field.offset, field.length);
  bool binary = (static_cast<unsigned char>(bytes[0]) & 0x80U) != 0;
  return binary ? base_256(bytes) : octal(bytes);
}

bool tar_checksum_holds(std::string_view block) {
  auto wanted = tar_number(block, k_checksum_field);
  std::int64_t as_unsigned = 0;
  std::int64_t as_signed = 0;
  for (std::size_t i = 0; i < k_tar_block; ++i) {
    bool own = i - k_checksum_field.offset < k_checksum_field.length;
    char byte = own ? ' ' : block[i];
    as_unsigned += static_cast<unsigned char>(byte);
    as_signed += static_cast<signed char>(byte);
  }
  return wanted && (*wanted == as_unsigned || *wanted == as_signed);
}

std::expected<PaxRecords, std::string> read_pax_records(std::string_view body) {
  PaxRecords records;
  while (!body.empty()) {
    std::size_t length = 0;
    auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), length);
    auto digits = static_cast<std::size_t>(end - body.data());
    if (error != std::errc() || length > body.size() || length < digits + 3 || body[digits] != ' ' ||
        body[length - 1] != '\n') {
      return std::unexpected("has an extended header that is damaged");
    }
    std::string_view record = body.substr(digits + 1, length - digits - 2);
    body.remove_prefix(length);
    std::size_t equals = record.find('=');
    if (equals == std::string_view::npos ||
        !is_well_formed(record.substr(0, equals), record.substr(equals + 1))) {
      return std::unexpected(
          fmt::format("has the impossible attribute '{}' in its extended header", printable(record, 100)));
    }
    records.insert_or_assign(std::string(record.substr(0, equals)), std::string(record.substr(equals + 1)));
  }
  return records;
}

}  // namespace holt::image
