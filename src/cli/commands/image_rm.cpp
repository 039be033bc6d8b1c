#include "cli/commands/commands.hpp"
#include "cli/images.hpp"
#include "cli/machines.hpp"

#include <string>
#include <vector>

namespace holt::cli {
namespace {

class ImageRmCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "image rm",
            .group = Group::images,
            .summary = "Take references away, and images with their last reference",
            .usage = "[flags] REFERENCE...",
            .examples = {"holt image rm mine:latest"}};
  }

  void declare(Options& options) override {
    options.arguments("REFERENCE", names_, Need::required, "Images");
    options.flag("-f,--force", force_, "Also an image that machines use: they cannot start until it is back");
  }

  Outcome run(Session& session) override {
    image::Store store(session.host().directories);
    Successes removed(session);
    auto remove = [&](const std::string& name) {
      with_near_image(session, name,
                      [&] { store.remove(name, {.in_use = force_ ? nullptr : used_by_machines(session)}); });
      removed.add(name);
    };
    for_each_name(session, names_, remove, [&] { removed.print(); });
    return ToolExit{};
  }

 private:
  std::vector<std::string> names_;
  bool force_ = false;
};

}  // namespace

std::unique_ptr<Command> make_image_rm() {
  return std::make_unique<ImageRmCommand>();
}

}  // namespace holt::cli
