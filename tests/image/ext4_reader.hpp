// Reads built file systems back, by the programs of e2fsprogs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace holt::image::test {

/// Output of `debugfs -R COMMAND`.
std::string debugfs(const std::filesystem::path& ext4, const std::string& command);
/// Content of a file.
std::string content_of(const std::filesystem::path& ext4, const std::string& path);
/// A field of `stat`, e.g. "Mode", "User", "Links"; the word behind "NAME:".
std::string stat_field(const std::filesystem::path& ext4, const std::string& path, const std::string& field);
/// Names in a folder, sorted, without "." and "..".
std::vector<std::string> names_in(const std::filesystem::path& ext4, const std::string& path);

struct CheckResult {
  int exit_code = -1;
  std::string output;
};
/// `e2fsck -fn`: exit code 0 says that nothing at all is wrong.
CheckResult check(const std::filesystem::path& ext4);

}  // namespace holt::image::test
