#include "cli/commands/commands.hpp"
#include "cli/confirm.hpp"
#include "cli/images.hpp"
#include "cli/units.hpp"

#include <optional>

#include <fmt/format.h>

namespace holt::cli {
namespace {

class ImagePruneCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "image prune",
            .group = Group::images,
            .summary = "Delete images without a name, and layers that no image needs",
            .usage = "[flags]",
            .examples = {"holt image prune --all --older-than 7d --dry-run"}};
  }

  void declare(Options& options) override {
    options.flag("-a,--all", all_, "Also images with a name that no machine stands on");
    options.duration("--older-than", older_than_, "Only what nobody has used for so long");
    options.flag("--dry-run", dry_run_, "Show what would go, and leave it");
    options.flag("-f,--force", force_, "Do not ask");
  }

  Outcome run(Session& session) override {
    image::Store store(session.host().directories);
    image::PruneOptions options{
        .dry_run = true, .all = all_, .older_than = older_than_, .in_use = used_by_machines(session)};
    if (dry_run_) return print(session, image::prune(store, options));
    if (!force_) {
      auto found = image::prune(store, options);
      if (found.images.empty() && found.blobs.empty()) return print(session, found);
      for (const auto& name : found.images) session.note(fmt::format("image {}", name));
      session.note(fmt::format("{} layers and documents", found.blobs.size()));
      confirm_deletion(session, "image prune", fmt::format("these, {}", show_size(found.bytes)),
                       "Give --force, or --dry-run to look.");
    }
    options.dry_run = false;
    return print(session, image::prune(store, options));
  }

 private:
  Outcome print(Session& session, const image::PruneReport& report) const {
    if (session.globals.json) {
      session.output.json({{"images", report.images},
                           {"blobs", report.blobs},
                           {"freedBytes", report.bytes},
                           {"dryRun", dry_run_}});
      return ToolExit{};
    }
    for (const auto& name : report.images) session.output.line(name);
    for (const auto& digest : report.blobs) session.output.line(digest);
    session.note(fmt::format("{} {}", show_size(report.bytes), dry_run_ ? "would be freed" : "freed"));
    return ToolExit{};
  }

  bool all_ = false;
  bool dry_run_ = false;
  bool force_ = false;
  std::optional<Duration> older_than_;
};

}  // namespace

std::unique_ptr<Command> make_image_prune() {
  return std::make_unique<ImagePruneCommand>();
}

}  // namespace holt::cli
