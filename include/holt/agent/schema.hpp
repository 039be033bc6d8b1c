// JSON Schemas of C++ types, and values of them from and to JSON. Boost.Describe gives names and types; a
// free function `describe` beside the type adds texts, limits and defaults:
//
//   struct Forecast { std::string city; int days = 1; };
//   BOOST_DESCRIBE_STRUCT(Forecast, (), (city, days))
//   void describe(holt::Schema<Forecast>& schema) {
//     schema.text("Where and for how long.");
//     schema.field(&Forecast::city).text("Name of the city.");
//     schema.field(&Forecast::days).default_value(1).at_least(1).at_most(14);
//   }
//
// A field is required unless it has a default there or is std::optional. Types: bool, integers, floats,
// std::string, std::vector, std::map and std::unordered_map with text keys, std::optional, std::variant,
// described enums (their names), described structs, and Json (anything).
// Depends on base/ and Boost.Describe. Everything is a pure function of its arguments.
#pragma once

#include "holt/base/json.hpp"
#include "holt/messages/content.hpp"

#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeindex>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <boost/describe.hpp>
#include <boost/mp11/algorithm.hpp>

namespace holt {

/// What `describe` said of one field. A value.
struct FieldFacts {
  std::string name;
  std::string text = {};
  std::optional<Json> default_value = std::nullopt;
  Json keywords = Json::object();  ///< further JSON Schema keywords: minimum, enum, pattern, ...
};

/// Collects what `describe` says of one field of type M.
template <class M>
class FieldSchema {
 public:
  explicit FieldSchema(FieldFacts& facts) : facts_(facts) {}
  FieldSchema& text(std::string text) {
    facts_.text = std::move(text);
    return *this;
  }
  /// Makes the field optional in the arguments; `value` is filled in where it is missing.
  FieldSchema& default_value(const M& value);
  FieldSchema& at_least(Json value) { return keyword("minimum", std::move(value)); }
  FieldSchema& at_most(Json value) { return keyword("maximum", std::move(value)); }
  FieldSchema& above(Json value) { return keyword("exclusiveMinimum", std::move(value)); }
  FieldSchema& below(Json value) { return keyword("exclusiveMaximum", std::move(value)); }
  FieldSchema& multiple_of(Json value) { return keyword("multipleOf", std::move(value)); }
  /// Characters of a text.
  FieldSchema& length(std::size_t min, std::size_t max = std::numeric_limits<std::size_t>::max()) {
    return range("minLength", "maxLength", min, max);
  }
  /// Items of a list.
  FieldSchema& items(std::size_t min, std::size_t max = std::numeric_limits<std::size_t>::max()) {
    return range("minItems", "maxItems", min, max);
  }
  FieldSchema& pattern(std::string regex) { return keyword("pattern", std::move(regex)); }
  /// Only these values.
  FieldSchema& one_of(std::vector<Json> values) { return keyword("enum", Json(std::move(values))); }

 private:
  FieldSchema& keyword(const char* name, Json value) {
    facts_.keywords[name] = std::move(value);
    return *this;
  }
  FieldSchema& range(const char* low, const char* high, std::size_t min, std::size_t max) {
    if (min > 0) facts_.keywords[low] = min;
    if (max != std::numeric_limits<std::size_t>::max()) facts_.keywords[high] = max;
    return *this;
  }
  FieldFacts& facts_;
};

/// What `describe` said of a struct. A value.
struct StructFacts {
  std::string text = {};
  std::vector<FieldFacts> fields = {};  ///< all fields, in order of declaration
  FieldFacts& field(std::string_view name);
};

/// Collects what `describe(Schema<T>&)` says of T.
template <class T>
class Schema {
 public:
  explicit Schema(StructFacts& facts) : facts_(facts) {}
  /// What the struct stands for; a model reads it.
  Schema& text(std::string text) {
    facts_.text = std::move(text);
    return *this;
  }
  /// A field of T. Precondition: it is among the described members.
  template <class M>
  FieldSchema<M> field(M T::* member);

 private:
  StructFacts& facts_;
};

namespace detail {

template <class T>
concept DescribedStruct =
    std::is_class_v<T> && boost::describe::has_describe_members<T>::value && !std::is_union_v<T>;
template <class T>
concept DescribedEnum = std::is_enum_v<T> && boost::describe::has_describe_enumerators<T>::value;
template <class T>
concept HasDescribe = requires(Schema<T>& schema) { describe(schema); };
template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class T>
struct IsMap<std::map<std::string, T>> : std::true_type {};
template <class T>
struct IsMap<std::unordered_map<std::string, T>> : std::true_type {};
template <class T>
struct IsVariant : std::false_type {};
template <class... T>
struct IsVariant<std::variant<T...>> : std::true_type {};

template <class T>
using Members =
    boost::describe::describe_members<T, boost::describe::mod_any_access | boost::describe::mod_inherited>;

/// The struct's name without namespace.
std::string bare_type_name(const std::type_info& type);

/// Definitions of nested structs, while a schema is made.
class SchemaDefinitions {
 public:
  /// The name under which a struct is defined, and whether it is new here.
  std::pair<std::string, bool> enter(const std::type_info& type);
  void define(const std::string& name, Json schema) { definitions_[name] = std::move(schema); }
  const Json& all() const { return definitions_; }

