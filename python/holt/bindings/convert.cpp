#include "convert.hpp"

#include <chrono>
#include <nanobind/stl/string.h>

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
  d["idle_suspend"] = nb::none();
  if (info.idle_suspend) d["idle_suspend"] = to_seconds(*info.idle_suspend);
  d["next_resources"] = nb::none();
  if (info.next_resources) d["next_resources"] = to_dict(*info.next_resources);
  d["suspended_bytes"] = info.suspended_bytes;
  d["boot_kind"] = nb::none();
  if (info.boot_kind) d["boot_kind"] = std::string(to_string(*info.boot_kind));
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

nb::dict to_dict(const Resources& resources) {
  nb::dict d;
  d["cpus"] = resources.cpus;
  d["memory_mb"] = resources.memory_mb;
  d["disk_gb"] = resources.disk_gb;
  return d;
}

nb::dict to_dict(const MachineEvent& event) {
  nb::dict d;
  d["at"] = epoch_seconds(event.at);
  d["kind"] = to_text(event.kind);
  d["message"] = to_text(event.message);
  d["code"] = nb::none();
  if (event.code) d["code"] = to_text(to_string(*event.code));
  return d;
}

nb::dict to_dict(const MachineStats& stats) {
  nb::dict d;
  d["at"] = epoch_seconds(stats.at);
  d["cpu_time"] = to_seconds(stats.cpu_time);
  d["host_memory"] = stats.host_memory;
  d["memory_limit"] = stats.memory_limit;
  d["memory_used"] = stats.memory_used;
  d["disk_read"] = stats.disk_read;
  d["disk_written"] = stats.disk_written;
  d["processes"] = stats.processes;
  d["uptime"] = to_seconds(stats.uptime);
  d["guest_answered"] = stats.guest_answered;
  return d;
}

nb::dict to_dict(const CommandInfo& info) {
  nb::dict d;
  d["id"] = to_text(info.id);
  d["pid"] = info.pid;
  nb::list argv;
  for (const auto& argument : info.argv) argv.append(to_path(argument));
  d["argv"] = argv;
  d["terminal"] = info.terminal;
  d["running"] = info.running;
  d["result"] = nb::none();
  if (info.result) d["result"] = to_dict(*info.result);
  d["started_at"] = epoch_seconds(info.started_at);
  d["stdout_bytes"] = info.out_bytes;
  d["stderr_bytes"] = info.err_bytes;
  d["log_truncated"] = info.log_truncated;
  return d;
}

nb::dict to_dict(const WalkEntry& entry) {
  nb::dict d;
  d["path"] = to_path(entry.path);
  d["type"] = std::string(to_string(entry.type));
  d["size"] = entry.size;
  d["mode"] = entry.mode;
  d["uid"] = entry.uid;
  d["gid"] = entry.gid;
  d["mtime_ns"] = entry.mtime_ns;
  d["target"] = to_path(entry.target);
  d["problem"] = to_text(entry.problem);
  return d;
}

}  // namespace holt::python
