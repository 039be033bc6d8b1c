#include "holt/image/engine_files.hpp"

#include "holt/base/error.hpp"
#include "holt/base/files.hpp"

#include <cstring>

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

namespace holt::image {
namespace {

namespace fs = std::filesystem;

const std::string k_elf = std::string("\x7f") + "ELF" + std::string(100'000, 'k');

std::string lz4_legacy(const std::string& bytes) {
  // One block of literals only: token 0xf0, length in bytes of 255, then the bytes.
  std::string block("\xf0");
  std::size_t left = bytes.size() - 15;
  while (left >= 255) {
    block += '\xff';
    left -= 255;
  }
  block += static_cast<char>(left);
  block += bytes;
  auto size = static_cast<std::uint32_t>(block.size());
  std::string frame("\x02\x21\x4c\x18", 4);
  frame.append(reinterpret_cast<const char*>(&size), 4);
  return frame + block;
}

std::string bz_image(const std::string& payload) {
  std::string image(4096, '\0');
  image[0x1f1] = 3;
  std::memcpy(image.data() + 0x202, "HdrS\x0f\x02", 6);
  std::uint32_t offset = 100;
  auto length = static_cast<std::uint32_t>(payload.size() + 4);
  std::memcpy(image.data() + 0x248, &offset, 4);
  std::memcpy(image.data() + 0x24c, &length, 4);
  image.resize(4 * 512 + offset);
  return image + payload + "SIZE";
}

ErrorCode refused(const std::string& image) {
  try {
    unpack_kernel(image);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

class EngineFilesTest : public ::testing::Test {
 protected:
  EngineFilesTest() {
    for (const char* name : {"virtio/virtio.ko", "virtio/virtio_ring.ko", "virtio/virtio_mmio.ko",
                             "block/virtio_blk.ko", "char/hw_random/virtio-rng.ko", "other/unwanted.ko"}) {
      fs::create_directories((source_.modules / name).parent_path());
      write_file_atomically(source_.modules / name, std::string("module ") + name);
    }
    write_file_atomically(source_.kernel, bz_image(lz4_legacy(k_elf)));
    write_file_atomically(source_.guest, "guest program");
  }

  TempDir dir_;
  Directories home_ = Directories::below(dir_.path() / "home");
  EngineSource source_{.kernel = dir_.path() / "vmlinuz",
                       .modules = dir_.path() / "modules",
                       .guest = dir_.path() / "holt-guest",
                       .kernel_release = "6.1.0-1-cloud-amd64"};
};

TEST(UnpackKernel, FindsTheElfFileInABzImage) {
  EXPECT_EQ(unpack_kernel(bz_image(lz4_legacy(k_elf))), k_elf);
  EXPECT_EQ(unpack_kernel(bz_image(k_elf)), k_elf);
  EXPECT_EQ(unpack_kernel(k_elf), k_elf);
}

TEST(UnpackKernel, RefusesDamagedImages) {
  EXPECT_EQ(refused(""), ErrorCode::image_invalid);
  EXPECT_EQ(refused(std::string(10'000, '\0')), ErrorCode::image_invalid);
  EXPECT_EQ(refused(bz_image("not compressed and no ELF")), ErrorCode::image_invalid);
  std::string image = bz_image(lz4_legacy(k_elf));
  std::string far = image;
  std::memset(far.data() + 0x248, 0xff, 4);
  EXPECT_EQ(refused(far), ErrorCode::image_invalid);
  std::string long_payload = image;
  std::memset(long_payload.data() + 0x24c, 0xff, 4);
  EXPECT_EQ(refused(long_payload), ErrorCode::image_invalid);
  for (std::size_t cut = 0; cut < image.size(); cut += image.size() / 50) {
    EXPECT_EQ(refused(image.substr(0, cut)), ErrorCode::image_invalid) << cut;
  }
}

TEST_F(EngineFilesTest, InstallsWhatLoadFinds) {
  EXPECT_FALSE(EngineFiles::find(home_));
  EngineFiles made = install_engine(home_, source_);
  EngineFiles found = EngineFiles::load(home_);
  EXPECT_EQ(found.kernel, made.kernel);
  EXPECT_EQ(found.kernel_release, "6.1.0-1-cloud-amd64");
  EXPECT_EQ(read_file(found.kernel, 1 << 20), k_elf);
  EXPECT_EQ(found.modules,
            (std::vector<std::string>{"virtio_ring", "virtio", "virtio_mmio", "virtio_blk", "virtio_rng"}));
  EXPECT_TRUE(found.verify());
}

TEST_F(EngineFilesTest, TheInitramfsHoldsTheGuestAndTheModulesInLoadOrder) {
  EngineFiles files = install_engine(home_, source_);
  archive* reader = archive_read_new();
  archive_read_support_format_cpio(reader);
  ASSERT_EQ(archive_read_open_filename(reader, files.initramfs.c_str(), 4096), ARCHIVE_OK);
  std::vector<std::string> names;
  archive_entry* entry = nullptr;
  while (archive_read_next_header(reader, &entry) == ARCHIVE_OK) {
    names.emplace_back(archive_entry_pathname(entry));
    if (names.back() != "init") continue;
    EXPECT_EQ(archive_entry_perm(entry), 0755U);
    std::string content(100, '\0');
    content.resize(static_cast<std::size_t>(archive_read_data(reader, content.data(), content.size())));
    EXPECT_EQ(content, "guest program");
  }
  archive_read_free(reader);
  EXPECT_EQ(names,
            (std::vector<std::string>{"dev", "dev/console", "modules", "modules/00-virtio_ring.ko",
                                      "modules/01-virtio.ko", "modules/02-virtio_mmio.ko",
                                      "modules/03-virtio_blk.ko", "modules/04-virtio_rng.ko", "init"}));
}

TEST_F(EngineFilesTest, TheSameSourceGivesTheSameFiles) {
  EngineFiles first = install_engine(home_, source_);
  EngineFiles second = install_engine(home_, source_);
  EXPECT_EQ(first.initramfs, second.initramfs);
  EXPECT_EQ(first.initramfs_sha256, second.initramfs_sha256);
}

TEST_F(EngineFilesTest, ANewGuestReplacesTheInitramfsAndTheOldOneGoes) {
  EngineFiles first = install_engine(home_, source_);
  write_file_atomically(source_.guest, "another guest");
  EngineFiles second = install_engine(home_, source_);
  EXPECT_NE(first.initramfs, second.initramfs);
  EXPECT_EQ(first.kernel, second.kernel);
  EXPECT_FALSE(fs::exists(first.initramfs));
}

TEST_F(EngineFilesTest, MissingOrDamagedFilesAreNotInstalled) {
  auto code = [&] {
    try {
      EngineFiles::load(home_);
    } catch (const Error& error) {
      EXPECT_FALSE(error.hint().empty());
      return error.code();
    }
    return ErrorCode::internal;
  };
  EXPECT_EQ(code(), ErrorCode::runtime_not_installed);
  EngineFiles files = install_engine(home_, source_);
  write_file_atomically(files.kernel, "short");
  EXPECT_EQ(code(), ErrorCode::runtime_not_installed);
  install_engine(home_, source_);
  fs::remove(files.initramfs);
  EXPECT_EQ(code(), ErrorCode::runtime_not_installed);
  for (const char* text : {"", "{}", "nonsense", R"({"version":1,"kernel":{"file":"../../x"}})"}) {
    write_file_atomically(home_.data / "engine" / "engine.json", text);
    EXPECT_EQ(code(), ErrorCode::runtime_not_installed) << text;
  }
}

TEST_F(EngineFilesTest, MissingSourcesAreNamed) {
  EngineSource without = source_;
  without.guest = dir_.path() / "missing";
  EXPECT_THROW(install_engine(home_, without), Error);
  without = source_;
  without.modules = dir_.path() / "home";
  fs::create_directories(without.modules);
  try {
    install_engine(home_, without);
    FAIL() << "a folder without modules was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
  }
}

}  // namespace
}  // namespace holt::image
