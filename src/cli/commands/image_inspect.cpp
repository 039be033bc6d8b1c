#include "cli/commands/commands.hpp"
#include "cli/images.hpp"
#include "cli/machines.hpp"

#include <string>
#include <vector>

namespace holt::cli {
namespace {

class ImageInspectCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "image inspect",
            .group = Group::images,
            .summary = "Print everything known of images as a JSON array",
            .usage = "[flags] REFERENCE...",
            .examples = {"holt image inspect holt/default"},
            .takes_format = true};
  }

  void declare(Options& options) override {
    options.arguments("REFERENCE", names_, Need::required, "Images");
  }

  Outcome run(Session& session) override {
    image::Store store(session.host().directories);
    auto users = image_users(session);
    Json list = Json::array();
    for_each_name(
        session, names_,
        [&](const std::string& name) {
          with_near_image(session, name,
                          [&] { list.push_back(whole_image_json(store.resolve(name), users)); });
        },
        [&] { session.print_objects(list); });
    return ToolExit{};
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace

std::unique_ptr<Command> make_image_inspect() {
  return std::make_unique<ImageInspectCommand>();
}

}  // namespace holt::cli
