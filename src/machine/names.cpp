#include "holt/machine/names.hpp"

#include "holt/base/error.hpp"
#include "holt/base/ids.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace holt {
namespace {

constexpr std::size_t k_longest_name = 128;
constexpr std::size_t k_longest_label = 63;  // RFC 1123

// Not isalnum(): its answer depends on the locale.
bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

bool is_machine_name(std::string_view name) {
  if (name.empty() || name.size() > k_longest_name) return false;
  if (!is_letter_or_digit(name.front()) || name.back() == '-') return false;
  if (name.find("--") != std::string_view::npos) return false;
  return std::ranges::all_of(name, [](char c) { return is_letter_or_digit(c) || c == '_' || c == '-'; });
}

void check_machine_name(std::string_view name) {
  if (is_machine_name(name)) return;
  throw Error(
      ErrorCode::invalid_config, fmt::format("\"{}\" is no machine name", printable(name, 200)),
      {.subject = printable(name, 200),
       .hint = "Use 1 to 128 letters, digits, '-' and '_', beginning with a letter or digit, without \"--\" "
               "and without '-' at the end."});
}

std::string new_machine_name() {
  return "holt-" + random_hex(8);
}

std::string host_name_of(std::string_view machine_name) {
  std::string name(machine_name.substr(0, k_longest_label));
  std::ranges::replace(name, '_', '-');
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name;
}

}  // namespace holt
