// Tool and output schemas as Anthropic wants them.
#pragma once

#include "holt/base/json.hpp"

namespace holt {

/// Without the titles of schemas ("title" as the name of a property stays) and "$schema".
Json without_titles(const Json& schema);

/// The subset that Anthropic's strict tools and structured outputs take: objects closed, keywords outside it
/// moved into the description as "{minimum: 0}". Throws UserError for a schema without a type, or nested
/// deeper than 200.
Json anthropic_strict_schema(const Json& schema);

}  // namespace holt
