#include "holt/messages/repair.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace holt {
namespace {

// Sentence of ours; metadata key of the reference.
constexpr const char* k_interrupted = "This tool call was cut off before it gave a result.";
constexpr const char* k_synthesized = "pydantic_ai_synthesized_tool_return";
constexpr const char* k_reserved_metadata = "__pydantic_ai__";

bool is_result(const RequestPart& part) {
  return std::holds_alternative<ToolReturnPart>(part);
}

/// What stands behind the last tool result; the front when there is none.
std::vector<RequestPart>::iterator behind_last_result(std::vector<RequestPart>& parts) {
  return std::find_if(parts.rbegin(), parts.rend(), is_result).base();
}

/// Moves the parts of [first, last) that do not `stay` behind those that do, each group in its order.
/// (std::stable_partition of libstdc++ 12 uses what clang calls deprecated.)
void move_behind(std::vector<RequestPart>::iterator first, std::vector<RequestPart>::iterator last,
                 bool (*stays)(const RequestPart&)) {
  std::vector<RequestPart> moved;
  auto place = first;
  for (auto each = first; each != last; ++each) {
    if (!stays(*each)) {
      moved.push_back(std::move(*each));
    } else if (place++ != each) {
      *std::prev(place) = std::move(*each);
    }
  }
  std::ranges::move(moved, place);
}

class Repair {
 public:
  Repair(MessageHistory messages, RepairLastResponse last_response)
      : messages_(std::move(messages)), last_response_(last_response) {}

  RepairedHistory run() {
    drop_orphans();
    answer_dangling_calls();
    join_neighbours();
    return {.messages = std::move(messages_), .changed = changed_};
  }

 private:
  // Step 1: results whose call has not been seen.

  void drop_orphans() {
    std::unordered_set<std::string> seen;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      bool last = i + 1 == messages_.size();
      bool lost_all = false;
      if (auto* request = std::get_if<ModelRequest>(&messages_[i])) {
        lost_all = drop_orphans_of(*request, seen) && request->parts.empty();
      } else {
        for (const auto& part : std::get<ModelResponse>(messages_[i]).parts) {
          if (auto* call = std::get_if<ToolCallPart>(&part)) seen.insert(call->tool_call_id);
        }
      }
      if (lost_all && !last) continue;
      if (kept != i) messages_[kept] = std::move(messages_[i]);
      ++kept;
    }
    messages_.resize(kept);
  }

  bool drop_orphans_of(ModelRequest& request, const std::unordered_set<std::string>& seen) {
    std::size_t dropped = std::erase_if(request.parts, [&](const RequestPart& part) {
      auto* result = std::get_if<ToolReturnPart>(&part);
      return result && !seen.contains(result->tool_call_id);
    });
    changed_ = changed_ || dropped > 0;
    return dropped > 0;
  }

  // Step 2: calls without result.

  struct Call {
    std::size_t message;
    std::size_t part;
  };

