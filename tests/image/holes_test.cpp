// Stores whose file system has no holes.
#include "image/holes.hpp"

#include "holt/base/error.hpp"
#include "holt/base/fd.hpp"
#include "holt/base/files.hpp"
#include "holt/image/store.hpp"
#include "image/store_fixture.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace holt::image {
namespace {

TEST(Holes, IMG_34_AreSeenInAFile) {
  TempDir dir;
  Fd file(::open((dir.path() / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::ftruncate(file.get(), 1 << 20), 0);
  EXPECT_TRUE(has_holes(file.get()));
  write_all(file.get(), test::noise(1 << 20, 1));
  ASSERT_EQ(::fsync(file.get()), 0);
  EXPECT_FALSE(has_holes(file.get()));
}

TEST(Holes, IMG_34_AStoreThatKeepsThemGetsWhatIsWanted) {
  TempDir dir;
  ASSERT_TRUE(keeps_holes(dir.path())) << "the file system of the tests has no holes";
  EXPECT_EQ(disk_bytes_in(dir.path(), dir.path(), k_default_disk_bytes), k_default_disk_bytes);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(Holes, IMG_34_AStoreWithoutThemGetsASmallSizeOrSaysWhatIsNeeded) {
  TempDir dir;
  auto without = [](const auto&) { return false; };
  constexpr std::uint64_t k_least = std::uint64_t{64} << 20;
  EXPECT_EQ(disk_bytes_in(dir.path(), dir.path(), k_least, without), k_least) << "made larger";
  try {
    EXPECT_EQ(disk_bytes_in(dir.path(), dir.path(), k_default_disk_bytes, without),
              k_disk_bytes_without_holes);
  } catch (const Error& error) {
    // Where less than that is free.
    EXPECT_EQ(error.code(), ErrorCode::storage_full);
    EXPECT_NE(std::string(error.what()).find("needs 2147483648 bytes"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace holt::image
