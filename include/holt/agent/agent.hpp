// Agents: a model, what it is told, and the tools it may use, run until it gives an answer.
//
//   holt::Agent agent("anthropic:claude-opus-5-5", {.capabilities = {SmolSandbox(), Coder()}});
//   auto result = agent.run_sync("Write a script that prints the first 10 primes, and run it.");
//   auto again  = agent.run_sync("Now the first 100.", {.message_history = result.all_messages()});
//
// For users of g++ 12: never write braces for an option struct inside an expression that holds co_await; give
// the options a name first, or await in a second statement.
// Depends on base/, messages/, models/ and workspace/.
#pragma once

#include "holt/agent/capability.hpp"
#include "holt/agent/inputs.hpp"
#include "holt/agent/output.hpp"
#include "holt/agent/result.hpp"
#include "holt/agent/run_context.hpp"
#include "holt/agent/tool.hpp"
#include "holt/agent/usage.hpp"
#include "holt/base/cancellation.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holt {

/// What happens to calls of function tools beside a call of an output tool.
enum class EndStrategy {
  early,       ///< the first output that succeeds wins; functions are skipped then
  graceful,    ///< functions run, in order of emission; later outputs are skipped
  exhaustive,  ///< everything runs; the first valid output wins
};

enum class ToolExecution { parallel, sequential };

/// What an agent is made of. All of it optional.
struct AgentOptions {
  std::vector<Capability> capabilities = {};
  Instructions instructions = {};
  std::vector<SystemPrompt> system_prompt = {};
  std::vector<Tool> tools = {};
  std::string name = {};
  std::string description = {};
  SettingsSource model_settings = {};
  Retries retries = {};
  EndStrategy end_strategy = EndStrategy::graceful;
  ToolExecution tool_execution = ToolExecution::parallel;
  std::optional<Seconds> tool_timeout = std::nullopt;  ///< above 0; for tools without their own
  Json metadata = nullptr;                             ///< object or null; ends up on the result
  bool defer_model_check = false;                      ///< look at the model's id in the first run only
};

/// What one run is given beside its prompt. All of it optional; instructions, tools and capabilities are
/// added to the agent's, the model replaces the agent's.
struct RunOptions {
  MessageHistory message_history = {};  ///< continued; the caller's copy is not changed
  ModelChoice model = {};
  Deps deps = {};
  Instructions instructions = {};
  std::vector<Tool> tools = {};
  std::vector<Capability> capabilities = {};
  SettingsSource model_settings = {};
  std::optional<Retries> retries = std::nullopt;
  std::shared_ptr<RunUsage> usage = nullptr;  ///< added to; shared with the runs of sub-agents
  UsageLimits usage_limits = {};
  std::optional<Seconds> timeout = std::nullopt;  ///< of the whole run
  std::optional<CancellationToken> cancellation_token = std::nullopt;
  WorkspaceChoice workspace = {};
  EventHandler event_stream_handler = nullptr;
  std::optional<std::string> conversation_id = std::nullopt;  ///< none: the history's, else a new one; "new"
  std::optional<std::string> run_id = std::nullopt;           ///< none: a new UUID
  Json metadata = nullptr;                                    ///< in place of the agent's
  /// Called once when the run ends, however it ends, before its result or error reaches the caller.
  std::function<void(const RunRecord&)> on_end = nullptr;
};

namespace detail {
struct AgentData;
/// A finished run before its output has a C++ type.
struct RawRun {
  RunRecord record;
  RawOutput output;
};
}  // namespace detail

/// Immutable; a cheap copyable handle. Any number of runs may go on at once, on any executors; nothing of a
/// run is kept here.
class Agent {
 public:
  /// Throws UserError for an unknown model id, a missing key, capabilities of one id that do not combine, two
  /// tools of one name, settings with which no run could end; InvalidArgument for numbers out of range.
  explicit Agent(ModelChoice model, AgentOptions options = {});
  explicit Agent(AgentOptions options);

  /// Runs until the model gives an answer. Throws UserError, UsageLimitExceeded, UnexpectedModelBehavior,
  /// ModelAPIError and its kin, RunCancelled, RunTimedOut, and what tools throw beside their control
  /// exceptions. run_record() of the error has the messages and the usage so far.
  Task<RunResult<>> run(Prompt prompt) const;
  Task<RunResult<>> run(Prompt prompt, RunOptions options) const;
  /// The same on this thread with an event loop of its own. Not to be called from a coroutine.
  RunResult<> run_sync(Prompt prompt, RunOptions options = {}) const;
  RunResult<> run_sync(RunOptions options) const { return run_sync(Prompt(), std::move(options)); }

  /// Runs until the model gives a T: a described struct, a scalar, std::vector, std::map, std::optional,
  /// std::variant (with std::string text is allowed), or these in ToolOutput, NativeOutput, PromptedOutput.
  template <class T>
  Task<RunResult<T>> run(Prompt prompt, RunOptions options) const {
    return typed_run<T>(run_raw(std::move(prompt), std::move(options), output_spec<T>()));
  }
  template <class T>
  Task<RunResult<T>> run(Prompt prompt) const {
    return run<T>(std::move(prompt), RunOptions());
  }
  template <class T>
  RunResult<T> run_sync(Prompt prompt, RunOptions options = {}) const {
    return sync_wait(run<T>(std::move(prompt), std::move(options)));
  }
  /// With a spec of the program's own, e.g. output_spec<T>() with a name, a description or validators added.
  template <class T>
  Task<RunResult<T>> run(Prompt prompt, RunOptions options, OutputSpec spec) const {
    return typed_run<T>(run_raw(std::move(prompt), std::move(options), std::move(spec)));
  }

  const std::string& name() const;
  const std::string& description() const;
  /// The agent's capabilities, those that they consist of included, in order.
  const std::vector<Capability>& capabilities() const;

  Task<detail::RawRun> run_raw(Prompt prompt, RunOptions options, OutputSpec spec) const;
  explicit Agent(std::shared_ptr<const detail::AgentData> data) : data_(std::move(data)) {}

 private:
  template <class T>
  static Task<RunResult<T>> typed_run(Task<detail::RawRun> pending) {
    detail::RawRun raw = co_await std::move(pending);
    co_return RunResult<T>(std::move(raw.record), detail::OutputOf<T>::value(raw.output));
  }
  std::shared_ptr<const detail::AgentData> data_;
};

}  // namespace holt
