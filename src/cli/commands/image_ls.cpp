#include "cli/commands/commands.hpp"
#include "cli/images.hpp"
#include "cli/table.hpp"
#include "cli/units.hpp"

#include <string>
#include <vector>

namespace holt::cli {
namespace {

constexpr std::size_t k_shown_digest = 19;  // "sha256:" and 12 digits, as docker shows them

class ImageLsCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "images",
            .aliases = {"image ls"},
            .group = Group::images,
            .summary = "List the images of this host",
            .usage = "[flags]",
            .examples = {"holt images"},
            .takes_format = true};
  }

  void declare(Options& options) override {
    options.flag("-q,--names", names_only_, "References only, one a line");
  }

  Outcome run(Session& session) override {
    auto users = image_users(session);
    std::vector<Json> images;
    for (const auto& image : image::Store(session.host().directories).list())
      images.push_back(image_json(image, users));
    if (session.globals.json) {
      session.output.json(Json(images));
    } else if (names_only_) {
      for (const auto& image : images) session.output.line(image["reference"].get<std::string>());
    } else if (session.globals.format) {
      for (const auto& image : images) session.output.line(format_template(*session.globals.format, image));
    } else {
      print_table(session, images);
    }
    return ToolExit{};
  }

 private:
  static void print_table(Session& session, const std::vector<Json>& images) {
    std::vector<Row> rows;
    rows.reserve(images.size());
    for (const auto& image : images) {
      rows.push_back({image["reference"].get<std::string>(),
                      image["digest"].get<std::string>().substr(0, k_shown_digest),
                      show_size(image["size"].get<std::uint64_t>()), image["created"].get<std::string>(),
                      std::to_string(image["usedBy"].size())});
    }
    session.output.out(format_table({"REFERENCE", "DIGEST", "SIZE", "CREATED", "USED BY"}, rows));
  }

  bool names_only_ = false;
};

}  // namespace

std::unique_ptr<Command> make_image_ls() {
  return std::make_unique<ImageLsCommand>();
}

}  // namespace holt::cli
