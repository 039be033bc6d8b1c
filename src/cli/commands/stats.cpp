#include "cli/commands/commands.hpp"
#include "cli/errors.hpp"
#include "cli/machines.hpp"
#include "cli/table.hpp"
#include "cli/units.hpp"

#include <chrono>
#include <map>
#include <poll.h>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace holt::cli {
namespace {

using namespace std::chrono_literals;

// Between the two looks that one line needs for its share of a processor.
constexpr Duration k_first_interval = 200ms;

struct Line {
  std::string name = {};
  MachineStats stats = {};
  double cpu_percent = 0;
};

class StatsCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "stats",
            .group = Group::machines,
            .summary = "Show what machines use: processors, memory, disk",
            .usage = "[flags] [NAME...]",
            .examples = {"holt stats --no-stream dev"}};
  }

  void declare(Options& options) override {
    options.arguments("NAME", names_, Need::optional, "Machines (default: all that run)");
    options.flag("--no-stream", once_, "Once, and end");
    options.duration("--interval", interval_, "Time between two looks (default 1s)");
  }

  Outcome run(Session& session) override {
    std::map<std::string, MachineStats> before;
    look(session, before);
    wait(session, k_first_interval);
    for (;;) {
      print(session, look(session, before));
      if (once_) return ToolExit{};
      wait(session, interval_.value_or(1s));
    }
  }

 private:
  std::vector<std::string> wanted(Session& session) const {
    std::vector<std::string> names;
    for (const auto& name : names_) names.push_back(find_machine(session, name).name());
    if (!names_.empty()) return names;
    for (const auto& info : Machine::list_all(session.host())) {
      if (info.state == MachineState::running || info.state == MachineState::paused)
        names.push_back(info.name);
    }
    return names;
  }

  std::vector<Line> look(Session& session, std::map<std::string, MachineStats>& before) const {
    std::vector<Line> lines;
    std::map<std::string, MachineStats> now;
    for (const auto& name : wanted(session)) {
      try {
        Line line{.name = name, .stats = Machine::open(name, session.host()).stats(session.call())};
        if (auto last = before.find(name); last != before.end())
          line.cpu_percent = share(last->second, line.stats);
        now[name] = line.stats;
        lines.push_back(std::move(line));
      } catch (const Error&) {
        // One that was named must be there; others may end meanwhile.
        if (!names_.empty()) throw;
      }
    }
    before = std::move(now);
    return lines;
  }

  static double share(const MachineStats& before, const MachineStats& now) {
    auto seconds = std::chrono::duration<double>(now.at - before.at).count();
    auto used = std::chrono::duration<double>(now.cpu_time - before.cpu_time).count();
    return seconds > 0 && used > 0 ? 100 * used / seconds : 0;
  }

  static void wait(Session& session, Duration time) {
    const auto& token = session.interrupts.token();
    pollfd end{.fd = token.fd(), .events = POLLIN, .revents = 0};
    ::poll(&end, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(time).count()));
    token.throw_if_cancelled();
  }

  static void print(Session& session, const std::vector<Line>& lines) {
    if (session.globals.json) {
      for (const auto& line : lines) session.output.json(object_of(line));
      return;
    }
    std::vector<Row> rows;
    for (const auto& [name, stats, cpu] : lines) {
      rows.push_back({name, fmt::format("{:.1f}%", cpu),
                      fmt::format("{} / {}", show_size(stats.memory_used), show_size(stats.memory_limit)),
                      show_size(stats.host_memory), show_size(stats.disk_read), show_size(stats.disk_written),
                      std::to_string(stats.processes)});
    }
    session.output.out(
        format_table({"NAME", "CPU", "MEMORY", "HOST MEMORY", "READ", "WRITTEN", "PROCESSES"}, rows));
  }

  static Json object_of(const Line& line) {
    const auto& stats = line.stats;
    return {{"ts", rfc3339(stats.at)},
            {"machine", line.name},
            {"cpuPercent", line.cpu_percent},
            {"memUsed", stats.memory_used},
            {"memLimit", stats.memory_limit},
            {"hostRss", stats.host_memory},
            {"diskRead", stats.disk_read},
            {"diskWrite", stats.disk_written},
            {"netRx", 0},
            {"netTx", 0},
            {"procs", stats.processes}};
  }

  std::vector<std::string> names_;
  bool once_ = false;
  std::optional<Duration> interval_;
};

}  // namespace

std::unique_ptr<Command> make_stats() {
  return std::make_unique<StatsCommand>();
}

}  // namespace holt::cli
