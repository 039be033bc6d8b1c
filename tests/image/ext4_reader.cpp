#include "image/ext4_reader.hpp"

#include "holt/base/process.hpp"

#include <algorithm>
#include <memory>
#include <sstream>
#include <stdexcept>

#include <ext2fs/ext2fs.h>
#include <fmt/format.h>

namespace holt::image::test {
namespace {

ProcessResult run(std::vector<std::string> argv) {
  return run_process(
      {.argv = std::move(argv), .env = {{"PATH", "/usr/sbin:/usr/bin:/sbin:/bin"}, {"TZ", "UTC"}}},
      {.deadline = Deadline::after(std::chrono::seconds(60)), .output_limit = std::size_t{64} << 20});
}

void require(errcode_t code, const std::string& what) {
  if (code != 0) throw std::runtime_error(fmt::format("{}: libext2fs says {}", what, code));
}

char type_of(std::uint16_t mode) {
  switch (mode & LINUX_S_IFMT) {
    case LINUX_S_IFREG:
      return 'f';
    case LINUX_S_IFDIR:
      return 'd';
    case LINUX_S_IFLNK:
      return 'l';
    case LINUX_S_IFCHR:
      return 'c';
    case LINUX_S_IFBLK:
      return 'b';
    case LINUX_S_IFIFO:
      return 'p';
    default:
      return '?';
  }
}

class TreeOfExt4 {
 public:
  explicit TreeOfExt4(const std::filesystem::path& ext4) {
    require(ext2fs_open(ext4.c_str(), EXT2_FLAG_64BITS, 0, 0, unix_io_manager, &fs_), ext4.string());
  }
  ~TreeOfExt4() { ext2fs_free(fs_); }
  TreeOfExt4(const TreeOfExt4&) = delete;
  TreeOfExt4& operator=(const TreeOfExt4&) = delete;

  std::map<std::string, Ext4Entry> read() {
    add("", EXT2_ROOT_INO);
    return std::move(entries_);
  }

 private:
  struct Name {
    std::string name;
    ext2_ino_t inode;
  };

  void add(const std::string& path, ext2_ino_t number) {
    ext2_inode inode{};
    require(ext2fs_read_inode(fs_, number, &inode), path);
    Ext4Entry entry{.type = type_of(inode.i_mode),
                    .inode = number,
                    .mode = inode.i_mode & 07777U,
                    .uid = inode_uid(inode),
                    .gid = inode_gid(inode),
                    .size = EXT2_I_SIZE(&inode),
                    .links = inode.i_links_count,
                    .seconds = inode.i_mtime,
                    .content = {}};
    if (entry.type == 'f') entry.content = read_content(number, path);
    if (entry.type == 'l') entry.content = read_target(number, inode, path);
    if (entry.type == 'c' || entry.type == 'b') read_numbers(inode, entry);
    entries_.emplace(path, entry);
    if (entry.type != 'd') return;
    for (const Name& name : names_of(number)) {
      if (path.empty() && name.name == "lost+found") continue;
      add(path.empty() ? name.name : path + "/" + name.name, name.inode);
    }
  }

  std::vector<Name> names_of(ext2_ino_t folder) {
    std::vector<Name> names;
    auto add_name = [](ext2_ino_t, int, ext2_dir_entry* entry, int, int, char*, void* into) {
      std::string name(entry->name, static_cast<std::size_t>(ext2fs_dirent_name_len(entry)));
      if (name != "." && name != "..") static_cast<std::vector<Name>*>(into)->push_back({name, entry->inode});
      return 0;
    };
    require(ext2fs_dir_iterate2(fs_, folder, 0, nullptr, add_name, &names), "read a folder");
    return names;
  }

  std::string read_content(ext2_ino_t number, const std::string& path) {
    ext2_file_t file = nullptr;
    require(ext2fs_file_open(fs_, number, 0, &file), path);
    std::string content(65536, '\0');
    unsigned got = 0;
    require(ext2fs_file_read(file, content.data(), static_cast<unsigned>(content.size()), &got), path);
    ext2fs_file_close(file);
    content.resize(got);
    return content;
  }

  std::string read_target(ext2_ino_t number, ext2_inode& inode, const std::string& path) {
    bool inside = ext2fs_is_fast_symlink(&inode) != 0;
    return inside ? std::string(reinterpret_cast<const char*>(inode.i_block), inode.i_size)
                  : read_content(number, path);
  }

  static void read_numbers(const ext2_inode& inode, Ext4Entry& entry) {
    std::uint32_t word = inode.i_block[1];
    entry.major = inode.i_block[0] != 0 ? inode.i_block[0] >> 8U : (word >> 8U) & 0xfffU;
    entry.minor =
        inode.i_block[0] != 0 ? inode.i_block[0] & 0xffU : (word & 0xffU) | ((word >> 12U) & ~0xffU);
  }

  ext2_filsys fs_ = nullptr;
  std::map<std::string, Ext4Entry> entries_;
};

}  // namespace

std::map<std::string, Ext4Entry> tree_of(const std::filesystem::path& ext4) {
  return TreeOfExt4(ext4).read();
}

std::vector<std::string> outline_of(const std::filesystem::path& ext4) {
  std::vector<std::string> lines;
  std::map<std::uint32_t, std::string> first_names;
  for (const auto& [path, entry] : tree_of(ext4)) {
    if (path.empty()) continue;
    auto [first, is_first] = first_names.emplace(entry.inode, path);
    std::string line = fmt::format("{} {}", entry.type, path);
    if (entry.type == 'f') line += "=" + entry.content;
    if (entry.type == 'l') line += "->" + entry.content;
    if (entry.type == 'c' || entry.type == 'b') line += fmt::format(" {}:{}", entry.major, entry.minor);
    lines.push_back(is_first ? line : fmt::format("h {}={}", path, first->second));
  }
  std::ranges::sort(lines);
  return lines;
}

std::string debugfs(const std::filesystem::path& ext4, const std::string& command) {
  return run({"/sbin/debugfs", "-R", command, ext4.string()}).out;
}

std::string content_of(const std::filesystem::path& ext4, const std::string& path) {
  return debugfs(ext4, "cat \"" + path + "\"");
}

std::string stat_field(const std::filesystem::path& ext4, const std::string& path, const std::string& field) {
  std::string text = debugfs(ext4, "stat \"" + path + "\"");
  std::size_t at = text.find(field + ":");
  if (at == std::string::npos) return "no field " + field + " in: " + text;
  std::istringstream words(text.substr(at + field.size() + 1));
  std::string word;
  words >> word;
  return word;
}

std::vector<std::string> names_in(const std::filesystem::path& ext4, const std::string& path) {
  // ls -p prints /inode/mode/uid/gid/name/size/
  std::istringstream lines(debugfs(ext4, "ls -p \"" + path + "\""));
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream parts(line);
    std::string part;
    for (int i = 0; i <= 5; ++i) std::getline(parts, part, '/');
    if (!part.empty() && part != "." && part != "..") names.push_back(part);
  }
  std::ranges::sort(names);
  return names;
}

CheckResult check(const std::filesystem::path& ext4) {
  auto result = run({"/sbin/e2fsck", "-fn", ext4.string()});
  return {result.status.shell_code(), result.out + result.err};
}

}  // namespace holt::image::test
