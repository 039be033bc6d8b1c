// Flags that `run` and `create` share: what the machine shall be.
#pragma once

#include "cli/options.hpp"
#include "cli/registry_flags.hpp"
#include "cli/session.hpp"
#include "holt/machine/config.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holt::cli {

/// NAME=VALUE pairs; a bare NAME is copied from holt's own environment. Throws Error USAGE that names the
/// entry and never its value.
std::map<std::string, std::string> parse_env(const std::vector<std::string>& entries);
/// Lines of NAME=VALUE or NAME; blanks in front, empty lines and those with '#' in front are left out. Throws
/// Error that names the file and, for a mistake in it, the line.
std::map<std::string, std::string> read_env_file(const std::string& path);

class MachineFlags {
 public:
  void declare(Options& options);
  /// Everything but name, image and lifetime. Throws Error USAGE.
  MachineConfig config() const;
  /// The host, with --require-kvm and the flags of registries put in.
  HostConfig host(Session& session) const;

 private:
  std::vector<std::string> env_;
  std::vector<std::string> env_files_;
  std::vector<std::string> labels_;
  std::optional<std::string> working_dir_;
  std::optional<std::string> user_;
  std::optional<unsigned> cpus_;
  std::optional<unsigned> memory_mb_;
  std::optional<unsigned> disk_gb_;
  std::optional<Duration> idle_timeout_;
  std::optional<Duration> idle_suspend_;
  bool require_kvm_ = false;
  std::optional<std::string> pull_;
  RegistryFlags registry_;
};

}  // namespace holt::cli
