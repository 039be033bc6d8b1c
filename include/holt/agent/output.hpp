// What an agent's run gives: text, or a typed value that the model has to produce.
//
//   struct City { std::string name; int population; };
//   BOOST_DESCRIBE_STRUCT(City, (), (name, population))
//   City city = agent.run_sync<City>("The largest city of Norway?").output();
//   auto either = agent.run_sync<std::variant<City, std::string>>("...");    // or plain text
//
// Depends on agent/schema.hpp.
#pragma once

#include "holt/agent/schema.hpp"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace holt {

class RunContext;

/// One type among those that a run may give. A value.
struct OutputChoice {
  std::string name;                                       ///< of the type, e.g. "City", "int"
  std::optional<std::string> tool_name = std::nullopt;    ///< none: made from the type's name
  std::optional<std::string> description = std::nullopt;  ///< of the program's own, in front of the type's
  std::optional<std::string> type_text = std::nullopt;    ///< what `describe` says of the type
  Json schema = Json::object();                           ///< of the type itself
  std::optional<bool> strict = std::nullopt;
};

/// How structured output is asked for. `automatic`: as the model's profile prefers, a tool where it says
/// nothing; text that is JSON of the type is taken too.
enum class OutputRequest { automatic, tool, native, prompted };

/// The types that a run may give, without C++ types. A value.
struct OutputSpec {
  std::vector<OutputChoice> choices = {};
  bool text = true;   ///< plain text is an output
  bool null = false;  ///< an empty response is an output
  OutputRequest request = OutputRequest::automatic;
  /// Looks at a valid value and may change it; throws ModelRetry to have it made anew. In order.
  std::vector<std::function<Json(const RunContext&, Json)>> validators = {};
};

/// T by a call of an output tool, with a name and a description of the program's own.
template <class T>
struct ToolOutput {
  T value;
};
/// T by the provider's structured output.
template <class T>
struct NativeOutput {
  T value;
};
/// T by a schema in the instructions.
template <class T>
struct PromptedOutput {
  T value;
};

/// The output of a run before it has its C++ type: which choice, and the value. Text has no choice.
struct RawOutput {
  Json value = nullptr;
  std::optional<std::size_t> choice = std::nullopt;
};

namespace detail {

template <class T>
OutputChoice output_choice() {
  OutputChoice choice{.name = type_name<T>()};
  choice.schema = json_schema<T>();
  if constexpr (DescribedStruct<T>) {
    std::string text = struct_facts<T>().text;
    if (!text.empty()) choice.type_text = std::move(text);
  }
  return choice;
}

template <class T>
struct OutputOf {
  static OutputSpec spec() {
    OutputSpec spec;
    spec.text = false;
    spec.choices.push_back(output_choice<T>());
    return spec;
  }
  static T value(const RawOutput& raw) { return decode_json<T>(raw.value); }
};

template <>
struct OutputOf<std::string> {
  static OutputSpec spec() { return {}; }
  static std::string value(const RawOutput& raw) {
    return raw.value.is_string() ? raw.value.get<std::string>() : dump_json(raw.value);
  }
};

template <class T>
struct OutputOf<std::optional<T>> {
  static OutputSpec spec() {
    OutputSpec spec = OutputOf<T>::spec();
    spec.null = true;
    if (!spec.choices.empty()) spec.choices.push_back(output_choice<std::monostate>());
    return spec;
  }
  static std::optional<T> value(const RawOutput& raw) {
    if (raw.value.is_null()) return std::nullopt;
    return OutputOf<T>::value(raw);
  }
};

template <class... T>
struct OutputOf<std::variant<T...>> {
  using Variant = std::variant<T...>;
  static OutputSpec spec() {
    OutputSpec spec;
    spec.text = (std::same_as<T, std::string> || ...);
    if (spec.text) spec.request = OutputRequest::tool;
    (add<T>(spec), ...);
    return spec;
  }
  static Variant value(const RawOutput& raw) {
    std::optional<Variant> result;
    std::size_t index = 0;
    (take<T>(raw, index, result), ...);
    if (!result) throw_wrong_shape(raw.value, "one of the output types");
    return std::move(*result);
  }

 private:
  template <class U>
  static void add(OutputSpec& spec) {
    if constexpr (!std::same_as<U, std::string>) spec.choices.push_back(output_choice<U>());
  }
  template <class U>
  static void take(const RawOutput& raw, std::size_t& index, std::optional<Variant>& result) {
    if constexpr (std::same_as<U, std::string>) {
      if (!raw.choice && raw.value.is_string()) result.emplace(raw.value.template get<std::string>());
    } else if (raw.choice == index++) {
      result.emplace(decode_json<U>(raw.value));
    }
  }
};

template <class T>
struct OutputOf<ToolOutput<T>> : OutputOf<T> {
  static OutputSpec spec() {
    OutputSpec spec = OutputOf<T>::spec();
    spec.request = OutputRequest::tool;
    return spec;
  }
};
template <class T>
struct OutputOf<NativeOutput<T>> : OutputOf<T> {
  static OutputSpec spec() {
    OutputSpec spec = OutputOf<T>::spec();
    spec.request = OutputRequest::native;
    return spec;
  }
};
template <class T>
struct OutputOf<PromptedOutput<T>> : OutputOf<T> {
  static OutputSpec spec() {
    OutputSpec spec = OutputOf<T>::spec();
    spec.request = OutputRequest::prompted;
    return spec;
  }
};

}  // namespace detail

/// The C++ type of an output: T, or what a marker such as NativeOutput<T> is about.
template <class T>
using OutputValue = decltype(detail::OutputOf<T>::value(std::declval<const RawOutput&>()));

/// The spec of T, to add names, descriptions or validators to.
template <class T>
OutputSpec output_spec() {
  return detail::OutputOf<T>::spec();
}

}  // namespace holt
