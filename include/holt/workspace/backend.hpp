// The interfaces that an environment offers to the tools of an agent.
//
//   class MyBackend : public holt::WorkspaceBackend, public holt::SupportsCommands {
//     std::optional<holt::WorkspaceRef> ref() const override { return {{"mine", id_}}; }
//     holt::Task<std::string> working_dir() override;
//     holt::Task<holt::CommandResult> run(holt::WorkspaceCommand, holt::CommandOptions) override;
//   };
//
// A backend has commands, files or both; with commands alone, files are worked on by shell commands. The
// interfaces never gain members: a new operation gets an interface of its own. The rules a backend keeps are
// those of docs/workspaces.md; tests/workspace/conformance.hpp checks them.
// Depends on base/ and messages/ only.
#pragma once

#include "holt/base/deadline.hpp"
#include "holt/base/task.hpp"
#include "holt/messages/values.hpp"
#include "holt/workspace/errors.hpp"

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace holt {

/// What to run: a program with its arguments, each passed byte for byte, or a script of /bin/sh.
class WorkspaceCommand {
 public:
  /// A program, found on the workspace's PATH, and its arguments.
  WorkspaceCommand(std::vector<std::string> argv) : form_(std::move(argv)) {}
  WorkspaceCommand(std::initializer_list<std::string> argv) : form_(std::vector<std::string>(argv)) {}
  static WorkspaceCommand shell(std::string script) { return WorkspaceCommand(Script{std::move(script)}); }

  bool is_shell() const { return std::holds_alternative<Script>(form_); }
  /// Precondition: is_shell().
  const std::string& script() const { return std::get<Script>(form_).text; }
  /// The program and its arguments; {"/bin/sh", "-c", script} for a script.
  std::vector<std::string> argv() const;

 private:
  struct Script {
    std::string text;
  };
  explicit WorkspaceCommand(Script script) : form_(std::move(script)) {}
  std::variant<std::vector<std::string>, Script> form_;
};

struct CommandOptions {
  std::map<std::string, std::string> env = {};     ///< over the environment of the workspace
  std::optional<Duration> timeout = std::nullopt;  ///< above zero; none: no limit
};

/// How a command ended. Text: bytes that are not UTF-8 have become U+FFFD.
struct CommandResult {
  int exit_code = 0;  ///< 0-255; 128 + N after signal N, 127 no such program, 126 not executable
  std::string out = {};
  std::string err = {};
};

/// A name in a directory, or what stat says of a path. Links are followed.
struct FileEntry {
  std::string name = {};
  std::string path = {};  ///< absolute
  bool is_dir = false;
  std::optional<std::uint64_t> size = std::nullopt;  ///< bytes; none for directories and where unknown
  bool operator==(const FileEntry&) const = default;
};

/// Commands of an environment.
class SupportsCommands {
 public:
  /// Runs a command to its end in working_dir(), with its input at end of file. The whole output or an error.
  /// Throws WorkspaceTimeoutError, WorkspaceOutputLimitError, WorkspaceUnavailableError; InvalidArgument for
  /// a timeout not above zero, an empty argv or a NUL. Cancelling the await stops the command's processes.
  virtual Task<CommandResult> run(WorkspaceCommand command, CommandOptions options) = 0;

 protected:
  ~SupportsCommands() = default;
};

/// Files of an environment. Paths are absolute (InvalidArgument otherwise); all throw PathError.
class SupportsFilesystem {
 public:
  virtual Task<std::string> read_bytes(std::string path) = 0;
  /// Makes missing parents, replaces the content, writes through a symbolic link.
  virtual Task<void> write_bytes(std::string path, std::string data) = 0;
  virtual Task<FileEntry> stat(std::string path) = 0;
  /// Sorted by path, not recursive. A dangling link is a non-directory without size.
  virtual Task<std::vector<FileEntry>> list_dir(std::string path) = 0;
  /// With parents; quiet when the directory is there.
  virtual Task<void> make_dir(std::string path) = 0;
  /// A file, a tree, or a link itself. InvalidArgument for working_dir() and what is above it.
  virtual Task<void> remove(std::string path) = 0;
  virtual Task<bool> exists(std::string path) = 0;

 protected:
  ~SupportsFilesystem() = default;
};

/// Resolution of symbolic links, as realpath(1) -m does it.
class SupportsRealpath {
 public:
  /// Absolute and normalised; missing components are kept as they are. Throws PathError for a loop.
  virtual Task<std::string> realpath(std::string path) = 0;

 protected:
  ~SupportsRealpath() = default;
};

/// One environment: a directory, a container, a machine. Constructing a backend does no I/O; without a ref
/// the first operation creates the environment, and it outlives the backend. Any number of coroutines may use
/// a backend at once, on any executor.
class WorkspaceBackend {
 public:
  virtual ~WorkspaceBackend() = default;
  WorkspaceBackend(const WorkspaceBackend&) = delete;
  WorkspaceBackend& operator=(const WorkspaceBackend&) = delete;

  /// The environment's name; none until there is one, then the same for good. Callable from any thread.
  virtual std::optional<WorkspaceRef> ref() const = 0;
  /// Where commands start: absolute, links resolved.
  virtual Task<std::string> working_dir() = 0;

  /// The optional interfaces of this object, null where it has none. By default what the class derives from;
  /// a wrapper answers for what it wraps.
  virtual SupportsCommands* commands();
  virtual SupportsFilesystem* filesystem();
  virtual SupportsRealpath* realpaths();

 protected:
  WorkspaceBackend() = default;
};

using WorkspaceBackendPtr = std::shared_ptr<WorkspaceBackend>;

}  // namespace holt
