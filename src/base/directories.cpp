#include "holt/base/directories.hpp"

#include "holt/base/error.hpp"

#include <cstdlib>

namespace holt {

Directories Directories::from_environment() {
  return from_environment([](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  });
}

Directories Directories::from_environment(const Lookup& lookup) {
  if (auto home = lookup("HOLT_HOME")) return below(*home);
  auto user_home = lookup("HOME");
  auto base = [&](const char* variable, const char* default_below_home) -> std::filesystem::path {
    auto value = lookup(variable);
    if (value && std::filesystem::path(*value).is_absolute()) return std::filesystem::path(*value) / "holt";
    if (!user_home) {
      throw Error(ErrorCode::invalid_config, "There is no place for holt's files: HOME is not set",
                  {.hint = "Set HOLT_HOME to a folder of your own, or HOME."});
    }
    return std::filesystem::path(*user_home) / default_below_home / "holt";
  };
  Directories dirs{.config = base("XDG_CONFIG_HOME", ".config"),
                   .cache = base("XDG_CACHE_HOME", ".cache"),
                   .data = base("XDG_DATA_HOME", ".local/share"),
                   .state = base("XDG_STATE_HOME", ".local/state"),
                   .runtime = {}};
  auto runtime = lookup("XDG_RUNTIME_DIR");
  bool usable = runtime && std::filesystem::path(*runtime).is_absolute();
  dirs.runtime = usable ? std::filesystem::path(*runtime) / "holt" : dirs.state / "run";
  return dirs;
}

Directories Directories::below(const std::filesystem::path& home) {
  auto root = std::filesystem::absolute(home).lexically_normal();
  return {.config = root / "config",
          .cache = root / "cache",
          .data = root / "data",
          .state = root / "state",
          .runtime = root / "run"};
}

}  // namespace holt
