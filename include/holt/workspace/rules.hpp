// What every backend that runs commands or holds files checks and bounds in the same way.
//
// Depends on base/ and workspace/backend.hpp. Pure functions; thread-safe.
#pragma once

#include "holt/workspace/backend.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace holt {

/// Bytes that a command may write, both outputs together.
inline constexpr std::size_t k_max_command_output = std::size_t{10} << 20;
/// Bytes of each output that a WorkspaceOutputLimitError keeps.
inline constexpr std::size_t k_output_preview = 65536;

/// Throws InvalidArgument for an empty command or a NUL in it, PathError E2BIG for an argument that Linux
/// does not take (MAX_ARG_STRLEN, execve(2)).
void check_command(const WorkspaceCommand& command);
/// Throws InvalidArgument for a timeout that is not above zero.
void check_timeout(const CommandOptions& options);
/// Throws InvalidArgument for an empty name, a '=' or NUL in a name, a NUL in a value.
void check_environment(const std::map<std::string, std::string>& env);
/// Throws InvalidArgument for a path that is not absolute or holds a NUL.
void check_backend_path(const std::string& path);
/// A duration in seconds with as few digits as tell it: 0.5, 30.
std::string seconds_text(Duration duration);

}  // namespace holt
