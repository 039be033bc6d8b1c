#include "holt/machine/prune.hpp"

#include "cli/commands/commands.hpp"
#include "cli/confirm.hpp"
#include "cli/errors.hpp"
#include "cli/machines.hpp"
#include "cli/units.hpp"

#include <optional>

#include <fmt/format.h>

namespace holt::cli {
namespace {

class PruneCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "prune",
            .group = Group::host,
            .summary = "Delete ended machines, images without machines, templates out of use",
            .usage = "[flags]",
            .examples = {"holt prune --machines --older-than 7d --dry-run"}};
  }

  void declare(Options& options) override {
    options.flag("--machines", machines_, "Machines that have ended, with their disks; suspended ones stay");
    options.flag("--images", images_, "Images that no machine stands on");
    options.flag("--cache", templates_, "Templates; the next start builds its own again");
    options.later_flag("--snapshots", "snapshots");
    options.duration("--older-than", older_than_, "Only what nobody has used for so long");
    options.flag("--dry-run", dry_run_, "Show what would go, and leave it");
    options.flag("-f,--force", force_, "Do not ask");
  }

  Outcome run(Session& session) override {
    PruneOptions options{.call = session.call()};
    if (machines_) options.kinds.push_back(PruneKind::machines);
    if (images_) options.kinds.push_back(PruneKind::images);
    if (templates_) options.kinds.push_back(PruneKind::templates);
    if (options.kinds.empty()) throw usage_error("say what: --machines, --images, --cache");
    if (older_than_) options.older_than = *older_than_;
    options.mode = PruneMode::report;
    if (!dry_run_) {
      if (!force_ && !confirm(session, prune(options, session.host()))) return print(session, {});
      options.mode = PruneMode::remove;
    }
    return print(session, prune(options, session.host()));
  }

 private:
  static bool confirm(Session& session, const PruneResult& found) {
    if (found.items.empty()) return false;
    for (const auto& item : found.items) session.note(fmt::format("{} {}", to_string(item.kind), item.name));
    confirm_deletion(session, "prune", fmt::format("these, {}", show_size(found.bytes())),
                     "Give --force, or --dry-run to look.");
    return true;
  }

  Outcome print(Session& session, const PruneResult& result) const {
    if (session.globals.json) {
      Json removed = Json::array();
      for (const auto& item : result.items) {
        removed.push_back({{"kind", to_string(item.kind)}, {"name", item.name}, {"bytes", item.bytes}});
      }
      session.output.json({{"removed", removed}, {"freedBytes", result.bytes()}, {"dryRun", dry_run_}});
    } else {
      for (const auto& item : result.items)
        session.output.line(fmt::format("{} {}", to_string(item.kind), item.name));
      session.note(fmt::format("{} {}", show_size(result.bytes()), dry_run_ ? "would be freed" : "freed"));
    }
    for (const auto& problem : result.problems) session.output.note(problem);
    return ToolExit{.code = result.problems.empty() ? k_exit_ok : k_exit_failed};
  }

  bool machines_ = false;
  bool images_ = false;
  bool templates_ = false;
  bool dry_run_ = false;
  bool force_ = false;
  std::optional<Duration> older_than_;
};

}  // namespace

std::unique_ptr<Command> make_prune() {
  return std::make_unique<PruneCommand>();
}

}  // namespace holt::cli
