// Formatters of verbs that list things: aligned columns, or a template such as '{{.name}} {{.state}}'.
#pragma once

#include "holt/base/json.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace holt::cli {

using Row = std::vector<std::string>;

/// A header and rows in columns, each ended by a line end. Control bytes of cells are escaped.
std::string format_table(const Row& header, const std::vector<Row>& rows);

/// What a template says where it names a key that the object does not have.
enum class UnknownKey { refused, empty };

/// A template over a JSON object: {{.key}} and {{.key.inner}} are replaced by the value (strings bare, other
/// values as JSON, null and what would be below it empty); "\n" and "\t" are understood. Below `labels`,
/// whose keys are anybody's, the rest of the path is one key, and one that is missing is empty. Throws Error
/// USAGE for a template that is not closed or not of this form, and for an unknown key, with those that there
/// are.
std::string format_template(std::string_view text, const Json& object,
                            UnknownKey unknown = UnknownKey::refused);

}  // namespace holt::cli
