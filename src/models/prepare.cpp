#include "holt/models/prepare.hpp"

#include "holt/base/encoding.hpp"
#include "holt/messages/tool_result_text.hpp"
#include "holt/models/model.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include <fmt/format.h>

namespace holt {
namespace {

using RequestParts = std::vector<RequestPart>;

/// Length of the white space in front.
std::size_t blanks(std::string_view text) {
  auto end = text.find_first_not_of(" \t\r\n\f\v");
  return end == std::string_view::npos ? text.size() : end;
}

bool opens_system_tag(std::string_view behind_bracket) {
  constexpr std::string_view k_name = "system";
  auto rest = behind_bracket;
  rest.remove_prefix(blanks(rest));
  if (rest.starts_with('/')) {
    rest.remove_prefix(1);
    rest.remove_prefix(blanks(rest));
  }
  if (rest.size() < k_name.size()) return false;
  for (std::size_t i = 0; i < k_name.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(rest[i])) != k_name[i]) return false;
  }
  rest.remove_prefix(k_name.size());
  return rest.empty() || rest.front() == '/' || rest.front() == '>' || blanks(rest) > 0;
}

/// Text in a `<system>` frame that it cannot close itself.
std::string system_frame(std::string_view text) {
  std::string out = "<system>";
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<' && opens_system_tag(text.substr(i + 1))) {
      out += "&lt;";
    } else {
      out += text[i];
    }
  }
  return out + "</system>";
}

UserPromptPart user_text(std::string text, const Timestamp& timestamp) {
  return UserPromptPart{.content = std::move(text), .timestamp = timestamp};
}

void drop_records(RequestParts& parts) {
  std::erase_if(parts, [](const RequestPart& part) {
    return std::holds_alternative<InstructionDeltaPart>(part) ||
           std::holds_alternative<InstructionBaselinePart>(part) ||
           std::holds_alternative<ModelSettingsDeltaPart>(part) ||
           std::holds_alternative<ToolAvailabilityDeltaPart>(part);
  });
}

/// `may_lead`: the request is the first of the history, whose leading system prompts are the system prompt.
enum class Place { first_request, later_request };

void render_feedback(RequestParts& parts, Place place) {
  bool leading = place == Place::first_request;
  for (auto& part : parts) {
    auto* feedback = std::get_if<RetryFeedbackPart>(&part);
    if (!feedback) {
      leading = leading && std::holds_alternative<SystemPromptPart>(part);
      continue;
    }
    auto text = retry_feedback_text(*feedback);
    auto timestamp = feedback->timestamp;
    if (text.voice == FeedbackText::Voice::user) {
      part = user_text(std::move(text.text), timestamp);
    } else if (leading) {
      part = user_text(system_frame(text.text), timestamp);
    } else {
      part = SystemPromptPart{.content = std::move(text.text), .timestamp = timestamp};
    }
    leading = false;
  }
}

enum class Currency { current, earlier };

void place_request_scoped(RequestParts& parts, Currency currency) {
  auto is_scoped = [](const RequestPart& part) {
    const auto* prompt = std::get_if<SystemPromptPart>(&part);
    return prompt && prompt->scope == SystemPromptScope::request;
  };
  RequestParts scoped;
  std::copy_if(parts.begin(), parts.end(), std::back_inserter(scoped), is_scoped);
  std::erase_if(parts, is_scoped);
  if (currency == Currency::current) parts.insert(parts.end(), scoped.begin(), scoped.end());
}

void frame_later_system_prompts(RequestParts& parts, Place place) {
  bool leading = place == Place::first_request;
  for (auto& part : parts) {
    auto* prompt = std::get_if<SystemPromptPart>(&part);
    leading = leading && prompt && prompt->scope == SystemPromptScope::conversation;
    if (prompt && !leading) part = user_text(system_frame(prompt->content), prompt->timestamp);
  }
}

void render_compaction(RequestParts& parts) {
  for (auto& part : parts) {
    auto* compaction = std::get_if<CompactionPart>(&part);
    if (!compaction) continue;
    part = UserPromptPart{.content = fmt::format("<conversation_summary>\n{}\n</conversation_summary>",
                                                 neutralise_tags(compaction->content.value_or("")))};
  }
}

