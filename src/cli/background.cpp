#include "cli/background.hpp"

#include "cli/errors.hpp"
#include "cli/signal_names.hpp"
#include "cli/table.hpp"
#include "cli/units.hpp"
#include "holt/base/encoding.hpp"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace holt::cli {
namespace {

constexpr std::size_t k_shown_command = 60;

Json optional_json(const std::optional<int>& number) {
  return number ? Json(*number) : Json(nullptr);
}

std::string shown_state(const holt::CommandInfo& command) {
  if (command.running || !command.result) return "running";
  const auto& result = *command.result;
  if (result.timed_out) return "timed out";
  if (result.signal) return fmt::format("signal {}", *result.signal);
  return fmt::format("exit {}", result.exit_code.value_or(0));
}

}  // namespace

CommandRef parse_command_ref(const std::string& flag, const std::string& text) {
  auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size()) {
    throw usage_error(fmt::format("{}: '{}' is no background command", flag, printable(text, 130)),
                      "Write NAME:ID as 'holt exec -d' prints it; 'holt exec --list NAME' shows all.");
  }
  return {.machine = text.substr(0, colon), .id = text.substr(colon + 1)};
}

std::string command_ref(const Machine& machine, const holt::CommandInfo& command) {
  return machine.name() + ":" + printable(command.id, 100);
}

holt::CommandInfo start_in_background(Session& session, const Machine& machine, GuestPlan plan) {
  plan.options.cancel = session.interrupts.token();
  return invoke(machine, [&] { return machine.start_command(plan.argv, plan.options); });
}

int parse_signal(const std::string& flag, const std::string& text) {
  if (auto number = signal_number(text)) return *number;
  throw usage_error(fmt::format("{}: '{}' is no signal", flag, printable(text, 130)),
                    "Write a name such as TERM, or a number.");
}

Json command_json(const Machine& machine, const holt::CommandInfo& command) {
  Json words = Json::array();
  for (const auto& word : command.argv) words.push_back(utf8_replace(word));
  Json json{{"machine", machine.name()},
            {"id", command_ref(machine, command)},
            {"pid", command.pid},
            {"command", std::move(words)},
            {"terminal", command.terminal},
            {"running", command.running},
            {"startedAt", rfc3339(command.started_at)},
            {"stdoutBytes", command.out_bytes},
            {"stderrBytes", command.err_bytes},
            {"logTruncated", command.log_truncated},
            {"exitCode", nullptr},
            {"signal", nullptr},
            {"oom", false},
            {"timedOut", false},
            {"durationMs", nullptr}};
  if (!command.result) return json;
  const auto& result = *command.result;
  json["exitCode"] = result.shell_code();
  json["signal"] = optional_json(result.signal);
  json["oom"] = result.oom;
  json["timedOut"] = result.timed_out;
  json["durationMs"] = std::chrono::duration_cast<std::chrono::milliseconds>(result.duration).count();
  return json;
}

void print_commands(Session& session, const Machine& machine) {
  auto commands = machine.commands(session.call());
  if (session.globals.json) {
    Json list = Json::array();
    for (const auto& command : commands) list.push_back(command_json(machine, command));
    return session.output.json(list);
  }
  std::vector<Row> rows;
  for (const auto& command : commands) {
    auto words = fmt::format("{}", fmt::join(command.argv, " "));
    rows.push_back({command_ref(machine, command), std::to_string(command.pid), shown_state(command),
                    rfc3339(command.started_at), show_size(command.out_bytes + command.err_bytes),
                    words.substr(0, k_shown_command)});
  }
  session.output.out(format_table({"ID", "PID", "STATE", "STARTED", "OUTPUT", "COMMAND"}, rows));
}

GuestExit exit_of(const holt::CommandInfo& command) {
  return {.result = command.result.value_or(ExecResult{})};
}

}  // namespace holt::cli
