// Capabilities: what is given to an agent as one thing, such as a workspace, a set of tools with their
// instructions, or a rule that watches every request.
//
//   class Greeting : public holt::CapabilityBase {
//    public:
//     holt::Instructions instructions() const override { return "Greet the user first."; }
//   };
//   holt::Agent agent("test", {.capabilities = {Greeting()}});
//
// A capability is immutable and may serve many runs at once; what one run remembers lives in the object that
// for_run() returns. Hooks named before_* run in list order, all others nest with the first capability
// outermost. All members are called on the run's strand, unless they say otherwise.
// Depends on base/, messages/, models/, workspace/ and agent/tool.hpp.
#pragma once

#include "holt/agent/events.hpp"
#include "holt/agent/inputs.hpp"
#include "holt/agent/tool.hpp"

#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holt {

class CapabilityBase;
class Capability;

/// Where a capability wants to stand. Names are ids of capabilities.
struct CapabilityOrdering {
  enum class Position { listed, outermost, innermost } position = Position::listed;
  std::vector<std::string> wraps = {};         ///< stand in front of these
  std::vector<std::string> wrapped_by = {};    ///< stand behind these
  std::vector<std::string> requires_ids = {};  ///< refuse an agent without these
};

/// A model request before it is sent; hooks may change all of it.
struct ModelRequestContext {
  ModelPtr model;
  MessageHistory& messages;  ///< the run's history; changes stay
  ModelSettings settings;
  ModelRequestParameters parameters;
};
using ModelRequestHandler = std::function<Task<ModelResponse>(ModelRequestContext&)>;

/// From before_model_request: take this response and do not ask the model.
class SkipModelRequest : public Error {
 public:
  explicit SkipModelRequest(ModelResponse response);
  const ModelResponse& response() const { return *response_; }

 private:
  std::shared_ptr<const ModelResponse> response_;
};

/// A call that a hook is asked about.
struct ToolCallInfo {
  const ToolCallPart& call;
  const ToolDefinition& tool;
};
using ToolHandler = std::function<Task<ToolValue>(Json arguments)>;
/// Runs the agent to its output.
using RunHandler = std::function<Task<Json>()>;

class CapabilityBase {
 public:
  virtual ~CapabilityBase();

  /// Two capabilities of one id are combined by combine(); empty: no id, never combined.
  virtual std::string id() const { return {}; }
  virtual std::string description() const { return {}; }
  virtual CapabilityOrdering ordering() const { return {}; }
  /// This capability and `later` of the same id as one; null: refused with a UserError.
  virtual std::shared_ptr<const CapabilityBase> combine(std::shared_ptr<const CapabilityBase> later) const;
  /// Capabilities that this one consists of, in order; it takes part in a run itself, in front of them.
  virtual std::vector<Capability> parts() const;
  /// The instance for one run; null: this one.
  virtual std::shared_ptr<const CapabilityBase> for_run(const RunContext& context) const;

  virtual Instructions instructions() const { return {}; }
  virtual SettingsSource model_settings() const { return {}; }
  /// Asked before every model request.
  virtual std::vector<Tool> tools(const RunContext& context) const;
  /// The model to use instead of `model`, e.g. a wrapper around it.
  virtual ModelPtr wrap_model(const RunContext& context, ModelPtr model) const;

  /// True when get_workspace() may ever answer.
  virtual bool supplies_workspace() const { return false; }
  /// A backend for the ref, or a fresh one when there is none; null: not mine. No I/O.
  virtual WorkspaceBackendPtr get_workspace(const RunContext& context,
                                            const std::optional<WorkspaceRef>& ref) const;

  virtual Task<void> before_run(RunContext& context) const;
  virtual Task<Json> wrap_run(RunContext& context, RunHandler handler) const;
  virtual Task<Json> after_run(RunContext& context, Json output) const;
  /// An output to end the run with in spite of the error; nothing passes the error on.
  virtual Task<std::optional<Json>> on_run_error(RunContext& context, std::exception_ptr error) const;

  /// Which of the tools to offer, and how. Tools may be left out or changed, not added.
  virtual std::vector<ToolDefinition> prepare_tools(const RunContext& context,
                                                    std::vector<ToolDefinition> tools) const;

  virtual Task<void> before_model_request(RunContext& context, ModelRequestContext& request) const;
  virtual Task<ModelResponse> wrap_model_request(RunContext& context, ModelRequestContext& request,
                                                 ModelRequestHandler handler) const;
  /// May throw ModelRetry: the response stays in the history and the model is asked again.
  virtual Task<ModelResponse> after_model_request(RunContext& context, const ModelRequestContext& request,
                                                  ModelResponse response) const;
  /// A response to go on with in spite of the error; nothing passes the error on.
  virtual Task<std::optional<ModelResponse>> on_model_request_error(RunContext& context,
                                                                    const ModelRequestContext& request,
                                                                    std::exception_ptr error) const;

  /// Arguments as they arrived (text, object or null); what it returns is validated instead. Not recorded.
  virtual Task<Json> before_tool_validate(RunContext& context, ToolCallInfo call, Json arguments) const;
  virtual Task<Json> before_tool_execute(RunContext& context, ToolCallInfo call, Json arguments) const;
  virtual Task<ToolValue> wrap_tool_execute(RunContext& context, ToolCallInfo call, Json arguments,
                                            ToolHandler handler) const;
  virtual Task<ToolValue> after_tool_execute(RunContext& context, ToolCallInfo call, ToolValue result) const;
  /// A result in spite of an unexpected error (not ModelRetry and its kin); nothing passes it on.
  virtual Task<std::optional<ToolValue>> on_tool_execute_error(RunContext& context, ToolCallInfo call,
                                                               std::exception_ptr error) const;

  /// True: on_event() is called, and every model request of the run is streamed.
  virtual bool listens_to_events() const { return false; }
  /// One event at a time; on the strand, or on the thread of the tool that tells. What it throws ends the
  /// run.
  virtual void on_event(const RunContext& context, const AgentEvent& event) const;
};

using CapabilityPtr = std::shared_ptr<const CapabilityBase>;

/// A copyable handle on an immutable capability. Thread-safe.
class Capability {
 public:
  template <std::derived_from<CapabilityBase> T>
  Capability(T value) : object_(std::make_shared<const T>(std::move(value))) {}
  /// Throws InvalidArgument for null.
  Capability(CapabilityPtr object);
  template <std::derived_from<CapabilityBase> T>
  Capability(std::shared_ptr<T> object) : Capability(CapabilityPtr(std::move(object))) {}

  const CapabilityBase& operator*() const { return *object_; }
  const CapabilityBase* operator->() const { return object_.get(); }
  const CapabilityPtr& object() const { return object_; }

 private:
  CapabilityPtr object_;
};

}  // namespace holt
