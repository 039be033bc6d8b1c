// The version of this build.
#pragma once

#include <string>

namespace holt::cli {

std::string version();  ///< "0.1.0"
std::string commit();   ///< abbreviated commit, or "unknown" outside a checkout

}  // namespace holt::cli
