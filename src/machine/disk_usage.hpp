// How much of the host's disk a folder takes.
#pragma once

#include <cstdint>
#include <filesystem>

namespace holt::machine {

/// Bytes of the blocks of a folder, or file, and of everything below it; of what cannot be read none.
std::uint64_t blocks_below(const std::filesystem::path& path);

}  // namespace holt::machine
