#include "cli/command_tree.hpp"
#include "cli/commands/commands.hpp"
#include "cli/manual.hpp"
#include "cli/version.hpp"
#include "holt/base/error.hpp"
#include "holt/base/files.hpp"

#include <filesystem>
#include <string>
#include <system_error>

namespace holt::cli {
namespace {

class DevManCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "dev man",
            .group = Group::host,
            .summary = "Write the manual pages into a folder, one for each verb",
            .usage = "[flags] DIR",
            .examples = {"holt dev man pages && man ./pages/holt-run.1"}};
  }

  void declare(Options& options) override {
    options.argument("DIR", folder_, "Folder; made where it is missing");
  }

  Outcome run(Session& session) override {
    std::filesystem::path folder(folder_);
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (failure) throw system_error(failure.value(), "Make " + printable(folder_, 200));
    Json written = Json::array();
    for (const auto& page : manual_pages(describe(make_commands()), version())) {
      write_file_atomically(folder / page.file, page.text);
      written.push_back((folder / page.file).string());
    }
    if (session.globals.json) session.output.json(written);
    return ToolExit{};
  }

 private:
  std::string folder_;
};

}  // namespace

std::unique_ptr<Command> make_dev_man() {
  return std::make_unique<DevManCommand>();
}

}  // namespace holt::cli