  /// Part indexes of the dangling calls, by message.
  std::map<std::size_t, std::vector<std::size_t>> find_dangling_calls() const {
    std::unordered_map<std::string, std::deque<Call>> open;
    std::map<std::size_t, std::vector<std::size_t>> dangling;
    std::optional<std::size_t> last_response;
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      if (auto* request = std::get_if<ModelRequest>(&messages_[i])) {
        close_answered(*request, open);
        continue;
      }
      last_response = i;
      const auto& parts = std::get<ModelResponse>(messages_[i]).parts;
      for (std::size_t k = 0; k < parts.size(); ++k) {
        auto* call = std::get_if<ToolCallPart>(&parts[k]);
        if (!call) continue;
        auto& calls = open[call->tool_call_id];
        // Called again in a later response: what was open before stays without answer.
        while (!calls.empty() && calls.front().message < i) {
          dangling[calls.front().message].push_back(calls.front().part);
          calls.pop_front();
        }
        calls.push_back({i, k});
      }
    }
    for (const auto& [id, calls] : open) {
      for (Call call : calls) dangling[call.message].push_back(call.part);
    }
    if (last_response_ == RepairLastResponse::keep && last_response) dangling.erase(*last_response);
    for (auto& [message, parts] : dangling) std::ranges::sort(parts);
    return dangling;
  }

  static void close_answered(const ModelRequest& request,
                             std::unordered_map<std::string, std::deque<Call>>& open) {
    for (const auto& part : request.parts) {
      auto* result = std::get_if<ToolReturnPart>(&part);
      if (!result) continue;
      auto calls = open.find(result->tool_call_id);
      if (calls != open.end() && !calls->second.empty()) calls->second.pop_front();
    }
  }

  void answer_dangling_calls() {
    auto dangling = find_dangling_calls();
    if (dangling.empty()) return;
    changed_ = true;
    MessageHistory out;
    out.reserve(messages_.size() + dangling.size());
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      out.push_back(std::move(messages_[i]));
      auto found = dangling.find(i);
      if (found == dangling.end()) continue;
      auto results = interrupted_results(std::get<ModelResponse>(out.back()), found->second);
      auto* next = i + 1 < messages_.size() ? std::get_if<ModelRequest>(&messages_[i + 1]) : nullptr;
      if (!next) {
        out.push_back(ModelRequest{.parts = std::move(results)});
        continue;
      }
      next->parts.insert(behind_last_result(next->parts), std::make_move_iterator(results.begin()),
                         std::make_move_iterator(results.end()));
    }
    messages_ = std::move(out);
  }

  static std::vector<RequestPart> interrupted_results(const ModelResponse& response,
                                                      const std::vector<std::size_t>& calls) {
    std::vector<RequestPart> results;
    for (std::size_t index : calls) {
      const auto& call = std::get<ToolCallPart>(response.parts[index]);
      results.push_back(ToolReturnPart{.tool_name = call.tool_name,
                                       .content = k_interrupted,
                                       .tool_call_id = call.tool_call_id,
                                       .tool_kind = call.tool_kind,
                                       .metadata = {{k_synthesized, true}},
                                       .timestamp = response.timestamp,
                                       .outcome = ToolOutcome::interrupted});
    }
    return results;
  }

  // Step 3: neighbours of one kind.

  void join_neighbours() {
    MessageHistory out;
    out.reserve(messages_.size());
    std::vector<bool> joined;  // by message of `out`
    for (auto& message : messages_) {
      if (!out.empty() && join(out.back(), message)) {
        changed_ = true;
        joined.back() = true;
        continue;
      }
      out.push_back(std::move(message));
      joined.push_back(false);
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      auto* request = std::get_if<ModelRequest>(&out[i]);
      if (!request) continue;
      if (joined[i]) {
        move_behind(request->parts.begin(), request->parts.end(), is_result);
      } else {
        move_others_behind_results(*request);
      }
    }
    messages_ = std::move(out);
  }

  static bool join(ModelMessage& first, ModelMessage& second) {
    if (first.index() != second.index()) return false;
    if (auto* request = std::get_if<ModelRequest>(&first)) {
      return join_requests(*request, std::get<ModelRequest>(second));
    }
    return join_responses(std::get<ModelResponse>(first), std::get<ModelResponse>(second));
  }

  static bool join_requests(ModelRequest& first, ModelRequest& second) {
    auto has_instructions = [](const ModelRequest& r) { return r.instructions && !r.instructions->empty(); };
    if (has_instructions(first) && has_instructions(second) && first.instructions != second.instructions) {
      return false;
    }
    ModelRequest merged{
        .parts = std::move(first.parts),
        .timestamp = second.timestamp ? second.timestamp : first.timestamp,
        .instructions = has_instructions(first) ? first.instructions : second.instructions,
        .metadata = merged_metadata(first.metadata, second.metadata),
    };
    if (!merged.instructions) merged.instructions = first.instructions;
    std::ranges::move(second.parts, std::back_inserter(merged.parts));
    first = std::move(merged);
    return true;
  }

  /// Only what the library itself keeps there survives.
  static Json merged_metadata(const Json& first, const Json& second) {
    Json entries = Json::object();
    for (const Json* metadata : {&first, &second}) {
      if (!metadata->is_object()) continue;
      auto reserved = metadata->find(k_reserved_metadata);
      if (reserved == metadata->end() || !reserved->is_object()) continue;
      for (const auto& [key, value] : reserved->items()) entries[key] = value;
    }
    if (entries.empty()) return nullptr;
    Json metadata = Json::object();
    metadata[k_reserved_metadata] = std::move(entries);
    return metadata;
  }

  static bool join_responses(ModelResponse& first, ModelResponse& second) {
    auto has_origin = [](const ModelResponse& r) {
      return r.provider_response_id || r.provider_name || r.model_name;
    };
    if (has_origin(first) || has_origin(second)) return false;
    std::ranges::move(second.parts, std::back_inserter(first.parts));
    return true;
  }

  void move_others_behind_results(ModelRequest& request) {
    auto& parts = request.parts;
    auto first = std::ranges::find_if(parts, is_result);
    auto last = behind_last_result(parts);
    auto stays = [](const RequestPart& part) {
      return is_result(part) || std::holds_alternative<ToolAvailabilityDeltaPart>(part);
    };
    if (first == parts.end() || std::all_of(first, last, stays)) return;
    move_behind(first, last, stays);
    changed_ = true;
  }

  MessageHistory messages_;
  RepairLastResponse last_response_;
  bool changed_ = false;
};

}  // namespace

RepairedHistory repair_history(MessageHistory history, RepairLastResponse last_response) {
  return Repair(std::move(history), last_response).run();
}

}  // namespace holt
