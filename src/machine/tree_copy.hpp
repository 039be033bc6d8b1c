// Copies of files and trees between host and guest.
#pragma once

#include "holt/machine/files.hpp"
#include "machine/record.hpp"

#include <filesystem>
#include <string>

namespace holt::machine {

class TreeSink;

CopyResult copy_tree_in(const MachineFolder& folder, const std::filesystem::path& source,
                        const std::string& target, const CopyOptions& options);
CopyResult copy_tree_out(const MachineFolder& folder, const std::string& source,
                         const std::filesystem::path& target, const CopyOptions& options);
/// Reads a guest tree into a sink.
CopyResult receive_tree(const MachineFolder& folder, const std::string& source, TreeSink& sink,
                        const CopyOptions& options);
CopyResult copy_tar_in(const MachineFolder& folder, const TarInput& tar, const std::string& target,
                       const CopyOptions& options);
CopyResult copy_tar_out(const MachineFolder& folder, const std::string& source, const TarOutput& tar,
                        const CopyOptions& options);

}  // namespace holt::machine
