#include "holt/base/error.hpp"
#include "holt/image/engine_files.hpp"
#include "image/byte_source.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::size_t k_kernel_bytes = std::size_t{256} << 20;
constexpr std::string_view k_elf_magic(
    "\x7f"
    "ELF");
// Offsets of Documentation/x86/boot.rst.
constexpr std::size_t k_setup_sectors = 0x1f1;
constexpr std::size_t k_header_magic = 0x202;
constexpr std::size_t k_version = 0x206;
constexpr std::size_t k_payload_offset = 0x248;
constexpr std::size_t k_payload_length = 0x24c;
constexpr std::size_t k_header_end = 0x250;

[[noreturn]] void refuse(std::string_view reason) {
  throw Error(ErrorCode::image_invalid, fmt::format("unpack the kernel: {}", reason));
}

template <class T>
T load(std::string_view bytes, std::size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// The compressed kernel inside a bzImage.
std::string_view payload_of(std::string_view image) {
  if (image.size() < k_header_end || image.substr(k_header_magic, 4) != "HdrS") {
    refuse("neither a bzImage nor an ELF file");
  }
  if (load<std::uint16_t>(image, k_version) < 0x208) refuse("its boot protocol is older than 2.08");
  std::uint64_t sectors = static_cast<unsigned char>(image[k_setup_sectors]);
  if (sectors == 0) sectors = 4;
  std::uint64_t offset = (sectors + 1) * 512 + load<std::uint32_t>(image, k_payload_offset);
  std::uint64_t length = load<std::uint32_t>(image, k_payload_length);
  // The last 4 bytes are the unpacked size; the build appends them to every compression.
  if (length <= 4 || offset > image.size() || length > image.size() - offset)
    refuse("its payload lies outside");
  return image.substr(offset, length - 4);
}

}  // namespace

std::string unpack_kernel(std::string image) {
  if (image.starts_with(k_elf_magic)) return image;
  MemorySource payload(payload_of(image));
  DecompressedSource unpacked(payload, Compressions::kernel);
  std::string kernel = read_all(unpacked, k_kernel_bytes);
  if (!kernel.starts_with(k_elf_magic)) refuse("its payload is no ELF file");
  return kernel;
}

}  // namespace holt::image
