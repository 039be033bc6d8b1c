#include "options.hpp"

#include <chrono>
#include <cmath>

namespace holt::python {

namespace {

NetworkConfig network_config(const Options& options) {
  NetworkConfig network;
  auto mode = options.get<std::string>("network", "none");
  if (mode == "open") network.mode = NetworkMode::open;
  network.hosts = options.get<std::vector<std::string>>("allow_hosts", {});
  network.cidrs = options.get<std::vector<std::string>>("allow_cidrs", {});
  if (!network.hosts.empty() || !network.cidrs.empty()) network.mode = NetworkMode::allow_list;
  return network;
}

void add_registry(image::RegistryOptions& registry, const Options& options) {
  if (auto insecure = options.get<bool>("insecure")) registry.insecure = *insecure;
  if (auto file = options.bytes("ca_file")) registry.ca_file = *file;
  if (auto file = options.bytes("auth_file")) registry.auth_file = *file;
}

}  // namespace

std::optional<std::string> Options::bytes(const char* name) const {
  auto value = get<nb::bytes>(name);
  if (!value) return std::nullopt;
  return from_bytes(*value);
}

std::vector<std::string> Options::bytes_list(const char* name) const {
  std::vector<std::string> result;
  if (auto list = get<nb::list>(name)) {
    for (auto item : *list) result.push_back(from_bytes(item));
  }
  return result;
}

std::map<std::string, std::string> Options::bytes_map(const char* name) const {
  std::map<std::string, std::string> result;
  if (auto dict = get<nb::dict>(name)) {
    for (auto [key, value] : *dict) result[from_bytes(key)] = from_bytes(value);
  }
  return result;
}

std::map<std::string, std::optional<std::string>> Options::bytes_changes(const char* name) const {
  std::map<std::string, std::optional<std::string>> result;
  if (auto dict = get<nb::dict>(name)) {
    for (auto [key, value] : *dict) {
      result[from_bytes(key)] = value.is_none() ? std::nullopt : std::optional(from_bytes(value));
    }
  }
  return result;
}

std::optional<Duration> Options::seconds(const char* name) const {
  auto value = get<double>(name);
  if (!value) return std::nullopt;
  // 200 years: what a Duration holds, and more than anybody waits.
  return Duration(static_cast<std::int64_t>(std::ceil(std::min(*value, 6.3e9) * 1e9)));
}

std::optional<Deadline> Options::deadline(const char* name) const {
  auto left = seconds(name);
  return left ? std::optional(Deadline::after(*left)) : std::nullopt;
}

image::PullPolicy pull_policy(const Options& options) {
  return image::pull_policy_from(options.get<std::string>("pull", "missing"))
      .value_or(image::PullPolicy::missing);
}

MachineConfig machine_config(const Options& options) {
  return {.name = options.get<std::string>("name", {}),
          .image = options.get<std::string>("image", {}),
          .pull = pull_policy(options),
          .resources = {.cpus = options.get<unsigned>("cpus", Resources{}.cpus),
                        .memory_mb = options.get<unsigned>("memory_mb", Resources{}.memory_mb),
                        .disk_gb = options.get<unsigned>("disk_gb", Resources{}.disk_gb)},
          .network = network_config(options),
          .env = options.bytes_map("env"),
          .working_dir = options.bytes_or("working_dir"),
          .user = options.get<std::string>("user", {}),
          .make_dirs = options.bytes_list("make_dirs"),
          .labels = options.get<std::map<std::string, std::string>>("labels", {}),
          .lifetime = options.get<bool>("persistent", true) ? Lifetime::persistent : Lifetime::ephemeral,
          .idle_stop = options.seconds("idle_stop"),
          .idle_suspend = options.seconds("idle_suspend")};
}

ExecOptions exec_options(const Options& options) {
  ExecOptions result{.env = options.bytes_map("env"),
                     .working_dir = options.bytes_or("working_dir"),
                     .user = options.get<std::string>("user", {}),
                     .input = options.bytes_or("stdin"),
                     .timeout = options.seconds("timeout")};
  if (options.get<bool>("stdin_pipe", false)) result.stdin_mode = StdinMode::pipe;
  if (auto limit = options.get<std::size_t>("output_limit")) result.output_limit = *limit;
  if (options.get<std::string>("over_limit", "cut") == "fail") result.over_limit = OverLimit::fail;
  result.deadline = options.deadline("deadline");
  result.idempotency_key = options.get<std::string>("idempotency_key", {});
  if (auto rows = options.get<unsigned>("rows"))
    result.terminal = TerminalSize{.rows = *rows, .columns = options.get<unsigned>("columns", 80)};
  auto limit = [&](const char* name) { return options.get<std::uint64_t>(name); };
  result.limits = {.cpu_seconds = limit("limit_cpu_seconds"),
                   .file_size = limit("limit_file_size"),
                   .open_files = limit("limit_open_files"),
                   .processes = limit("limit_processes"),
                   .memory = limit("limit_memory"),
                   .core_size = limit("limit_core_size")};
  return result;
}

HostConfig host_config(const Options& options) {
  auto host = HostConfig::from_environment();
  if (auto home = options.bytes("home")) host.directories = Directories::below(*home);
  auto path = [&](const char* name, std::filesystem::path& target) {
    if (auto value = options.bytes(name)) target = *value;
  };
  path("qemu", host.qemu);
  path("kernel", host.kernel);
  path("initramfs", host.initramfs);
  add_registry(host.registry, options);
  if (host.monitor.empty()) path("monitor", host.monitor);
  if (host.shim.empty()) path("shim", host.shim);
  if (auto word = options.get<std::string>("jail")) {
    host.jail = *word == "require" ? JailChoice::required
                : *word == "off"   ? JailChoice::off
                                   : JailChoice::automatic;
  }
  if (auto word = options.get<std::string>("accelerator")) {
    host.accelerator = *word == "kvm"   ? AcceleratorChoice::require_kvm
                       : *word == "tcg" ? AcceleratorChoice::tcg
                                        : AcceleratorChoice::automatic;
  }
  return host;
}

}  // namespace holt::python
