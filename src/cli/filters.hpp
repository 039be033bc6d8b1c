// Filters over machines: label=KEY[=VALUE], state=STATE, image=REFERENCE.
#pragma once

#include "holt/machine/types.hpp"

#include <string>
#include <vector>

namespace holt::cli {

struct Filter {
  std::string key = {};
  std::string value = {};
};

/// Throws Error USAGE for what is no filter.
Filter parse_filter(const std::string& text);
std::vector<Filter> parse_filters(const std::vector<std::string>& texts);

bool matches(const MachineInfo& info, const Filter& filter);
bool matches_all(const MachineInfo& info, const std::vector<Filter>& filters);

}  // namespace holt::cli
