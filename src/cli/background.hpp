// Background commands as the command line names and shows them.
#pragma once

#include "cli/guest_run.hpp"
#include "cli/outcome.hpp"
#include "cli/session.hpp"
#include "holt/base/json.hpp"

#include <string>
#include <string_view>

namespace holt::cli {

/// A background command anywhere on this host, written NAME:ID.
struct CommandRef {
  std::string machine;  ///< name or beginning of one
  std::string id;
};
/// Throws Error USAGE for a text of another form.
CommandRef parse_command_ref(const std::string& flag, const std::string& text);
std::string command_ref(const Machine& machine, const holt::CommandInfo& command);

/// Starts a command that goes on without us. What cannot be found or executed has ended already.
holt::CommandInfo start_in_background(Session& session, const Machine& machine, GuestPlan plan);

/// The number of "TERM", "SIGTERM" or "15". Throws Error USAGE.
int parse_signal(const std::string& flag, const std::string& text);

Json command_json(const Machine& machine, const holt::CommandInfo& command);
/// A table for people, an array with --json.
void print_commands(Session& session, const Machine& machine);
/// The end of a command as that of one that was run. Precondition: it has ended.
GuestExit exit_of(const holt::CommandInfo& command);

}  // namespace holt::cli
