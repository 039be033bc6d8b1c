// Everything that a coding agent needs beside a model and a workspace: guidance, file tools, a shell.
//
//   holt::Agent agent("anthropic:claude-opus-5-5", {.capabilities = {SmolSandbox(), Coder()}});
//
// Depends on agent/, workspace/ and the other headers of harness/.
#pragma once

#include "holt/agent/capability.hpp"

#include <string>
#include <vector>

namespace holt {

struct CoderOptions {
  std::string instructions = {};  ///< added to the guidance, on a line of its own
  enum class Files { project, unrestricted } files = Files::project;  ///< what the file tools reach
  enum class RepositoryContext { read, leave_out } repo_context = RepositoryContext::read;
  enum class Caching { on, off } caching = Caching::on;  ///< asks the provider to cache the prompt
};

/// A run without a workspace fails at its start with a UserError.
class Coder : public CapabilityBase {
 public:
  explicit Coder(CoderOptions options = {}) : options_(std::move(options)) {}

  std::string id() const override { return "coder"; }
  Instructions instructions() const override;
  SettingsSource model_settings() const override;
  std::vector<Capability> parts() const override;
  Task<void> before_run(RunContext& context) const override;
  /// Cuts results of 64,000 characters and more, of any tool.
  Task<ToolValue> after_tool_execute(RunContext& context, ToolCallInfo call, ToolValue result) const override;

 private:
  CoderOptions options_;
};

}  // namespace holt
