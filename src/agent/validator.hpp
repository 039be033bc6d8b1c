// The walk of a value along a schema. Used by validation.cpp alone; the sources validator_*.cpp share it.
#pragma once

#include "holt/agent/validation.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace holt::detail {

/// How well a value fits without conversion: decides between the members of a union.
enum class Exactness { lax, strict, exact };

/// The outcome for one value: what it became, or error items with locations from here.
struct Outcome {
  Json value = nullptr;
  std::vector<ErrorItem> errors = {};
  Exactness exactness = Exactness::exact;
  std::optional<std::size_t> fields_set =
      std::nullopt;  ///< for structs: fields given, with those of structs below

  bool ok() const { return errors.empty(); }
};

Outcome success(Json value, Exactness exactness = Exactness::exact);
Outcome failure(std::string type, std::string message, const Json& input);

// Values without parts, each with the limits that its schema sets. Implemented in validator_scalars.cpp.
Outcome check_integer(const Json& schema, const Json& value);
Outcome check_number(const Json& schema, const Json& value);
Outcome check_boolean(const Json& value);
Outcome check_string(const Json& schema, const Json& value);
Outcome check_null(const Json& value);
/// One of the values of "enum", or "const".
Outcome check_literal(const Json& values, const Json& value);
/// Whether the items or members of a container are as many as the schema allows.
std::optional<ErrorItem> check_size(const Json& schema, const Json& value, const char* min, const char* max);

/// The name of a schema's type at the end of a location in a union: int, list[str], a struct's title.
std::string type_name(const Json& schema, const Json& root);
/// The schema that "$ref"s lead to, across as many hops as a schema can have; null when one leads nowhere.
const Json* resolve(const Json& schema, const Json& root);

class Validator {
 public:
  /// `root` must outlive this. One walk each.
  explicit Validator(const Json& root) : root_(root) {}
  Outcome run(const Json& value);

 private:
  Outcome check(const Json& schema, const Json& value);
  Outcome check_by_type(const Json& schema, const Json& value);
  Outcome check_one_type(std::string_view type, const Json& schema, const Json& value);
  Outcome check_object(const Json& schema, const Json& value);
  void check_field(const Json& schema, const std::string& name, const Json& value, Outcome& outcome);
  void check_extras(const Json& schema, const Json& value, Outcome& outcome);
  Outcome check_list(const Json& schema, const Json& value);
  Outcome check_union(const std::vector<const Json*>& members, const Json& value);
  Outcome check_tagged_union(const Json& schema, const Json& value);
  Outcome check_all_of(const Json& schema, const Json& value);

  const Json& root_;
  std::size_t steps_ = 0;
};

}  // namespace holt::detail
