// Policies around a workspace, and the stand-in for a missing one.
//
//   auto looked_at = holt::Workspace(std::make_shared<holt::ReadOnlyWorkspace>(result.workspace()));
//
// Depends on workspace/workspace.hpp.
#pragma once

#include "holt/workspace/workspace.hpp"

namespace holt {

/// Base of policies: hands everything on to the workspace it wraps. Override what the policy changes.
class WrapperWorkspace : public WorkspaceBackend,
                         public SupportsCommands,
                         public SupportsFilesystem,
                         public SupportsRealpath {
 public:
  explicit WrapperWorkspace(Workspace wrapped) : wrapped_(std::move(wrapped)) {}

  /// The next layer.
  const Workspace& wrapped() const { return wrapped_; }

  std::optional<WorkspaceRef> ref() const override;
  Task<std::string> working_dir() override;
  SupportsCommands* commands() override;
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
  Workspace wrapped_;
};

/// Refuses commands and changes with WorkspaceReadOnlyError; reading goes through. A policy, no isolation.
class ReadOnlyWorkspace : public WrapperWorkspace {
 public:
  using WrapperWorkspace::WrapperWorkspace;
  Task<CommandResult> run(WorkspaceCommand command, CommandOptions options) override;
  Task<void> write_bytes(std::string path, std::string data) override;
  Task<void> make_dir(std::string path) override;
  Task<void> remove(std::string path) override;
};

/// Stands where a workspace should be: run() and working_dir() throw WorkspaceUnavailableError(reason).
class UnavailableWorkspace : public WorkspaceBackend, public SupportsCommands {
 public:
  explicit UnavailableWorkspace(std::string reason) : reason_(std::move(reason)) {}
  const std::string& reason() const { return reason_; }

  std::optional<WorkspaceRef> ref() const override { return std::nullopt; }
  Task<std::string> working_dir() override;
  Task<CommandResult> run(WorkspaceCommand command, CommandOptions options) override;

 private:
  std::string reason_;
};

}  // namespace holt
