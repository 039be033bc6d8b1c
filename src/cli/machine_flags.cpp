#include "cli/machine_flags.hpp"

#include "cli/errors.hpp"
#include "holt/base/files.hpp"

#include <cstdlib>
#include <sstream>

#include <fmt/format.h>

namespace holt::cli {
namespace {

constexpr std::size_t k_longest_env_file = std::size_t{4} << 20;

using Environment = std::map<std::string, std::string>;

/// `place` is where the entry stands: the flag, or file and line.
void add_entry(Environment& env, const std::string& entry, const std::string& place) {
  auto equals = entry.find('=');
  auto name = entry.substr(0, equals);
  if (name.empty()) {
    throw usage_error(fmt::format("{}: a variable has no name", place),
                      "Write NAME=VALUE, or NAME to copy it.");
  }
  if (equals != std::string::npos) {
    env[name] = entry.substr(equals + 1);
    return;
  }
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) {
    throw usage_error(
        fmt::format("{}: {} is not set here, so it cannot be copied", place, printable(name, 80)),
        "Write NAME=VALUE to set it.");
  }
  env[name] = value;
}

}  // namespace

std::map<std::string, std::string> parse_env(const std::vector<std::string>& entries) {
  Environment env;
  for (const auto& entry : entries) add_entry(env, entry, "--env");
  return env;
}

std::map<std::string, std::string> read_env_file(const std::string& path) {
  std::string text;
  try {
    text = read_file(path, k_longest_env_file);
  } catch (const Error& error) {
    throw file_error("--env-file", error);
  }
  Environment env;
  std::istringstream lines(text);
  unsigned number = 0;
  for (std::string line; std::getline(lines, line);) {
    number++;
    if (line.ends_with('\r')) line.pop_back();
    line.erase(0, std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.empty() || line.front() == '#') continue;
    add_entry(env, line, fmt::format("--env-file {}, line {}", printable(path, 200), number));
  }
  return env;
}

void MachineFlags::declare(Options& options) {
  options.texts("-e,--env", "NAME[=VALUE]", env_, "Environment variable; a bare NAME is copied from here");
  options.texts("--env-file", "FILE", env_files_, "Environment variables from a file of such lines");
  options.text("-w,--workdir", "DIR", working_dir_, "Working folder of commands (default: the image's)");
  options.text("-u,--user", "USER", user_, "User of commands, name or UID[:GID] (default: the image's)");
  options.number("--cpus", "N", cpus_, "Virtual CPUs, 1 to 32 (default 2)");
  options.memory("-m,--memory", memory_mb_, "Memory, e.g. 512M or 2G; a bare number is MiB (default 1G)");
  options.disk("--disk", disk_gb_, "Disk, e.g. 40G; a bare number is GiB (default 20G)");
  options.texts("--label", "KEY=VALUE", labels_, "Label, for 'holt ls --filter label=...'");
  options.duration("--idle-timeout", idle_timeout_, "Stop it after so long without client and user process");
  options.duration("--idle-suspend", idle_suspend_, "Suspend it after so long without client");
  options.flag("--require-kvm", require_kvm_, "Refuse software emulation, which is no isolation boundary");
  options.text("--pull", "missing|always|never", pull_,
               "When the image is pulled (default: where it is missing)");
  registry_.declare(options);

  options.later_flag("--net", "a network in the machine");
  options.later_value("--allow-host", "a network in the machine");
  options.later_value("--allow-cidr", "a network in the machine");
  options.later_value("--allow-port", "a network in the machine");
  options.later_value("-p,--publish", "publishing ports");
  options.later_value("-v,--volume", "mounting host folders");
  options.later_value("--credential", "credentials of the network");
  options.later_value("--secret-env", "secrets");
  options.later_value("--secret-file", "secrets");
  options.later_value("--init", "init commands");
  options.later_value("--snapshot", "starting from a snapshot");
  options.later_value("--ttl", "a time to live");
  options.later_flag("--read-only", "a read-only disk");
  options.later_value("-f,--file", "a Holtfile");
}

MachineConfig MachineFlags::config() const {
  MachineConfig config;
  for (const auto& file : env_files_) {
    for (auto& [name, value] : read_env_file(file)) config.env[name] = value;
  }
  for (auto& [name, value] : parse_env(env_)) config.env[name] = value;
  for (const auto& label : labels_) {
    auto equals = label.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw usage_error(fmt::format("--label: '{}' is not of the form KEY=VALUE", printable(label, 80)));
    }
    config.labels[label.substr(0, equals)] = label.substr(equals + 1);
  }
  if (pull_) config.pull = parse_pull_policy("--pull", *pull_);
  config.working_dir = working_dir_.value_or("");
  config.user = user_.value_or("");
  if (cpus_) config.resources.cpus = *cpus_;
  if (memory_mb_) config.resources.memory_mb = *memory_mb_;
  if (disk_gb_) config.resources.disk_gb = *disk_gb_;
  config.idle_stop = idle_timeout_;
  config.idle_suspend = idle_suspend_;
  return config;
}

HostConfig MachineFlags::host(Session& session) const {
  HostConfig host = session.host();
  if (require_kvm_) host.accelerator = AcceleratorChoice::require_kvm;
  registry_.apply(host.registry);
  return host;
}

}  // namespace holt::cli
