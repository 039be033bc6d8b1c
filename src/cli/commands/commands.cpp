#include "cli/commands/commands.hpp"

namespace holt::cli {

Commands make_commands() {
  Commands commands;
  for (auto make : {make_run,          make_create,
                    make_start,        make_exec,
                    make_shell,        make_cp,
                    make_ls,           make_inspect,
                    make_logs,         make_stop,
                    make_rm,           make_pause,
                    make_suspend,      make_resume,
                    make_update,       make_wait,
                    make_stats,        make_events,
                    make_prune,        make_pull,
                    make_image_ls,     make_image_inspect,
                    make_image_import, make_image_export,
                    make_image_rm,     make_image_prune,
                    make_image_verify, make_image_build_default,
                    make_build,        make_agent_run,
                    make_dev_replay,   make_doctor,
                    make_version,      make_help,
                    make_completion,   make_dev_man,
                    make_complete}) {
    commands.push_back(make());
  }
  add_later_verbs(commands);
  return commands;
}

}  // namespace holt::cli