 private:
  Json definitions_ = Json::object();
  std::map<std::type_index, std::string> names_;
};

/// A property: the type's schema with the field's text, default and limits.
Json property_schema(Json type_schema, const FieldFacts& facts);
/// The schema of a struct from its properties. `title` and `text` are left out where empty.
Json object_schema(const std::string& title, const std::string& text, Json properties,
                   const StructFacts& facts);

/// Thrown by decode_json where a validated value does not fit the C++ type (a number too large).
[[noreturn]] void throw_not_representable(const Json& value, const char* type);

template <class T>
StructFacts struct_facts() {
  StructFacts facts;
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    using M = std::remove_cvref_t<decltype(std::declval<T>().*member.pointer)>;
    FieldFacts field{.name = member.name};
    if constexpr (IsOptional<M>::value) field.default_value = Json(nullptr);
    facts.fields.push_back(std::move(field));
  });
  if constexpr (HasDescribe<T>) {
    Schema<T> schema(facts);
    describe(schema);
  }
  return facts;
}

template <class T>
Json type_schema(SchemaDefinitions& definitions);

template <class T>
Json struct_properties(const StructFacts& facts, SchemaDefinitions& definitions) {
  Json properties = Json::object();
  std::size_t index = 0;
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    using M = std::remove_cvref_t<decltype(std::declval<T>().*member.pointer)>;
    properties[member.name] = property_schema(type_schema<M>(definitions), facts.fields[index++]);
  });
  return properties;
}

template <class Variant>
struct VariantSchema;
template <class... T>
struct VariantSchema<std::variant<T...>> {
  static Json make(SchemaDefinitions& definitions) {
    Json any = Json::array();
    (any.push_back(type_schema<T>(definitions)), ...);
    Json schema = Json::object();
    schema["anyOf"] = std::move(any);
    return schema;
  }
};

template <class T>
Json enum_schema() {
  Json names = Json::array();
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>(
      [&](auto enumerator) { names.push_back(enumerator.name); });
  Json schema = Json::object();
  schema["enum"] = std::move(names);
  schema["type"] = "string";
  return schema;
}

Json simple_schema(const char* type);
Json array_schema(Json items);
Json map_schema(Json values);
Json nullable_schema(Json type);
Json reference_schema(const std::string& name);

template <class T>
Json type_schema(SchemaDefinitions& definitions) {
  if constexpr (std::same_as<T, Json>) {
    return Json::object();
  } else if constexpr (std::same_as<T, std::monostate>) {
    return simple_schema("null");
  } else if constexpr (std::same_as<T, bool>) {
    return simple_schema("boolean");
  } else if constexpr (Integer<T>) {
    return simple_schema("integer");
  } else if constexpr (std::floating_point<T>) {
    return simple_schema("number");
  } else if constexpr (std::same_as<T, std::string>) {
    return simple_schema("string");
  } else if constexpr (IsOptional<T>::value) {
    return nullable_schema(type_schema<typename T::value_type>(definitions));
  } else if constexpr (IsVector<T>::value) {
    return array_schema(type_schema<typename T::value_type>(definitions));
  } else if constexpr (IsMap<T>::value) {
    return map_schema(type_schema<typename T::mapped_type>(definitions));
  } else if constexpr (IsVariant<T>::value) {
    return VariantSchema<T>::make(definitions);
  } else if constexpr (DescribedEnum<T>) {
    return enum_schema<T>();
  } else {
    static_assert(DescribedStruct<T>, "not a type that has a JSON Schema: describe it with Boost.Describe");
    auto [name, is_new] = definitions.enter(typeid(T));
    if (is_new) {
      StructFacts facts = struct_facts<T>();
      Json properties = struct_properties<T>(facts, definitions);
      definitions.define(name, object_schema(name, facts.text, std::move(properties), facts));
    }
    return reference_schema(name);
  }
}

}  // namespace detail

