// Memory files of templates: holes for pages of zeroes, and cheap proof that a file is still what was
// written.
#pragma once

#include <filesystem>
#include <string>

namespace holt::machine {

/// Punches holes for all pages of zeroes. Throws Error.
void punch_zero_pages(const std::filesystem::path& file);

/// A digest over size, place of data and holes, and 256 pages spread over the data. Finds a file that was
/// cut, emptied or exchanged in a millisecond; not meant against somebody who wants not to be found.
std::string sampled_digest(const std::filesystem::path& file);

}  // namespace holt::machine
