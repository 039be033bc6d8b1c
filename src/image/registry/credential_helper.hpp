// Docker's credential helpers: programs that keep passwords.
#pragma once

#include "holt/image/pull.hpp"
#include "image/registry/surroundings.hpp"

#include <optional>
#include <string>

namespace holt::image {

/// Runs `docker-credential-NAME get` for a registry, in this process's environment. Nothing when the helper
/// does not know it. Throws Error UNAUTHORIZED when it is missing, fails or answers something else,
/// CANCELLED.
std::optional<Credentials> ask_credential_helper(const std::string& name, const std::string& registry,
                                                 const Surroundings& surroundings,
                                                 const std::optional<CancellationToken>& cancel);

}  // namespace holt::image
