#include "holt/base/error.hpp"
#include "holt/models/test_model.hpp"
#include "models/played_stream.hpp"
#include "models/stream_assembler.hpp"

#include <fmt/format.h>

namespace holt {
namespace {

bool is_measured(const RequestUsage& usage) {
  return usage.input_tokens != 0 || usage.output_tokens != 0 || usage.unmeasured_requests != 0;
}

class FunctionModel : public Model {
 public:
  FunctionModel(AsyncModelFunction function, FunctionModelOptions options)
      : function_(std::move(function)),
        options_(std::move(options)),
        profile_(options_.profile),
        name_(options_.model_name ? *options_.model_name
                                  : fmt::format("function:{}:{}", options_.name, options_.stream_name)) {}

  std::string model_name() const override { return name_; }
  std::string provider_name() const override { return ""; }
  const ModelProfile& profile() const override { return profile_; }
  const ModelSettings& settings() const override { return options_.settings; }

  Task<ModelResponse> request(MessageHistory messages, ModelSettings settings,
                              ModelRequestParameters parameters) override {
    settings = merge_settings(options_.settings, settings);
    auto resolved = resolve(std::move(parameters), settings);
    if (!function_) {
      StreamedResponse gathered;
      co_await run_stream(messages, settings, resolved, gathered);
      co_return std::move(gathered.response);
    }
    co_return co_await ask(messages, settings, resolved);
  }

  Task<void> request_stream(MessageHistory messages, ModelSettings settings,
                            ModelRequestParameters parameters, StreamedResponse& stream) override {
    settings = merge_settings(options_.settings, settings);
    auto resolved = resolve(std::move(parameters), settings);
    if (options_.stream) {
      co_await run_stream(messages, settings, resolved, stream);
    } else {
      auto response = co_await ask(messages, settings, resolved);
      play_as_stream(response, resolved, stream);
    }
  }

 private:
  static FunctionInfo info(const MessageHistory& messages, const ModelSettings& settings,
                           const ModelRequestParameters& parameters) {
    return {.function_tools = parameters.function_tools,
            .allow_text_output = parameters.allow_text_output,
            .output_tools = parameters.output_tools,
            .model_settings = settings,
            .model_request_parameters = parameters,
            .instructions = instructions_text(messages, parameters)};
  }

  void complete(const MessageHistory& messages, ModelResponse& response) const {
    if (!response.model_name) response.model_name = name_;
    if (!is_measured(response.usage)) response.usage = estimate_usage(messages, response);
  }

  Task<ModelResponse> ask(const MessageHistory& messages, const ModelSettings& settings,
                          const ModelRequestParameters& parameters) {
    auto told = info(messages, settings, parameters);
    auto response = co_await function_(messages, told);
    complete(messages, response);
    co_return response;
  }

  Task<void> run_stream(const MessageHistory& messages, const ModelSettings& settings,
                        const ModelRequestParameters& parameters, StreamedResponse& stream) {
    stream.response.state = ResponseState::incomplete;
    stream.response.model_name = name_;
    StreamAssembler assembler(stream, OutputRules::of(parameters));
    auto told = info(messages, settings, parameters);
    bool anything = false;
    EmitDelta emit = [&](FunctionDelta delta) {
      anything = true;
      add(assembler, std::move(delta));
    };
    try {
      co_await options_.stream(messages, told, emit);
      if (!anything) throw UserError("The stream function gave nothing");
      assembler.finish();
    } catch (...) {
      stream.response.state = ResponseState::interrupted;
      complete(messages, stream.response);
      throw;
    }
    stream.response.state = ResponseState::complete;
    complete(messages, stream.response);
  }

  static void add(StreamAssembler& assembler, FunctionDelta delta) {
    if (auto* text = std::get_if<std::string>(&delta)) {
      assembler.text("content", *text);
    } else if (auto* call = std::get_if<FunctionCallDelta>(&delta)) {
      ToolCallPiece piece{.name = std::move(call->name), .tool_call_id = std::move(call->tool_call_id)};
      if (call->json_args) piece.args = *call->json_args;
      assembler.tool_call(std::to_string(call->index), std::move(piece));
    } else {
      auto& thinking = std::get<FunctionThinkingDelta>(delta);
      assembler.thinking(std::to_string(thinking.index), {.content = std::move(thinking.content),
                                                          .signature = std::move(thinking.signature)});
    }
  }

  AsyncModelFunction function_;
  FunctionModelOptions options_;
  ModelProfile profile_;
  std::string name_;
};

}  // namespace

ModelPtr make_function_model(AsyncModelFunction function, FunctionModelOptions options) {
  if (!function) throw UserError("A function model needs a function");
  return std::make_shared<FunctionModel>(std::move(function), std::move(options));
}

ModelPtr make_function_model(ModelFunction function, FunctionModelOptions options) {
  if (!function) throw UserError("A function model needs a function");
  AsyncModelFunction async = [function = std::move(function)](
                                 const MessageHistory& messages,
                                 const FunctionInfo& info) -> Task<ModelResponse> {
    co_return function(messages, info);
  };
  return make_function_model(std::move(async), std::move(options));
}

ModelPtr make_stream_function_model(FunctionModelOptions options) {
  if (!options.stream) throw UserError("A streaming function model needs a stream function");
  return std::make_shared<FunctionModel>(AsyncModelFunction(), std::move(options));
}

}  // namespace holt
