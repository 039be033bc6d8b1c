// Tars for tests, written field by field: library writers refuse the interesting ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holt::image::test {

struct Member {
  std::string path;
  char type = '0';  ///< ustar typeflag: 0 file, 1 hard link, 2 symlink, 3 char, 4 block, 5 folder, 6 FIFO
  std::string content = {};
  std::string link = {};
  unsigned mode = 0644;
  unsigned long uid = 0;
  unsigned long gid = 0;
  unsigned long mtime = 1'000'000'000;
  unsigned major = 0;
  unsigned minor = 0;
  std::vector<std::pair<std::string, std::string>> pax = {};  ///< extended header records
  std::vector<std::pair<std::size_t, std::string>> raw =
      {};  ///< bytes of the header by offset, over all else
};

class TarBuilder {
 public:
  TarBuilder& add(const Member& member);
  TarBuilder& file(std::string path, std::string content) {
    return add({.path = std::move(path), .content = std::move(content)});
  }
  TarBuilder& folder(std::string path, unsigned mode = 0755) {
    return add({.path = std::move(path), .type = '5', .mode = mode});
  }
  TarBuilder& symlink(std::string path, std::string target) {
    return add({.path = std::move(path), .type = '2', .link = std::move(target), .mode = 0777});
  }
  TarBuilder& hard_link(std::string path, std::string target) {
    return add({.path = std::move(path), .type = '1', .link = std::move(target)});
  }
  /// GNU's headers for a long name ('L') or link target ('K') of the next member.
  TarBuilder& gnu_long(char type, std::string text) {
    return add({.path = "././@LongLink", .type = type, .content = std::move(text) + '\0'});
  }
  /// An extended header of its own, 'x' or 'g', with this body.
  TarBuilder& extended(char type, std::string body) {
    return add({.path = "PaxHeaders/x", .type = type, .content = std::move(body)});
  }
  TarBuilder& bytes(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  /// With the two empty blocks at the end.
  std::string finish() const { return bytes_ + std::string(1024, '\0'); }
  /// Without them, for what follows.
  const std::string& bytes() const { return bytes_; }

 private:
  void header(const Member& member, std::size_t size);
  void data(std::string_view content);
  std::string bytes_;
};

}  // namespace holt::image::test
