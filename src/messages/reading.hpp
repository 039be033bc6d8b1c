// Reading of history JSON: places for error messages, and typed access to the fields of an object.
#pragma once

#include "holt/base/error.hpp"
#include "holt/base/json.hpp"
#include "holt/messages/message.hpp"
#include "messages/words.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holt {

/// Where a value stands in a history. A chain on the stack: a place must not outlive the one it came from,
/// and costs nothing until an error prints it.
class Place {
 public:
  Place() = default;
  Place key(std::string_view name) const& { return {this, name, 0}; }
  Place index(std::size_t index) const& { return {this, {}, index}; }
  Place key(std::string_view) const&& = delete;
  Place index(std::size_t) const&& = delete;

  /// "[1].parts[0].part_kind"; empty for the whole.
  std::string text() const;

 private:
  Place(const Place* parent, std::string_view name, std::size_t index)
      : parent_(parent), name_(name), index_(index) {}
  const Place* parent_ = nullptr;
  std::string_view name_;  // empty: an index
  std::size_t index_ = 0;
};

/// Throws Error INVALID_CONFIG "PLACE: WHAT".
[[noreturn]] void refuse(const Place& place, std::string_view what);

std::string& need_text(Json& value, const Place& place);
Json::array_t& need_array(Json& value, const Place& place);
Timestamp need_timestamp(const Json& value, const Place& place);
std::int64_t need_integer(const Json& value, const Place& place);
bool need_boolean(const Json& value, const Place& place);
void need_object(const Json& value, const Place& place);

template <class E>
E need_word(const Json& value, const Place& place) {
  if (value.is_string()) {
    if (auto found = enum_from_word<E>(value.get_ref<const std::string&>())) return *found;
  }
  refuse(place, "Expected " + word_list<E>());
}

/// An object whose fields are taken out one by one; what is left is unknown and dropped. "Optional" fields
/// take null; the others refuse it. Every call refuses, naming the field, what has the wrong type.
class Fields {
 public:
  /// Refuses anything but an object. Both must outlive this.
  Fields(Json& object, const Place& place);

  const Place& place() const { return place_; }
  /// The value of a key, or of its older name.
  Json* find(std::string_view name, std::string_view older_name = {}) const;
  Json& need(std::string_view name) const;

  std::string text(std::string_view name) const;
  std::string text_or(std::string_view name, std::string_view fallback) const;
  std::optional<std::string> optional_text(std::string_view name, std::string_view older_name = {}) const;
  /// Any value, null when absent.
  Json any(std::string_view name) const;
  Json required_any(std::string_view name) const { return std::move(need(name)); }
  /// An object, or null.
  Json optional_object(std::string_view name, std::string_view older_name = {}) const;
  Json::array_t& array(std::string_view name) const;
  Timestamp timestamp_or_now(std::string_view name) const;
  std::optional<Timestamp> optional_timestamp(std::string_view name) const;
  std::optional<std::int64_t> optional_integer(std::string_view name) const;
  bool boolean_or(std::string_view name, bool fallback) const;

  template <class E>
  E word(std::string_view name) const {
    return need_word<E>(need(name), place_.key(name));
  }
  template <class E>
  E word_or(std::string_view name, E fallback) const {
    const Json* value = find(name);
    return value ? need_word<E>(*value, place_.key(name)) : fallback;
  }

 private:
  Json::object_t& members_;
  const Place& place_;
};

// Readers of the pieces, each in the source of its name.
UserContentItem read_content_item(Json& value, const Place& place);
BinaryContent read_binary(Json& value, const Place& place);
RequestUsage read_usage(Json& value, const Place& place);
RequestPart read_request_part(Json& value, const Place& place);
ResponsePart read_response_part(Json& value, const Place& place);
CompactionPart read_compaction(const Fields& fields);
SpeechPart read_speech(const Fields& fields, std::string_view speaker);
/// Media items below a tool result's content in full form; everything else as it is.
void normalise_tool_content(Json& value);
Json read_citations(Json& value, const Place& place);
Json read_failed_attempts(Json& value, const Place& place);

}  // namespace holt
