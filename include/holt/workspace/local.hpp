// A directory of this host as a workspace. It isolates nothing.
//
//   holt::Workspace workspace = holt::make_local_workspace("~/project", {.env = {{"CI", "1"}}});
//
// Depends on workspace/workspace.hpp.
#pragma once

#include "holt/workspace/workspace.hpp"

#include <map>
#include <memory>
#include <string>

namespace holt {

struct LocalWorkspaceOptions {
  std::map<std::string, std::string> env = {};  ///< of every command, over PATH, HOME, LANG and LC_* of ours
};

/// Commands and files in a directory that must be there before the first operation; the backend never makes
/// or removes it. Its ref is ("local", absolute directory) from construction on.
class LocalWorkspaceBackend final : public WorkspaceBackend,
                                    public SupportsCommands,
                                    public SupportsFilesystem,
                                    public SupportsRealpath {
 public:
  /// `~` at the front is the home directory; a relative path starts at the process's directory now. Throws
  /// InvalidArgument for a NUL in it or in `env`, an empty variable name or one with '='.
  explicit LocalWorkspaceBackend(const std::string& working_dir, LocalWorkspaceOptions options = {});
  ~LocalWorkspaceBackend() override;

  std::optional<WorkspaceRef> ref() const override;
  Task<std::string> working_dir() override;
  /// At most 10 MiB of output, both streams together.
  Task<CommandResult> run(WorkspaceCommand command, CommandOptions options) override;
  Task<std::string> read_bytes(std::string path) override;
  Task<void> write_bytes(std::string path, std::string data) override;
  Task<FileEntry> stat(std::string path) override;
  Task<std::vector<FileEntry>> list_dir(std::string path) override;
  Task<void> make_dir(std::string path) override;
  Task<void> remove(std::string path) override;
  Task<bool> exists(std::string path) override;
  Task<std::string> realpath(std::string path) override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

Workspace make_local_workspace(const std::string& working_dir, LocalWorkspaceOptions options = {});

}  // namespace holt
