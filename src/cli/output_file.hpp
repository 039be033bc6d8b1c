// Files that a flag names for a result.
#pragma once

#include "holt/base/fd.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace holt::cli {

/// Notices a folder that is missing, or in the file's place, before anything is done. Throws Error USAGE.
void check_output_file(std::string_view flag, const std::string& path);

/// What is there under this name and must be written to instead of being replaced by a file: a device, a
/// pipe, /dev/stdout. Nothing for a regular file, a folder, and where nothing is. Throws Error when it cannot
/// be opened.
std::optional<Fd> open_special_file(const std::string& path);

}  // namespace holt::cli
