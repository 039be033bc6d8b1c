// The rules by which Anthropic's Messages API takes a request.
#pragma once

#include "replay/api.hpp"

namespace holt::replay {

/// Checks the body and tells what the script asks about. Throws Misfit.
Request read_anthropic_body(const Json& body);

}  // namespace holt::replay
