// Tells an agent what the workspace says about itself: CLAUDE.md and AGENTS.md of the working directory, as
// an instruction. Depends on agent/ and workspace/.
#pragma once

#include "holt/agent/capability.hpp"

#include <optional>
#include <string>

namespace holt {

class RepoContext : public CapabilityBase {
 public:
  std::string id() const override { return "repo_context"; }
  Instructions instructions() const override;
};

/// The instruction's text: a block `<context-file path="...">` for each file; nothing without one. Reads the
/// workspace.
Task<std::optional<std::string>> repo_context_text(Workspace workspace);

}  // namespace holt
