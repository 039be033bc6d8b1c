#include "image/cpio.hpp"

#include <sys/stat.h>
#include <utility>

#include <fmt/format.h>

namespace holt::image {

void CpioWriter::add_directory(std::string_view path) {
  add(path, {.mode = S_IFDIR | 0755U}, {});
}

void CpioWriter::add_file(std::string_view path, std::uint32_t permissions, std::string_view content) {
  add(path, {.mode = S_IFREG | permissions}, content);
}

void CpioWriter::add_character_device(std::string_view path, std::uint32_t permissions, std::uint32_t major,
                                      std::uint32_t minor) {
  add(path, {.mode = S_IFCHR | permissions, .major = major, .minor = minor}, {});
}

std::string CpioWriter::finish() {
  add("TRAILER!!!", {}, {});
  return std::move(bytes_);
}

void CpioWriter::add(std::string_view path, const Header& header, std::string_view content) {
  ++inode_;
  // magic, ino, mode, uid, gid, nlink, mtime, filesize, devmajor, devminor, rdevmajor, rdevminor, namesize,
  // check
  bytes_ += fmt::format(
      "070701{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}", inode_,
      header.mode, 0, 0, 1, 0, content.size(), 0, 0, header.major, header.minor, path.size() + 1, 0);
  bytes_ += path;
  bytes_ += '\0';
  pad();
  bytes_ += content;
  pad();
}

void CpioWriter::pad() {
  bytes_.resize((bytes_.size() + 3) / 4 * 4);
}

}  // namespace holt::image
