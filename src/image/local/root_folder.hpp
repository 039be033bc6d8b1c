// A root file system in a folder, on its way into the store.
#pragma once

#include "holt/image/store.hpp"

#include <filesystem>
#include <string_view>

namespace holt::image {

/// Packs the folder and imports the tar. Throws Error as FolderTar and Store::import_root_tar do; USAGE for a
/// folder that is no root file system but what one is built from.
Image import_root_folder(Store& store, const std::filesystem::path& folder, std::string_view reference,
                         const ImportOptions& options);

}  // namespace holt::image
