// File operations in this host's file system, as a workspace's backend owes them. Blocking; paths absolute.
// All throw PathError.
#pragma once

#include "holt/workspace/backend.hpp"

#include <string>
#include <vector>

namespace holt::local {

std::string read_bytes(const std::string& path);
/// Writes in place: the file keeps its inode, owner and mode.
void write_bytes(const std::string& path, std::string_view data);
FileEntry stat(const std::string& path);
std::vector<FileEntry> list_dir(const std::string& path);
void make_dir(const std::string& path);
/// Refuses `working_dir` and what is above it.
void remove(const std::string& path, const std::string& working_dir);
bool exists(const std::string& path);
std::string realpath(const std::string& path);

}  // namespace holt::local
