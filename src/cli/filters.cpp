#include "cli/filters.hpp"

#include "cli/errors.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace holt::cli {

Filter parse_filter(const std::string& text) {
  auto equals = text.find('=');
  Filter filter{.key = text.substr(0, equals)};
  if (equals != std::string::npos) filter.value = text.substr(equals + 1);
  bool known = filter.key == "label" || filter.key == "state" || filter.key == "image";
  if (!known || filter.value.empty()) {
    throw usage_error(fmt::format("--filter: '{}' is no filter", printable(text, 80)),
                      "Write label=KEY=VALUE, state=STATE or image=REFERENCE.");
  }
  if (filter.key == "state" && !machine_state_from(filter.value)) {
    throw usage_error(fmt::format("--filter: '{}' is no state", printable(filter.value, 40)));
  }
  return filter;
}

std::vector<Filter> parse_filters(const std::vector<std::string>& texts) {
  std::vector<Filter> filters;
  for (const auto& text : texts) filters.push_back(parse_filter(text));
  return filters;
}

bool matches(const MachineInfo& info, const Filter& filter) {
  if (filter.key == "state") return to_string(info.state) == filter.value;
  if (filter.key == "image") return info.image_reference == filter.value || info.image_digest == filter.value;
  auto equals = filter.value.find('=');
  auto label = info.labels.find(filter.value.substr(0, equals));
  if (label == info.labels.end()) return false;
  return equals == std::string::npos || label->second == filter.value.substr(equals + 1);
}

bool matches_all(const MachineInfo& info, const std::vector<Filter>& filters) {
  return std::ranges::all_of(filters, [&](const Filter& filter) { return matches(info, filter); });
}

}  // namespace holt::cli
