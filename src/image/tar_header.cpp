#include "image/tar_header.hpp"

#include "holt/base/error.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <ranges>
#include <utility>

#include <fmt/format.h>

namespace holt::image {
namespace {

using namespace std::literals;

constexpr std::size_t k_nanosecond_digits = 9;

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

bool is_size(std::string_view text) {
  return is_integer(text) && text.front() != '-';
}

/// "-12.5": pax's decimal seconds.
bool is_time(std::string_view text) {
  std::size_t dot = std::min(text.find('.'), text.size());
  std::string_view fraction = text.substr(std::min(dot + 1, text.size()));
  return is_integer(text.substr(0, dot)) &&
         fraction.find_first_not_of("0123456789") == std::string_view::npos;
}

/// "-0.5", "-00.5": a fraction of whole nanoseconds with a sign that its zero does not keep.
bool is_just_before_epoch(std::string_view time) {
  std::size_t dot = std::min(time.find('.'), time.size());
  std::string_view fraction = time.substr(std::min(dot + 1, time.size())).substr(0, k_nanosecond_digits);
  return time.starts_with('-') && time.substr(0, dot).find_first_not_of("-0") == std::string_view::npos &&
         fraction.find_first_not_of('0') != std::string_view::npos;
}

bool is_name(std::string_view key) {
  constexpr std::array<std::string_view, 5> k_names{"path", "linkpath", "uname", "gname", "GNU.sparse.name"};
  return std::ranges::find(k_names, key) != k_names.end();
}

/// What a record's name begins with when nobody is to know it.
constexpr char k_unknown = '-';
/// What makes "ctime" of "mtime".
constexpr char k_ctime = 'c';
constexpr std::string_view k_attribute = "SCHILY.xattr.";
constexpr std::string_view k_sparse = "GNU.sparse.";
constexpr std::string_view k_sparse_offset = "GNU.sparse.offset";
constexpr std::string_view k_sparse_length = "GNU.sparse.numbytes";
constexpr std::string_view k_sparse_map = "GNU.sparse.map";

/// Access lists, other names for attributes, devices and sizes of libarchive and star do not: Go's
/// archive/tar does not know them.
bool counts(std::string_view key, std::string_view value) {
  constexpr std::array<std::string_view, 6> k_keys{"path", "linkpath", "size", "uid", "gid", "mtime"};
  if (key.starts_with(k_attribute)) return true;
  return !value.empty() && (key.starts_with(k_sparse) || std::ranges::find(k_keys, key) != k_keys.end());
}

/// The sum of the bytes, the checksum's own as spaces.
template <class Byte>
std::int64_t tar_checksum(std::string_view block) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < k_tar_block; ++i) {
    bool own = i - k_checksum_field.offset < k_checksum_field.length;
    sum += static_cast<Byte>(own ? ' ' : block[i]);
  }
  return sum;
}

/// "0,2,8192,2": where a piece is and how long, `pieces` times.
bool is_sparse_map(std::string_view map, std::string_view pieces) {
  std::size_t wanted = 0;
  auto [end, error] = std::from_chars(pieces.data(), pieces.data() + pieces.size(), wanted);
  if (error != std::errc() || end != pieces.data() + pieces.size()) return false;
  std::size_t found = 0;
  for (auto number : std::views::split(map, ',')) {
    if (!is_size(std::string_view(number))) return false;
    ++found;
  }
  return found % 2 == 0 && found / 2 == wanted;
}

