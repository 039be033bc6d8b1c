// The workspace as tools see it: a backend plus path resolution, text helpers, and file operations by shell
// commands where the backend has no files of its own.
//
//   holt::Workspace workspace = holt::make_local_workspace("/home/me/project");
//   co_await workspace.write_text("notes.md", "hello");
//   auto result = co_await workspace.run({"ls", "-l"});
//   auto python = workspace.run_sync({"python3", "notes.py"}, {.timeout = 10s});
//
// A Workspace is a handle: copies are the same workspace. Any number of coroutines and threads may use it.
// Every operation that returns a Task has a twin that blocks, with `_sync` behind its name; not to be called
// from a coroutine. Depends on base/ and messages/ only.
#pragma once

#include "holt/workspace/backend.hpp"

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holt {

/// See above. Paths may be relative: they start at working_dir().
class Workspace {
 public:
  /// No workspace: every operation throws WorkspaceUnavailableError.
  Workspace();
  /// Throws InvalidArgument for null.
  Workspace(WorkspaceBackendPtr backend);
  template <std::derived_from<WorkspaceBackend> T>
  Workspace(std::shared_ptr<T> backend) : Workspace(WorkspaceBackendPtr(std::move(backend))) {}

  /// The backend under all wrappers.
  WorkspaceBackendPtr backend() const;
  /// The outermost backend, wrappers included: what this was made of.
  const WorkspaceBackendPtr& top() const { return top_; }

  std::optional<WorkspaceRef> ref() const { return top_->ref(); }
  /// False when there is no workspace, or an UnavailableWorkspace, at the bottom.
  bool attached() const;
  /// True when this is the placeholder of the default constructor, and not one a caller passed on purpose.
  bool is_placeholder() const;
  /// True when a ReadOnlyWorkspace is in the chain. Tools leave out what it would refuse.
  bool read_only() const;
  bool has_commands() const { return top_->commands() != nullptr; }

  /// As SupportsCommands::run. Throws UserError when the backend has no commands.
  Task<CommandResult> run(WorkspaceCommand command) const;
  Task<CommandResult> run(WorkspaceCommand command, CommandOptions options) const;
  Task<std::string> working_dir() const { return top_->working_dir(); }

  /// `path` below `base` (below working_dir() when there is none), normalised as text: ".." may leave the
  /// base. An absolute path ignores the base and does no I/O. Throws InvalidArgument for a relative base.
  Task<std::string> resolve(std::string path, std::optional<std::string> base = std::nullopt) const;
  /// As SupportsRealpath; a relative path is joined, not normalised, so `link/..` climbs from the link's
  /// target.
  Task<std::string> realpath(std::string path) const;

  // As SupportsFilesystem, after resolve(). UserError when the backend has neither files nor commands.
  Task<std::string> read_bytes(std::string path) const;
  Task<void> write_bytes(std::string path, std::string data) const;
  Task<FileEntry> stat(std::string path) const;
  Task<std::vector<FileEntry>> list_dir(std::string path) const;
  Task<void> make_dir(std::string path) const;
  Task<void> remove(std::string path) const;
  Task<bool> exists(std::string path) const;
  /// Throws WorkspaceError for bytes that are not UTF-8, naming the first.
  Task<std::string> read_text(std::string path) const;
  Task<void> write_text(std::string path, std::string text) const;

  CommandResult run_sync(WorkspaceCommand command, CommandOptions options = {}) const;
  std::string working_dir_sync() const;
  std::string realpath_sync(std::string path) const;
  std::string read_bytes_sync(std::string path) const;
  void write_bytes_sync(std::string path, std::string data) const;
  FileEntry stat_sync(std::string path) const;
  std::vector<FileEntry> list_dir_sync(std::string path) const;
  void make_dir_sync(std::string path) const;
  void remove_sync(std::string path) const;
  bool exists_sync(std::string path) const;
  std::string read_text_sync(std::string path) const;
  void write_text_sync(std::string path, std::string text) const;

 private:
  WorkspaceBackendPtr top_;
};

/// Normalises a POSIX path as text: no "//", ".", and ".." where it can go up. Never touches a file system.
std::string normalize_path(std::string_view path);
/// `relative` behind `base`, unless it is absolute itself. Not normalised.
std::string join_path(std::string_view base, std::string_view relative);
/// True when `path` is `directory` or lies below it. Both absolute and normalised.
bool is_below(std::string_view path, std::string_view directory);

}  // namespace holt
