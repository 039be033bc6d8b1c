// Validation of values against a JSON Schema, as a model is told about it: converted value or error items
// out.
//
//   auto arguments = holt::validate_arguments(tool.schema, call.args);
//   if (!arguments) return holt::error_items_to_json(arguments.error());   // the model sees these
//   fn(*arguments);                                                        // defaults are filled in
//
// Follows Pydantic's lenient mode for JSON input ("7" is 7, 1.0 is 1, "true" is true): which values pass,
// what they become, types and locations of the error items. Of JSON Schema it knows what describes data
// types: type, properties, required, additionalProperties, items, prefixItems, enum, const, anyOf, oneOf,
// allOf, $ref into the schema, default, and the limits on numbers, lengths and patterns; other keywords are
// no condition. Pure functions, thread-safe. Depends on base/json.hpp.
#pragma once

#include "holt/base/json.hpp"

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holt {

/// One thing that is wrong with a value.
struct ErrorItem {
  std::string type;          ///< e.g. "missing", "int_parsing", "extra_forbidden", "json_invalid"
  Json loc = Json::array();  ///< keys and indexes down to the place, then the type's name in a union
  std::string msg = {};      ///< one sentence of ours
  Json input = nullptr;      ///< the value at that place; for "missing" the object around it
};

struct ValidationOptions {
  /// The name of a tool's only argument when the schema is that argument's own: its value is accepted bare
  /// and also as {NAME: value}; locations leave the name out.
  std::optional<std::string> only_argument = std::nullopt;
};

using Validated = std::expected<Json, std::vector<ErrorItem>>;

/// A value against a schema. Never throws on bad values; work is bounded (error item "too_complex"), and
/// of the items at most some 1,000 are given.
Validated validate_value(const Json& schema, const Json& value, const ValidationOptions& options = {});
/// JSON text against a schema; error item "json_invalid" when it is none.
Validated validate_json(const Json& schema, std::string_view text, const ValidationOptions& options = {});
/// Arguments of a tool call as they arrived: JSON text or a value. Empty text and null count as {}.
Validated validate_arguments(const Json& schema, const Json& arguments,
                             const ValidationOptions& options = {});

/// The list that a history records and a model sees: type, loc, msg, input of each item. The input of a
/// second or later item at depth 0 or 1 that equals that of the first such item is left out.
Json error_items_to_json(const std::vector<ErrorItem>& items);

}  // namespace holt
