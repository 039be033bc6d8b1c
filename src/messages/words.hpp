// The words that enumerations have in history JSON.
#pragma once

#include "holt/messages/message.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace holt {

template <class E, std::size_t N>
using WordTable = std::array<std::pair<std::string_view, E>, N>;

/// One table for each enumeration, in the order in which errors list the words.
template <class E>
inline constexpr int k_words = 0;
template <>
inline constexpr WordTable<ToolOutcome, 5> k_words<ToolOutcome> = {{{"success", ToolOutcome::success},
                                                                    {"failed", ToolOutcome::failed},
                                                                    {"denied", ToolOutcome::denied},
                                                                    {"interrupted", ToolOutcome::interrupted},
                                                                    {"retried", ToolOutcome::retried}}};
template <>
inline constexpr WordTable<RetryCause, 5> k_words<RetryCause> = {
    {{"validation_error", RetryCause::validation_error},
     {"model_retry", RetryCause::model_retry},
     {"unknown_tool", RetryCause::unknown_tool},
     {"unavailable_tool", RetryCause::unavailable_tool},
     {"no_output", RetryCause::no_output}}};
template <>
inline constexpr WordTable<FinishReason, 5> k_words<FinishReason> = {
    {{"stop", FinishReason::stop},
     {"length", FinishReason::length},
     {"content_filter", FinishReason::content_filter},
     {"tool_call", FinishReason::tool_call},
     {"error", FinishReason::error}}};
template <>
inline constexpr WordTable<SystemPromptScope, 2> k_words<SystemPromptScope> = {
    {{"conversation", SystemPromptScope::conversation}, {"request", SystemPromptScope::request}}};
template <>
inline constexpr WordTable<RequestState, 2> k_words<RequestState> = {
    {{"complete", RequestState::complete}, {"interrupted", RequestState::interrupted}}};
template <>
inline constexpr WordTable<ResponseState, 4> k_words<ResponseState> = {
    {{"complete", ResponseState::complete},
     {"incomplete", ResponseState::incomplete},
     {"suspended", ResponseState::suspended},
     {"interrupted", ResponseState::interrupted}}};
template <>
inline constexpr WordTable<UrlKind, 4> k_words<UrlKind> = {{{"image-url", UrlKind::image},
                                                            {"audio-url", UrlKind::audio},
                                                            {"video-url", UrlKind::video},
                                                            {"document-url", UrlKind::document}}};

template <class E>
constexpr std::string_view word_of(E value) {
  for (const auto& [word, each] : k_words<E>) {
    if (each == value) return word;
  }
  return {};
}

template <class E>
constexpr std::optional<E> enum_from_word(std::string_view word) {
  for (const auto& [each, value] : k_words<E>) {
    if (each == word) return value;
  }
  return std::nullopt;
}

/// "'a', 'b' or 'c'"
std::string quoted_list(const std::string_view* words, std::size_t count);

template <class E>
std::string word_list() {
  std::array<std::string_view, k_words<E>.size()> words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = k_words<E>[i].first;
  return quoted_list(words.data(), words.size());
}

}  // namespace holt
