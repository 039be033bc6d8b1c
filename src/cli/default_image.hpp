// The recipe of the default image, which is made on this machine from Debian's packages.
#pragma once

#include "cli/session.hpp"
#include "holt/image/store.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace holt::cli {

/// The mmdebstrap command that makes its root file system, without the file to write. `more` are packages
/// beside its own, with commas between.
std::vector<std::string> default_image_recipe(const std::string& more = {});

/// Runs a recipe; `tar` is replaced when it is whole. Throws Error RUNTIME_NOT_INSTALLED without mmdebstrap,
/// STORAGE_ERROR with its last words when it fails, CANCELLED.
void make_root_tar(Session& session, std::vector<std::string> recipe, const std::filesystem::path& tar);

/// What the processes of the default image get.
image::ImageConfig default_image_config();

}  // namespace holt::cli
