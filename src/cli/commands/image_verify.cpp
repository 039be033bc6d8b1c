#include "cli/commands/commands.hpp"
#include "cli/images.hpp"

#include <fmt/format.h>

namespace holt::cli {
namespace {

class ImageVerifyCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "image verify",
            .group = Group::images,
            .summary = "Read all images against their digests; 1 when one is damaged",
            .usage = "[flags]",
            .examples = {"holt image verify"}};
  }

  Outcome run(Session& session) override {
    image::Store store(session.host().directories);
    auto found = image::verify(store, session.interrupts.token());
    Json list = Json::array();
    for (const auto& damage : found) {
      list.push_back({{"reference", damage.reference}, {"what", damage.what}, {"fix", damage.fix}});
      if (session.globals.json) continue;
      session.output.line(fmt::format("{}: {}", printable(damage.reference), printable(damage.what)));
      session.note(fmt::format("hint: {}", printable(damage.fix)));
    }
    if (session.globals.json) session.output.json(list);
    if (found.empty()) session.note("all images are whole");
    return ToolExit{.code = found.empty() ? k_exit_ok : k_exit_failed};
  }
};

}  // namespace

std::unique_ptr<Command> make_image_verify() {
  return std::make_unique<ImageVerifyCommand>();
}

}  // namespace holt::cli
