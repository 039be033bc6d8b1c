#include "holt/models/test_model.hpp"

#include "holt/base/error.hpp"
#include "models/played_stream.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace holt {
namespace {

const ModelRequest* last_request(const MessageHistory& messages) {
  for (auto it = messages.rbegin(); it != messages.rend(); ++it) {
    if (const auto* request = std::get_if<ModelRequest>(&*it)) return request;
  }
  return nullptr;
}

bool has_response(const MessageHistory& messages) {
  return std::any_of(messages.begin(), messages.end(), [](const ModelMessage& message) {
    return std::holds_alternative<ModelResponse>(message);
  });
}

std::vector<std::string> retried_tools(const MessageHistory& messages) {
  std::vector<std::string> names;
  const auto* request = last_request(messages);
  if (!request) return names;
  for (const auto& part : request->parts) {
    const auto* result = std::get_if<ToolReturnPart>(&part);
    if (result && result->outcome == ToolOutcome::retried) names.push_back(result->tool_name);
  }
  return names;
}

const ToolDefinition* find_tool(const std::vector<ToolDefinition>& tools, const std::string& name) {
  auto it = std::find_if(tools.begin(), tools.end(), [&](const auto& tool) { return tool.name == name; });
  return it == tools.end() ? nullptr : &*it;
}

class TestModel : public Model {
 public:
  explicit TestModel(TestModelOptions options) : options_(std::move(options)), profile_(options_.profile) {}

  std::string model_name() const override { return options_.model_name; }
  std::string provider_name() const override { return "test"; }
  const ModelProfile& profile() const override { return profile_; }
  const ModelSettings& settings() const override { return options_.settings; }

  Task<ModelResponse> request(MessageHistory messages, ModelSettings settings,
                              ModelRequestParameters parameters) override {
    settings = merge_settings(options_.settings, settings);
    co_return answer(messages, resolve(std::move(parameters), settings));
  }

  Task<void> request_stream(MessageHistory messages, ModelSettings settings,
                            ModelRequestParameters parameters, StreamedResponse& stream) override {
    settings = merge_settings(options_.settings, settings);
    auto resolved = resolve(std::move(parameters), settings);
    play_as_stream(answer(messages, resolved), resolved, stream);
    co_return;
  }

 private:
  ModelResponse answer(const MessageHistory& messages, const ModelRequestParameters& parameters) const {
    ModelResponse response{
        .parts = parts(messages, parameters), .model_name = options_.model_name, .provider_name = "test"};
    response.usage = estimate_usage(messages, response);
    return response;
  }

  std::vector<ResponsePart> parts(const MessageHistory& messages,
                                  const ModelRequestParameters& parameters) const {
    auto tools = tools_to_call(parameters);
    if (!has_response(messages) && !tools.empty()) return first_calls(tools);
    if (auto retried = retried_tools(messages); !retried.empty()) return calls_again(retried, parameters);
    return output(messages, parameters);
  }

  std::vector<ToolDefinition> tools_to_call(const ModelRequestParameters& parameters) const {
    if (!options_.call_tools) return parameters.function_tools;
    std::vector<ToolDefinition> tools;
    for (const auto& name : *options_.call_tools) {
      const auto* tool = find_tool(parameters.function_tools, name);
      if (!tool)
        throw UserError(fmt::format("TestModel is to call the tool '{}', which is not on offer", name));
      tools.push_back(*tool);
    }
    return tools;
  }

  Json args_for(const ToolDefinition& tool) const {
    return make_test_args(tool.parameters_json_schema, options_.seed);
  }

  std::vector<ResponsePart> first_calls(const std::vector<ToolDefinition>& tools) const {
    std::vector<ResponsePart> parts;
    std::map<std::string, int> times;
    for (const auto& tool : tools) {
      int time = ++times[tool.name];
      auto id = "pyd_ai_tool_call_id__" + tool.name;
      if (time > 1) id += fmt::format("__{}", time);
      parts.push_back(ToolCallPart{.tool_name = tool.name, .args = args_for(tool), .tool_call_id = id});
    }
    return parts;
  }

  std::vector<ResponsePart> calls_again(const std::vector<std::string>& names,
                                        const ModelRequestParameters& parameters) const {
    std::vector<ResponsePart> parts;
    for (const auto& name : names) {
      if (const auto* tool = find_tool(parameters.function_tools, name)) {
        parts.push_back(ToolCallPart{
            .tool_name = name, .args = args_for(*tool), .tool_call_id = generate_tool_call_id()});
      } else if (const auto* output = find_tool(parameters.output_tools, name)) {
        parts.push_back(output_call(*output));
      }
    }
    return parts;
  }

  ToolCallPart output_call(const ToolDefinition& tool) const {
    return ToolCallPart{
        .tool_name = tool.name,
        .args = options_.custom_output_args.is_null() ? args_for(tool) : options_.custom_output_args,
        .tool_call_id = "pyd_ai_tool_call_id__" + tool.name};
  }

  std::vector<ResponsePart> output(const MessageHistory& messages,
                                   const ModelRequestParameters& parameters) const {
    if (options_.custom_output_text) {
      if (!parameters.allow_text_output) {
        throw UserError("TestModel has a custom output text, but text is no output of this run");
      }
      return {TextPart{.content = *options_.custom_output_text}};
    }
    bool use_tool = !options_.custom_output_args.is_null() || !parameters.allow_text_output;
    if (use_tool && !parameters.output_tools.empty()) {
      auto number = static_cast<std::size_t>(options_.seed) % parameters.output_tools.size();
      return {output_call(parameters.output_tools[number])};
    }
    return {TextPart{.content = results_text(messages)}};
  }

  static std::string results_text(const MessageHistory& messages) {
    Json results = Json::object();
    for (const auto& message : messages) {
      const auto* request = std::get_if<ModelRequest>(&message);
      if (!request) continue;
      for (const auto& part : request->parts) {
        if (const auto* result = std::get_if<ToolReturnPart>(&part)) {
          results[result->tool_name] = result->content;
        }
      }
    }
    return results.empty() ? "success (no tool calls)" : dump_json(results);
  }

  TestModelOptions options_;
  ModelProfile profile_;
};

}  // namespace

ModelPtr make_test_model(TestModelOptions options) {
  options.seed = std::max<std::int64_t>(options.seed, 0);
  return std::make_shared<TestModel>(std::move(options));
}

ModelResponse text_response(std::string text) {
  return ModelResponse{.parts = {TextPart{.content = std::move(text)}}};
}

ModelResponse tool_call_response(std::vector<ToolCallPart> calls) {
  ModelResponse response;
  for (auto& call : calls) response.parts.push_back(std::move(call));
  return response;
}

}  // namespace holt
