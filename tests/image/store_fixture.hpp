// A store in a folder of its own, and fake sources that fill it.
#pragma once

#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "image/acquire.hpp"
#include "image/blobs.hpp"
#include "image/fake_source.hpp"
#include "image/tar_builder.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace holt::image::test {

inline constexpr std::uint64_t k_disk = std::uint64_t{64} << 20;

/// Bytes that compression leaves about as long.
inline std::string noise(std::size_t bytes, unsigned seed) {
  std::string out(bytes, '\0');
  for (char& c : out) {
    seed = seed * 1664525U + 1013904223U;
    c = static_cast<char>(seed >> 24);
  }
  return out;
}

inline std::vector<std::string> three_layers() {
  return {TarBuilder().file("a", "1").file("big", noise(300'000, 1)).finish(),
          TarBuilder().file("b", noise(200'000, 2)).file("a", "2").finish(),
          TarBuilder().folder("d").file("d/c", "3").finish()};
}

class StoreFixture : public ::testing::Test {
 protected:
  Image acquire_from(ImageSource& source, const std::string& reference = "app:1",
                     ProgressSink progress = nullptr) {
    AcquireRequest request{.reference = parse_reference(reference).value(),
                           .disk_bytes = k_disk,
                           .progress = std::move(progress),
                           .cancel = cancel_};
    return acquire(store_, source, request);
  }
  Image acquire_image(const FakeImage& image, const std::string& reference = "app:1") {
    FakeSource source(image);
    return acquire_from(source, reference);
  }
  static Error error_of(const std::function<void()>& body) {
    try {
      body();
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "no error";
    return {ErrorCode::internal, "no error"};
  }
  Error error_of(FakeSource& source, const std::string& reference = "app:1") {
    return error_of([&] { acquire_from(source, reference); });
  }
  std::size_t files_in(const std::string& folder) const {
    std::error_code error;
    std::filesystem::directory_iterator it(store_.folder() / folder, error);
    return error ? 0 : static_cast<std::size_t>(std::distance(it, {}));
  }
  void expect_nothing_of(const FakeImage& image) {
    EXPECT_EQ(files_in("entries"), 0U);
    EXPECT_EQ(files_in("references"), 0U);
    EXPECT_EQ(files_in("staging"), 0U);
    EXPECT_FALSE(store_.find("app:1"));
    EXPECT_FALSE(store_.find(image.digest()));
  }
  void expect_sound() {
    for (const Damage& damage : verify(store_)) ADD_FAILURE() << damage.reference << ": " << damage.what;
  }

  TempDir dir_;
  Store store_{dir_.path() / "images"};
  BlobStore blobs_{dir_.path() / "images"};
  CancellationToken cancel_;
};

}  // namespace holt::image::test
