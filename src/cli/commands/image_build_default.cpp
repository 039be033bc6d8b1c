#include "cli/commands/commands.hpp"
#include "cli/default_image.hpp"
#include "cli/images.hpp"
#include "cli/units.hpp"
#include "holt/base/files.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace holt::cli {
namespace {

class ImageBuildDefaultCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "image build-default",
            .group = Group::images,
            .summary = "Make the default image from Debian's packages, with mmdebstrap",
            .usage = "[flags]",
            .examples = {"holt image build-default --include nodejs --name node:1"}};
  }

  void declare(Options& options) override {
    options.text("--name", "REFERENCE", name_, "Its name (default: holt/default:latest)");
    options.text("--include", "PACKAGES", packages_, "More packages, with commas between");
    options.text("--tar", "FILE", tar_,
                 "Its root file system: taken from there, or made there when it is missing");
    options.flag("--print-recipe", print_recipe_,
                 "Print the mmdebstrap command, a line each word, and make nothing");
  }

  Outcome run(Session& session) override {
    auto recipe = default_image_recipe(packages_.value_or(""));
    if (print_recipe_ && session.globals.json) {
      session.output.json(Json(recipe));
      return ToolExit{};
    }
    if (print_recipe_) {
      for (const auto& word : recipe) session.output.line(word);
      return ToolExit{};
    }
    auto image = tar_ ? build(session, recipe, *tar_) : build_for_now(session, recipe);
    if (session.globals.json) {
      session.output.json(image_json(image, {}));
    } else {
      session.output.line(image.digest);
    }
    return ToolExit{};
  }

 private:
  image::Image build_for_now(Session& session, const std::vector<std::string>& recipe) const {
    const auto& cache = session.host().directories.cache;
    std::filesystem::create_directories(cache);
    TempDir folder(cache);
    return build(session, recipe, folder.path() / "root.tar");
  }

  image::Image build(Session& session, const std::vector<std::string>& recipe,
                     const std::filesystem::path& tar) const {
    if (!std::filesystem::exists(tar)) make_root_tar(session, recipe, tar);
    auto host = session.host();
    image::ImportOptions options{
        .config = default_image_config(), .limits = host.image_limits, .cancel = session.interrupts.token()};
    options.progress = [&session](const image::Progress& progress) {
      if (session.globals.quiet) return;
      session.output.progress(
          fmt::format("holt: {} entries, {}", progress.entries, show_size(progress.unpacked_bytes)));
    };
    image::Store store(host.directories);
    auto image = store.import_root_tar(tar, name_.value_or(std::string(image::k_default_image)), options);
    session.output.clear_progress();
    return image;
  }

  std::optional<std::string> name_;
  std::optional<std::string> packages_;
  std::optional<std::string> tar_;
  bool print_recipe_ = false;
};

}  // namespace

std::unique_ptr<Command> make_image_build_default() {
  return std::make_unique<ImageBuildDefaultCommand>();
}

}  // namespace holt::cli
