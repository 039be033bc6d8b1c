// Regular expressions of JSON Schema's "pattern".
#pragma once

#include <string>
#include <string_view>

namespace holt::detail {

/// Whether a text holds a match anywhere. Both are UTF-8, a point matches a character. True for an expression
/// that is none here (a foreign schema may use another dialect), false when the search grows beyond its
/// bound.
bool contains_match(const std::string& expression, std::string_view text);

}  // namespace holt::detail
