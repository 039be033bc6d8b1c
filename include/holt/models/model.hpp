// A language model behind an API: messages and tool definitions in, one response out, whole or streamed.
//
//   auto model = holt::make_model("anthropic:claude-sonnet-4-5");
//   auto response = holt::sync_wait(model->request(messages, settings, parameters));
//
// Depends on base/ and messages/. A Model is immutable after construction and may serve many runs at once.
#pragma once

#include "holt/base/json.hpp"
#include "holt/base/task.hpp"
#include "holt/messages/message.hpp"
#include "holt/models/profile.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace holt {

enum class ToolKind { function, output, external, unapproved };

/// A tool as it is offered to a model.
struct ToolDefinition {
  std::string name;
  std::optional<std::string> description = std::nullopt;
  Json parameters_json_schema = Json::object();
  std::optional<bool> strict = std::nullopt;  ///< none: decided by the schema
  bool sequential = false;
  ToolKind kind = ToolKind::function;
  Json metadata = nullptr;
  std::optional<double> timeout = std::nullopt;         ///< seconds
  std::optional<std::string> tool_kind = std::nullopt;  ///< recorded in calls and results
  std::optional<std::string> outer_typed_dict_key = std::nullopt;
};

/// The schema of structured text output.
struct OutputObjectDefinition {
  std::string name;
  std::optional<std::string> description = std::nullopt;
  Json json_schema = Json::object();
  std::optional<bool> strict = std::nullopt;
};

enum class OutputMode { text, tool, native, prompted, automatic, image };

struct InstructionPart {
  std::string content;
  bool dynamic = false;
  std::optional<std::string> id = std::nullopt;
};

/// What a request offers and expects, beside messages and settings.
struct ModelRequestParameters {
  std::vector<ToolDefinition> function_tools = {};
  std::vector<ToolDefinition> output_tools = {};
  OutputMode output_mode = OutputMode::text;
  bool allow_text_output = true;
  bool allow_image_output = false;
  std::optional<OutputObjectDefinition> output_object = std::nullopt;
  std::optional<std::string> prompted_output_template = std::nullopt;
  std::optional<std::vector<InstructionPart>> instruction_parts = std::nullopt;
};

/// Settings of a request: an object with the keys of docs/reference.md ("Model settings"). Unknown keys are
/// kept.
using ModelSettings = Json;
/// Both, `later` winning key by key.
ModelSettings merge_settings(ModelSettings earlier, const ModelSettings& later);

/// One event of a streamed response, as it happens; event_to_json() gives its JSON form (`event_kind`).
struct PartStartEvent {
  std::size_t index = 0;
  ResponsePart part;
  std::optional<std::string> previous_part_kind = std::nullopt;
};
struct TextDelta {
  std::string content_delta;
  std::optional<std::string> provider_name = std::nullopt;
  Json provider_details = nullptr;
};
struct ThinkingDelta {
  std::optional<std::string> content_delta = std::nullopt;
  std::optional<std::string> signature_delta = std::nullopt;
  std::optional<std::string> provider_name = std::nullopt;
  Json provider_details = nullptr;
};
struct ToolCallDelta {
  std::optional<std::string> tool_name_delta = std::nullopt;
  Json args_delta = nullptr;  ///< text or object or null
  std::optional<std::string> tool_call_id = std::nullopt;
  std::optional<std::string> provider_name = std::nullopt;
  Json provider_details = nullptr;
};
struct PartDeltaEvent {
  std::size_t index = 0;
  std::variant<TextDelta, ThinkingDelta, ToolCallDelta> delta;
};
struct PartEndEvent {
  std::size_t index = 0;
  ResponsePart part;
  std::optional<std::string> next_part_kind = std::nullopt;
};
/// An output has begun: the first text where text is an output, or the first output or deferred tool call.
struct FinalResultEvent {
  std::optional<std::string> tool_name = std::nullopt;
  std::optional<std::string> tool_call_id = std::nullopt;
};
using ModelStreamEvent = std::variant<PartStartEvent, PartDeltaEvent, PartEndEvent, FinalResultEvent>;
Json event_to_json(const ModelStreamEvent& event);

/// A streamed response while it arrives. The caller owns it, so the parts so far are there after a failure
/// too.
struct StreamedResponse {
  /// Called for each event, on the awaiter's executor. May throw to stop the stream.
  std::function<void(const ModelStreamEvent&)> on_event = {};
  /// The response so far: state `incomplete` while streaming, `complete` (or `suspended`) after a normal end,
  /// `interrupted` after an error or a cancellation.
  ModelResponse response = {};
};

class Model {
 public:
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  virtual std::string model_name() const = 0;
  /// "anthropic", "test", ...; empty when the model has no provider.
  virtual std::string provider_name() const = 0;
  virtual const ModelProfile& profile() const = 0;
  /// Settings of the model itself, the lowest layer of the merge. Requests merge them in themselves.
  virtual const ModelSettings& settings() const = 0;

  /// Messages as this model's mapping wants them (prepare_messages() of models/prepare.hpp with its profile),
  /// made from a repaired history. The agent calls it before request() and request_stream().
  virtual MessageHistory prepare(MessageHistory messages, const ModelRequestParameters& parameters) const;

  /// Parameters as this model takes them with these settings: output mode `automatic` becomes what the model
  /// does best, and `allow_text_output` says what that leaves open. request() and request_stream() do it
  /// themselves; the agent calls it to know which mode it gets. Changes nothing the second time.
  virtual ModelRequestParameters resolve(ModelRequestParameters parameters,
                                         const ModelSettings& settings) const;

  /// Sends prepared messages and waits for the whole response. Throws ModelAPIError and its kin,
  /// UnexpectedModelBehavior, UserError; Error CANCELLED when the awaiting coroutine is cancelled.
  virtual Task<ModelResponse> request(MessageHistory messages, ModelSettings settings,
                                      ModelRequestParameters parameters) = 0;
  /// The same, streamed into `stream`. After an error stream.response holds what came so far.
  virtual Task<void> request_stream(MessageHistory messages, ModelSettings settings,
                                    ModelRequestParameters parameters, StreamedResponse& stream) = 0;

 protected:
  Model() = default;
};

using ModelPtr = std::shared_ptr<Model>;

/// The model of an id "PROVIDER:NAME" ("anthropic:claude-sonnet-4-5", "test"), keys and base URLs from the
/// environment. Throws UserError: unknown provider (with a near match), missing key, a provider that this
/// version does not speak to.
ModelPtr make_model(const std::string& id);
/// The same with variables looked up by `environment`.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;
ModelPtr make_model(const std::string& id, const EnvironmentLookup& environment);

/// PROVIDER and NAME of an id, split at its first colon; no provider when there is no colon.
struct ModelId {
  std::optional<std::string> provider;
  std::string name;
};
ModelId split_model_id(std::string_view id);

}  // namespace holt
