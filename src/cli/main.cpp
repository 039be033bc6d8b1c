// holt: wires streams, signals and verbs, runs one verb, turns its end into an exit code.
#include "cli/commands/commands.hpp"
#include "cli/errors.hpp"
#include "cli/interrupts.hpp"
#include "cli/parser.hpp"
#include "cli/version.hpp"
#include "holt/base/log.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace holt;
using namespace holt::cli;

void apply(const GlobalOptions& globals, Output& output) {
  if (globals.home) ::setenv("HOLT_HOME", globals.home->c_str(), 1);
  if (globals.color == "always") output.set_color(ColorChoice::always);
  if (globals.color == "never") output.set_color(ColorChoice::never);
  if (globals.verbose > 0) set_log_level(globals.verbose > 1 ? "debug" : "info");
}

/// Mistakes in argv end with 2 whatever the verb, since nothing was started.
struct ArgvError {
  Error error;
};

Parsed parse_argv(const std::vector<std::string>& argv, const Commands& commands, GlobalOptions& globals) {
  try {
    return parse(argv, commands, globals);
  } catch (const Error& error) {
    throw ArgvError{error};
  }
}

Outcome run(const std::vector<std::string>& argv, const Commands& commands, Output& output,
            Interrupts& interrupts) {
  Session session(output, interrupts);
  auto parsed = parse_argv(argv, commands, session.globals);
  apply(session.globals, output);
  switch (parsed.kind) {
    case Parsed::Kind::help:
      output.out(help_of(parsed, commands));
      return ToolExit{};
    case Parsed::Kind::version:
      if (session.globals.json) return make_version()->run(session);
      output.line("holt " + version());
      return ToolExit{};
    case Parsed::Kind::run:
      break;
  }
  return parsed.command->run(session);
}

/// The exit code of a failed verb (docs/reference.md, "Exit codes").
int code_of(const Error& error, const Command* command, const Interrupts& interrupts) {
  if (auto signal = interrupts.signal()) return 128 + *signal;
  if (error.code() == ErrorCode::usage) return k_exit_usage;
  if (const auto* coded = dynamic_cast<const CodedError*>(&error)) return coded->exit_code();
  return command != nullptr ? command->info().failure_code : k_exit_failed;
}

int run_program(const std::vector<std::string>& argv) {
  Interrupts interrupts;
  Output output;
  auto commands = make_commands();
  auto show = [&](const Error& error) {
    output.clear_progress();
    bool json = asks_for_json(argv, commands);
    if (interrupts.signal() && !json) {
      output.note("interrupted");
    } else {
      show_error(output, with_help_hint(error, named_command(argv, commands)),
                 json ? ErrorStyle::json : ErrorStyle::text);
    }
  };
  interrupts.set_last_words([&output, json = asks_for_json(argv, commands)] {
    auto document = dump_json(error_json(Error(ErrorCode::cancelled, "The operation was cancelled"))) + "\n";
    output.last_words(json ? document : "", json ? document : "holt: interrupted\n");
  });
  auto fail = [&](const Error& error) {
    show(error);
    return code_of(error, named_command(argv, commands), interrupts);
  };
  try {
    auto outcome = run(argv, commands, output, interrupts);
    output.clear_progress();
    return exit_code(outcome);
  } catch (const BrokenPipe&) {
    return k_exit_broken_pipe;
  } catch (const ArgvError& mistake) {
    show(mistake.error);
    return k_exit_usage;
  } catch (const Error& error) {
    return fail(error);
  } catch (const std::exception& error) {
    return fail(Error(ErrorCode::internal, std::string("Unexpected failure: ") + error.what(),
                      {.hint = "This is a fault of holt; please report it."}));
  }
}

/// Whatever the umask says, what holt makes stays open to its own user.
void keep_own_files_open() {
  auto mask = ::umask(0);
  ::umask(mask & (S_IRWXG | S_IRWXO));
}

}  // namespace

int main(int argc, char** argv) {
  secure_standard_descriptors();
  keep_own_files_open();
  return run_program(std::vector<std::string>(argv + 1, argv + argc));
}
