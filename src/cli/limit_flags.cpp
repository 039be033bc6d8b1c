#include "cli/limit_flags.hpp"

#include "cli/errors.hpp"
#include "cli/units.hpp"

#include <array>
#include <string_view>

#include <fmt/format.h>

namespace holt::cli {
namespace {

struct Limit {
  std::string_view name;
  std::optional<std::uint64_t> ResourceLimits::* target;
};
// The names of limits.conf(5), and the two that count for the whole tree.
constexpr std::array<Limit, 6> k_limits = {{{"cpu", &ResourceLimits::cpu_seconds},
                                            {"fsize", &ResourceLimits::file_size},
                                            {"nofile", &ResourceLimits::open_files},
                                            {"nproc", &ResourceLimits::processes},
                                            {"memory", &ResourceLimits::memory},
                                            {"core", &ResourceLimits::core_size}}};

void set_limit(ResourceLimits& limits, const std::string& text) {
  auto equals = text.find('=');
  auto name = text.substr(0, equals);
  auto refuse = [&](std::string_view why) {
    return usage_error(
        fmt::format("--ulimit: '{}' {}", printable(text, 130), why),
        "Write one of cpu (seconds), fsize, nofile, nproc, memory, core as NAME=NUMBER; bytes may "
        "have a unit.");
  };
  for (const auto& limit : k_limits) {
    if (name != limit.name) continue;
    auto value = parse_size(equals == std::string::npos ? "" : text.substr(equals + 1), 1);
    if (!value) throw refuse(value.error());
    limits.*limit.target = *value;
    return;
  }
  throw refuse("names no limit");
}

}  // namespace

void LimitFlags::declare(Options& options) {
  options.texts("--ulimit", "NAME=N", texts_,
                "Limit of the command: cpu, fsize, nofile, core; nproc and memory of all it starts");
}

ResourceLimits LimitFlags::limits() const {
  ResourceLimits limits;
  for (const auto& text : texts_) set_limit(limits, text);
  return limits;
}

}  // namespace holt::cli
