// A model that answers from a script, and short ways to write one.
#pragma once

#include "holt/models/test_model.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace holt::test {

using Parts = std::vector<ResponsePart>;

inline ToolCallPart call(std::string name, Json args = nullptr, std::string id = {}) {
  ToolCallPart part;
  part.tool_name = std::move(name);
  part.args = std::move(args);
  part.tool_call_id = std::move(id);
  return part;
}

inline TextPart text(std::string content) {
  TextPart part;
  part.content = std::move(content);
  return part;
}

/// One answer: a text, parts, a whole response, or a function of what the model is sent.
class Reply {
 public:
  using Function = std::function<ModelResponse(const MessageHistory&, const FunctionInfo&)>;
  Reply(const char* answer) : Reply(std::string(answer)) {}
  Reply(std::string answer) : Reply(Parts{test::text(std::move(answer))}) {}
  Reply(Parts parts) {
    ModelResponse response;
    response.parts = std::move(parts);
    answer_ = [response](const auto&, const auto&) { return response; };
  }
  Reply(ToolCallPart one) : Reply(Parts{std::move(one)}) {}
  Reply(ModelResponse response) : answer_([response](const auto&, const auto&) { return response; }) {}
  Reply(Function function) : answer_(std::move(function)) {}
  ModelResponse operator()(const MessageHistory& messages, const FunctionInfo& info) const {
    return answer_(messages, info);
  }

 private:
  Function answer_;
};

/// Gives the replies in order; more requests than replies are an error.
inline ModelPtr script(std::vector<Reply> replies, Json profile = Json::object()) {
  auto next = std::make_shared<std::atomic<std::size_t>>(0);
  ModelFunction function = [replies = std::move(replies), next](const MessageHistory& messages,
                                                                const FunctionInfo& info) {
    const std::size_t index = (*next)++;
    if (index >= replies.size()) throw std::runtime_error("the script has no further reply");
    return replies[index](messages, info);
  };
  FunctionModelOptions options;
  options.model_name = "fixture-model";
  options.profile = std::move(profile);
  return make_function_model(std::move(function), std::move(options));
}

}  // namespace holt::test
