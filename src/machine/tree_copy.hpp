// Copies of files and trees between host and guest.
#pragma once

#include "holt/machine/files.hpp"
#include "machine/record.hpp"

#include <filesystem>
#include <string>

namespace holt::machine {

CopyResult copy_tree_in(const MachineFolder& folder, const std::filesystem::path& source,
                        const std::string& target, const CopyOptions& options);
CopyResult copy_tree_out(const MachineFolder& folder, const std::string& source,
                         const std::filesystem::path& target, const CopyOptions& options);

}  // namespace holt::machine