/// Tool results in the order of `calls`, among their own places; those of no call stay last.
void order_results(RequestParts& parts, const std::vector<std::string>& calls) {
  std::vector<std::size_t> places;
  std::vector<std::pair<std::size_t, std::size_t>> ranked;  // (rank of the call, place)
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto* result = std::get_if<ToolReturnPart>(&parts[i]);
    if (!result) continue;
    places.push_back(i);
    auto call = std::find(calls.begin(), calls.end(), result->tool_call_id);
    ranked.emplace_back(static_cast<std::size_t>(call - calls.begin()), i);
  }
  if (std::is_sorted(ranked.begin(), ranked.end())) return;
  std::sort(ranked.begin(), ranked.end());
  RequestParts moved;
  for (const auto& [rank, place] : ranked) moved.push_back(parts[place]);
  for (std::size_t i = 0; i < places.size(); ++i) parts[places[i]] = std::move(moved[i]);
}

std::vector<std::string> call_ids(const ModelResponse& response) {
  std::vector<std::string> ids;
  for (const auto& call : response.tool_calls()) ids.push_back(call.tool_call_id);
  return ids;
}

class IdShortener {
 public:
  explicit IdShortener(std::size_t length) : length_(length) {}

  void apply(std::string& id) {
    auto [it, added] = short_of_.try_emplace(id);
    if (added) it->second = fits(id) && taken_.insert(id).second ? id : make(id);
    id = it->second;
  }

 private:
  bool fits(const std::string& id) const {
    return id.size() == length_ &&
           std::all_of(id.begin(), id.end(), [](unsigned char c) { return c < 0x80 && std::isalnum(c); });
  }
  std::string make(const std::string& id) {
    for (int salt = 0;; ++salt) {
      auto made = short_tool_call_id(id, length_, salt);
      if (taken_.insert(made).second) return made;
    }
  }

  std::size_t length_;
  std::map<std::string, std::string> short_of_;
  std::set<std::string> taken_;
};

void shorten_ids(MessageHistory& history, std::size_t length) {
  IdShortener shortener(length);
  for (auto& message : history) {
    if (auto* request = std::get_if<ModelRequest>(&message)) {
      for (auto& part : request->parts) {
        if (auto* result = std::get_if<ToolReturnPart>(&part)) shortener.apply(result->tool_call_id);
      }
    } else {
      for (auto& part : std::get<ModelResponse>(message).parts) {
        if (auto* call = std::get_if<ToolCallPart>(&part)) shortener.apply(call->tool_call_id);
      }
    }
  }
}

void prepare_request(ModelRequest& request, const ModelProfile& profile, Place place, Currency currency,
                     const std::vector<std::string>& calls) {
  drop_records(request.parts);
  render_feedback(request.parts, place);
  place_request_scoped(request.parts, currency);
  if (!profile.flag("supports_inline_system_prompts")) frame_later_system_prompts(request.parts, place);
  order_results(request.parts, calls);
  render_compaction(request.parts);
}

}  // namespace

std::string short_tool_call_id(const std::string& id, std::size_t length, int salt) {
  constexpr std::string_view k_digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  auto number = sha256(salt == 0 ? id : fmt::format("{}#{}", id, salt));  // big-endian
  std::string out;
  while (out.size() < length) {
    unsigned rest = 0;
    for (auto& byte : number) {
      unsigned value = rest * 256 + static_cast<unsigned char>(byte);
      byte = static_cast<char>(value / k_digits.size());
      rest = static_cast<unsigned>(value % k_digits.size());
    }
    out += k_digits[rest];
  }
  return out;
}

MessageHistory prepare_messages(MessageHistory history, const ModelProfile& profile) {
  auto last_request = std::find_if(history.rbegin(), history.rend(), [](const ModelMessage& message) {
    return std::holds_alternative<ModelRequest>(message);
  });
  std::vector<std::string> calls;
  bool first = true;
  for (auto& message : history) {
    if (auto* response = std::get_if<ModelResponse>(&message)) {
      calls = call_ids(*response);
      first = false;
      continue;
    }
    bool current = last_request != history.rend() && &message == &*last_request;
    prepare_request(std::get<ModelRequest>(message), profile,
                    first ? Place::first_request : Place::later_request,
                    current ? Currency::current : Currency::earlier, calls);
    first = false;
  }
  auto length = profile.value("tool_call_id_length");
  if (length.is_number_unsigned()) shorten_ids(history, length.get<std::size_t>());
  return history;
}

MessageHistory Model::prepare(MessageHistory messages, const ModelRequestParameters&) const {
  return prepare_messages(std::move(messages), profile());
}

}  // namespace holt
