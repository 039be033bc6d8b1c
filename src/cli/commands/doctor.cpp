#include "cli/commands/commands.hpp"
#include "cli/errors.hpp"
#include "cli/host_facts.hpp"
#include "cli/units.hpp"
#include "cli/version.hpp"
#include "holt/image/engine_files.hpp"
#include "holt/image/store.hpp"
#include "holt/machine/diagnostics.hpp"
#include "holt/machine/jail.hpp"
#include "holt/machine/repair.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <sys/utsname.h>
#include <vector>

#include <fmt/format.h>

namespace holt::cli {
namespace {

// Below this a machine's disk soon has nowhere to grow.
constexpr std::uint64_t k_little_space = 2 * k_gib;
constexpr std::uint64_t k_no_space = k_gib / 4;

enum class Status { ok, warn, fail };

std::string_view to_string(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::warn:
      return "warn";
    case Status::fail:
      break;
  }
  return "fail";
}

struct Check {
  std::string id;
  Status status = Status::ok;
  std::string detail;
  std::string fix = {};
};

const std::string k_setup = "Run scripts/setup of holt's source.";

Check check_platform() {
  utsname facts{};
  ::uname(&facts);
  std::string machine = facts.machine;
  auto detail = fmt::format("{} {} {}", facts.sysname, facts.release, machine);
  if (machine == "x86_64") return {.id = "platform", .detail = detail};
  return {.id = "platform", .status = Status::fail, .detail = detail, .fix = "holt runs on Linux x86_64."};
}

Check check_qemu(const HostConfig& host) {
  auto qemu = find_qemu(host);
  auto version = qemu ? qemu_version(*qemu) : std::nullopt;
  if (version) return {.id = "vmm", .detail = fmt::format("QEMU {} ({})", *version, qemu->string())};
  return {.id = "vmm",
          .status = Status::fail,
          .detail = qemu ? qemu->string() + " does not run" : "no qemu-system-x86_64 on PATH",
          .fix = "Install qemu-system-x86, or set HOLT_QEMU."};
}

Check check_engine(const HostConfig& host) {
  try {
    auto engine = image::EngineFiles::load(host.directories);
    return {.id = "engine", .detail = fmt::format("kernel {}", engine.kernel_release)};
  } catch (const Error& error) {
    return {.id = "engine", .status = Status::fail, .detail = error.what(), .fix = k_setup};
  }
}

Check check_image(const HostConfig& host) {
  try {
    auto image = image::Store(host.directories).resolve(image::k_default_image);
    return {.id = "image", .detail = fmt::format("{} ({})", image.reference, show_size(image.size))};
  } catch (const Error& error) {
    return {.id = "image", .status = Status::warn, .detail = error.what(), .fix = k_setup};
  }
}

Check check_accelerator(const HostConfig& host, Accelerator& accelerator) {
  try {
    auto verdict = probe_accelerator(host);
    accelerator = verdict.accelerator;
    if (accelerator == Accelerator::kvm) return {.id = "kvm", .detail = verdict.detail};
    return {.id = "kvm",
            .status = Status::warn,
            .detail = verdict.detail,
            .fix =
                "Machines run under software emulation: slower, and no isolation boundary. "
                "Use a host with KVM and membership in the group kvm."};
  } catch (const Error& error) {
    return {.id = "kvm", .status = Status::fail, .detail = error.what(), .fix = error.hint()};
  }
}

/// One check for each part of the jail around QEMU: a part that is missing is a warning, unless all are
/// required.
std::vector<Check> check_jail(const HostConfig& host) {
  try {
    std::vector<Check> checks;
    for (const auto& part : probe_jail(host)) {
      checks.push_back({.id = fmt::format("jail.{}", to_string(part.part)),
                        .status = part.state == JailState::on ? Status::ok : Status::warn,
                        .detail = fmt::format("{}: {}", to_string(part.state), part.detail),
                        .fix = part.fix});
    }
    return checks;
  } catch (const Error& error) {
    return {{.id = "jail", .status = Status::fail, .detail = error.what(), .fix = error.hint()}};
  }
}

Check check_space(const HostConfig& host) {
  auto free = free_bytes(host.directories.state);
  if (!free) return {.id = "disk", .status = Status::warn, .detail = "free space is not known"};
  auto detail = fmt::format("{} free for {}", show_size(*free), host.directories.state.string());
  auto status = *free < k_no_space ? Status::fail : *free < k_little_space ? Status::warn : Status::ok;
  return {.id = "disk",
          .status = status,
          .detail = detail,
          .fix = status == Status::ok ? "" : "Free some space, or set HOLT_HOME to another disk."};
}

Check check_folders(const HostConfig& host) {
  for (const auto& folder : {host.directories.state, host.directories.cache, host.directories.data}) {
    if (!is_writable(folder)) {
      return {.id = "folders",
              .status = Status::fail,
              .detail = folder.string() + " cannot be written",
              .fix = "Set HOLT_HOME to a folder of your own."};
    }
  }
  return {.id = "folders", .detail = host.directories.state.string()};
}

Check check_machines(const HostConfig& host) {
  auto broken = broken_machines(host);
  if (broken.empty()) return {.id = "machines", .detail = "all records and disks are there"};
  std::string detail;
  for (const auto& machine : broken) {
    detail += fmt::format("{}{} ({}): {}", detail.empty() ? "" : "; ", machine.name, show_size(machine.bytes),
                          machine.reason);
  }
  return {.id = "machines",
          .status = Status::warn,
          .detail = detail,
          .fix = "Look at what is left in its folder; 'holt rm --force NAME' removes it with its disk."};
}

struct Report {
  std::vector<Check> checks;
  std::vector<Repair> repairs;
  Accelerator accelerator = Accelerator::tcg;

