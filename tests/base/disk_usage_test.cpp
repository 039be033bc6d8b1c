#include "holt/base/disk_usage.hpp"

#include "holt/base/files.hpp"

#include <filesystem>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace holt {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t k_mib = std::uint64_t{1} << 20;

TEST(DiskUsage, CountsBlocksAndNotSizes) {
  TempDir dir;
  write_file_atomically(dir.path() / "full", std::string(k_mib, 'x'));
  write_file_atomically(dir.path() / "sparse", "");
  fs::resize_file(dir.path() / "sparse", 64 * k_mib);
  EXPECT_GE(disk_bytes(dir.path() / "full"), k_mib);
  EXPECT_LT(disk_bytes(dir.path() / "sparse"), k_mib);
}

TEST(DiskUsage, CountsAFolderWithAllBelowIt) {
  TempDir dir;
  fs::create_directories(dir.path() / "a" / "b");
  write_file_atomically(dir.path() / "a" / "b" / "deep", std::string(k_mib, 'x'));
  write_file_atomically(dir.path() / "a" / "flat", std::string(k_mib, 'x'));
  EXPECT_GE(disk_bytes_below(dir.path() / "a"), 2 * k_mib);
  EXPECT_LT(disk_bytes(dir.path() / "a"), k_mib) << "a folder alone is its entries";
  EXPECT_EQ(disk_bytes_below(dir.path() / "a" / "flat"), disk_bytes(dir.path() / "a" / "flat"));
}

TEST(DiskUsage, FollowsNoLinks) {
  TempDir dir;
  fs::create_directory(dir.path() / "elsewhere");
  write_file_atomically(dir.path() / "elsewhere" / "big", std::string(2 * k_mib, 'x'));
  fs::create_directory(dir.path() / "folder");
  fs::create_directory_symlink(dir.path() / "elsewhere", dir.path() / "folder" / "to-folder");
  fs::create_symlink(dir.path() / "elsewhere" / "big", dir.path() / "folder" / "to-file");
  EXPECT_LT(disk_bytes_below(dir.path() / "folder"), k_mib);
}

TEST(DiskUsage, OfWhatIsNotThereIsNothing) {
  TempDir dir;
  EXPECT_EQ(disk_bytes(dir.path() / "missing"), 0U);
  EXPECT_EQ(disk_bytes_below(dir.path() / "missing"), 0U);
}

TEST(DiskUsage, OutlivesARemovalUnderItsEyes) {
  TempDir dir;
  for (int round = 0; round < 20; ++round) {
    auto top = dir.path() / std::to_string(round);
    for (int i = 0; i < 20; ++i) fs::create_directories(top / std::to_string(i) / "below");
    std::jthread remover([&] { fs::remove_all(top); });
    EXPECT_NO_THROW(disk_bytes_below(top));
  }
}

}  // namespace
}  // namespace holt