bool is_well_formed(std::string_view key, std::string_view value) {
  if (key.empty() || key.find('\0') != std::string_view::npos) return false;
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

bool is_extension(char type) {
  return type == 'x' || type == 'g' || type == 'L' || type == 'K';
}

std::uint64_t whole_blocks(std::uint64_t size) {
  return (size + k_tar_block - 1) / k_tar_block * k_tar_block;
}

bool tar_checksum_holds(std::string_view block) {
  auto wanted = tar_number(block, k_checksum_field);
  return wanted &&
         (*wanted == tar_checksum<unsigned char>(block) || *wanted == tar_checksum<signed char>(block));
}

void set_tar_checksum(std::string& block) {
  auto digits = fmt::format("{:06o}\0 "sv, tar_checksum<unsigned char>(block));
  block.replace(k_checksum_field.offset, k_checksum_field.length, digits);
}

std::expected<PaxRecords, std::string> read_pax_records(std::string& body) {
  PaxRecords records;
  std::map<std::string, char*, std::less<>> places;  // of keys whose first byte may change in the body
  std::string sparse_map;
  std::string_view sparse_next = k_sparse_offset;
  for (std::string_view left = body; !left.empty();) {
    std::size_t length = 0;
    auto [end, error] = std::from_chars(left.data(), left.data() + left.size(), length);
    auto digits = static_cast<std::size_t>(end - left.data());
    if (error != std::errc() || length > left.size() || length < digits + 3 || left[digits] != ' ' ||
        left[length - 1] != '\n') {
      return std::unexpected("has an extended header that is damaged");
    }
    std::string_view record = left.substr(digits + 1, length - digits - 2);
    left.remove_prefix(length);
    std::size_t equals = record.find('=');
    std::string_view key = record.substr(0, equals);
    if (equals != std::string_view::npos && is_name(key) && record.contains('\0')) {
      return std::unexpected(
          fmt::format("has a NUL in the attribute '{}' of its extended header", printable(record, 100)));
    }
    if (equals == std::string_view::npos || !is_well_formed(key, record.substr(equals + 1))) {
      return std::unexpected(
          fmt::format("has the impossible attribute '{}' in its extended header", printable(record, 100)));
    }
    std::string_view value = record.substr(equals + 1);
    if (key == k_sparse_offset || key == k_sparse_length) {
      if (key != sparse_next || !is_size(value)) return std::unexpected("has a sparse map that is damaged");
      sparse_next = key == k_sparse_offset ? k_sparse_length : k_sparse_offset;
      sparse_map += fmt::format("{}{}", sparse_map.empty() ? "" : ",", value);
      continue;
    }
    char* place = body.data() + (key.data() - body.data());
    if (!counts(key, value)) {
      *place = k_unknown;
      continue;
    }
    auto [known, fresh] = places.emplace(key, place);
    if (!fresh) *std::exchange(known->second, place) = k_unknown;
    records.insert_or_assign(std::string(key), std::string(value));
    if (key == "mtime" && is_just_before_epoch(value)) *place = k_ctime;
  }
  if (!sparse_map.empty() && !records.emplace(k_sparse_map, std::move(sparse_map)).second)
    return std::unexpected("has two sparse maps");
  return records;
}

std::expected<SparseFormat, std::string> sparse_format_of(const PaxRecords& records) {
  auto value = [&](std::string_view name) {
    auto found = records.find(name);
    return found == records.end() ? std::string_view() : std::string_view(found->second);
  };
  auto first = records.lower_bound(k_sparse);
  if (first == records.end() || !first->first.starts_with(k_sparse)) return SparseFormat::none;
  std::string_view size = value("GNU.sparse.size");
  std::string_view real_size = value("GNU.sparse.realsize");
  std::string_view map = value(k_sparse_map);
  std::string_view pieces = value("GNU.sparse.numblocks");
  auto version = std::pair(value("GNU.sparse.major"), value("GNU.sparse.minor"));
  if (size.empty() != real_size.empty() && is_size(size.empty() ? real_size : size)) {
    if (version == std::pair("1"sv, "0"sv) && map.empty() && pieces.empty()) return SparseFormat::pax_1;
    if (version == std::pair(""sv, ""sv) && is_sparse_map(map, pieces)) return SparseFormat::pax_0;
  }
  return std::unexpected("has records of a sparse file that no format has");
}

}  // namespace holt::image
