// Where holt keeps its things: XDG base directories, or all below one folder.
//
//   auto dirs = holt::Directories::from_environment();
//   dirs.state / "machines"
//
// Source: XDG Base Directory Specification 0.8.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace holt {

/// Absolute paths; none is made by looking at them. A value.
struct Directories {
  std::filesystem::path config;   ///< config.toml
  std::filesystem::path cache;    ///< what can be made again: templates, probes
  std::filesystem::path data;     ///< engine (kernel, initramfs) and images
  std::filesystem::path state;    ///< machines
  std::filesystem::path runtime;  ///< short-lived sockets and locks

  using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

  /// `HOLT_HOME` set: its folders config, cache, data, state, run. Else XDG_*_HOME and their defaults below
  /// HOME, each with /holt; runtime falls back to the state folder. Relative values are ignored, as the
  /// specification says. Throws Error INVALID_CONFIG when neither HOLT_HOME nor HOME is set.
  static Directories from_environment();
  static Directories from_environment(const Lookup& lookup);
  /// All below `home`, made absolute.
  static Directories below(const std::filesystem::path& home);
};

}  // namespace holt
