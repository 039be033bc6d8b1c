#include "messages/reading.hpp"

#include "holt/base/lenient.hpp"

#include <fmt/format.h>

namespace holt {

std::string quoted_list(const std::string_view* words, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += i + 1 == count ? " or " : ", ";
    out += fmt::format("'{}'", words[i]);
  }
  return out;
}

std::string Place::text() const {
  if (!parent_) return {};
  std::string before = parent_->text();
  if (name_.empty()) return fmt::format("{}[{}]", before, index_);
  return before.empty() ? std::string(name_) : fmt::format("{}.{}", before, name_);
}

void refuse(const Place& place, std::string_view what) {
  std::string where = place.text();
  throw Error(ErrorCode::invalid_config,
              where.empty() ? std::string(what) : fmt::format("{}: {}", where, what));
}

std::string& need_text(Json& value, const Place& place) {
  if (!value.is_string()) refuse(place, "Expected a string");
  return value.get_ref<std::string&>();
}

Json::array_t& need_array(Json& value, const Place& place) {
  if (!value.is_array()) refuse(place, "Expected an array");
  return value.get_ref<Json::array_t&>();
}

void need_object(const Json& value, const Place& place) {
  if (!value.is_object()) refuse(place, "Expected an object");
}

Timestamp need_timestamp(const Json& value, const Place& place) {
  auto timestamp = parse_timestamp(value);
  if (!timestamp) refuse(place, "Expected a date and time");
  return *timestamp;
}

std::int64_t need_integer(const Json& value, const Place& place) {
  auto integer = lenient_integer(value);
  if (!integer) refuse(place, "Expected an integer");
  auto number = json_integer<std::int64_t>(*integer);
  if (!number) refuse(place, "Expected an integer of at most 64 bits");
  return *number;
}

bool need_boolean(const Json& value, const Place& place) {
  auto boolean = lenient_boolean(value);
  if (!boolean) refuse(place, "Expected a boolean");
  return *boolean;
}

Fields::Fields(Json& object, const Place& place)
    : members_((need_object(object, place), object.get_ref<Json::object_t&>())), place_(place) {}

Json* Fields::find(std::string_view name, std::string_view older_name) const {
  Json* older = nullptr;
  for (auto& [key, value] : members_) {
    if (key == name) return &value;
    if (!older_name.empty() && key == older_name) older = &value;
  }
  return older;
}

Json& Fields::need(std::string_view name) const {
  Json* value = find(name);
  if (!value) refuse(place_.key(name), "Required, but missing");
  return *value;
}

std::string Fields::text(std::string_view name) const {
  return std::move(need_text(need(name), place_.key(name)));
}

std::string Fields::text_or(std::string_view name, std::string_view fallback) const {
  Json* value = find(name);
  return value ? std::move(need_text(*value, place_.key(name))) : std::string(fallback);
}

std::optional<std::string> Fields::optional_text(std::string_view name, std::string_view older_name) const {
  Json* value = find(name, older_name);
  if (!value || value->is_null()) return std::nullopt;
  return std::move(need_text(*value, place_.key(name)));
}

Json Fields::any(std::string_view name) const {
  Json* value = find(name);
  return value ? std::move(*value) : Json(nullptr);
}

Json Fields::optional_object(std::string_view name, std::string_view older_name) const {
  Json* value = find(name, older_name);
  if (!value || value->is_null()) return nullptr;
  need_object(*value, place_.key(name));
  return std::move(*value);
}

Json::array_t& Fields::array(std::string_view name) const {
  return need_array(need(name), place_.key(name));
}

Timestamp Fields::timestamp_or_now(std::string_view name) const {
  const Json* value = find(name);
  return value ? need_timestamp(*value, place_.key(name)) : Timestamp::now();
}

std::optional<Timestamp> Fields::optional_timestamp(std::string_view name) const {
  const Json* value = find(name);
  if (!value || value->is_null()) return std::nullopt;
  return need_timestamp(*value, place_.key(name));
}

std::optional<std::int64_t> Fields::optional_integer(std::string_view name) const {
  const Json* value = find(name);
  if (!value || value->is_null()) return std::nullopt;
  return need_integer(*value, place_.key(name));
}

bool Fields::boolean_or(std::string_view name, bool fallback) const {
  const Json* value = find(name);
  return value ? need_boolean(*value, place_.key(name)) : fallback;
}

}  // namespace holt
