// A folder of this host as the workspace of an agent. It isolates nothing.
//
//   holt::Agent agent("anthropic:claude-sonnet-4-5", {.capabilities = {LocalWorkspace("~/project")}});
//
// Depends on agent/capability.hpp and workspace/local.hpp.
#pragma once

#include "holt/agent/capability.hpp"

#include <map>
#include <string>

namespace holt {

struct LocalWorkspaceSettings {
  bool read_only = false;
  std::map<std::string, std::string> env = {};  ///< of every command
  std::string id = "local_workspace";           ///< of two with one id the later counts, whole
};

/// Answers for its own folder's ref only, so that a history cannot move the agent to another folder.
class LocalWorkspace : public CapabilityBase {
 public:
  /// `~` at the front is the home directory; a relative path starts at the process's directory now.
  explicit LocalWorkspace(const std::string& working_dir, LocalWorkspaceSettings settings = {});

  std::string id() const override { return settings_.id; }
  CapabilityPtr combine(CapabilityPtr later) const override { return later; }
  bool supplies_workspace() const override { return true; }
  WorkspaceBackendPtr get_workspace(const RunContext& context,
                                    const std::optional<WorkspaceRef>& ref) const override;

 private:
  std::string working_dir_;
  LocalWorkspaceSettings settings_;
};

}  // namespace holt
