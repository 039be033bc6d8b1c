#include "holt/base/log.hpp"

#include "holt/base/error.hpp"

#include <cstdlib>
#include <mutex>

#include <spdlog/sinks/stdout_sinks.h>

namespace holt {
namespace {

std::optional<spdlog::level::level_enum> level_from(const std::string& word) {
  if (word == "off") return spdlog::level::off;
  if (word == "error") return spdlog::level::err;
  if (word == "warn" || word == "warning") return spdlog::level::warn;
  if (word == "info") return spdlog::level::info;
  if (word == "debug") return spdlog::level::debug;
  if (word == "trace") return spdlog::level::trace;
  return std::nullopt;
}

/// The level that loggers made from now on get, until somebody sets another.
void take_level_from_environment() {
  static std::once_flag once;
  std::call_once(once, [] {
    const char* word = std::getenv("HOLT_LOG");
    spdlog::set_level(word != nullptr ? level_from(word).value_or(spdlog::level::warn) : spdlog::level::warn);
  });
}

}  // namespace

std::shared_ptr<spdlog::logger> logger(const std::string& name) {
  // spdlog keeps the loggers by name; making one and finding one must not race.
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  take_level_from_environment();
  if (auto found = spdlog::get(name)) return found;
  auto made = spdlog::stderr_logger_mt(name);
  made->set_pattern("holt: %l: [%n] %v");
  return made;
}

void set_log_level(const std::string& level) {
  auto value = level_from(level);
  if (!value) {
    throw Error(ErrorCode::usage, "Unknown log level '" + printable(level, 40) + "'",
                {.hint = "Use off, error, warn, info, debug or trace."});
  }
  take_level_from_environment();
  spdlog::set_level(*value);
}

}  // namespace holt
