// Paths inside the machine, as the host sends them.
#pragma once

#include "guest/outcome.hpp"

#include <string>
#include <string_view>

namespace holt::guest {

/// A path checked (not empty, no NUL, below PATH_MAX) and joined to `base` when it is relative. Not
/// normalised: the kernel resolves it.
Outcome<std::string> absolute_path(std::string_view path, std::string_view base);

/// Resolves every symlink; components that do not exist are kept. ELOOP after 40 links, as the kernel.
Outcome<std::string> real_path(std::string_view absolute);

/// The file that writing to `absolute` changes: final symlinks followed, also dangling ones.
Outcome<std::string> write_target(std::string absolute);

/// Folder and name of a path without a trailing slash: {"/a", "b"} of "/a/b", {"/", "b"} of "/b".
std::pair<std::string, std::string> split_path(const std::string& absolute);

/// The path without slashes at its end; "/" stays.
std::string without_trailing_slashes(std::string path);

}  // namespace holt::guest
