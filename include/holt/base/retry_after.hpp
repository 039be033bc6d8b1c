// How long to wait before an HTTP request is made again: what the reply asks for, or what is polite.
//
//   auto seconds = holt::retry_after_seconds({{"retry-after", "7"}}, holt::wall_now());   // 7.0
//   holt::back_off_seconds(3, 0);                                                         // 4.0
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

/// Before the try number `retry` + 1 (from 0): 0.5 s doubled each time up to 8 s, less up to a quarter by
/// `random` (0 to 1).
double back_off_seconds(int retry, double random);

}  // namespace holt
