#include "holt/base/json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <vector>

namespace holt {
namespace {

// Marks a binary value as the digits of an integer; no other binary value occurs in a Json of ours.
constexpr std::uint64_t k_big_integer_subtype = 0x1b16;

bool float_equals_integer(double a, const Json& integer) {
  if (is_json_big_integer(integer)) {
    std::string digits = json_big_integer_digits(integer);
    double b = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), b);
    return a == b;
  }
  if (std::trunc(a) != a) return false;
  if (integer.is_number_unsigned()) {
    return a >= 0 && a < 0x1p64 && static_cast<std::uint64_t>(a) == integer.get<std::uint64_t>();
  }
  return a >= -0x1p63 && a < 0x1p63 && static_cast<std::int64_t>(a) == integer.get<std::int64_t>();
}

bool is_any_number(const Json& value) {
  return value.is_number() || is_json_big_integer(value);
}

bool numbers_equal(const Json& a, const Json& b) {
  if (a.is_number_float() && b.is_number_float()) {
    double x = a.get<double>();
    double y = b.get<double>();
    return x == y || (std::isnan(x) && std::isnan(y));
  }
  if (a.is_number_float()) return float_equals_integer(a.get<double>(), b);
  if (b.is_number_float()) return float_equals_integer(b.get<double>(), a);
  // nlohmann compares -1 with 2^64-1 as equal.
  auto beyond_signed = [](const Json& n) {
    return n.is_number_unsigned() && n.get<std::uint64_t>() > INT64_MAX;
  };
  return beyond_signed(a) == beyond_signed(b) && a == b;
}

using Member = Json::object_t::value_type;

std::vector<const Member*> sorted_members(const Json& object) {
  std::vector<const Member*> members;
  for (const Member& member : object.get_ref<const Json::object_t&>()) members.push_back(&member);
  std::ranges::sort(members, {}, [](const Member* member) -> const std::string& { return member->first; });
  return members;
}

}  // namespace

bool json_equal(const Json& a, const Json& b) {
  if (is_any_number(a) && is_any_number(b)) return numbers_equal(a, b);
  if (a.type() != b.type()) return false;
  if (a.is_array()) {
    return std::ranges::equal(a.get_ref<const Json::array_t&>(), b.get_ref<const Json::array_t&>(),
                              json_equal);
  }
  if (a.is_object()) {
    if (a.size() != b.size()) return false;
    return std::ranges::equal(sorted_members(a), sorted_members(b), [](const Member* x, const Member* y) {
      return x->first == y->first && json_equal(x->second, y->second);
    });
  }
  return a == b;
}

Json json_big_integer(std::string digits) {
  return Json::binary({digits.begin(), digits.end()}, k_big_integer_subtype);
}

bool is_json_big_integer(const Json& value) {
  return value.is_binary() && value.get_binary().has_subtype() &&
         value.get_binary().subtype() == k_big_integer_subtype;
}

std::optional<std::int64_t> json_whole_part(const Json& value) {
  if (!value.is_number_float()) return json_integer<std::int64_t>(value);
  auto number = value.get<double>();
  if (!(number >= -0x1p63 && number < 0x1p63)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

std::string json_big_integer_digits(const Json& value) {
  const auto& bytes = value.get_binary();
  return {bytes.begin(), bytes.end()};
}

}  // namespace holt
