#include "holt/base/lenient.hpp"
#include "messages/decimal.hpp"
#include "messages/reading.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace holt {
namespace {

/// A token figure: its key, an older key, and its place.
struct Figure {
  std::string_view name;
  std::string_view older_name;
  std::int64_t RequestUsage::* field;
};
constexpr std::array<Figure, 10> k_figures = {{
    {"input_tokens", "request_tokens", &RequestUsage::input_tokens},
    {"cache_write_tokens", "", &RequestUsage::cache_write_tokens},
    {"cache_write_1h_tokens", "", &RequestUsage::cache_write_1h_tokens},
    {"cache_read_tokens", "", &RequestUsage::cache_read_tokens},
    {"output_tokens", "response_tokens", &RequestUsage::output_tokens},
    {"unmeasured_requests", "", &RequestUsage::unmeasured_requests},
    {"output_reasoning_tokens", "", &RequestUsage::output_reasoning_tokens},
    {"input_audio_tokens", "", &RequestUsage::input_audio_tokens},
    {"cache_audio_read_tokens", "", &RequestUsage::cache_audio_read_tokens},
    {"output_audio_tokens", "", &RequestUsage::output_audio_tokens},
}};
// Keys of older versions that carry nothing any more.
constexpr std::array<std::string_view, 2> k_dropped = {"requests", "total_tokens"};
constexpr std::array<std::string_view, 3> k_others = {"audio_seconds", "details", "cost"};

bool is_known(std::string_view key) {
  bool figure =
      std::ranges::any_of(k_figures, [&](const Figure& f) { return key == f.name || key == f.older_name; });
  return figure || std::ranges::find(k_dropped, key) != k_dropped.end() ||
         std::ranges::find(k_others, key) != k_others.end();
}

std::int64_t add_saturating(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a > 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}

void add_details(Json& to, const Json& from) {
  for (const auto& [name, value] : from.get_ref<const Json::object_t&>()) {
    Json& entry = to[name];
    if (entry.is_null()) {
      entry = value;
    } else {
      entry = add_saturating(entry.get<std::int64_t>(), value.get<std::int64_t>());
    }
  }
}

Json read_details(Json* value, const Place& place) {
  if (!value || value->is_null()) return Json::object();
  need_object(*value, place);
  for (auto& [name, number] : value->get_ref<Json::object_t&>())
    number = need_integer(number, place.key(name));
  return std::move(*value);
}

std::optional<std::string> read_cost(const Json* value, const Place& place) {
  if (!value || value->is_null()) return std::nullopt;
  std::optional<std::string> cost;
  if (value->is_string()) {
    cost = canonical_decimal(value->get_ref<const std::string&>());
  } else if (value->is_number() || is_json_big_integer(*value)) {
    cost = canonical_decimal(dump_json(*value));
  }
  if (!cost) refuse(place, "Expected a decimal number");
  return cost;
}

}  // namespace

std::int64_t RequestUsage::total_tokens() const {
  return add_saturating(input_tokens, output_tokens);
}

void RequestUsage::add(const RequestUsage& other) {
  for (const Figure& figure : k_figures) {
    this->*figure.field = add_saturating(this->*figure.field, other.*figure.field);
  }
  audio_seconds += other.audio_seconds;
  add_details(details, other.details);
  if (other.cost) cost = cost ? add_decimals(*cost, *other.cost) : other.cost;
}

RequestUsage read_usage(Json& value, const Place& place) {
  Fields fields(value, place);
  RequestUsage usage;
  for (const Figure& figure : k_figures) {
    if (const Json* number = fields.find(figure.name)) {
      usage.*figure.field = need_integer(*number, place.key(figure.name));
    } else if (const Json* older = figure.older_name.empty() ? nullptr : fields.find(figure.older_name)) {
      // Older versions wrote null where a provider did not tell.
      if (!older->is_null()) usage.*figure.field = need_integer(*older, place.key(figure.older_name));
    }
  }
  if (const Json* seconds = fields.find("audio_seconds")) {
    auto number = lenient_float(*seconds);
    if (!number) refuse(place.key("audio_seconds"), "Expected a number");
    usage.audio_seconds = *number;
  }
  usage.details = read_details(fields.find("details"), place.key("details"));
  usage.cost = read_cost(fields.find("cost"), place.key("cost"));
  auto& extra = usage.extra.get_ref<Json::object_t&>();
  for (auto& [key, member] : value.get_ref<Json::object_t&>()) {
    if (!is_known(key)) extra.emplace_back(key, std::move(member));
  }
  return usage;
}

Json usage_to_json(const RequestUsage& usage) {
  Json out = Json::object();
  auto& members = out.get_ref<Json::object_t&>();
  members.reserve(k_figures.size() + k_others.size() + usage.extra.size());
  for (const Figure& figure : k_figures) {
    std::int64_t value = usage.*figure.field;
    bool left_out = figure.field == &RequestUsage::unmeasured_requests && value == 0;
    if (!left_out) members.emplace_back(figure.name, value);
  }
  members.emplace_back("audio_seconds", usage.audio_seconds);
  members.emplace_back("details", usage.details);
  members.emplace_back("cost", usage.cost ? Json(*usage.cost) : Json(nullptr));
  for (const auto& [key, value] : usage.extra.get_ref<const Json::object_t&>())
    members.emplace_back(key, value);
  return out;
}

RequestUsage usage_from_json(const Json& value) {
  Json copy = value;
  return read_usage(copy, Place());
}

}  // namespace holt
