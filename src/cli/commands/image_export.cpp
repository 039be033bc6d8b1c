#include "cli/commands/commands.hpp"
#include "cli/errors.hpp"
#include "cli/images.hpp"
#include "cli/output_file.hpp"
#include "holt/base/fd.hpp"
#include "holt/base/files.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::cli {
namespace {

class ImageExportCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "image export",
            .group = Group::images,
            .summary = "Write an image as a tar that 'docker load' and 'holt image import' read",
            .usage = "[flags] REFERENCE -o FILE|-",
            .examples = {"holt image export app:1 -o app.tar"}};
  }

  void declare(Options& options) override {
    options.argument("REFERENCE", name_, "Image");
    options.text("-o,--output", "FILE", file_, "Where to; - for standard output");
  }

  Outcome run(Session& session) override {
    if (!file_) throw usage_error("say where to: -o FILE, or -o - for standard output");
    if (file_ == "-") return write_to_output(session);
    check_output_file("--output", *file_);
    image::Store store(session.host().directories);
    if (auto special = open_special_file(*file_)) {
      image::export_image(store, name_, special->get(), {.cancel = session.interrupts.token()});
      return ToolExit{};
    }
    // Under another name first, so that a file of this name is a whole image.
    auto part = *file_ + ".part";
    try {
      Fd fd(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
      if (!fd) throw system_error(errno, fmt::format("write {}", part), part);
      image::export_image(store, name_, fd.get(), {.cancel = session.interrupts.token()});
      if (::rename(part.c_str(), file_->c_str()) != 0)
        throw system_error(errno, fmt::format("write {}", *file_), *file_);
    } catch (const Error&) {
      std::error_code ignored;
      std::filesystem::remove(part, ignored);
      throw;
    }
    if (session.globals.json) {
      auto image = store.resolve(name_);
      session.output.json({{"reference", image.reference},
                           {"digest", image.digest},
                           {"bytes", std::filesystem::file_size(*file_)}});
    }
    return ToolExit{};
  }

 private:
  Outcome write_to_output(Session& session) const {
    if (::isatty(STDOUT_FILENO) == 1) {
      throw usage_error("standard output is a terminal, and an image no text",
                        "Send it to a file or a program.");
    }
    image::Store store(session.host().directories);
    image::export_image(store, name_, STDOUT_FILENO, {.cancel = session.interrupts.token()});
    return ToolExit{};
  }

  std::string name_;
  std::optional<std::string> file_;
};

}  // namespace

std::unique_ptr<Command> make_image_export() {
  return std::make_unique<ImageExportCommand>();
}

}  // namespace holt::cli
