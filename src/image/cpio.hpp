// A writer of "newc" archives, the form of an initramfs.
// Source: Linux, Documentation/driver-api/early-userspace/buffer-format.rst.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holt::image {

/// Entries in the order they are added; owner root, time 0, so the same calls give the same bytes.
class CpioWriter {
 public:
  void add_directory(std::string_view path);
  void add_file(std::string_view path, std::uint32_t permissions, std::string_view content);
  void add_character_device(std::string_view path, std::uint32_t permissions, std::uint32_t major,
                            std::uint32_t minor);
  /// The whole archive, with its trailer. Ends the writer.
  std::string finish();

 private:
  struct Header {
    std::uint32_t mode = 0;
    std::uint32_t major = 0;
    std::uint32_t minor = 0;
  };
  void add(std::string_view path, const Header& header, std::string_view content);
  void pad();

  std::string bytes_;
  std::uint32_t inode_ = 0;
};

}  // namespace holt::image
