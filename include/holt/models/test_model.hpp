// Models for tests: TestModel calls every tool with made-up arguments and answers with what they gave;
// FunctionModel asks a C++ function.
//
//   auto model = holt::make_test_model({.custom_output_text = "done"});
//   auto scripted = holt::make_function_model([](const holt::MessageHistory&, const holt::FunctionInfo& info)
//   {
//     return holt::text_response("hello");
//   });
//
// Depends on model.hpp. No network, no clock but the timestamps.
#pragma once

#include "holt/models/model.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holt {

/// Options of a TestModel. Default: call every function tool once, then answer.
struct TestModelOptions {
  /// Names of the function tools to call; none: all.
  std::optional<std::vector<std::string>> call_tools = std::nullopt;
  std::optional<std::string> custom_output_text = std::nullopt;
  Json custom_output_args = nullptr;  ///< arguments of the output tool; null: made from its schema
  std::int64_t seed = 0;              ///< varies the made-up values, and which output tool is called
  std::string model_name = "test";
  Json profile = Json::object();
  ModelSettings settings = Json::object();
};

/// A model that needs no network: first a call of each tool, then their results as JSON, or the output tool.
ModelPtr make_test_model(TestModelOptions options = {});

/// Arguments that fit a JSON Schema, the same for the same seed. Throws UserError for a `$ref` to nothing.
Json make_test_args(const Json& schema, std::int64_t seed);

/// The token estimate of the test models: pieces between runs of space, quote, comma, full stop and colon.
std::int64_t estimate_tokens(std::string_view text);
/// Usage of a whole history with `response` as the newest answer, estimated.
RequestUsage estimate_usage(const MessageHistory& messages, const ModelResponse& response);

/// What a function of a FunctionModel is told beside the messages.
struct FunctionInfo {
  std::vector<ToolDefinition> function_tools;
  bool allow_text_output = true;
  std::vector<ToolDefinition> output_tools;
  ModelSettings model_settings = Json::object();
  ModelRequestParameters model_request_parameters;
  std::optional<std::string> instructions;
};

/// Pieces of a streamed answer: text, or a part of the call or thinking with that index.
struct FunctionCallDelta {
  std::size_t index = 0;
  std::optional<std::string> name = std::nullopt;
  std::optional<std::string> json_args = std::nullopt;
  std::optional<std::string> tool_call_id = std::nullopt;
};
struct FunctionThinkingDelta {
  std::size_t index = 0;
  std::optional<std::string> content = std::nullopt;
  std::optional<std::string> signature = std::nullopt;
};
using FunctionDelta = std::variant<std::string, FunctionCallDelta, FunctionThinkingDelta>;

using ModelFunction = std::function<ModelResponse(const MessageHistory&, const FunctionInfo&)>;
using AsyncModelFunction = std::function<Task<ModelResponse>(const MessageHistory&, const FunctionInfo&)>;
using EmitDelta = std::function<void(FunctionDelta)>;
/// Calls `emit` for each piece, in order.
using StreamFunction =
    std::function<Task<void>(const MessageHistory&, const FunctionInfo&, const EmitDelta& emit)>;

struct FunctionModelOptions {
  std::string name = {};         ///< of the function, for the model name
  std::string stream_name = {};  ///< of the stream function
  StreamFunction stream = {};    ///< none: request_stream() plays the function's response as a stream
  std::optional<std::string> model_name = std::nullopt;  ///< none: "function:NAME:STREAM_NAME"
  Json profile = Json::object();
  ModelSettings settings = Json::object();
};

/// A model that asks a function. The function may be called from several runs at once; what it throws is
/// thrown by request().
ModelPtr make_function_model(ModelFunction function, FunctionModelOptions options = {});
ModelPtr make_function_model(AsyncModelFunction function, FunctionModelOptions options = {});
/// Only streamed; request() gathers the stream.
ModelPtr make_stream_function_model(FunctionModelOptions options);

/// A response with one text, or with calls, for scripted models.
ModelResponse text_response(std::string text);
ModelResponse tool_call_response(std::vector<ToolCallPart> calls);

}  // namespace holt
