// All verbs.
#pragma once

#include "cli/command.hpp"

namespace holt::cli {

/// In the order in which help shows them.
Commands make_commands();

std::unique_ptr<Command> make_run();
std::unique_ptr<Command> make_create();
std::unique_ptr<Command> make_start();
std::unique_ptr<Command> make_exec();
std::unique_ptr<Command> make_shell();
std::unique_ptr<Command> make_cp();
std::unique_ptr<Command> make_ls();
std::unique_ptr<Command> make_inspect();
std::unique_ptr<Command> make_logs();
std::unique_ptr<Command> make_stop();
std::unique_ptr<Command> make_rm();
std::unique_ptr<Command> make_pause();
std::unique_ptr<Command> make_suspend();
std::unique_ptr<Command> make_resume();
std::unique_ptr<Command> make_stats();
std::unique_ptr<Command> make_events();
std::unique_ptr<Command> make_wait();
std::unique_ptr<Command> make_update();
std::unique_ptr<Command> make_prune();
/// What 'start --attach' does behind the start: the console, until the machine ends.
Outcome follow_console(Session& session, const std::string& name);
std::unique_ptr<Command> make_image_ls();
std::unique_ptr<Command> make_image_inspect();
std::unique_ptr<Command> make_image_import();
std::unique_ptr<Command> make_image_rm();
std::unique_ptr<Command> make_image_export();
std::unique_ptr<Command> make_image_prune();
std::unique_ptr<Command> make_image_verify();
std::unique_ptr<Command> make_image_build_default();
std::unique_ptr<Command> make_pull();
std::unique_ptr<Command> make_build();
std::unique_ptr<Command> make_agent_run();
std::unique_ptr<Command> make_dev_replay();
std::unique_ptr<Command> make_doctor();
std::unique_ptr<Command> make_version();
std::unique_ptr<Command> make_help();
std::unique_ptr<Command> make_completion();
std::unique_ptr<Command> make_dev_man();
/// What completion scripts ask, not for people: `holt __complete WORD...`.
std::unique_ptr<Command> make_complete();
/// The verbs of the published grammar that this version refuses.
void add_later_verbs(Commands& commands);

}  // namespace holt::cli
