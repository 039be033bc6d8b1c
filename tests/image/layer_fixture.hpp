// Images of several layers, built and read back.
#pragma once

#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "image/ext4_reader.hpp"
#include "image/image_builder.hpp"
#include "image/tar_builder.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace holt::image::test {

inline constexpr std::uint64_t k_small_disk = std::uint64_t{64} << 20;

using Lines = std::vector<std::string>;

class LayerTest : public ::testing::Test {
 protected:
  /// Builds the file system of layers as they come from a registry, lowest first: tars, plain or compressed.
  std::filesystem::path build(const std::vector<std::string>& layers, const Limits& limits = {},
                              std::uint64_t disk = k_small_disk) {
    std::filesystem::path ext4 = dir_.path() / ("root" + std::to_string(++builds_) + ".ext4");
    ImageBuilder builder(ext4, {.limits = limits, .disk_bytes = disk});
    std::string digests;
    for (const std::string& layer : layers) {
      MemorySource packed(layer);
      DecompressedSource unpacked(packed, Compressions::layers);
      MeteredSource tar(unpacked, limits.unpacked_bytes + limits.entries * 4096);
      builder.apply_layer(tar);
      tar.drain();
      digests += tar.digest_hex();
    }
    builder.finish(sha256_hex(digests));
    return ext4;
  }
  std::filesystem::path build(const std::vector<TarBuilder>& layers) {
    std::vector<std::string> tars;
    for (const TarBuilder& layer : layers) tars.push_back(layer.finish());
    return build(tars);
  }

  /// Builds, checks with e2fsck and lists what is there.
  Lines outline(const std::vector<TarBuilder>& layers) { return outline_of_clean(build(layers)); }
  Lines outline_of_clean(const std::filesystem::path& ext4) {
    auto checked = check(ext4);
    EXPECT_EQ(checked.exit_code, 0) << checked.output;
    Lines lines = outline_of(ext4);
    std::filesystem::remove(ext4);
    return lines;
  }

  /// The code that the image is refused with; its message is in `message_`.
  ErrorCode refusal(const std::vector<std::string>& layers, const Limits& limits = {}) {
    try {
      build(layers, limits);
    } catch (const Error& error) {
      message_ = error.what();
      return error.code();
    }
    ADD_FAILURE() << "the image was accepted";
    return ErrorCode::internal;
  }
  ErrorCode refusal(const TarBuilder& layer, const Limits& limits = {}) {
    return refusal(std::vector<std::string>{layer.finish()}, limits);
  }

  TempDir dir_;
  std::string message_;
  int builds_ = 0;
};

}  // namespace holt::image::test
