#include "cli/completion.hpp"

#include "cli/commands/commands.hpp"
#include "cli/images.hpp"
#include "cli/machines.hpp"

#include <string>
#include <vector>

namespace holt::cli {
namespace {

class CompletionCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "completion",
            .group = Group::host,
            .summary = "Print the script that completes holt's command line in a shell",
            .usage = "[flags] bash|zsh|fish",
            .examples = {"source <(holt completion bash)", "holt completion fish | source"}};
  }

  void declare(Options& options) override { options.argument("SHELL", shell_, "bash, zsh or fish"); }

  Outcome run(Session& session) override {
    auto script = completion_script(shell_);
    if (session.globals.json) {
      session.output.json({{"shell", shell_}, {"script", script}});
    } else {
      session.output.out(script);
    }
    return ToolExit{};
  }

 private:
  std::string shell_;
};

class CompleteCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "__complete",
            .group = Group::host,
            .summary = "Print what may stand in place of the last word",
            .usage = "WORD...",
            .examples = {"holt __complete exec ''"},
            .tail = Tail::anything};
  }

  void take_tail(const std::vector<std::string>& given) override { words_ = given; }

  Outcome run(Session& session) override {
    KnownNames names{
        .machines = [&] { return or_nothing([&] { return machine_names(directories(session)); }); },
        .images = [&] { return or_nothing([&] { return image_names(directories(session)); }); }};
    session.output.out(to_text(complete(describe(make_commands()), words_, names)));
    return ToolExit{};
  }

 private:
  /// Those of the line's own --home, where it has one.
  Directories directories(Session& session) const {
    for (std::size_t i = 0; i + 1 < words_.size(); ++i) {
      if (words_[i] == "--home") return Directories::below(words_[i + 1]);
      if (words_[i].starts_with("--home=")) return Directories::below(words_[i].substr(7));
    }
    return session.host().directories;
  }

  /// A host without a home has no names; what is typed is not the moment to say so.
  static std::vector<std::string> or_nothing(const std::function<std::vector<std::string>()>& names) {
    try {
      return names();
    } catch (const Error&) {
      return {};
    }
  }

  std::vector<std::string> words_;
};

}  // namespace

std::unique_ptr<Command> make_completion() {
  return std::make_unique<CompletionCommand>();
}

std::unique_ptr<Command> make_complete() {
  return std::make_unique<CompleteCommand>();
}

}  // namespace holt::cli
