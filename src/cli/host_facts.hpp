// What `doctor` and `version` find out about this host. Each look has a deadline; nothing here changes
// anything.
#pragma once

#include "cli/session.hpp"
#include "holt/base/json.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace holt::cli {

/// {"qemu": "7.2.19" or null, "kernel": "6.1.0-37-cloud-amd64" or null}
Json engine_versions(Session& session);

/// The VMM that would be started, where there is one.
std::optional<std::filesystem::path> find_qemu(const HostConfig& host);
/// Its version as it prints it; nothing when it does not run.
std::optional<std::string> qemu_version(const std::filesystem::path& qemu);

/// Bytes free for this user on the file system that holds `path` or the nearest parent that exists.
std::optional<std::uint64_t> free_bytes(std::filesystem::path path);

/// True when files can be made in `path`, or in the nearest parent that exists.
bool is_writable(std::filesystem::path path);

}  // namespace holt::cli