/// The schema of a tool's parameters: those of struct T, or none for void. No title, no unknown keys.
template <class T>
Json parameters_schema() {
  detail::SchemaDefinitions definitions;
  StructFacts facts;
  Json properties = Json::object();
  if constexpr (!std::is_void_v<T>) {
    static_assert(detail::DescribedStruct<T>, "a tool takes one struct described with Boost.Describe");
    facts = detail::struct_facts<T>();
    properties = detail::struct_properties<T>(facts, definitions);
  }
  Json schema = Json::object();
  if (!definitions.all().empty()) schema["$defs"] = definitions.all();
  schema["additionalProperties"] = false;
  schema.update(detail::object_schema({}, {}, std::move(properties), facts));
  return schema;
}

/// The schema of any supported type. A struct's own properties stand at the top, with its title and text.
template <class T>
Json json_schema() {
  detail::SchemaDefinitions definitions;
  Json schema;
  if constexpr (detail::DescribedStruct<T>) {
    StructFacts facts = detail::struct_facts<T>();
    Json properties = detail::struct_properties<T>(facts, definitions);
    schema =
        detail::object_schema(detail::bare_type_name(typeid(T)), facts.text, std::move(properties), facts);
  } else {
    schema = detail::type_schema<T>(definitions);
  }
  if (definitions.all().empty()) return schema;
  Json whole = Json::object();
  whole["$defs"] = definitions.all();
  whole.update(schema);
  return whole;
}

/// The name that a model and an output tool see for a type: int, float, bool, str, list, dict, or the
/// struct's name without namespace.
template <class T>
std::string type_name() {
  if constexpr (std::same_as<T, bool>)
    return "bool";
  else if constexpr (detail::Integer<T>)
    return "int";
  else if constexpr (std::floating_point<T>)
    return "float";
  else if constexpr (std::same_as<T, std::string>)
    return "str";
  else if constexpr (detail::IsVector<T>::value)
    return "list";
  else if constexpr (detail::IsMap<T>::value || std::same_as<T, Json>)
    return "dict";
  else if constexpr (std::same_as<T, std::monostate>)
    return "None";
  else
    return detail::bare_type_name(typeid(T));
}

/// A validated value as T. Missing fields keep the struct's own initialisers. Throws Error LIMIT_EXCEEDED for
/// a number that T cannot hold, INVALID_CONFIG for another shape than json_schema<T>() asks for.
template <class T>
T decode_json(const Json& value);

/// A value as JSON: what decode_json reads back.
template <class T>
Json encode_json(const T& value);

namespace detail {

[[noreturn]] void throw_wrong_shape(const Json& value, const char* expected);

template <class T>
bool fits(const Json& value) {
  if constexpr (std::same_as<T, Json>)
    return true;
  else if constexpr (std::same_as<T, std::monostate>)
    return value.is_null();
  else if constexpr (std::same_as<T, bool>)
    return value.is_boolean();
  else if constexpr (Integer<T>)
    return value.is_number_integer() || is_json_big_integer(value);
  else if constexpr (std::floating_point<T>)
    return value.is_number();
  else if constexpr (std::same_as<T, std::string>)
    return value.is_string();
  else if constexpr (IsOptional<T>::value)
    return value.is_null() || fits<typename T::value_type>(value);
  else if constexpr (IsVector<T>::value)
    return value.is_array();
  else if constexpr (DescribedEnum<T>)
    return value.is_string();
  else if constexpr (DescribedStruct<T>) {
    if (!value.is_object()) return false;
    for (const auto& field : struct_facts<T>().fields)
      if (!field.default_value && !value.contains(field.name)) return false;
    return true;
  } else
    return value.is_object();
}

template <class V>
struct VariantCodec;
template <class... T>
struct VariantCodec<std::variant<T...>> {
  using V = std::variant<T...>;
  static V decode(const Json& value) {
    std::optional<V> result;
    (try_one<T>(value, result), ...);
    if (!result) throw_wrong_shape(value, "one of the alternatives");
    return std::move(*result);
  }

 private:
  template <class U>
  static void try_one(const Json& value, std::optional<V>& result) {
    if (!result && fits<U>(value)) result.emplace(decode_json<U>(value));
  }
};

template <class T>
T decode_integer(const Json& value) {
  if (auto number = json_integer<T>(value)) return *number;
  if (!value.is_number_integer() && !is_json_big_integer(value)) throw_wrong_shape(value, "an integer");
  throw_not_representable(value, "integer");
}

double decode_float(const Json& value);

template <class T>
T decode_enum(const Json& value) {
  std::optional<T> result;
  if (value.is_string()) {
    const auto& text = value.template get_ref<const std::string&>();
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>([&](auto enumerator) {
      if (text == enumerator.name) result = enumerator.value;
    });
  }
  if (!result) throw_wrong_shape(value, "one of the names");
  return *result;
}

template <class T>
T decode_struct(const Json& value) {
  if (!value.is_object()) throw_wrong_shape(value, "an object");
  T result{};
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    using M = std::remove_cvref_t<decltype(result.*member.pointer)>;
    auto found = value.find(member.name);
    if (found != value.end()) result.*member.pointer = decode_json<M>(*found);
  });
  return result;
}

