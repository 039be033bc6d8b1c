#include "holt/base/error.hpp"
#include "holt/models/test_model.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace holt {
namespace {

constexpr int k_depth_limit = 100;
constexpr std::size_t k_length_limit = 100'000;

/// Makes a value for a schema. The seed moves on inside lists of unique items.
class ArgsMaker {
 public:
  ArgsMaker(const Json& schema, std::int64_t seed) : root_(schema), seed_(seed) {}

  Json make() { return any(root_, 0); }

 private:
  static const Json& field(const Json& schema, const char* name) {
    static const Json none = nullptr;
    if (!schema.is_object()) return none;
    auto it = schema.find(name);
    return it == schema.end() ? none : *it;
  }

  static std::int64_t number(const Json& value, std::int64_t fallback) {
    return json_whole_part(value).value_or(fallback);
  }

  static std::size_t length(const Json& value) {
    auto wanted = number(value, 0);
    if (wanted > static_cast<std::int64_t>(k_length_limit)) {
      throw UserError("A schema asks for more items or characters than the test model makes");
    }
    return static_cast<std::size_t>(std::max<std::int64_t>(wanted, 0));
  }

  const Json& pick(const Json& list) const { return list[static_cast<std::size_t>(seed_) % list.size()]; }

  Json any(const Json& schema, int depth) {
    if (depth > k_depth_limit) throw UserError("A schema is nested too deeply for the test model");
    if (!field(schema, "const").is_null()) return field(schema, "const");
    for (const char* list : {"enum", "examples"}) {
      if (field(schema, list).is_array() && !field(schema, list).empty()) return pick(field(schema, list));
    }
    if (field(schema, "$ref").is_string()) return any(target(field(schema, "$ref")), depth + 1);
    for (const char* list : {"anyOf", "oneOf"}) {
      if (field(schema, list).is_array() && !field(schema, list).empty()) {
        return any(pick(field(schema, list)), depth + 1);
      }
    }
    return of_type(schema, depth);
  }

  const Json& target(const Json& ref) const {
    constexpr std::string_view k_prefix = "#/$defs/";
    auto name = ref.get<std::string>();
    if (name.starts_with(k_prefix)) name.erase(0, k_prefix.size());
    const auto& found = field(field(root_, "$defs"), name.c_str());
    if (!found.is_object())
      throw UserError(fmt::format("A schema refers to '{}', which it does not hold", name));
    return found;
  }

  Json of_type(const Json& schema, int depth) {
    const auto& type = field(schema, "type");
    if (type == "object") return object(schema, depth);
    if (type == "string") return string(schema);
    if (type == "integer") return integer(schema);
    if (type == "number") return real(schema);
    if (type == "boolean") return seed_ % 2 != 0;
    if (type == "array") return array(schema, depth);
    if (type == "null") return nullptr;
    return characters();
  }

  Json object(const Json& schema, int depth) {
    Json out = Json::object();
    const auto& required = field(schema, "required");
    const auto& properties = field(schema, "properties");
    if (properties.is_object()) {
      for (const auto& [name, property] : properties.items()) {
        bool wanted =
            required.is_array() && std::find(required.begin(), required.end(), name) != required.end();
        if (wanted) out[name] = any(property, depth + 1);
      }
    }
    const auto& more = field(schema, "additionalProperties");
    if (more == true || (more.is_object() && !more.empty())) {
      std::string name = "additionalProperty";
      while (out.contains(name)) name += '_';
      out[name] = more.is_boolean() ? Json(characters()) : any(more, depth + 1);
    }
    return out;
  }

  Json string(const Json& schema) {
    if (!field(schema, "minLength").is_null()) {
      std::string out;
      auto unit = characters();
      for (auto left = length(field(schema, "minLength")); left > 0; --left) out += unit;
      return out;
    }
    if (field(schema, "maxLength") == 0) return "";
    if (field(schema, "format") == "date") {
      namespace chrono = std::chrono;
      chrono::year_month_day date =
          chrono::sys_days(chrono::year(2024) / 1 / 1) + chrono::days(seed_ % 100'000);
      return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                         static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
    }
    return characters();
  }

  struct Bounds {
    std::optional<double> least;
    std::optional<double> most;
    bool most_included = true;
  };

  static Bounds bounds(const Json& schema) {
    Bounds out;
    auto number_at = [&](const char* name, double step) -> std::optional<double> {
      if (!field(schema, name).is_number()) return std::nullopt;
      return field(schema, name).get<double>() + step;
    };
    out.least = number_at("minimum", 0);
    if (!out.least) out.least = number_at("exclusiveMinimum", 1);
    out.most = number_at("maximum", 0);
    if (out.most) return out;
    out.most = number_at("exclusiveMaximum", -1);
    out.most_included = false;
    return out;
  }

  std::int64_t integer(const Json& schema) const {
    auto [least, most, included] = bounds(schema);
    // Whole numbers take the upper bound in.
    return static_cast<std::int64_t>(std::clamp(within(least, most, included ? 1 : 0), -9e15, 9e15));
  }

  double real(const Json& schema) const {
    auto [least, most, included] = bounds(schema);
    return within(least, most, 0);
  }

  double within(std::optional<double> least, std::optional<double> most, double more) const {
    auto seed = static_cast<double>(seed_);
    if (least && most) {
      double span = *most - *least + more;
      return span > 0 ? *least + std::fmod(seed, span) : *least;
    }
    if (least) return *least + seed;
    if (most) return *most - seed;
    return seed;
  }

  Json array(const Json& schema, int depth) {
    Json out = Json::array();
    bool unique = field(schema, "uniqueItems") == true;
    auto add = [&](const Json& item) {
      out.push_back(any(item, depth + 1));
      if (unique) ++seed_;
    };
    const auto& prefix = field(schema, "prefixItems");
    if (prefix.is_array()) {
      for (const auto& item : prefix) add(item);
    }
    const auto& items = field(schema, "items");
    auto least = length(field(schema, "minItems"));
    if (least > out.size()) {
      while (out.size() < least) add(items);
    } else if (items.is_object() && !items.empty()) {
      const auto& most = field(schema, "maxItems");
      if (most.is_null() || number(most, 0) > static_cast<std::int64_t>(out.size())) add(items);
    }
    return out;
  }

  /// Counts like the columns of a spreadsheet.
  std::string characters() const {
    constexpr std::string_view k_all =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
        "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
    auto base = static_cast<std::int64_t>(k_all.size());
    std::string out;
    for (auto rest = seed_ / base; rest > 0; rest /= base)
      out += k_all[static_cast<std::size_t>((rest - 1) % base)];
    out += k_all[static_cast<std::size_t>(seed_ % base)];
    return out;
  }

  const Json& root_;
  std::int64_t seed_;
};

}  // namespace

Json make_test_args(const Json& schema, std::int64_t seed) {
  return ArgsMaker(schema, std::max<std::int64_t>(seed, 0)).make();
}

}  // namespace holt
