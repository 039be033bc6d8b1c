#include "holt/base/encoding.hpp"
#include "holt/messages/tool_result_text.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace holt {
namespace {

constexpr std::string_view k_frame_sentence =
    "The application could not use your last response (written by the program, not by the user):";

constexpr std::array<std::string_view, 8> k_tags = {
    "system",       "tool_result",       "assistant_thinking", "context",
    "context_diff", "validation_errors", "retry_feedback",     "conversation_summary"};
constexpr std::array<std::string_view, 1> k_system_only = {"system"};

// Feedback that an answer is missing, in the words of holt: "Answer with " + the ways, joined by " or ".
// Written by the program alone, so it may speak with the system's voice.
constexpr std::array<std::string_view, 12> k_no_output_texts = {
    "Answer with .",
    "Answer with a tool call or an image.",
    "Answer with a tool call.",
    "Answer with a call of an output tool or an image.",
    "Answer with a call of an output tool.",
    "Answer with an image.",
    "Answer with text or a tool call or an image.",
    "Answer with text or a tool call.",
    "Answer with text or a call of an output tool or an image.",
    "Answer with text or a call of an output tool.",
    "Answer with text or an image.",
    "Answer with text."};

// The same in the words of pydantic-ai-slim 2.62.0, by the SHA-256 of their bytes: histories from there.
constexpr std::array<std::string_view, 12> k_no_output_digests = {
    "14c59a3359c01f0d2fb8735b29d9423c58d8b75cf76c5102d35f6628f2926e7d",
    "152491c3a024d6503126626956c8deae2f6d641310bd3c6bf820ce71cba14d4e",
    "250fd21e8d156caf583e1fa00dead8c49f953dae3f4b2aa811fdbe4ad44a9d11",
    "28fd98f9c7b39295cadd428d77d2e03775e85f8900545172106e467bc0fc96b9",
    "55c808af06b067916d0f6bb407ed2e7a0b11081e095c0259b4a0884f9779aee3",
    "7ba16ea925f962f6c068974066c27e1c092a17df76dff38ce796e628d9ae34d6",
    "895549aec07454bc45b3aafb0298d50a179bcf291bee34e60a6b0f40e447581f",
    "a66af8ea6adec5c18160cc815a99253310ce631c2e52001b27e93dad05beb890",
    "d6c99c155a4322d512991f5f80e36dc62b92b5e80fcf950ea5aad99f115bdf93",
    "e11579dd03e9a3756485d377ac6dead7bc7814a72a6cab772da3df189d067c36",
    "e547e5a3ccadb4d2922c48d9d2ef1b09ff5c3f3053767cf8118d05288f5f8047",
    "e959e73fb22533e8343a5e74ad34872be896ca917b8467d9a48e128361d2bc24"};

bool is_known_no_output_text(const std::string& text) {
  if (std::ranges::find(k_no_output_texts, text) != k_no_output_texts.end()) return true;
  return std::ranges::find(k_no_output_digests, sha256_hex(text)) != k_no_output_digests.end();
}

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

std::string_view without_leading_space(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  return text;
}

bool starts_with_word(std::string_view text, std::string_view word) {
  if (text.size() < word.size()) return false;
  return std::ranges::equal(text.substr(0, word.size()), word, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

/// Whether what stands behind a '<' opens or closes one of the tags.
template <std::size_t N>
bool is_tag(std::string_view behind, const std::array<std::string_view, N>& tags) {
  std::string_view rest = without_leading_space(behind);
  if (rest.starts_with('/')) rest = without_leading_space(rest.substr(1));
  return std::ranges::any_of(tags, [&](std::string_view tag) {
    if (!starts_with_word(rest, tag)) return false;
    std::string_view end = rest.substr(tag.size());
    return end.empty() || is_space(end.front()) || end.front() == '/' || end.front() == '>';
  });
}

template <std::size_t N>
std::string neutralise(std::string_view text, const std::array<std::string_view, N>& tags) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<' && is_tag(text.substr(i + 1), tags)) {
      out += "&lt;";
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::string neutralise_tags(std::string_view text) {
  return neutralise(text, k_tags);
}

std::string frame_text(std::string_view tag, std::string_view body) {
  std::string inner = tag == "system" ? neutralise(body, k_system_only) : neutralise(body, k_tags);
  return fmt::format("<{}>{}</{}>", tag, inner, tag);
}

Json without_repeated_inputs(Json items) {
  std::optional<Json> first;
  for (Json& item : items) {
    auto loc = item.find("loc");
    auto input = item.find("input");
    if (input == item.end() || (loc != item.end() && loc->size() > 1)) continue;
    if (!first) {
      first = *input;
    } else if (json_equal(*first, *input)) {
      item.erase("input");
    }
  }
  return items;
}

FeedbackText retry_feedback_text(const RetryFeedbackPart& part) {
  bool text = part.content.is_string();
  if (text && part.retry.cause == RetryCause::no_output &&
      is_known_no_output_text(part.content.get_ref<const std::string&>())) {
    return {.voice = FeedbackText::Voice::system, .text = part.content.get<std::string>()};
  }
  std::string body =
      text ? part.content.get<std::string>() : dump_json(without_repeated_inputs(part.content));
  std::string_view tag = text ? "retry_feedback" : "validation_errors";
  return {.voice = FeedbackText::Voice::user,
          .text = fmt::format("{}\n{}", k_frame_sentence, frame_text(tag, "\n" + body + "\n"))};
}

}  // namespace holt
