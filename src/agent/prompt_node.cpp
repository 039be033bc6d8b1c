#include "agent/prompt_node.hpp"

#include "agent/instructions.hpp"
#include "agent/model_request.hpp"
#include "agent/wording.hpp"
#include "holt/base/error.hpp"
#include "holt/messages/repair.hpp"

#include <set>

namespace holt::detail {
namespace {

/// A history that was interrupted in the middle of a response's calls gets answers for all of them, instead
/// of having them executed.
RepairLastResponse repair_of(const RunPtr& run) {
  if (run->messages.empty()) return RepairLastResponse::keep;
  if (const auto* request = std::get_if<ModelRequest>(&run->messages.back()))
    return request->state == RequestState::interrupted ? RepairLastResponse::repair
                                                       : RepairLastResponse::keep;
  const auto& response = std::get<ModelResponse>(run->messages.back());
  return response.state == ResponseState::interrupted && run->prompt ? RepairLastResponse::repair
                                                                     : RepairLastResponse::keep;
}

RequestPart prompt_part(const UserContent& content) {
  UserPromptPart part;
  part.content = content;
  return part;
}

ModelRequest prompt_request(const RunPtr& run, std::vector<RequestPart> parts = {}) {
  if (run->prompt) parts.push_back(prompt_part(*run->prompt));
  return make_request(run, std::move(parts));
}

Task<bool> has_instructions(RunPtr run) {
  auto pending = instruction_blocks(run);
  std::vector<InstructionPart> blocks = co_await std::move(pending);
  co_return join_instructions(blocks).has_value();
}

Task<void> start_from_nothing(RunPtr run) {
  auto pending = system_prompt_parts(run);
  std::vector<RequestPart> parts = co_await std::move(pending);
  if (!run->prompt && parts.empty()) {
    auto instructions = has_instructions(run);
    if (!co_await std::move(instructions)) throw UserError(std::string(k_nothing_to_send));
  }
  run->next = prompt_request(run, std::move(parts));
}

/// The history's last request is sent once more, as a request of its own run.
void start_from_request(const RunPtr& run) {
  auto& last = std::get<ModelRequest>(run->messages.back());
  ModelRequest again;
  again.parts = std::move(last.parts);
  again.run_id = std::move(last.run_id);
  again.conversation_id = std::move(last.conversation_id);
  again.metadata = std::move(last.metadata);
  run->messages.pop_back();
  run->next = std::move(again);
}

Task<void> start_from_response(RunPtr run) {
  const auto& last = std::get<ModelResponse>(run->messages.back());
  const bool has_calls = !last.tool_calls().empty();
  if (last.state == ResponseState::suspended) {
    if (run->prompt)
      throw UserError(
          "The history ends in a suspended response, which has to be continued before a new prompt");
    throw Error(ErrorCode::not_supported, "This version cannot continue a suspended response");
  }
  if (run->prompt) {
    if (has_calls)
      throw UserError(
          "The history ends in tool calls without results. Run it without a prompt to execute them, "
          "or add their results.");
    run->next = prompt_request(run);
    co_return;
  }
  if (has_calls) co_return;
  auto instructions = has_instructions(run);
  if (co_await std::move(instructions)) run->next = prompt_request(run);
}

}  // namespace

Task<void> start_run(RunPtr run) {
  const RepairLastResponse last_response = repair_of(run);
  run->messages = repair_history(std::move(run->messages), last_response).messages;
  run->first_new = run->messages.size();
  auto refreshed = refresh_system_prompts(run);
  co_await std::move(refreshed);
  if (run->messages.empty()) {
    auto pending = start_from_nothing(run);
    co_await std::move(pending);
  } else if (std::holds_alternative<ModelResponse>(run->messages.back())) {
    auto pending = start_from_response(run);
    co_await std::move(pending);
  } else if (run->prompt) {
    run->next = prompt_request(run);
  } else {
    start_from_request(run);
  }
}

}  // namespace holt::detail