template <class T>
Json encode_enum(T value) {
  Json result;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>([&](auto enumerator) {
    if (value == enumerator.value) result = enumerator.name;
  });
  return result;
}

template <class T>
Json encode_struct(const T& value) {
  Json result = Json::object();
  boost::mp11::mp_for_each<Members<T>>(
      [&](auto member) { result[member.name] = encode_json(value.*member.pointer); });
  return result;
}

}  // namespace detail

template <class T>
T decode_json(const Json& value) {
  using namespace detail;
  if constexpr (std::same_as<T, Json>) {
    return value;
  } else if constexpr (std::same_as<T, std::monostate>) {
    return {};
  } else if constexpr (std::same_as<T, bool>) {
    if (!value.is_boolean()) throw_wrong_shape(value, "a boolean");
    return value.get<bool>();
  } else if constexpr (Integer<T>) {
    return decode_integer<T>(value);
  } else if constexpr (std::floating_point<T>) {
    return static_cast<T>(decode_float(value));
  } else if constexpr (std::same_as<T, std::string>) {
    if (!value.is_string()) throw_wrong_shape(value, "a text");
    return value.get<std::string>();
  } else if constexpr (IsOptional<T>::value) {
    if (value.is_null()) return std::nullopt;
    return decode_json<typename T::value_type>(value);
  } else if constexpr (IsVector<T>::value) {
    if (!value.is_array()) throw_wrong_shape(value, "a list");
    T result;
    result.reserve(value.size());
    for (const auto& item : value) result.push_back(decode_json<typename T::value_type>(item));
    return result;
  } else if constexpr (IsMap<T>::value) {
    if (!value.is_object()) throw_wrong_shape(value, "an object");
    T result;
    for (const auto& [key, item] : value.items())
      result.insert_or_assign(key, decode_json<typename T::mapped_type>(item));
    return result;
  } else if constexpr (IsVariant<T>::value) {
    return VariantCodec<T>::decode(value);
  } else if constexpr (DescribedEnum<T>) {
    return decode_enum<T>(value);
  } else {
    static_assert(DescribedStruct<T>, "not a type that can be read from JSON");
    return decode_struct<T>(value);
  }
}

template <class T>
Json encode_json(const T& value) {
  using namespace detail;
  if constexpr (std::same_as<T, Json> || std::is_arithmetic_v<T>) {
    return value;
  } else if constexpr (std::same_as<T, std::monostate> || std::same_as<T, std::nullptr_t>) {
    return nullptr;
  } else if constexpr (std::same_as<T, UserContentItem>) {
    return content_to_json(value);
  } else if constexpr (std::same_as<T, BinaryContent> || std::same_as<T, FileUrl> ||
                       std::same_as<T, UploadedFile>) {
    return content_to_json(UserContentItem(value));
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    return std::string(std::string_view(value));
  } else if constexpr (IsOptional<T>::value) {
    return value ? encode_json(*value) : Json(nullptr);
  } else if constexpr (IsVector<T>::value) {
    Json result = Json::array();
    for (const auto& item : value) result.push_back(encode_json<typename T::value_type>(item));
    return result;
  } else if constexpr (IsMap<T>::value) {
    Json result = Json::object();
    for (const auto& [key, item] : value) result[key] = encode_json(item);
    return result;
  } else if constexpr (IsVariant<T>::value) {
    return std::visit([](const auto& alternative) { return encode_json(alternative); }, value);
  } else if constexpr (DescribedEnum<T>) {
    return encode_enum(value);
  } else {
    static_assert(DescribedStruct<T>, "not a type that becomes JSON: describe it with Boost.Describe");
    return encode_struct(value);
  }
}

template <class M>
FieldSchema<M>& FieldSchema<M>::default_value(const M& value) {
  facts_.default_value = encode_json(value);
  return *this;
}

template <class T>
template <class M>
FieldSchema<M> Schema<T>::field(M T::* member) {
  std::string_view name;
  boost::mp11::mp_for_each<detail::Members<T>>([&](auto described) {
    if constexpr (std::same_as<std::remove_cv_t<decltype(described.pointer)>, M T::*>) {
      if (described.pointer == member) name = described.name;
    }
  });
  return FieldSchema<M>(facts_.field(name));
}

}  // namespace holt
