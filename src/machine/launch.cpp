#include "machine/launch.hpp"

#include "holt/base/error.hpp"
#include "holt/base/json.hpp"
#include "machine/json_member.hpp"

#include <fmt/format.h>

namespace holt::machine {
namespace {

/// Of the launch as a text. Counts up when an older monitor must not start what a newer holt describes.
constexpr int k_version = 1;

void check_version(const Json& json) {
  int version = integer_member<int>(json, "version");
  if (version == k_version) return;
  throw Error(
      ErrorCode::not_supported,
      fmt::format("This holt describes machines in version {}, the holt-monitor here reads version {}",
                  version, k_version),
      {.hint = "Install holt and holt-monitor of one release; HOLT_MONITOR names another holt-monitor."});
}

}  // namespace

std::string encode_launch(const Launch& launch) {
  const auto& shape = launch.shape;
  Json env = Json::object();
  for (const auto& [name, value] : launch.env) env[name] = value;
  Json json{{"version", k_version},
            {"resume", launch.kind == LaunchKind::resume},
            {"qemu", shape.vmm.path.string()},
            {"qemuVersion", shape.vmm.version},
            {"romOff", shape.vmm.guard == TemplateGuard::rom_off},
            {"shim", shape.shim.string()},
            {"kernel", shape.boot.kernel.string()},
            {"kernelSha256", shape.boot.kernel_sha256},
            {"initramfs", shape.boot.initramfs.string()},
            {"initramfsSha256", shape.boot.initramfs_sha256},
            {"accelerator", to_string(shape.accelerator)},
            {"cpus", shape.cpus},
            {"memoryMb", shape.memory_mb},
            {"tscKhz", shape.tsc_khz},
            {"processor", shape.processor},
            {"jail", static_cast<int>(shape.jail)},
            {"template", launch.start_from ? Json(launch.start_from->folder.string()) : Json()},
            {"state", launch.machines.string()},
            {"env", env},
            {"ownership", static_cast<int>(launch.ownership)}};
  if (launch.owner) json["owner"] = {{"pid", launch.owner->pid}, {"startTicks", launch.owner->start_ticks}};
  return dump_json(json);
}

Launch decode_launch(std::string_view text) {
  auto parsed = parse_json(text);
  try {
    const Json& json = parsed.value();
    check_version(json);
    Launch launch{
        .kind = json.at("resume").get<bool>() ? LaunchKind::resume : LaunchKind::start,
        .shape = {.vmm = {.path = json.at("qemu").get<std::string>(),
                          .version = json.at("qemuVersion").get<std::string>(),
                          .guard =
                              json.at("romOff").get<bool>() ? TemplateGuard::rom_off : TemplateGuard::shim},
                  .shim = json.at("shim").get<std::string>(),
                  .boot = {.kernel = json.at("kernel").get<std::string>(),
                           .kernel_sha256 = json.at("kernelSha256").get<std::string>(),
                           .initramfs = json.at("initramfs").get<std::string>(),
                           .initramfs_sha256 = json.at("initramfsSha256").get<std::string>()},
                  .accelerator = json.at("accelerator") == "kvm" ? Accelerator::kvm : Accelerator::tcg,
                  .cpus = integer_member<unsigned>(json, "cpus"),
                  .memory_mb = integer_member<unsigned>(json, "memoryMb"),
                  .tsc_khz = integer_member<unsigned>(json, "tscKhz"),
                  .processor = json.value("processor", std::string()),
                  .jail = static_cast<JailChoice>(integer_member<int>(json, "jail"))},
        .machines = json.at("state").get<std::string>(),
        .env = json.at("env").get<std::map<std::string, std::string>>(),
        .ownership = static_cast<Ownership>(integer_member<int>(json, "ownership"))};
    if (json.contains("owner")) {
      launch.owner =
          ProcessIdentity{.pid = integer_member<pid_t>(json["owner"], "pid"),
                          .start_ticks = integer_member<std::uint64_t>(json["owner"], "startTicks")};
    }
    if (!json.at("template").is_null()) launch.start_from = Template{json.at("template").get<std::string>()};
    return launch;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    throw Error(ErrorCode::internal, fmt::format("The monitor was started with a bad launch: {}", e.what()));
  }
}

std::string encode_report(const StartReport& report) {
  return dump_json({{"started", report.started},
                    {"code", to_string(report.code)},
                    {"message", report.message},
                    {"hint", report.hint},
                    {"causes", report.causes},
                    {"console", report.console},
                    {"templateBad", report.template_bad}}) +
         "\n";
}

StartReport decode_report(std::string_view text) {
  auto json = parse_json(text);
  if (!json || !json->is_object()) {
    return {.code = ErrorCode::internal,
            .message = "The monitor ended before the machine had started",
            .hint = {},
            .causes = {},
            .console = {}};
  }
  auto word = [&](const char* name) {
    auto value = json->value(name, Json());
    return value.is_string() ? value.get<std::string>() : std::string();
  };
  std::vector<std::string> causes;
  auto listed = json->value("causes", Json());
  for (const auto& cause : listed.is_array() ? listed : Json::array()) {
    if (cause.is_string()) causes.push_back(cause.get<std::string>());
  }
  return {.started = json->value("started", Json()) == Json(true),
          .code = error_code_from(word("code")).value_or(ErrorCode::internal),
          .message = word("message"),
          .hint = word("hint"),
          .causes = std::move(causes),
          .console = word("console"),
          .template_bad = json->value("templateBad", Json()) == Json(true)};
}

}  // namespace holt::machine
