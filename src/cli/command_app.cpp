#include "cli/command_app.hpp"

#include <string>

#include <fmt/format.h>

namespace holt::cli {
namespace {

/// Declares the global flags. Behind the verb the verb's own short names come first.
void declare_globals(CLI::App& app, GlobalOptions& globals, Options::Environment environment) {
  Options options(app, environment);
  auto free = [&](const std::string& short_name, const std::string& long_name) {
    bool taken = app.get_option_no_throw(short_name) != nullptr;
    return taken ? long_name : short_name + "," + long_name;
  };
  auto is_free = [&](const std::string& name) { return app.get_option_no_throw(name) == nullptr; };
  if (is_free("--json")) options.flag("--json", globals.json, "Print one JSON document, errors too");
  if (is_free("--format"))
    options.text("--format", "TEMPLATE", globals.format, "Print '{{.key}}' of each (listing verbs)");
  if (is_free("--quiet"))
    options.flag(free("-q", "--quiet"), globals.quiet, "No progress, notes and warnings");
  options.count(free("-v", "--verbose"), globals.verbose, "Log more on standard error (repeat it)");
  options.flag("--no-input", globals.no_input, "Never ask");
  options.text("--color", "auto|always|never", globals.color, "Colours; NO_COLOR is respected");
  options.text("--home", "DIR", globals.home, "Keep everything below DIR instead of the XDG folders");
  options.later_value("--host", "a remote holt");
  options.later_value("--config", "config.toml");
  for (auto* option : app.get_options()) {
    bool global = option->get_group() == "Options";
    if (global && environment == Options::Environment::ignored) option->group(std::string(k_global_group));
  }
}

}  // namespace

std::unique_ptr<CLI::App> global_app(GlobalOptions& globals) {
  auto app = std::make_unique<CLI::App>("", "holt");
  app->set_help_flag("-h,--help", "Help");
  app->add_flag_callback("--version", [] {}, "Version");
  declare_globals(*app, globals, Options::Environment::used);
  return app;
}

std::unique_ptr<CLI::App> command_app(Command& command, GlobalOptions& globals) {
  auto info = command.info();
  auto app = std::make_unique<CLI::App>("", fmt::format("holt {}", info.name));
  app->set_help_flag();
  Options options(*app, Options::Environment::used);
  command.declare(options);
  std::vector<CLI::Option*> own = app->get_options();
  for (auto* option : own) {
    if (option->get_group() == "Options") option->group(std::string(k_own_group));
  }
  declare_globals(*app, globals, Options::Environment::ignored);
  app->set_help_flag("-h,--help", "This help")->group(std::string(k_global_group));
  return app;
}

}  // namespace holt::cli
