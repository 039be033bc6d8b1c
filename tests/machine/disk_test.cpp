#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "holt/base/process.hpp"
#include "machine/qcow2.hpp"
#include "machine/sparse_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace holt::machine {
namespace {

using namespace std::chrono_literals;

void make_sparse(const std::filesystem::path& path, std::uint64_t size) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
}

std::uint64_t blocks(const std::filesystem::path& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_blocks) * 512 : 0;
}

TEST(Qcow2, AnOverlayOfAnySizeIsWhatQemuImgCallsClean) {
  if (::access("/usr/bin/qemu-img", X_OK) != 0) GTEST_SKIP() << "qemu-img is not installed";
  TempDir dir;
  make_sparse(dir.path() / "base", std::uint64_t{1} << 30);
  for (std::uint64_t gib : {1, 20, 4096}) {
    auto overlay = dir.path() / std::to_string(gib);
    create_overlay(overlay, gib << 30, dir.path() / "base", BackingFormat::raw);
    auto check = run_process({.argv = {"/usr/bin/qemu-img", "check", "-f", "qcow2", overlay.string()}}, {});
    EXPECT_EQ(check.status.exit_code, 0) << check.out << check.err;
    auto info = run_process(
        {.argv = {"/usr/bin/qemu-img", "info", "-f", "qcow2", "--output=json", overlay.string()}}, {});
    EXPECT_NE(info.out.find(std::to_string(gib << 30)), std::string::npos) << info.out;
    EXPECT_NE(info.out.find("\"backing-filename-format\": \"raw\""), std::string::npos) << info.out;
    EXPECT_LT(blocks(overlay), 1u << 20) << "an empty overlay should be small";
  }
}

TEST(Qcow2, ABackingNameThatDoesNotFitIsRefused) {
  try {
    qcow2_header(1 << 30, "/" + std::string(1100, 'x'), BackingFormat::raw);
    FAIL() << "expected INVALID_CONFIG";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::invalid_config);
  }
}

TEST(Qcow2, AnOverlayIsNeverWrittenOverAFile) {
  TempDir dir;
  write_file_atomically(dir.path() / "disk", "precious");
  EXPECT_THROW(create_overlay(dir.path() / "disk", 1 << 30, "/base", BackingFormat::raw), Error);
  EXPECT_EQ(read_file(dir.path() / "disk", 100), "precious");
}

TEST(SparseFile, PagesOfZeroesBecomeHolesAndTheContentStays) {
  TempDir dir;
  std::string content(64 * 4096, '\0');
  content[0] = 'a';
  content[10 * 4096 + 7] = 'b';
  write_file_atomically(dir.path() / "f", content);
  punch_zero_pages(dir.path() / "f");
  EXPECT_EQ(read_file(dir.path() / "f", content.size()), content);
  EXPECT_LE(blocks(dir.path() / "f"), 8u * 4096);
}

TEST(SparseFile, CLONE_15_TheDigestSeesCutEmptiedAndChangedFiles) {
  TempDir dir;
  auto file = dir.path() / "f";
  std::string content(1 << 20, 'x');
  write_file_atomically(file, content);
  auto whole = sampled_digest(file);
  EXPECT_EQ(whole, sampled_digest(file));
  content[0] = 'y';
  write_file_atomically(file, content);
  EXPECT_NE(whole, sampled_digest(file));
  write_file_atomically(file, std::string(1 << 19, 'x'));
  EXPECT_NE(whole, sampled_digest(file));
  std::filesystem::remove(file);
  make_sparse(file, 1 << 20);
  EXPECT_NE(whole, sampled_digest(file));
}

}  // namespace
}  // namespace holt::machine
