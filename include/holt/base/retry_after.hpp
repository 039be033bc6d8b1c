// How long an HTTP reply asks its client to wait.
//
//   auto seconds = holt::retry_after_seconds({{"retry-after", "7"}}, holt::wall_now());   // 7.0
#pragma once

#include "holt/base/time.hpp"

#include <map>
#include <optional>
#include <string>

namespace holt {

/// retry-after-ms / 1000, else retry-after in seconds, else the distance to its HTTP date, not below zero.
/// Nothing when the reply asks for nothing that can be read. Names of `headers` are in lower case.
/// Source: RFC 9110, 10.2.3; dates as in 5.6.7, in all three forms.
std::optional<double> retry_after_seconds(const std::map<std::string, std::string>& headers, WallTime now);

}  // namespace holt
