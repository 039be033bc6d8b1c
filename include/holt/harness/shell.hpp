// The shell tool of an agent: commands as jobs in the run's workspace.
//
//   holt::Agent agent("anthropic:claude-opus-5-5", {.capabilities = {LocalWorkspace("."), Shell()}});
//
// A job is a process of its own session with a folder `.pydantic-ai-harness/shell/NAME` in the working
// directory: output.log has both outputs, status.json the process id and, once it is known, the exit code. A
// call waits for the job's end or its timeout; the job outlives the call and the run. Events:
// shell.command_started, shell.command_output, shell.command_finished. Depends on agent/ and workspace/.
#pragma once

#include "holt/agent/capability.hpp"

#include <string>
#include <vector>

namespace holt {

class Shell : public CapabilityBase {
 public:
  Shell();

  std::string id() const override { return "shell"; }
  /// Nothing in a workspace without commands, or a read-only one.
  std::vector<Tool> tools(const RunContext& context) const override;

 private:
  std::vector<Tool> tools_;
};

}  // namespace holt
