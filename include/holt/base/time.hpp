// Wall-clock times as holt writes them.
#pragma once

#include <chrono>
#include <string>

namespace holt {

using WallTime = std::chrono::sys_time<std::chrono::microseconds>;

WallTime wall_now();
/// RFC 3339 in UTC with milliseconds, e.g. 2026-01-02T03:04:05.125Z.
std::string rfc3339(WallTime time);

}  // namespace holt
