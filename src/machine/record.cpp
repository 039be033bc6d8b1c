#include "machine/record.hpp"

#include "holt/base/error.hpp"
#include "holt/base/json.hpp"

#include <chrono>

#include <fmt/format.h>

namespace holt::machine {
namespace {

constexpr int k_version = 1;

/// Reads members of an object; a member of another type is damage.
class Members {
 public:
  explicit Members(const Json& object) : object_(object) {
    if (!object.is_object()) damaged("it is no object");
  }

  std::string text(const char* name) const {
    return get(name, Json("")).is_string() ? value_.get<std::string>() : bad(name);
  }
  template <std::integral T = std::uint64_t>
  T number(const char* name) const {
    auto number = json_integer<T>(get(name, Json(0)));
    if (!number || *number < T{}) damaged(fmt::format("{} is no number of its range", name));
    return *number;
  }
  template <std::integral T = std::uint64_t>
  std::optional<T> optional_number(const char* name) const {
    if (get(name, Json()).is_null()) return std::nullopt;
    return number<T>(name);
  }
  std::optional<Duration> optional_milliseconds(const char* name) const {
    auto count = optional_number(name);
    if (!count) return std::nullopt;
    constexpr auto k_most = std::chrono::floor<std::chrono::milliseconds>(Duration::max()).count();
    if (std::cmp_greater(*count, k_most)) damaged(fmt::format("{} is out of range", name));
    return std::chrono::milliseconds(*count);
  }
  std::vector<std::string> texts(const char* name) const {
    std::vector<std::string> out;
    if (!get(name, Json::array()).is_array()) damaged(fmt::format("{} is no list", name));
    for (const auto& item : Json(value_))
      out.push_back(item.is_string() ? item.get<std::string>() : bad(name));
    return out;
  }
  std::map<std::string, std::string> map(const char* name) const {
    std::map<std::string, std::string> out;
    if (!get(name, Json::object()).is_object()) damaged(fmt::format("{} is no object", name));
    for (const auto& [key, item] : Json(value_).items()) {
      out[key] = item.is_string() ? item.get<std::string>() : bad(name);
    }
    return out;
  }
  Json object(const char* name) const {
    if (!get(name, Json::object()).is_object()) damaged(fmt::format("{} is no object", name));
    return value_;
  }
  bool has(const char* name) const { return object_.contains(name) && !object_[name].is_null(); }

  [[noreturn]] static void damaged(const std::string& why) {
    throw Error(ErrorCode::invalid_state, fmt::format("The machine's record is damaged: {}", why),
                {.hint = "Remove the machine with force; its disk stays until then."});
  }

 private:
  const Json& get(const char* name, const Json& fallback) const {
    value_ = object_.contains(name) ? object_[name] : fallback;
    return value_;
  }
  [[noreturn]] static std::string bad(const char* name) { damaged(fmt::format("{} is no text", name)); }

