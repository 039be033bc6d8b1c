#include "cli/commands/commands.hpp"
#include "cli/errors.hpp"
#include "holt/replay/replay_server.hpp"

#include <charconv>
#include <optional>
#include <poll.h>
#include <string>

#include <fmt/format.h>

namespace holt::cli {
namespace {

class DevReplayCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "dev replay",
            .group = Group::agents,
            .summary = "Answer as a model provider does, from a script, until interrupted",
            .usage = "[flags] FILE",
            .examples = {"holt dev replay examples/primes.replay.jsonl"}};
  }

  void declare(Options& options) override {
    options.argument("FILE", file_, "Script: JSON lines (docs/reference.md, \"Replay scripts\")");
    options.text("--listen", "ADDRESS:PORT", listen_,
                 "Address of the loopback (default 127.0.0.1:0, any free port)");
    options.flag("--until-done", until_done_, "End when every entry of the script has been used");
  }

  Outcome run(Session& session) override {
    CancellationToken done;
    auto options = listen_options();
    options.on_misfit = [&session](const std::string& misfit) { session.output.note(misfit); };
    if (until_done_) options.on_all_used = [done] { done.cancel(); };
    ReplayServer server(ReplayScript::load(file_), std::move(options));
    if (session.globals.json) {
      session.output.json({{"url", server.url()}});
    } else {
      session.output.line(server.url());
    }
    wait(session.interrupts.token(), done);
    auto report = server.stop();
    for (auto line : report.unused)
      session.output.note(fmt::format("{}:{}: no request used this", file_, line));
    return ToolExit{.code = report.ok() ? k_exit_ok : k_exit_failed};
  }

 private:
  ReplayOptions listen_options() const {
    if (!listen_) return {};
    const auto& listen = *listen_;
    auto colon = listen.rfind(':');
    ReplayOptions options;
    options.host = listen.substr(0, colon);
    auto port = colon == std::string::npos ? std::string() : listen.substr(colon + 1);
    auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), options.port);
    if (error != std::errc{} || end != port.data() + port.size() || options.host.empty()) {
      throw usage_error(fmt::format("--listen: '{}' is not of the form ADDRESS:PORT", printable(listen, 80)));
    }
    return options;
  }

  static void wait(const CancellationToken& interrupted, const CancellationToken& done) {
    pollfd fds[2] = {{.fd = interrupted.fd(), .events = POLLIN, .revents = 0},
                     {.fd = done.fd(), .events = POLLIN, .revents = 0}};
    while (::poll(fds, 2, -1) < 0) {
    }
  }

  std::string file_;
  std::optional<std::string> listen_;
  bool until_done_ = false;
};

}  // namespace

std::unique_ptr<Command> make_dev_replay() {
  return std::make_unique<DevReplayCommand>();
}

}  // namespace holt::cli
