// File operations of a workspace that has commands only, made of small scripts for a POSIX shell.
//
// They need /bin/sh, base64, cp, dd, mkdir, mv, readlink, rm and wc in the environment. File bytes travel as
// base64, since a command's output is text. Paths are absolute and reach the scripts as arguments, never as
// script text. Reading costs 1 + ceil(size / 64 KiB) commands, writing about 2 + ceil(size / 48 KiB).
#pragma once

#include "holt/workspace/backend.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace holt::derived {

Task<std::string> read_bytes(SupportsCommands& commands, std::string path);
Task<void> write_bytes(SupportsCommands& commands, std::string path, std::string data);
Task<FileEntry> stat(SupportsCommands& commands, std::string path);
Task<std::vector<FileEntry>> list_dir(SupportsCommands& commands, std::string path);
Task<void> make_dir(SupportsCommands& commands, std::string path);
Task<void> remove(SupportsCommands& commands, std::string path, std::string working_dir);
Task<bool> exists(SupportsCommands& commands, std::string path);
Task<std::string> realpath(SupportsCommands& commands, std::string path);

}  // namespace holt::derived
