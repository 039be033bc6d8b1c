#include "cli/commands/commands.hpp"
#include "cli/confirm.hpp"
#include "cli/errors.hpp"
#include "cli/filters.hpp"
#include "cli/machines.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>

namespace holt::cli {
namespace {

class RmCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "rm",
            .aliases = {"delete"},
            .group = Group::machines,
            .summary = "Delete machines and their disks",
            .usage = "[flags] NAME...",
            .examples = {"holt rm -f dev"}};
  }

  void declare(Options& options) override {
    options.arguments("NAME", names_, Need::optional, "Machines, by their whole names");
    options.flag("-f,--force", force_, "Also those that run; quiet for those that are not there");
    options.flag("--all", all_, "All machines");
    options.texts("--filter", "KEY=VALUE", filters_,
                  "Those that label=KEY[=VALUE], state=STATE or image=REFERENCE says");
  }

  Outcome run(Session& session) override {
    bool chosen = all_ || !filters_.empty();
    if (names_.empty() != chosen) throw usage_error("name machines, or give --all or --filter, not both");
    if (chosen) {
      auto filters = parse_filters(filters_);
      for (const auto& info : Machine::list_all(session.host())) {
        if (matches_all(info, filters)) names_.push_back(info.name);
      }
      if (!names_.empty() && !force_) {
        confirm_deletion(session, "rm",
                         names_.size() == 1 ? fmt::format("the machine {} and its disk", names_.front())
                                            : fmt::format("{} machines and their disks", names_.size()),
                         "Give --force, or the names.");
      }
    }
    Successes removed(session);
    for_each_name(
        session, names_, [&](const std::string& name) { remove(session, name, removed); },
        [&] { removed.print(); });
    return ToolExit{};
  }

 private:
  void remove(Session& session, const std::string& name, Successes& removed) const {
    RemoveOptions options{.mode = force_ ? RemoveMode::force : RemoveMode::stopped_only,
                          .call = session.call()};
    try {
      Machine::open(name, session.host()).remove(options);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::not_found && force_) return;
      if (error.code() == ErrorCode::not_found) throw no_such_machine(session, name);
      throw;
    }
    removed.add(name);
  }

  std::vector<std::string> names_;
  std::vector<std::string> filters_;
  bool force_ = false;
  bool all_ = false;
};

}  // namespace

std::unique_ptr<Command> make_rm() {
  return std::make_unique<RmCommand>();
}

}  // namespace holt::cli
