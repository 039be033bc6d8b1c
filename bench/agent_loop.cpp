// The agent's own time per model turn: everything but the model, with a history of so many messages.
// Bar: 5 ms with 1,000 messages (docs/benchmarks.md).
#include "holt/agent/agent.hpp"
#include "holt/models/test_model.hpp"

#include <benchmark/benchmark.h>

namespace {

using namespace holt;

/// Turns of question, call, result, answer, as a long session of a coding agent has them.
MessageHistory long_history(std::size_t messages) {
  MessageHistory history;
  for (std::size_t turn = 0; history.size() < messages; ++turn) {
    const std::string id = "call_" + std::to_string(turn);
    ModelRequest request;
    UserPromptPart prompt;
    prompt.content = "Please look at file " + std::to_string(turn) + ".";
    request.parts.emplace_back(prompt);
    ToolCallPart call;
    call.tool_name = "read_file";
    call.args = Json::object();
    call.args["path"] = "src/file_" + std::to_string(turn) + ".cpp";
    call.tool_call_id = id;
    ModelRequest answer;
    ToolReturnPart result;
    result.tool_name = "read_file";
    result.tool_call_id = id;
    result.content = std::string(2000, 'x');
    answer.parts.emplace_back(result);
    history.emplace_back(request);
    history.emplace_back(tool_call_response({call}));
    history.emplace_back(answer);
    history.emplace_back(text_response("It is a file."));
  }
  return history;
}

/// A model that calls a tool `turns` times and then answers, and costs next to nothing itself.
ModelPtr busy_model(std::size_t turns) {
  auto asked = std::make_shared<std::size_t>(0);
  return make_function_model(ModelFunction([asked, turns](const MessageHistory&, const FunctionInfo&) {
    ModelResponse response = text_response("done");
    if ((*asked)++ % (turns + 1) != turns) {
      ToolCallPart call;
      call.tool_name = "nothing";
      response = tool_call_response({call});
    }
    response.usage.input_tokens = 1;
    return response;
  }));
}

Task<std::string> nothing() {
  co_return "nothing";
}

void turns_with_history(benchmark::State& state) {
  constexpr std::size_t k_turns = 20;
  const MessageHistory history = long_history(static_cast<std::size_t>(state.range(0)));
  Agent agent(busy_model(k_turns), {.tools = {tool("nothing", "Does nothing.", nothing)}});
  for (auto _ : state) {
    auto result = agent.run_sync("Go on.", {.message_history = history});
    benchmark::DoNotOptimize(result.output().size());
  }
  // One turn is one model request with the handling of its answer.
  state.counters["turn"] = benchmark::Counter(static_cast<double>(state.iterations()) * (k_turns + 1),
                                              benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

}  // namespace

BENCHMARK(turns_with_history)->Arg(0)->Arg(100)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);
BENCHMARK_MAIN();
