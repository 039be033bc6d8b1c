// SHA-256 (FIPS 180-4). The guest program is small and static, and links no library for one digest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holt::guest {

inline constexpr std::size_t k_sha256_digits = 64;

class Sha256 {
 public:
  void update(std::string_view bytes);
  /// 64 lower-case hex digits. Once.
  std::string finish();

 private:
  static constexpr std::size_t k_block = 64;
  void take_block(const unsigned char* block);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, k_block> pending_{};
  std::size_t filled_ = 0;
  std::uint64_t size_ = 0;
};

/// Of a file from its beginning; nothing when it cannot be read.
std::optional<std::string> sha256_of_file(int fd);

}  // namespace holt::guest
