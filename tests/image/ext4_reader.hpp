// Reads built file systems back, by the programs and the library of e2fsprogs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
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

struct Ext4Entry {
  char type = '?';  ///< f file, d folder, l symlink, c and b devices, p FIFO
  std::uint32_t inode = 0;
  std::uint32_t mode = 0;  ///< low 12 bits
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t size = 0;
  std::uint32_t links = 0;
  std::uint32_t seconds = 0;  ///< of mtime
  unsigned major = 0;
  unsigned minor = 0;
  std::string content;  ///< of a file its first 64 KiB; of a link its target
};
/// Every entry but lost+found by its path without a leading "/"; "" is the root.
std::map<std::string, Ext4Entry> tree_of(const std::filesystem::path& ext4);
/// The same without the root as sorted lines: "d etc", "f etc/name=content", "l link->target", "c null 1:3",
/// "p pipe"; further names of an inode as "h name=first name".
std::vector<std::string> outline_of(const std::filesystem::path& ext4);

struct CheckResult {
  int exit_code = -1;
  std::string output;
};
/// `e2fsck -fn`: exit code 0 says that nothing at all is wrong.
CheckResult check(const std::filesystem::path& ext4);

}  // namespace holt::image::test