  const Json& object_;
  mutable Json value_;
};

std::int64_t microseconds(WallTime time) {
  return time.time_since_epoch().count();
}
WallTime wall_time(std::uint64_t us) {
  return WallTime(std::chrono::microseconds(us));
}
std::uint64_t milliseconds(Duration duration) {
  return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
}

NetworkMode network_mode_from(std::string_view word) {
  for (auto mode : {NetworkMode::none, NetworkMode::open, NetworkMode::allow_list}) {
    if (to_string(mode) == word) return mode;
  }
  Members::damaged("its network mode is unknown");
}

Json encode_identity(const std::optional<ProcessIdentity>& process) {
  if (!process) return nullptr;
  return {{"pid", process->pid}, {"startTicks", process->start_ticks}};
}

std::optional<ProcessIdentity> decode_identity(const Members& members, const char* name) {
  if (!members.has(name)) return std::nullopt;
  Json object = members.object(name);
  Members process(object);
  return ProcessIdentity{.pid = process.number<pid_t>("pid"), .start_ticks = process.number("startTicks")};
}

Json parse_record(std::string_view text) {
  auto json = parse_json(text);
  if (!json) Members::damaged(json.error().text());
  auto version = Members(*json).number("version");
  if (version > k_version) {
    throw Error(
        ErrorCode::invalid_state,
        fmt::format("The machine's record is of version {}, this holt knows version {}", version, k_version),
        {.hint = "Use the newer holt that made it."});
  }
  if (version < 1) Members::damaged("it has no version");
  return std::move(*json);
}

}  // namespace

std::string encode_record(const MachineRecord& record) {
  const auto& config = record.config;
  Json env_names = Json::array();
  for (const auto& [name, value] : config.env) env_names.push_back(name);
  Json json{{"version", k_version},
            {"name", config.name},
            {"machineId", record.machine_id},
            {"createdAtUs", microseconds(record.created_at)},
            {"image",
             {{"reference", record.image_reference},
              {"digest", record.image_digest},
              {"file", record.image_file.string()},
              {"env", record.image_env}}},
            {"resources",
             {{"cpus", config.resources.cpus},
              {"memoryMb", config.resources.memory_mb},
              {"diskGb", config.resources.disk_gb}}},
            {"diskBytes", record.disk_bytes},
            {"network",
             {{"mode", to_string(config.network.mode)},
              {"hosts", config.network.hosts},
              {"cidrs", config.network.cidrs},
              {"ports", config.network.ports}}},
            {"env", env_names},
            {"workingDir", record.working_dir},
            {"user", record.user},
            {"makeDirs", config.make_dirs},
            {"labels", config.labels},
            {"persistent", config.lifetime == Lifetime::persistent},
            {"idleStopMs", config.idle_stop ? Json(milliseconds(*config.idle_stop)) : Json()},
            {"idleSuspendMs", config.idle_suspend ? Json(milliseconds(*config.idle_suspend)) : Json()}};
  return dump_json(json, {.indent = 2});
}

MachineRecord decode_record(std::string_view text) {
  Json json = parse_record(text);
  Members members(json);
  MachineRecord record;
  auto& config = record.config;
  config.name = members.text("name");
  record.machine_id = members.text("machineId");
  record.created_at = wall_time(members.number("createdAtUs"));
  Json image_json = members.object("image");
  Members image(image_json);
  record.image_reference = image.text("reference");
  record.image_digest = image.text("digest");
  record.image_file = image.text("file");
  record.image_env = image.texts("env");
  config.image = record.image_reference;
  Json resources_json = members.object("resources");
  Members resources(resources_json);
  config.resources = {.cpus = resources.number<unsigned>("cpus"),
                      .memory_mb = resources.number<unsigned>("memoryMb"),
                      .disk_gb = resources.number<unsigned>("diskGb")};
  record.disk_bytes = members.number("diskBytes");
  Json network_json = members.object("network");
  Members network(network_json);
  config.network.mode = network_mode_from(network.text("mode"));
  config.network.hosts = network.texts("hosts");
  config.network.cidrs = network.texts("cidrs");
  for (const auto& name : members.texts("env")) config.env[name] = "";
  record.working_dir = config.working_dir = members.text("workingDir");
  record.user = config.user = members.text("user");
  config.make_dirs = members.texts("makeDirs");
  config.labels = members.map("labels");
  config.lifetime =
      json.value("persistent", Json(true)) == Json(false) ? Lifetime::ephemeral : Lifetime::persistent;
  config.idle_stop = members.optional_milliseconds("idleStopMs");
  config.idle_suspend = members.optional_milliseconds("idleSuspendMs");
  // The record may have been changed by hand; nothing of it is trusted further than what a caller says.
  try {
    check_machine_config(config);
  } catch (const Error& e) {
    Members::damaged(e.what());
  }
  return record;
}

std::string encode_status(const MachineStatus& status) {
  Json failure;
  if (status.failure) {
    failure = {{"code", to_string(status.failure->code)},
               {"message", status.failure->message},
               {"atUs", microseconds(status.failure->at)},
               {"signal", status.failure->signal ? Json(*status.failure->signal) : Json()}};
  }
  Json json{{"version", k_version},
            {"state", to_string(status.state)},
            {"failure", failure},
            {"monitor", encode_identity(status.monitor)},
            {"vmm", encode_identity(status.vmm)},
            {"hostBootId", status.host_boot_id},
            {"startedAtUs", status.started_at ? Json(microseconds(*status.started_at)) : Json()},
            {"accelerator", status.accelerator ? Json(to_string(*status.accelerator)) : Json()},
            {"bootKind", status.boot_kind ? Json(to_string(*status.boot_kind)) : Json()},
            {"bootMs", status.boot_time ? Json(milliseconds(*status.boot_time)) : Json()},
            {"jail", Json(status.jail)},
            {"cpus", status.cpus},
            {"memoryMb", status.memory_mb}};
  return dump_json(json);
}

MachineStatus decode_status(std::string_view text) {
  MachineStatus status;
  try {
    Json json = parse_record(text);
    Members members(json);
    auto state = machine_state_from(members.text("state"));
    if (!state) Members::damaged("its state is unknown");
    status.state = *state;
    status.monitor = decode_identity(members, "monitor");
    status.vmm = decode_identity(members, "vmm");
    status.host_boot_id = members.text("hostBootId");
    if (auto us = members.optional_number("startedAtUs")) status.started_at = wall_time(*us);
    if (members.has("accelerator")) {
      status.accelerator = members.text("accelerator") == "kvm" ? Accelerator::kvm : Accelerator::tcg;
    }
    if (members.has("bootKind")) {
      auto word = members.text("bootKind");
      status.boot_kind = word == "cold"     ? BootKind::cold
                         : word == "resume" ? BootKind::resume
                                            : BootKind::restore;
    }
    status.boot_time = members.optional_milliseconds("bootMs");
    status.jail = members.map("jail");
    status.cpus = members.optional_number<unsigned>("cpus").value_or(0);
    status.memory_mb = members.optional_number<unsigned>("memoryMb").value_or(0);
    if (members.has("failure")) {
      Json failure_json = members.object("failure");
      Members failure(failure_json);
      status.failure =
          MachineFailure{.code = error_code_from(failure.text("code")).value_or(ErrorCode::internal),
                         .message = failure.text("message"),
                         .at = wall_time(failure.number("atUs"))};
      status.failure->signal = failure.optional_number<int>("signal");
    }
  } catch (const Error& e) {
    return {.state = MachineState::failed,
            .failure = MachineFailure{.code = ErrorCode::internal, .message = e.what(), .at = wall_now()},
            .host_boot_id = {}};
  }
  return status;
}

}  // namespace holt::machine
