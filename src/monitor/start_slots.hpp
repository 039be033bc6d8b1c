// Keeps many starts at once from making each other late: a few go at a time, the others wait their turn.
#pragma once

#include "holt/base/files.hpp"

#include <filesystem>
#include <optional>

namespace holt::monitor {

/// Waits for one of twice as many slots as there are CPUs; the result gives it back. A start takes half a
/// second of CPU, so without this twenty at once on two CPUs would all miss their deadlines. After 20 s it
/// returns without a slot: nobody is held up for long by a start that hangs.
std::optional<FileLock> take_start_slot(const std::filesystem::path& folder);

}  // namespace holt::monitor
