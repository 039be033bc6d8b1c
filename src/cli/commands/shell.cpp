#include "cli/commands/commands.hpp"
#include "cli/errors.hpp"
#include "cli/guest_run.hpp"
#include "cli/machines.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holt::cli {
namespace {

constexpr std::size_t k_longest_passwd = std::size_t{1} << 20;
constexpr std::size_t k_passwd_fields = 7;

/// The login shell that passwd(5) has for a user, by name or number; empty for none that logs anybody in.
std::string shell_of(std::string_view passwd, std::string_view user) {
  for (std::size_t at = 0; at < passwd.size();) {
    auto line = passwd.substr(at, passwd.find('\n', at) - at);
    at += line.size() + 1;
    std::array<std::string_view, k_passwd_fields> fields;
    for (auto& field : fields) {
      field = line.substr(0, line.find(':'));
      line.remove_prefix(std::min(line.size(), field.size() + 1));
    }
    if (fields[0] != user && fields[2] != user) continue;
    auto shell = fields[k_passwd_fields - 1];
    bool logs_in = shell.starts_with('/') && !shell.ends_with("/nologin") && !shell.ends_with("/false");
    return std::string(logs_in ? shell : "");
  }
  return {};
}

class ShellCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "shell",
            .aliases = {"sh"},
            .group = Group::machines,
            .summary = "Open a login shell in a machine, which is started when it is not running",
            .usage = "[flags] NAME",
            .examples = {"holt shell dev"},
            .failure_code = k_exit_engine};
  }

  void declare(Options& options) override {
    options.argument("NAME", name_, "Machine");
    options.text("--shell", "PATH", shell_, "Shell (default: the user's, else /bin/bash or /bin/sh)");
    options.text("-u,--user", "USER", user_, "User, name or UID[:GID] (default: the machine's)");
    options.text("-w,--workdir", "DIR", working_dir_, "Working folder (default: the machine's)");
  }

  Outcome run(Session& session) override {
    if (!wants_terminal(TerminalChoice::automatic, OutputKind::streamed)) {
      throw usage_error("standard input and output are no terminal",
                        "For scripts there is 'holt exec -i NAME sh'.");
    }
    auto machine = find_machine(session, name_);
    if (machine.state() != MachineState::running) {
      machine.start(session.start_options());
      session.output.clear_progress();
      auto info = machine.info();
      if (info.accelerator) session.warn_of(*info.accelerator);
    }
    GuestPlan plan{.argv = {shell_ ? *shell_ : find_shell(machine), "-l"}};
    plan.options.user = user_.value_or("");
    plan.options.working_dir = working_dir_.value_or("");
    lend_terminal(plan);
    return run_in_guest(session, machine, std::move(plan));
  }

 private:
  std::string find_shell(const Machine& machine) const {
    auto user = user_.value_or(machine.info().user);
    user = user.substr(0, user.find(':'));
    std::string shell;
    try {
      shell = shell_of(machine.read_file("/etc/passwd", {.limit = k_longest_passwd}),
                       user.empty() ? "root" : user);
    } catch (const Error&) {
      // An image may have none, or something else there.
    }
    for (const auto& candidate : {shell, std::string("/bin/bash")}) {
      if (!candidate.empty() && machine.exists(candidate)) return candidate;
    }
    return "/bin/sh";
  }

  std::string name_;
  std::optional<std::string> shell_;
  std::optional<std::string> user_;
  std::optional<std::string> working_dir_;
};

}  // namespace

std::unique_ptr<Command> make_shell() {
  return std::make_unique<ShellCommand>();
}

}  // namespace holt::cli
