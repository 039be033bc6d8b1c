#include "holt/machine/config.hpp"

#include "holt/base/encoding.hpp"
#include "holt/machine/names.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace holt {
namespace {

constexpr std::size_t k_longest_text = 4096;          // PATH_MAX: every text here is a path or shorter
constexpr std::size_t k_most_env_bytes = 128 * 1024;  // the start message stays far below a frame's limit
constexpr std::size_t k_most_entries = 1024;

[[noreturn]] void refuse(const std::string& message, const std::string& hint = {}) {
  throw Error(ErrorCode::invalid_config, message, {.hint = hint});
}

void check_range(std::string_view what, unsigned value, unsigned low, unsigned high, std::string_view unit) {
  if (value >= low && value <= high) return;
  refuse(fmt::format("{} {}{} is out of range", what, value, unit),
         fmt::format("Choose {} to {}{}.", low, high, unit));
}

void check_text(std::string_view what, std::string_view text) {
  if (text.size() > k_longest_text) refuse(fmt::format("{} is longer than {} bytes", what, k_longest_text));
  if (text.find('\0') != std::string_view::npos) refuse(fmt::format("{} holds a NUL byte", what));
  if (!is_utf8(text)) refuse(fmt::format("{} is not UTF-8", what));
}

void check_absolute(std::string_view what, std::string_view path) {
  check_text(what, path);
  if (!path.starts_with('/')) {
    refuse(fmt::format("{} \"{}\" is not absolute", what, printable(path, 200)),
           "Give a path that begins with '/'.");
  }
}

void check_env(const std::map<std::string, std::string>& env) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : env) {
    if (name.empty() || name.find('=') != std::string::npos) {
      refuse(fmt::format("\"{}\" is no name of an environment variable", printable(name, 200)));
    }
    // The value is not named in any message: it may be a secret.
    if (name.find('\0') != std::string::npos || value.find('\0') != std::string::npos) {
      refuse(fmt::format("The environment variable {} holds a NUL byte", printable(name, 200)));
    }
    bytes += name.size() + value.size() + 2;
  }
  if (bytes > k_most_env_bytes)
    refuse(fmt::format("The environment has more than {} bytes", k_most_env_bytes));
}

}  // namespace

void check_machine_config(const MachineConfig& config) {
  if (!config.name.empty()) check_machine_name(config.name);
  check_text("The image name", config.image);
  check_range("A number of vCPUs of", config.resources.cpus, 1, 32, "");
  check_range("A memory of", config.resources.memory_mb, 128, 1'048'576, " MiB");
  check_range("A disk of", config.resources.disk_gb, 1, 4096, " GiB");
  check_env(config.env);
  if (!config.working_dir.empty()) check_absolute("The working folder", config.working_dir);
  check_text("The user", config.user);
  if (config.make_dirs.size() > k_most_entries || config.labels.size() > k_most_entries) {
    refuse(fmt::format("More than {} folders or labels", k_most_entries));
  }
  for (const auto& dir : config.make_dirs) check_absolute("The folder", dir);
  for (const auto& [key, value] : config.labels) {
    check_text("A label's name", key);
    check_text("A label's value", value);
  }
  for (const auto& idle : {config.idle_stop, config.idle_suspend}) {
    if (idle && *idle <= Duration::zero()) refuse("The idle time is not above zero");
  }
  if (config.idle_suspend && config.lifetime == Lifetime::ephemeral)
    refuse("A machine that ends with its owner cannot be suspended", "Make it persistent.");
  if (config.network.mode != NetworkMode::none) {
    throw Error(ErrorCode::not_supported, "Machines with a network are not supported in this version",
                {.hint = "Leave the network off."});
  }
}

}  // namespace holt
