#include "cli/commands/commands.hpp"
#include "cli/errors.hpp"
#include "cli/images.hpp"
#include "cli/machine_flags.hpp"
#include "cli/registry_flags.hpp"

#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

namespace holt::cli {
namespace {

class ImageImportCommand : public Command {
 public:
  CommandInfo info() const override {
    return {
        .name = "image import",
        .group = Group::images,
        .summary = "Make an image of a file or folder: OCI layout, 'docker save' archive, root file system",
        .usage = "[flags] FILE|FOLDER|- [NAME]",
        .examples = {"docker save app | holt image import -",
                     "holt image import ./layout app:1 --select app:1",
                     "holt image import root.tar.gz mine:1 --env LANG=C.UTF-8 --cmd /bin/sh"}};
  }

  void declare(Options& options) override {
    options.argument("FILE", source_, "What it is, its content says; - for standard input");
    options.optional_argument("NAME", name_, "Reference of the image (default: what the source calls it)");
    options.text("--select", "REFERENCE", select_, "Which one of several images");
    options.text("--platform", "OS/ARCH", platform_,
                 "Variant of the image (default: what machines here run)");
    options.texts("-e,--env", "NAME=VALUE", env_, "Of a root file system: environment variable");
    options.texts("--entrypoint", "WORD", config_.entrypoint,
                  "Of a root file system: in front of each command");
    options.texts("--cmd", "WORD", config_.cmd, "Of a root file system: command when none is given");
    options.text("-w,--workdir", "DIR", working_dir_, "Of a root file system: working folder of commands");
    options.text("-u,--user", "USER", user_, "Of a root file system: user of commands");
  }

  Outcome run(Session& session) override {
    PullProgress progress(session, source_ == "-" ? "standard input" : source_, PullProgress::Kind::import);
    auto host = session.host();
    image::ImportSourceOptions options{.reference = name_.value_or(""),
                                       .select = select_.value_or(""),
                                       .config = config(),
                                       .platform = parse_platform_flag(platform_),
                                       .limits = host.image_limits,
                                       .progress = progress.sink(),
                                       .cancel = session.interrupts.token()};
    image::Store store(host.directories);
    auto image = with_progress(session, progress, [&] {
      return source_ == "-" ? image::import_image(store, STDIN_FILENO, options)
                            : image::import_image(store, source_, options);
    });
    if (session.globals.json) {
      session.output.json(image_json(image, {}));
    } else {
      session.output.line(image.digest);
    }
    return ToolExit{};
  }

 private:
  image::ImageConfig config() const {
    auto config = config_;
    for (const auto& [name, value] : parse_env(env_)) config.env.push_back(name + "=" + value);
    config.working_dir = working_dir_.value_or("");
    config.user = user_.value_or("");
    return config;
  }

  std::string source_;
  std::optional<std::string> name_;
  std::optional<std::string> select_;
  std::optional<std::string> platform_;
  std::vector<std::string> env_;
  std::optional<std::string> working_dir_;
  std::optional<std::string> user_;
  image::ImageConfig config_;
};

}  // namespace

std::unique_ptr<Command> make_image_import() {
  return std::make_unique<ImageImportCommand>();
}

}  // namespace holt::cli
