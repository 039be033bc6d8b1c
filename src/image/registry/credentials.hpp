// Who the user is at a registry, from the files of podman and docker and from their helper programs.
//
//   auto credentials = find_credentials("docker.io", "library/python", options, surroundings, cancel);
#pragma once

#include "holt/image/pull.hpp"
#include "image/registry/surroundings.hpp"

#include <optional>
#include <string>

namespace holt::image {

/// Looks in this order; the first file that knows the registry decides:
///   options.credentials; options.auth_file (must be there, and then no other file counts);
///   $REGISTRY_AUTH_FILE, $XDG_RUNTIME_DIR/containers/auth.json, ~/.config/containers/auth.json,
///   $DOCKER_CONFIG/config.json or ~/.docker/config.json.
/// In a file: the helper that `credHelpers` names for the registry; the entry of `auths` that names most of
/// REGISTRY/REPOSITORY, or Docker's https://index.docker.io/v1/; the helper `credsStore`. A helper is
/// `docker-credential-NAME get`, looked up in the absolute folders of PATH, given 30 s and 64 KiB.
/// Nothing when none knows the registry. Throws Error NOT_FOUND for a missing auth_file, INVALID_CONFIG for
/// a file that cannot be read, UNAUTHORIZED for a helper that fails, CANCELLED; no message holds a secret.
/// Source: containers-auth.json(5); the `get` of Docker's credential helper protocol.
std::optional<Credentials> find_credentials(const std::string& registry, const std::string& repository,
                                            const RegistryOptions& options, const Surroundings& surroundings,
                                            const std::optional<CancellationToken>& cancel);

}  // namespace holt::image
