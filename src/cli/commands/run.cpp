#include "cli/background.hpp"
#include "cli/commands/commands.hpp"
#include "cli/errors.hpp"
#include "cli/guest_run.hpp"
#include "cli/images.hpp"
#include "cli/keeper.hpp"
#include "cli/limit_flags.hpp"
#include "cli/machine_flags.hpp"
#include "cli/signal_names.hpp"
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
            .examples = {"holt run -- python3 -c 'print(2**10)'",
                         "holt run -d --name web -m 2G -e LANG=C.UTF-8 -- python3 -m http.server",
                         "holt run -it python:3.12-alpine"},
            .tail = Tail::guest_argv,
            .tail_argument = "IMAGE",
            .failure_code = k_exit_engine};
  }

  void declare(Options& options) override {
    options.text("--name", "NAME", name_, "Name of the machine; a named one is kept");
    options.flag("--rm", remove_, "Delete the machine after the command, also a named one");
    options.flag("--keep", keep_, "Keep the machine after the command, also an unnamed one");
    options.flag("-d,--detach", detach_,
                 "Start machine and command, print the machine's name and leave them");
    streams_.declare(options);
    options.duration("--timeout", timeout_, "End the command after so long (exit code 124)");
    options.bytes("--max-output", max_output_, "Bytes of each output that --json keeps (default 8M)");
    options.text("--entrypoint", "PROGRAM", entrypoint_,
                 "Put in front of the command instead of the image's");
    options.text("--stop-signal", "SIGNAL", stop_signal_,
                 "What the command is asked to end with when the machine stops (default: the image's)");
    options.text("--exit-code-file", "FILE", exit_code_file_,
                 "Write the exit code and its origin there as JSON");
    limits_.declare(options);
    machine_.declare(options);
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
    if (detach_ && remove_ && !is_keeper()) return start_keeper(session);
    if (detach_) return start_detached(session);
    return with_exit_code_file(session, exit_code_file_, [&] { return run_once(session); });
  }

 private:
  void check() const {
    if (image_ && image_->empty())
      throw usage_error("the image's name is empty", "'holt images' lists what is there.");
    if (remove_ && keep_) throw usage_error("--rm and --keep exclude each other");
    if (detach_ && remove_ && !has_command() && !image_) throw no_command_to_end();
    if (detach_ && exit_code_file_) throw usage_error("--exit-code-file needs a command that is waited for");
    if (name_) check_machine_name(*name_);
    if (stop_signal_) parse_signal("--stop-signal", *stop_signal_);
  }

  static Error no_command_to_end() {
    return usage_error("-d --rm without a command", "The machine goes when its command ends; there is none.");
  }

  bool has_command() const { return !argv_.empty() || entrypoint_; }
  bool kept() const { return keep_ || (detach_ && !remove_) || (name_ && !remove_); }

  MachineConfig config() const {
    auto config = machine_.config();
    config.name = name_.value_or(new_machine_name());
    config.image = image_.value_or("");
    config.lifetime = kept() ? Lifetime::persistent : Lifetime::ephemeral;
    return config;
  }

  /// The image, which the machine of `config` then is made of.
  image::Image obtain(Session& session, MachineConfig& config) const {
    auto image = obtain_image_of(session, config.image, config.pull, machine_.host(session));
    config.image = image.reference;
    config.pull = image::PullPolicy::missing;
    return image;
  }

  /// The command under the image's entrypoint; the image's own when none was given. May be empty.
  Words command_of(const image::Image& image) const {
    Words argv = image.config.entrypoint;
    if (entrypoint_) argv = {*entrypoint_};
    const auto& rest = has_command() ? argv_ : image.config.cmd;
    argv.insert(argv.end(), rest.begin(), rest.end());
    return argv;
  }

  int stop_signal_of(Session& session, const image::Image& image) const {
    if (stop_signal_) return parse_signal("--stop-signal", *stop_signal_);
    const auto& text = image.config.stop_signal;
    if (text.empty()) return 0;
    if (auto number = signal_number(text)) return *number;
    session.note(fmt::format("warning: '{}', the stop signal of image {}, is none; SIGTERM is used",
                             printable(text, 80), image.reference));
    return 0;
  }

  /// A command that was given; else, where an image was, that image's own.
  Outcome start_detached(Session& session) const {
    auto config = this->config();
    std::optional<GuestPlan> plan;
    auto image = obtain(session, config);
    if (has_command() || image_) plan = this->plan(session, image);
    if (plan && plan->argv.empty()) plan.reset();
    if (!plan && remove_) throw no_command_to_end();
    if (plan) streams_.apply_detached(*plan);
    auto machine = boot(session, config);
    auto info = machine.info();
    Json json{{"machine", machine.name()},
              {"bootMs", milliseconds(info.boot_time)},
              {"accelerator", accelerator_json(info)},
              {"isolation", isolation_json(info)}};
    std::optional<holt::CommandInfo> command;
    if (plan) {
      command = start_in_background(session, machine, *plan);
      if (!command->running && !has_ended_well(*command))
        return follow_command(session, machine, command->id, OutputKind::streamed, SignalProxy::off);
      json["command"] = command_ref(machine, *command);
    }
    if (session.globals.json) {
      session.output.json(json);
    } else {
      session.output.line(machine.name());
    }
    if (is_keeper()) keep_until_end(session, machine, *command);
    return ToolExit{};
  }

  /// An image's shell without input, above all: it is at its end at once, and the machine is there for
  /// others.
  bool has_ended_well(const holt::CommandInfo& command) const {
    return !has_command() && command.result && command.result->exit_code == 0;
  }

  Machine boot(Session& session, const MachineConfig& config) const {
    auto machine = Machine::create(config, session.start_options(), machine_.host(session));
    session.output.clear_progress();
    auto info = machine.info();
    if (info.accelerator) session.warn_of(*info.accelerator);
    return machine;
  }

  GuestPlan plan(Session& session, const image::Image& image) const {
    GuestPlan plan{.argv = command_of(image)};
    plan.options.timeout = timeout_;
    plan.options.limits = limits_.limits();
    plan.options.stop_signal = stop_signal_of(session, image);
    if (max_output_) plan.options.output_limit = *max_output_;
    return plan;
  }

  GuestExit run_once(Session& session) const {
    auto config = this->config();  // first, since a mistake in a flag comes before a missing image
    auto image = obtain(session, config);
    auto plan = this->plan(session, image);
    if (plan.argv.empty()) {
      throw usage_error(fmt::format("no command, and image {} has none of its own", image.reference),
                        "Write one after '--', e.g. holt run -- uname -a");
    }
    streams_.apply(plan, session.globals.json ? OutputKind::captured : OutputKind::streamed);
    auto machine = boot(session, config);
    auto info = machine.info();
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
  StreamFlags streams_;
  LimitFlags limits_;
  std::optional<Duration> timeout_;
  std::optional<std::size_t> max_output_;
  std::optional<std::string> entrypoint_;
  std::optional<std::string> stop_signal_;
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
