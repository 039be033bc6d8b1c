#include "convert.hpp"

#include <chrono>
#include <cmath>

namespace holt::python {

namespace {

template <class Map>
nb::dict text_map(const Map& map) {
  nb::dict result;
  for (const auto& [name, value] : map) result[to_text(name)] = to_text(value);
  return result;
}

template <class List>
nb::list text_list(const List& list) {
  nb::list result;
  for (const auto& item : list) result.append(to_text(item));
  return result;
}

template <class T>
nb::object maybe(const std::optional<T>& value) {
  return value ? nb::cast(*value) : nb::object(nb::none());
}

double epoch_seconds(WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

NetworkConfig network_config(const Options& options) {
  NetworkConfig network;
  auto mode = options.get<std::string>("network", "none");
  if (mode == "open") network.mode = NetworkMode::open;
  network.hosts = options.get<std::vector<std::string>>("allow_hosts", {});
  network.cidrs = options.get<std::vector<std::string>>("allow_cidrs", {});
  if (!network.hosts.empty() || !network.cidrs.empty()) network.mode = NetworkMode::allow_list;
  return network;
}

}  // namespace

std::string from_bytes(nb::handle value) {
  auto bytes = nb::cast<nb::bytes>(value);
  return {static_cast<const char*>(bytes.data()), bytes.size()};
}

nb::bytes to_bytes(std::string_view bytes) {
  return nb::bytes(bytes.data(), bytes.size());
}

nb::object to_path(std::string_view bytes) {
  auto size = static_cast<Py_ssize_t>(bytes.size());
  return nb::steal(PyUnicode_DecodeUTF8(bytes.data(), size, "surrogateescape"));
}

nb::object to_text(std::string_view text) {
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

double to_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

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

std::optional<Duration> Options::seconds(const char* name) const {
  auto value = get<double>(name);
  if (!value) return std::nullopt;
  // 200 years: what a Duration holds, and more than anybody waits.
  return Duration(static_cast<std::int64_t>(std::ceil(std::min(*value, 6.3e9) * 1e9)));
}

nb::dict to_dict(const ExecResult& result) {
  nb::dict d;
  d["exit_code"] = maybe(result.exit_code);
  d["signal"] = maybe(result.signal);
  d["timed_out"] = result.timed_out;
  d["oom"] = result.oom;
  d["stdout"] = to_bytes(result.out);
  d["stderr"] = to_bytes(result.err);
  d["stdout_truncated"] = result.out_truncated;
  d["stderr_truncated"] = result.err_truncated;
  d["duration"] = to_seconds(result.duration);
  return d;
}

nb::dict to_dict(const ExecEvent& event) {
  nb::dict d;
  switch (event.kind) {
    case ExecEvent::Kind::out:
      d["kind"] = "stdout";
      d["data"] = to_bytes(event.data);
      break;
    case ExecEvent::Kind::err:
      d["kind"] = "stderr";
      d["data"] = to_bytes(event.data);
      break;
    case ExecEvent::Kind::exit:
      d["kind"] = "exit";
      d["result"] = to_dict(event.result);
      break;
  }
  return d;
}

nb::dict to_dict(const FileStat& stat) {
  nb::dict d;
  d["type"] = std::string(to_string(stat.type));
  d["size"] = stat.size;
  d["mode"] = stat.mode;
  d["uid"] = stat.uid;
  d["gid"] = stat.gid;
  d["mtime_ns"] = stat.mtime_ns;
  d["links"] = stat.links;
  d["allocated"] = stat.allocated;
  d["target"] = to_path(stat.target);
  return d;
}

nb::dict to_dict(const DirEntry& entry) {
  nb::dict d;
  d["name"] = to_path(entry.name);
  d["type"] = std::string(to_string(entry.type));
  d["target_type"] = std::string(to_string(entry.target));
  d["size"] = maybe(entry.size);
  d["mode"] = entry.mode;
  d["mtime_ns"] = entry.mtime_ns;
  return d;
}

nb::dict to_dict(const MachineInfo& info) {
  nb::dict d;
  d["name"] = to_text(info.name);
  d["state"] = std::string(to_string(info.state));
  d["reason"] = nb::none();
  if (info.reason) {
    nb::dict reason;
    reason["code"] = std::string(to_string(info.reason->code));
    reason["message"] = to_text(info.reason->message);
    reason["at"] = epoch_seconds(info.reason->at);
    reason["signal"] = maybe(info.reason->signal);
    d["reason"] = reason;
  }
  d["image"] = to_text(info.image_reference);
  d["digest"] = to_text(info.image_digest);
  d["created_at"] = epoch_seconds(info.created_at);
  d["started_at"] = nb::none();
  if (info.started_at) d["started_at"] = epoch_seconds(*info.started_at);
  d["pid"] = maybe(info.pid);
  d["accelerator"] = nb::none();
  d["isolation"] = nb::none();
  if (info.accelerator) {
    d["accelerator"] = std::string(to_string(*info.accelerator));
    d["isolation"] = std::string(isolation_of(*info.accelerator));
  }
  d["cpus"] = info.resources.cpus;
  d["memory_mb"] = info.resources.memory_mb;
  d["disk_gb"] = info.resources.disk_gb;
  d["network"] = std::string(to_string(info.network.mode));
  d["env_names"] = text_list(info.env_names);
  d["working_dir"] = to_path(info.working_dir);
  d["user"] = to_text(info.user);
  d["labels"] = text_map(info.labels);
  d["persistent"] = info.persistent;
  d["idle_stop"] = nb::none();
  if (info.idle_stop) d["idle_stop"] = to_seconds(*info.idle_stop);
  d["disk_bytes"] = info.disk_bytes;
  d["memory_bytes"] = info.memory_bytes;
  d["boot_time"] = nb::none();
  if (info.boot_time) d["boot_time"] = to_seconds(*info.boot_time);
  d["responsive"] = info.responsive;
  return d;
}

nb::dict to_dict(const CopyResult& result) {
  nb::dict d;
  d["files"] = result.files;
  d["bytes"] = result.bytes;
  d["skipped"] = result.skipped;
  d["failed"] = result.failed;
  nb::list problems;
  for (const auto& problem : result.problems) {
    nb::dict p;
    p["kind"] = problem.kind == CopyProblem::Kind::skipped ? "skipped" : "failed";
    p["path"] = to_text(problem.path);
    p["message"] = to_text(problem.message);
    problems.append(p);
  }
  d["problems"] = problems;
  return d;
}

MachineConfig machine_config(const Options& options) {
  return {.name = options.get<std::string>("name", {}),
          .image = options.get<std::string>("image", {}),
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
          .idle_stop = options.seconds("idle_stop")};
}

ExecOptions exec_options(const Options& options) {
  ExecOptions result{.env = options.bytes_map("env"),
                     .working_dir = options.bytes_or("working_dir"),
                     .user = options.get<std::string>("user", {}),
                     .input = options.bytes_or("stdin"),
                     .timeout = options.seconds("timeout")};
  if (options.get<bool>("stdin_pipe", false)) result.stdin_mode = StdinMode::pipe;
  if (auto limit = options.get<std::size_t>("output_limit")) result.output_limit = *limit;
  if (auto left = options.seconds("deadline")) result.deadline = Deadline::after(*left);
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
  if (host.monitor.empty()) path("monitor", host.monitor);
  if (host.shim.empty()) path("shim", host.shim);
  if (auto word = options.get<std::string>("accelerator")) {
    host.accelerator = *word == "kvm"   ? AcceleratorChoice::require_kvm
                       : *word == "tcg" ? AcceleratorChoice::tcg
                                        : AcceleratorChoice::automatic;
  }
  return host;
}

}  // namespace holt::python