  bool usable() const {
    return std::ranges::none_of(checks, [](const Check& check) { return check.status == Status::fail; });
  }
};

void examine(const HostConfig& host, Report& report) {
  report.checks = {
      check_platform(),  check_qemu(host),    check_engine(host), check_accelerator(host, report.accelerator),
      check_image(host), check_folders(host), check_space(host),  check_machines(host)};
  // Without a QEMU there is nothing to put into it, which has been said.
  if (report.checks[1].status != Status::fail)
    std::ranges::move(check_jail(host), std::back_inserter(report.checks));
}

Json report_json(Session& session, const Report& report) {
  Json checks = Json::array();
  for (const auto& check : report.checks) {
    checks.push_back({{"id", check.id},
                      {"status", to_string(check.status)},
                      {"detail", check.detail},
                      {"fix", check.fix.empty() ? Json(nullptr) : Json(check.fix)}});
  }
  Json fixed = Json::array();
  for (const auto& done : report.repairs) fixed.push_back({{"what", done.what}, {"subject", done.subject}});
  Json versions = engine_versions(session);
  versions["holt"] = version();
  return {{"ok", report.usable()},
          {"accelerator", to_string(report.accelerator)},
          {"isolation", isolation_of(report.accelerator)},
          {"checks", checks},
          {"fixed", fixed},
          {"versions", versions}};
}

void print_text(Session& session, const Report& report) {
  for (const auto& done : report.repairs) {
    session.output.line(fmt::format("{:<5} {}: {}", "fixed", done.what, printable(done.subject)));
  }
  for (const auto& check : report.checks) {
    session.output.line(
        fmt::format("{:<5} {:<15} {}", to_string(check.status), check.id, printable(check.detail)));
    if (!check.fix.empty()) session.output.line(fmt::format("{:<21} {}", "", check.fix));
  }
  session.output.line(fmt::format("{}: accelerator {}, isolation {}",
                                  report.usable() ? "usable" : "not usable", to_string(report.accelerator),
                                  isolation_of(report.accelerator)));
}

class DoctorCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "doctor",
            .group = Group::host,
            .summary = "Check whether machines can run here, and say what is missing",
            .usage = "[flags]",
            .examples = {"holt doctor --fix --bundle report.tar"}};
  }

  void declare(Options& options) override {
    options.flag(
        "--fix", fix_,
        "First put right what needs no decision: folders, left-overs of dead processes, damaged templates");
    options.text("--bundle", "FILE", bundle_,
                 "Also write a tar for a report: these checks, and of each machine record, events and logs "
                 "without values of its environment");
  }

  Outcome run(Session& session) override {
    const auto& host = session.host();
    Report report;
    if (fix_) report.repairs = repair(host);
    examine(host, report);
    if (bundle_) bundle(session, report, *bundle_);
    if (session.globals.json) {
      session.output.json(report_json(session, report));
    } else {
      print_text(session, report);
    }
    return ToolExit{.code = report.usable() ? k_exit_ok : k_exit_failed};
  }

 private:
  static void bundle(Session& session, const Report& report, const std::string& file) {
    auto texts = machine_diagnostics(session.host());
    texts.insert(texts.begin(),
                 {.name = "doctor.json", .text = dump_json(report_json(session, report), {.indent = 2})});
    write_bundle(file, texts);
  }

  bool fix_ = false;
  std::optional<std::string> bundle_;
};

}  // namespace

std::unique_ptr<Command> make_doctor() {
  return std::make_unique<DoctorCommand>();
}

}  // namespace holt::cli
