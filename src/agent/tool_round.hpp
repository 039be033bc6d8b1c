// All calls of one response: validated, run side by side, answered in the order in which they were made.
#pragma once

#include "agent/run_state.hpp"

#include <optional>
#include <string>
#include <vector>

namespace holt::detail {

/// Made for one response; lives in the coroutine that handles it.
class ToolRound {
 public:
  enum class Cut { none, at_token_limit };
  /// `text`: what the response says beside its calls.
  ToolRound(RunPtr run, std::vector<ToolCallPart> calls, std::string text, Cut cut);

  /// Runs what the end strategy says. The output that ends the run, or nothing: the run goes on with parts().
  /// Throws what ends the run; parts() holds the answers that were complete then.
  Task<std::optional<RawOutput>> process();
  /// Answers in the order to record, then what tools add to the prompt.
  std::vector<RequestPart> parts() const;
  /// The call whose output won.
  const std::optional<std::string>& winning_call_id() const { return winning_call_id_; }

 private:
  enum class Kind { function, output, unknown };
  struct Slot {
    ToolCallPart call;
    Kind kind = Kind::unknown;
    const OfferedTool* tool = nullptr;             // of a function
    std::size_t choice = 0;                        // of an output
    std::optional<Json> arguments = std::nullopt;  // once valid
    std::optional<ToolReturnPart> answer = std::nullopt;
    std::optional<UserContent> extra = std::nullopt;
    std::exception_ptr spent = nullptr;  // an output whose budget is spent
    bool failed_validation = false;
  };

  void classify();
  void check_ids() const;
  void check_tool_limit() const;
  void refuse_cut_calls();
  Task<void> process_early();
  Task<void> process_in_order();
  Task<void> run_group(std::vector<Slot*> group);
  Task<void> run_batch(std::vector<Slot*> batch);
  Task<void> validate(Slot& slot);
  Task<void> run_call(Slot& slot);
  void process_output(Slot& slot);
  void settle();
  bool function_asked_for_retry() const;

  void answer(Slot& slot, Json content, ToolOutcome outcome, std::optional<RetryInfo> retry = std::nullopt);
  void answer_skipped(Slot& slot, std::string_view text);
  void ask_again(Slot& slot, Json content, RetryCause cause);
  void ask_output_again(Slot& slot, Json content, RetryCause cause);
  void answer_value(Slot& slot, ToolValue value);
  RunContext::Call call_info(const Slot& slot) const;

  RunPtr run_;
  std::string text_;
  Cut cut_;
  std::vector<Slot> slots_;
  std::optional<RawOutput> winner_;
  Slot* winning_slot_ = nullptr;
  std::optional<std::string> winning_call_id_;
  bool output_failed_now_ = false;
};

}  // namespace holt::detail
