#include "holt/base/disk_space.hpp"

#include "holt/base/fd.hpp"
#include "holt/base/files.hpp"

#include <cerrno>
#include <fcntl.h>

#include <gtest/gtest.h>

namespace holt {
namespace {

TEST(DiskSpace, IsThatOfTheFileSystemOfAPathOrOpenFile) {
  // procfs has no blocks at all, so that it does not matter who writes to which disk meanwhile.
  Fd proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_TRUE(proc);
  EXPECT_EQ(free_disk_bytes("/proc"), 0U);
  EXPECT_EQ(free_disk_bytes(proc.get()), 0U);
  TempDir dir;
  write_file_atomically(dir.path() / "file", "content");
  EXPECT_GT(free_disk_bytes(dir.path()).value_or(0), 0U);
  EXPECT_GT(free_disk_bytes(dir.path() / "file").value_or(0), 0U);
}

TEST(DiskSpace, IsNothingWhereItCannotBeAsked) {
  TempDir dir;
  EXPECT_EQ(free_disk_bytes(dir.path() / "missing"), std::nullopt);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(free_disk_bytes(-1), std::nullopt);
}

}  // namespace
}  // namespace holt
