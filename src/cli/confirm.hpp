// The question before something is deleted.
#pragma once

#include "cli/session.hpp"

#include <cstdint>
#include <string_view>

namespace holt::cli {

/// Asks whether what has been named may go. Throws Error CANCELLED for anything but yes, USAGE where nobody
/// can answer.
void confirm_deletion(Session& session, std::string_view verb, std::uint64_t bytes);

}  // namespace holt::cli
