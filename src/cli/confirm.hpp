// The question before something is deleted.
#pragma once

#include "cli/session.hpp"

#include <string_view>

namespace holt::cli {

/// Asks "delete WHAT?". Throws Error CANCELLED for anything but yes, USAGE where nobody can answer; `instead`
/// is its hint.
void confirm_deletion(Session& session, std::string_view verb, std::string_view what,
                      std::string_view instead);

}  // namespace holt::cli
