// Files of credentials, looked at before a registry asks for any.
//
//   holt::image::check_auth_file("auth.json");
#pragma once

#include <filesystem>

namespace holt::image {

/// Whether RegistryOptions::auth_file can be used: a pull itself reads it only when it has to say who it is.
/// Throws Error: NOT_FOUND, PERMISSION_DENIED, NOT_REGULAR, TOO_LARGE above 1 MiB, INVALID_CONFIG for what is
/// no JSON object. Thread-safe. Source: containers-auth.json(5).
void check_auth_file(const std::filesystem::path& file);

}  // namespace holt::image
