#include "cli/commands/commands.hpp"
#include "cli/errors.hpp"
#include "cli/guest_run.hpp"
#include "cli/machine_flags.hpp"
#include "holt/image/store.hpp"
#include "holt/machine/names.hpp"

#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace holt::cli {
namespace {

using Words = std::vector<std::string>;

class RunCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "run",
            .group = Group::machines,
            .summary = "Run one command in a new machine",
            .usage = "[flags] [IMAGE] [--] [COMMAND [ARGUMENT...]]",
            .example = "holt run -- python3 -c 'print(2**10)'",
            .tail = Tail::guest_argv,
            .failure_code = k_exit_engine};
  }

  void declare(Options& options) override {
    options.text("--name", "NAME", name_, "Name of the machine; a named one is kept");
    options.flag("--rm", remove_, "Delete the machine after the command, also a named one");
    options.flag("--keep", keep_, "Keep the machine after the command, also an unnamed one");
    options.flag("-d,--detach", detach_, "Start the machine, print its name, run no command");
    options.flag("-i,--interactive", interactive_, "Forward standard input, also from a terminal");
    options.flag("-T,--no-tty", no_tty_, "No terminal in the guest (there is none in this version)");
    options.duration("--timeout", timeout_, "End the command after so long (exit code 124)");
    options.bytes("--max-output", max_output_, "Bytes of each output that --json keeps (default 8M)");
    options.text("--entrypoint", "PROGRAM", entrypoint_,
                 "Put in front of the command instead of the image's");
    options.text("--exit-code-file", "FILE", exit_code_file_,
                 "Write the exit code and its origin there as JSON");
    machine_.declare(options);
    options.later_flag("-t,--tty", "a terminal in the guest");
    options.later_value("--stop-signal", "a stop signal");
  }

  void take_tail(const Words& given) override {
    auto tail = given;
    if (!tail.empty() && tail.front() != "--") {
      image_ = tail.front();
      tail.erase(tail.begin());
    }
    if (!tail.empty() && tail.front() == "--") tail.erase(tail.begin());
    argv_ = std::move(tail);
  }

  Outcome run(Session& session) override {
    check();
    if (detach_) return start_only(session);
    return with_exit_code_file(session, exit_code_file_, [&] { return run_once(session); });
  }

 private:
  void check() const {
    if (image_ && image_->empty())
      throw usage_error("the image's name is empty", "'holt images' lists what is there.");
    if (remove_ && keep_) throw usage_error("--rm and --keep exclude each other");
    if (detach_ && !argv_.empty()) {
      throw later_error("a command of its own in 'holt run -d'");
    }
    if (detach_ && remove_) throw later_error("'holt run -d --rm'");
    if (name_) check_machine_name(*name_);
  }

  bool kept() const { return keep_ || detach_ || (name_ && !remove_); }

  MachineConfig config() const {
    auto config = machine_.config();
    config.name = name_.value_or(new_machine_name());
    config.image = image_.value_or("");
    config.lifetime = kept() ? Lifetime::persistent : Lifetime::ephemeral;
    return config;
  }

  /// The command under the image's entrypoint; the image's own when none was given.
  Words command_of(Session& session) const {
    image::Store store(session.host().directories);
    auto image = store.resolve(image_ ? std::string_view(*image_) : image::k_default_image);
    Words argv = image.config.entrypoint;
    if (entrypoint_) argv = {*entrypoint_};
    bool own = argv_.empty() && !entrypoint_;
    const auto& rest = own ? image.config.cmd : argv_;
    argv.insert(argv.end(), rest.begin(), rest.end());
    if (argv.empty()) {
      throw usage_error(fmt::format("no command, and image {} has none of its own", image.reference),
                        "Write one after '--', e.g. holt run -- uname -a");
    }
    return argv;
  }

  Outcome start_only(Session& session) const {
    auto machine = Machine::create(config(), session.start_options(), machine_.host(session));
    session.output.clear_progress();
    auto info = machine.info();
    if (info.accelerator) session.warn_of(*info.accelerator);
    if (session.globals.json) {
      session.output.json({{"machine", machine.name()},
                           {"bootMs", milliseconds(info.boot_time)},
                           {"accelerator", accelerator_json(info)},
                           {"isolation", isolation_json(info)}});
    } else {
      session.output.line(machine.name());
    }
    return ToolExit{};
  }

  GuestExit run_once(Session& session) const {
    auto config = this->config();  // first, since a mistake in a flag comes before a missing image
    GuestPlan plan{.argv = command_of(session)};
    plan.options.timeout = timeout_;
    if (max_output_) plan.options.output_limit = *max_output_;
    plan.input = stdin_choice(interactive_ ? Interactive::yes : Interactive::no);
    plan.output = session.globals.json ? GuestOutput::captured : GuestOutput::streamed;

    auto machine = Machine::create(config, session.start_options(), machine_.host(session));
    session.output.clear_progress();
    auto info = machine.info();
    if (info.accelerator) session.warn_of(*info.accelerator);
    if (keep_ && !name_) session.note(fmt::format("the machine is kept as {}", machine.name()));
    auto exit = run_in_guest(session, machine, std::move(plan));
    if (session.globals.json) print(session, exit, info);
    return exit;
  }

  static void print(Session& session, const GuestExit& exit, const MachineInfo& info) {
    Json json{{"machine", info.name}};
    json.update(guest_exit_json(exit));
    json["bootMs"] = milliseconds(info.boot_time);
    json["accelerator"] = accelerator_json(info);
    json["isolation"] = isolation_json(info);
    session.output.json(json);
  }

  static Json milliseconds(std::optional<Duration> duration) {
    if (!duration) return nullptr;
    return std::chrono::duration_cast<std::chrono::milliseconds>(*duration).count();
  }
  static Json accelerator_json(const MachineInfo& info) {
    return info.accelerator ? Json(to_string(*info.accelerator)) : Json(nullptr);
  }
  static Json isolation_json(const MachineInfo& info) {
    return info.accelerator ? Json(isolation_of(*info.accelerator)) : Json(nullptr);
  }

  std::optional<std::string> name_;
  bool remove_ = false;
  bool keep_ = false;
  bool detach_ = false;
  bool interactive_ = false;
  bool no_tty_ = false;
  std::optional<Duration> timeout_;
  std::optional<std::size_t> max_output_;
  std::optional<std::string> entrypoint_;
  std::optional<std::string> exit_code_file_;
  MachineFlags machine_;
  std::optional<std::string> image_;
  Words argv_;
};

}  // namespace

std::unique_ptr<Command> make_run() {
  return std::make_unique<RunCommand>();
}

}  // namespace holt::cli
