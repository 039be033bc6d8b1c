// Logging: spdlog, everything on standard error, level from HOLT_LOG (off, error, warn, info, debug, trace;
// default warn). Data never goes through here, secrets never either.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <spdlog/spdlog.h>

namespace holt {

/// The logger of a name, made at first use with the common sink. Thread-safe.
std::shared_ptr<spdlog::logger> logger(const std::string& name);

/// Sets the level of all loggers from a word; Error USAGE for an unknown one.
void set_log_level(const std::string& level);

}  // namespace holt
