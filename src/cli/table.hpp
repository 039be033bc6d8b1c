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

/// A template over a JSON object: {{.key}} and {{.key.inner}} are replaced by the value (strings bare, other
/// values as JSON, missing ones empty); "\n" and "\t" are understood. Throws Error USAGE for a template that
/// is not closed or not of this form.
std::string format_template(std::string_view text, const Json& object);

}  // namespace holt::cli
