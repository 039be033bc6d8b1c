// What the file tools share: their settings, the turns at one file, and the way from a path that a model
// wrote to one they may use. Each tool is a function of these and of a workspace, in a source of its own.
#pragma once

#include "harness/file_system/arguments.hpp"
#include "harness/file_system/globs.hpp"
#include "harness/keyed_lock.hpp"
#include "holt/agent/tool.hpp"
#include "holt/workspace/workspace.hpp"

#include <cstddef>
#include <optional>
#include <string>

namespace holt::file_tools {

/// A larger file is neither read nor edited: its text would have to fit into memory several times.
constexpr std::size_t k_max_file_bytes = std::size_t{64} << 20;

/// Immutable but for the locks; serves any number of runs.
struct Toolbox {
  std::optional<std::string> root_dir = std::nullopt;  ///< none: the working directory
  WriteProtection protection = WriteProtection({});
  std::size_t max_read_chars = 50000;
  mutable KeyedLocks locks;
};

/// A path of a model, looked at twice: as it is written and with its links resolved. Both lie in the root.
struct Target {
  std::string given;          ///< as the model wrote it
  std::string path;           ///< absolute, normalised as text: what the tools open
  std::string real;           ///< absolute, links resolved
  std::string root;           ///< absolute, real
  std::string relative;       ///< `path` below the root, "." for the root itself
  std::string real_relative;  ///< `real` below the root
  std::string display;        ///< `path` as answers show it: below the working directory where it lies there
};

/// Throws ModelRetry for a path outside the root, PathError, InvalidArgument for a NUL.
Task<Target> find_target(const Toolbox& box, Workspace workspace, std::string given);
/// Throws ModelRetry for a path that is write-protected.
void refuse_protected(const Toolbox& box, const Target& target);

/// Awaits a tool's work and turns what the workspace throws into what the model is told: ModelRetry or
/// ToolFailed. An unavailable workspace and errors of the system that no model can mend pass through.
Task<ToolReturn> guard(const Toolbox& box, Workspace workspace, Task<ToolReturn> work);

Task<ToolReturn> read_file(const Toolbox& box, Workspace workspace, ReadFile arguments);
Task<ToolReturn> write_file(const Toolbox& box, Workspace workspace, WriteFile arguments);
Task<ToolReturn> edit_file(const Toolbox& box, Workspace workspace, EditFile arguments);
Task<ToolReturn> list_files(const Toolbox& box, Workspace workspace, ListFiles arguments);
Task<ToolReturn> grep(const Toolbox& box, Workspace workspace, Grep arguments);

/// A tool's answer that is a text.
inline ToolReturn text_answer(std::string text) {
  ToolReturn answer;
  answer.return_value = std::move(text);
  return answer;
}

}  // namespace holt::file_tools
