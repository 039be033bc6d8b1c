#include "cli/commands/commands.hpp"
#include "cli/filters.hpp"
#include "cli/machines.hpp"
#include "cli/table.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace holt::cli {
namespace {

constexpr std::size_t k_shown_image = 40;

class LsCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "ls",
            .aliases = {"ps"},
            .group = Group::machines,
            .summary = "List machines: those that run, or all",
            .usage = "[flags]",
            .examples = {"holt ls -a --json"},
            .takes_format = true};
  }

  void declare(Options& options) override {
    options.flag("-a,--all", all_, "Also those that do not run");
    options.flag("-q,--names", names_only_, "Names only, one a line");
    options.texts("--filter", "KEY=VALUE", filters_, "label=KEY[=VALUE], state=STATE or image=REFERENCE");
    options.flag("--no-trunc", no_trunc_, "Do not shorten long columns");
  }

  Outcome run(Session& session) override {
    auto filters = parse_filters(filters_);
    bool any_state =
        all_ || std::ranges::any_of(filters, [](const Filter& filter) { return filter.key == "state"; });
    std::vector<MachineInfo> shown;
    for (auto& info : Machine::list_all(session.host())) {
      if ((any_state || is_up(info.state)) && matches_all(info, filters)) shown.push_back(std::move(info));
    }
    print(session, shown);
    return ToolExit{};
  }

 private:
  static bool is_up(MachineState state) {
    return state == MachineState::starting || state == MachineState::running ||
           state == MachineState::paused || state == MachineState::stopping;
  }

  void print(Session& session, const std::vector<MachineInfo>& machines) const {
    if (session.globals.json) return print_json(session, machines);
    if (names_only_) {
      for (const auto& info : machines) session.output.line(info.name);
    } else if (session.globals.format) {
      for (const auto& info : machines) {
        auto object = object_of(session, info);
        auto unknown = object.contains("id") ? UnknownKey::refused : UnknownKey::empty;
        session.output.line(format_template(*session.globals.format, object, unknown));
      }
    } else {
      print_table(session, machines);
    }
  }

  /// A damaged machine has no object of its own; what the list knows of it stands in.
  static Json object_of(Session& session, const MachineInfo& info) {
    try {
      return machine_json(Machine::open(info.name, session.host()));
    } catch (const Error& error) {
      Json reason{{"code", to_string(error.code())}, {"message", error.what()}, {"at", nullptr}};
      if (info.reason) {
        reason = {{"code", to_string(info.reason->code)}, {"message", info.reason->message}, {"at", nullptr}};
      }
      return {{"name", info.name}, {"state", to_string(info.state)}, {"reason", reason}};
    }
  }

  static void print_json(Session& session, const std::vector<MachineInfo>& machines) {
    Json list = Json::array();
    for (const auto& info : machines) list.push_back(object_of(session, info));
    session.output.json(list);
  }

  void print_table(Session& session, const std::vector<MachineInfo>& machines) const {
    std::vector<Row> rows;
    for (const auto& info : machines) {
      auto image = info.image_reference;
      if (!no_trunc_ && image.size() > k_shown_image) image = image.substr(0, k_shown_image - 3) + "...";
      std::string state(to_string(info.state));
      if (!info.responsive) state += " (silent)";
      rows.push_back({info.name, state, image, std::to_string(info.resources.cpus),
                      fmt::format("{}M", info.resources.memory_mb), "", rfc3339(info.created_at)});
    }
    session.output.out(format_table({"NAME", "STATE", "IMAGE", "CPUS", "MEM", "PORTS", "CREATED"}, rows));
  }

  bool all_ = false;
  bool names_only_ = false;
  bool no_trunc_ = false;
  std::vector<std::string> filters_;
};

}  // namespace

std::unique_ptr<Command> make_ls() {
  return std::make_unique<LsCommand>();
}

}  // namespace holt::cli
