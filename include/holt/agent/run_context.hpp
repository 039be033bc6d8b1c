// What a tool, a hook or an instruction sees of the run it is part of.
//
//   holt::tool("whoami", "...", [](holt::RunContext& ctx) { return ctx.deps<User>().name; });
//
// Depends on base/, messages/, models/, workspace/ and agent/.
#pragma once

#include "holt/agent/events.hpp"
#include "holt/agent/inputs.hpp"
#include "holt/agent/usage.hpp"
#include "holt/base/cancellation.hpp"
#include "holt/base/error.hpp"

#include <memory>
#include <optional>
#include <string>
#include <typeindex>

namespace holt {

class Agent;
namespace detail {
class RunState;
}

/// A view of one run, and of one tool call in it. Valid while the run lasts. Reading is safe from a tool's
/// own thread while that call runs; cancel() and emit() from any thread.
class RunContext {
 public:
  /// The object given as `deps`. Throws UserError when there is none or it is of another type than T.
  template <class T>
  T& deps() const {
    return *static_cast<T*>(deps_object(typeid(T)));
  }

  const std::string& run_id() const;
  const std::string& conversation_id() const;
  /// Model requests so far, the one being made included.
  int run_step() const;
  /// The messages of the run so far, the history that it continues included.
  const MessageHistory& messages() const;
  const std::optional<UserContent>& prompt() const;
  const std::shared_ptr<RunUsage>& usage() const;
  const UsageLimits& usage_limits() const;
  const Json& metadata() const;
  const ModelPtr& model() const;
  /// The settings of the step, as far as they are merged.
  const ModelSettings& model_settings() const;
  /// The agent that runs.
  const Agent& agent() const;
  /// The run's workspace; without one every operation throws WorkspaceUnavailableError.
  const Workspace& workspace() const;
  const Deps& raw_deps() const;

  // Of a tool call; empty elsewhere.
  const std::string& tool_call_id() const { return call_.id; }
  const std::string& tool_name() const { return call_.name; }
  bool tool_call_approved() const { return call_.approved; }
  /// Failed tries of this tool in a row so far.
  int retry() const { return call_.retry; }
  int max_retries() const { return call_.max_retries; }
  /// True when one more failure ends the run.
  bool last_attempt() const { return call_.retry >= call_.max_retries; }

  /// Ends the run with RunCancelled. From any thread.
  void cancel() const;
  /// Cancelled when this call is: by its timeout, or with the run.
  const CancellationToken& cancellation() const { return call_.cancellation; }
  /// Tells the listeners of the run. From any thread; returns when all have been told.
  void emit(CustomEvent event) const;

  /// What belongs to one tool call.
  struct Call {
    std::string id = {};
    std::string name = {};
    bool approved = false;
    int retry = 0;
    int max_retries = 0;
    CancellationToken cancellation = {};
  };
  RunContext(std::shared_ptr<detail::RunState> run, Call call)
      : run_(std::move(run)), call_(std::move(call)) {}
  const Call& call() const { return call_; }
  const std::shared_ptr<detail::RunState>& state() const { return run_; }

 private:
  void* deps_object(std::type_index type) const;
  std::shared_ptr<detail::RunState> run_;
  Call call_;
};

}  // namespace holt
