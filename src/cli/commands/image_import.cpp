#include "cli/commands/commands.hpp"
#include "cli/errors.hpp"
#include "cli/images.hpp"
#include "cli/units.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::cli {
namespace {

/// "rootfs" of "/tmp/rootfs.tar.gz".
std::string name_of_file(const std::string& path) {
  auto name = std::filesystem::path(path).filename().string();
  return name.substr(0, name.find('.'));
}

class ImageImportCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "image import",
            .group = Group::images,
            .summary = "Make an image of a tar of a root file system (plain, gzip or zstd)",
            .usage = "[flags] FILE|- [NAME]",
            .example = "holt image import rootfs.tar.gz mine:latest"};
  }

  void declare(Options& options) override {
    options.argument("FILE", file_, "The tar; - for standard input");
    options.optional_argument("NAME", name_, "Reference of the image (default: the file's name)");
  }

  Outcome run(Session& session) override {
    if (file_ == "-" && !name_) throw usage_error("an image from standard input needs a name");
    image::ImportOptions options{.cancel = session.interrupts.token()};
    options.progress = [&session](const image::Progress& progress) {
      if (session.globals.quiet) return;
      session.output.progress(
          fmt::format("holt: {} entries, {}", progress.entries, show_size(progress.unpacked_bytes)));
    };
    image::Store store(session.host().directories);
    auto name = name_.value_or(name_of_file(file_));
    auto image = file_ == "-" ? store.import_root_tar(STDIN_FILENO, name, options)
                              : store.import_root_tar(std::filesystem::path(file_), name, options);
    session.output.clear_progress();
    if (session.globals.json) {
      session.output.json(image_json(image, {}));
    } else {
      session.output.line(image.digest);
    }
    return ToolExit{};
  }

 private:
  std::string file_;
  std::optional<std::string> name_;
};

}  // namespace

std::unique_ptr<Command> make_image_import() {
  return std::make_unique<ImageImportCommand>();
}

}  // namespace holt::cli
