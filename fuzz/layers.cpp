// Layers of an image from a stranger, compressed or not, into a small file system: whatever they hold, they
// are refused or give a tree that can be read back and shows no whiteout. Layers stand behind each other,
// with a marker between.
#include "fuzz.hpp"
#include "holt/base/error.hpp"
#include "image/ext4_reader.hpp"
#include "image/image_builder.hpp"

#include <filesystem>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

using namespace holt;
using namespace holt::image;

namespace {

constexpr std::string_view k_between = "--layer--";
constexpr std::uint64_t k_disk = std::uint64_t{64} << 20;
constexpr Limits k_limits{.entries = 64,
                          .unpacked_bytes = std::uint64_t{1} << 20,
                          .file_bytes = std::uint64_t{4} << 20,
                          .path_depth = 16,
                          .tree_bytes = std::uint64_t{64} << 10,
                          .walk_steps = 5000};

/// Makes checksums right again, which hardly any change of bytes would leave so.
std::string with_checksums(std::string_view layer) {
  constexpr std::size_t k_block = 512;
  constexpr std::size_t k_sum = 148;
  std::string tar(layer);
  for (std::size_t at = 0; at + k_block <= tar.size(); at += k_block) {
    if (tar.compare(at + 257, 5, "ustar") != 0) continue;
    tar.replace(at + k_sum, 8, 8, ' ');
    unsigned sum = 0;
    for (std::size_t i = at; i < at + k_block; ++i) sum += static_cast<unsigned char>(tar[i]);
    tar.replace(at + k_sum, 7, fmt::format("{:06o}", sum) + '\0');
  }
  return tar;
}

void apply(ImageBuilder& builder, std::string_view layer) {
  std::string bytes = with_checksums(layer);
  MemorySource packed(bytes);
  DecompressedSource unpacked(packed, Compressions::layers);
  MeteredSource tar(unpacked, k_limits.unpacked_bytes + k_limits.entries * 4096);
  builder.apply_layer(tar);
  tar.drain();
}

bool is_clean(const std::string& path) {
  return !path.starts_with(".wh.") && path.find("/.wh.") == std::string::npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string ext4 = fmt::format("/dev/shm/holt-fuzz-layers-{}.ext4", ::getpid());
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::filesystem::remove(ext4);
  try {
    ImageBuilder builder(ext4, {.limits = k_limits, .disk_bytes = k_disk});
    while (!rest.empty()) {
      std::string_view layer = rest.substr(0, rest.find(k_between));
      apply(builder, layer);
      rest.remove_prefix(std::min(layer.size() + k_between.size(), rest.size()));
    }
    builder.finish(std::string(64, 'a'));
    for (const auto& [path, entry] : test::tree_of(ext4)) {
      fuzz::require(is_clean(path) && entry.type != '?' && (path.empty() || entry.links > 0));
    }
  } catch (const Error& error) {
    fuzz::require(*error.what() != '\0' && error.code() != ErrorCode::internal &&
                  error.code() != ErrorCode::storage_error);
  }
  std::filesystem::remove(ext4);
  return 0;
}
