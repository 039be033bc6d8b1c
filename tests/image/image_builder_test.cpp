// What a tar's members become in the built file system.
#include "image/image_builder.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "image/ext4_reader.hpp"
#include "image/tar_builder.hpp"

#include <csignal>
#include <fcntl.h>
#include <optional>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace holt::image {
namespace {

using test::TarBuilder;

constexpr std::uint64_t k_disk = std::uint64_t{256} << 20;

class ImageBuilderTest : public ::testing::Test {
 protected:
  /// Builds the file system of layers of plain tars.
  std::filesystem::path build(const std::vector<std::string>& layers, const Limits& limits = {},
                              std::uint64_t disk = k_disk) {
    std::filesystem::path ext4 = dir_.path() / ("root" + std::to_string(++builds_) + ".ext4");
    ImageBuilder builder(ext4, {.limits = limits, .disk_bytes = disk});
    std::string digests;
    for (const std::string& layer : layers) {
      MemorySource source(layer);
      builder.apply_layer(source);
      digests += sha256(layer);
    }
    builder.finish(sha256_hex(digests));
    return ext4;
  }
  std::filesystem::path build(const TarBuilder& tar) { return build({tar.finish()}); }

  /// Builds, checks with e2fsck and expects that nothing is wrong.
  std::filesystem::path build_clean(const TarBuilder& tar) {
    auto ext4 = build(tar);
    auto checked = test::check(ext4);
    EXPECT_EQ(checked.exit_code, 0) << checked.output;
    return ext4;
  }

  ErrorCode code_of(const TarBuilder& tar, const Limits& limits = {}) {
    try {
      build({tar.finish()}, limits);
    } catch (const Error& error) {
      message_ = error.what();
      return error.code();
    }
    ADD_FAILURE() << "the archive was accepted";
    return ErrorCode::internal;
  }

  TempDir dir_;
  std::string message_;
  int builds_ = 0;
};

TEST_F(ImageBuilderTest, KeepsEveryKindOfEntryWithModeOwnerAndTime) {
  std::string long_target(300, 't');
  TarBuilder tar;
  tar.folder("etc", 0750)
      .add({.path = "etc/file",
            .content = "hello\n",
            .mode = 04751,
            .uid = 70000,
            .gid = 80000,
            .mtime = 1234567890})
      .symlink("short", "etc/file")
      .hard_link("second", "etc/file")
      .add({.path = "null", .type = '3', .mode = 0666, .major = 1, .minor = 3})
      .add({.path = "zero-zero", .type = '3', .mode = 0600})
      .add({.path = "disk", .type = '4', .mode = 0660, .major = 259, .minor = 70000})
      .add({.path = "pipe", .type = '6', .mode = 0622})
      .add({.path = "long", .type = '2', .pax = {{"linkpath", long_target}}});
  auto ext4 = build_clean(tar);
  EXPECT_EQ(test::content_of(ext4, "/etc/file"), "hello\n");
  EXPECT_EQ(test::stat_field(ext4, "/etc/file", "Mode"), "04751");
  EXPECT_EQ(test::stat_field(ext4, "/etc/file", "User"), "70000");
  EXPECT_EQ(test::stat_field(ext4, "/etc/file", "Group"), "80000");
  EXPECT_EQ(test::stat_field(ext4, "/etc/file", "Links"), "2");
  EXPECT_EQ(test::stat_field(ext4, "/etc/file", "mtime"), "0x499602d2:00000000");
  EXPECT_EQ(test::stat_field(ext4, "/etc", "Mode"), "0750");
  EXPECT_EQ(test::stat_field(ext4, "/second", "Inode"), test::stat_field(ext4, "/etc/file", "Inode"));
  EXPECT_NE(test::debugfs(ext4, "stat /short").find("Fast link dest: \"etc/file\""), std::string::npos);
  EXPECT_NE(test::debugfs(ext4, "stat /null").find("Device major/minor number: 01:03"), std::string::npos);
  EXPECT_NE(test::debugfs(ext4, "stat /disk").find("Device major/minor number: 259:70000"),
            std::string::npos);
  EXPECT_NE(test::debugfs(ext4, "stat /zero-zero").find("character special"), std::string::npos);
  EXPECT_NE(test::debugfs(ext4, "stat /pipe").find("FIFO"), std::string::npos);
  EXPECT_EQ(test::stat_field(ext4, "/long", "Size"), "300");
}

TEST_F(ImageBuilderTest, KeepsTheBytesOfLargeFiles) {
  std::string large(5'000'001, '\0');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>((i * 2654435761U) >> 13U);
  auto ext4 = build_clean(TarBuilder().file("a", "x").file("large", large).file("b", "y"));
  EXPECT_EQ(sha256_hex(test::content_of(ext4, "/large")), sha256_hex(large));
  EXPECT_EQ(test::content_of(ext4, "/b"), "y");
}

TEST_F(ImageBuilderTest, KeepsHolesOfSparseFiles) {
  // GNU sparse 1.0: the map is the first block of the data.
  std::string map = "2\n0\n5\n100000000\n5\n";
  map.resize(512);
  TarBuilder tar;
  tar.add({.path = "sparse",
           .content = map + "helloworld",
           .pax = {{"GNU.sparse.major", "1"},
                   {"GNU.sparse.minor", "0"},
                   {"GNU.sparse.name", "sparse"},
                   {"GNU.sparse.realsize", "200000000"}}});
  auto ext4 = build_clean(tar);
  EXPECT_EQ(test::stat_field(ext4, "/sparse", "Size"), "200000000");
  EXPECT_EQ(test::stat_field(ext4, "/sparse", "Blockcount"), "16");
}

TEST_F(ImageBuilderTest, KeepsManyNamesInOneFolder) {
  TarBuilder tar;
  for (int i = 0; i < 5000; ++i) tar.file("many/" + std::string(60, 'n') + std::to_string(i), "");
  auto ext4 = build_clean(tar);
  EXPECT_EQ(test::names_in(ext4, "/many").size(), 5000U);
}

TEST_F(ImageBuilderTest, KeepsFilesInMorePiecesThanAnInodeHolds) {
  std::string map = "600\n";
  std::string data;
  for (int i = 0; i < 600; ++i) {
    map += std::to_string(i * 8192) + "\n4096\n";
    data += std::string(4096, static_cast<char>('a' + i % 26));
  }
  map.resize((map.size() + 511) / 512 * 512);
  TarBuilder tar;
  tar.add({.path = "pieces",
           .content = map + data,
           .pax = {{"GNU.sparse.major", "1"},
                   {"GNU.sparse.minor", "0"},
                   {"GNU.sparse.name", "pieces"},
                   {"GNU.sparse.realsize", std::to_string(600 * 8192)}}});
  auto ext4 = build_clean(tar);
  std::string content = test::content_of(ext4, "/pieces");
  ASSERT_EQ(content.size(), 600U * 8192U);
  EXPECT_EQ(content.substr(599 * 8192, 4096), std::string(4096, static_cast<char>('a' + 599 % 26)));
}

TEST_F(ImageBuilderTest, KeepsNamesThatAreNotText) {
  auto ext4 = build_clean(TarBuilder()
                              .file("bad\xff\xfe", "1")
                              .add({.path = "x", .content = "2", .pax = {{"path", "d/\xc3\xa9\xe2\x82\xac"}}})
                              .file("new\nline", "3"));
  EXPECT_EQ(test::content_of(ext4, "/bad\xff\xfe"), "1");
  EXPECT_EQ(test::content_of(ext4, "/d/\xc3\xa9\xe2\x82\xac"), "2");
  EXPECT_EQ(test::names_in(ext4, "/").size(), 4U);
}

TEST_F(ImageBuilderTest, KeepsExtendedAttributes) {
  std::string capability("\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
                         20);
  TarBuilder tar;
  tar.add({.path = "ping",
           .content = "x",
           .pax = {{"SCHILY.xattr.security.capability", capability},
                   {"SCHILY.xattr.user.note", std::string(1000, 'n')},
                   {"SCHILY.xattr.com.apple.provenance", "dropped"}}});
  tar.add({.path = "folder", .type = '5', .pax = {{"SCHILY.xattr.trusted.overlay.opaque", "y"}}});
  auto ext4 = build_clean(tar);
  std::string names = test::debugfs(ext4, "ea_list /ping");
  EXPECT_NE(names.find("security.capability (20)"), std::string::npos) << names;
  EXPECT_NE(names.find("user.note (1000)"), std::string::npos) << names;
  EXPECT_EQ(names.find("apple"), std::string::npos) << names;
  EXPECT_NE(test::debugfs(ext4, "ea_list /folder").find("trusted.overlay.opaque (1) = \"y\""),
            std::string::npos);
}

TEST_F(ImageBuilderTest, RefusesAttributesThatExt4CannotHold) {
  auto with = [](std::string name, std::string value) {
    return TarBuilder().add({.path = "f", .pax = {{"SCHILY.xattr." + std::move(name), std::move(value)}}});
  };
  EXPECT_EQ(code_of(with("user.big", std::string(60'000, 'x'))), ErrorCode::image_invalid);
  EXPECT_EQ(code_of(with("user.", "x")), ErrorCode::image_invalid);
  EXPECT_EQ(code_of(with("system.posix_acl_access", "no list")), ErrorCode::image_invalid);
  TarBuilder many;
  std::vector<std::pair<std::string, std::string>> records;
  for (int i = 0; i < 500; ++i) records.emplace_back("SCHILY.xattr.user.n" + std::to_string(i), "0123456789");
  many.add({.path = "f", .pax = records});
  EXPECT_EQ(code_of(many), ErrorCode::limit_exceeded);
}

TEST_F(ImageBuilderTest, ResolvesParentsThatAreLinksInsideTheImage) {
  TarBuilder tar;
  tar.folder("var").symlink("var/run", "/run").symlink("a", "../../../../b").symlink("c", "var/../c2");
  tar.file("var/run/x", "1")
      .file("a/y", "2")
      .file("c/z", "3")
      .file("../../outside", "4")
      .file("/absolute", "5");
  auto ext4 = build_clean(tar);
  EXPECT_EQ(test::content_of(ext4, "/run/x"), "1");
  EXPECT_EQ(test::content_of(ext4, "/b/y"), "2");
  EXPECT_EQ(test::content_of(ext4, "/c2/z"), "3");
  EXPECT_EQ(test::content_of(ext4, "/outside"), "4");
  EXPECT_EQ(test::content_of(ext4, "/absolute"), "5");
}

TEST_F(ImageBuilderTest, AFolderEntryReplacesALink) {
  TarBuilder lower;
  lower.folder("target").file("target/old", "1").symlink("x", "/target");
  TarBuilder upper;
  upper.folder("x").file("x/new", "2");
  auto ext4 = build({lower.finish(), upper.finish()});
  EXPECT_EQ(test::check(ext4).exit_code, 0);
  EXPECT_EQ(test::names_in(ext4, "/x"), std::vector<std::string>{"new"});
  EXPECT_EQ(test::names_in(ext4, "/target"), std::vector<std::string>{"old"});
}

TEST_F(ImageBuilderTest, TheUpperEntryWinsOverEveryLowerKind) {
  const std::vector<std::pair<std::string, TarBuilder>> kinds{
      {"regular", TarBuilder().file("x", "content")},
      {"directory", TarBuilder().folder("x").file("x/inside", std::string(9000, 'i'))},
      {"symlink", TarBuilder().symlink("x", "elsewhere")},
      {"regular", TarBuilder().file("other", "o").hard_link("x", "other")},
      {"FIFO", TarBuilder().add({.path = "x", .type = '6'})},
      {"character", TarBuilder().add({.path = "x", .type = '3', .major = 1, .minor = 3})}};
  for (const auto& [lower_type, lower] : kinds) {
    for (const auto& [upper_type, upper] : kinds) {
      auto ext4 = build({lower.finish(), upper.finish()}, {}, std::uint64_t{64} << 20);
      auto checked = test::check(ext4);
      EXPECT_EQ(checked.exit_code, 0) << upper_type << " over " << lower_type << ": " << checked.output;
      EXPECT_EQ(test::stat_field(ext4, "/x", "Type"), upper_type) << "over " << lower_type;
      std::filesystem::remove(ext4);
    }
  }
}

TEST_F(ImageBuilderTest, TheSpaceOfReplacedFilesIsFreeAgain) {
  std::string large(20'000'000, 'l');
  auto ext4 = build({TarBuilder().file("big", large).finish(), TarBuilder().file("big", "small").finish()});
  auto checked = test::check(ext4);
  EXPECT_EQ(checked.exit_code, 0) << checked.output;
  struct stat status{};
  ASSERT_EQ(::stat(ext4.c_str(), &status), 0);
  EXPECT_LT(status.st_blocks * 512, 4'000'000) << "the host's disk still holds the replaced bytes";
}

TEST_F(ImageBuilderTest, LinksFollowTheMergedTree) {
  EXPECT_EQ(code_of(TarBuilder().hard_link("a", "missing")), ErrorCode::image_invalid);
  EXPECT_NE(message_.find("missing"), std::string::npos) << message_;
  EXPECT_EQ(code_of(TarBuilder().folder("d").hard_link("a", "d")), ErrorCode::image_invalid);
  auto ext4 = build_clean(TarBuilder()
                              .file("f", "x")
                              .hard_link("f", "f")
                              .symlink("s", "f")
                              .hard_link("s2", "s")
                              .hard_link("g", "f")
                              .file("f", "new"));
  EXPECT_EQ(test::content_of(ext4, "/g"), "x");
  EXPECT_EQ(test::content_of(ext4, "/f"), "new");
  EXPECT_EQ(test::stat_field(ext4, "/s2", "Inode"), test::stat_field(ext4, "/s", "Inode"));
}

TEST_F(ImageBuilderTest, RefusesWhatNoFileSystemCanHold) {
  EXPECT_EQ(code_of(TarBuilder()
                        .file(std::string(256, 'n'), "")
                        .add({.path = "x", .pax = {{"path", std::string(256, 'n')}}})),
            ErrorCode::image_invalid);
  EXPECT_EQ(code_of(TarBuilder().add({.path = "x", .pax = {{"path", std::string(5000, 'n')}}})),
            ErrorCode::image_invalid);
  EXPECT_EQ(code_of(TarBuilder().file("f", "").file("f/below", "")), ErrorCode::image_invalid);
  EXPECT_EQ(code_of(TarBuilder().file(".", "")), ErrorCode::image_invalid);
  EXPECT_EQ(code_of(TarBuilder().file("/..", "")), ErrorCode::image_invalid);
  EXPECT_EQ(code_of(TarBuilder().symlink("s", "")), ErrorCode::image_invalid);
  EXPECT_EQ(code_of(TarBuilder().file("lost+found", "")), ErrorCode::image_invalid);
  EXPECT_EQ(code_of(TarBuilder().add({.path = "f", .pax = {{"uid", "4294967295"}}})),
            ErrorCode::image_invalid);
  EXPECT_EQ(code_of(TarBuilder().symlink("a", "b").symlink("b", "a").file("a/x", "")),
            ErrorCode::image_invalid);
}

TEST_F(ImageBuilderTest, TimesBeyondExt4AreCutToItsRange) {
  build_clean(TarBuilder()
                  .add({.path = "past", .pax = {{"mtime", "-99999999999"}}})
                  .add({.path = "far", .pax = {{"mtime", "99999999999999"}}})
                  .add({.path = "nano", .pax = {{"mtime", "1000000000.123456789"}}}));
}

TEST_F(ImageBuilderTest, RefusesArchivesThatAreCutOrNone) {
  std::string whole = TarBuilder().file("a", std::string(10'000, 'a')).finish();
  EXPECT_THROW(build({whole.substr(0, 4000)}), Error);
  EXPECT_THROW(build({whole.substr(0, 100)}), Error);
  EXPECT_THROW(build({std::string("no archive at all")}), Error);
  std::string wrong_sum = whole;
  wrong_sum[0] = 'b';
  EXPECT_THROW(build({wrong_sum}), Error);
}

TEST_F(ImageBuilderTest, StopsAtItsLimits) {
  TarBuilder files;
  for (int i = 0; i < 11; ++i) files.file("f" + std::to_string(i), "0123456789");
  EXPECT_EQ(code_of(files, {.entries = 10}), ErrorCode::limit_exceeded);
  EXPECT_EQ(code_of(files, {.unpacked_bytes = 100}), ErrorCode::limit_exceeded);
  EXPECT_EQ(code_of(files, {.file_bytes = 9}), ErrorCode::limit_exceeded);
  EXPECT_EQ(code_of(TarBuilder().file("a/b/c/d", ""), {.path_depth = 2}), ErrorCode::limit_exceeded);
  for (const Limits& limits : {Limits{.unpacked_bytes = 100}, Limits{.file_bytes = 9}}) {
    try {
      build({files.finish()}, limits);
      ADD_FAILURE() << "the image was accepted";
    } catch (const Error& error) {
      EXPECT_NE(error.hint().find("HOLT_IMAGE_MAX_BYTES"), std::string::npos) << error.what();
    }
  }
}

TEST_F(ImageBuilderTest, AFullDiskIsALimitNotACrash) {
  TarBuilder tar;
  for (int i = 0; i < 70; ++i) tar.file("f" + std::to_string(i), std::string(1'000'000, 'x'));
  try {
    build({tar.finish()}, {}, std::uint64_t{64} << 20);
    FAIL() << "70 MB fit a disk of 64 MiB";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::limit_exceeded) << error.what();
    EXPECT_NE(std::string_view(error.what()).find("its disk of 64 MiB"), std::string_view::npos)
        << error.what();
    EXPECT_NE(error.hint().find("--disk"), std::string::npos) << error.hint();
  }
}

TEST_F(ImageBuilderTest, IMG_31_ALimitOnTheSizeOfFilesIsAnErrorWithItsReason) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limited{.rlim_cur = 1 << 20, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
  std::optional<Error> failure;
  try {
    build({TarBuilder().file("f", "x").finish()});
  } catch (const Error& error) {
    failure = error;
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_TRUE(failure) << "a file system of more than 1 MiB was made";
  EXPECT_EQ(failure->code(), ErrorCode::storage_error);
  EXPECT_NE(failure->hint().find("ulimit -f"), std::string::npos) << failure->what();
}

TEST_F(ImageBuilderTest, MoreFilesThanTheDisksInodesIsALimit) {
  TarBuilder tar;
  for (int i = 0; i < 8000; ++i) tar.file("d/" + std::to_string(i), "");
  try {
    build({tar.finish()}, {}, std::uint64_t{64} << 20);
    FAIL() << "8,000 files fit 8,192 inodes and left none to the user";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::limit_exceeded) << error.what();
  }
}

TEST_F(ImageBuilderTest, DepthIsBoundedThroughLinksToo) {
  // Each link starts a new path at the deepest folder so far.
  TarBuilder tar;
  std::string deep;
  for (int i = 0; i < 90; ++i) deep += "d/";
  tar.add({.path = "x", .type = '5', .pax = {{"path", deep}}});
  for (int i = 0; i < 10; ++i) {
    std::string link = "l" + std::to_string(i);
    tar.symlink(link, (i == 0 ? std::string() : "l" + std::to_string(i - 1) + "/") + deep);
    tar.add({.path = "x", .type = '5', .pax = {{"path", link + "/" + deep}}});
  }
  EXPECT_EQ(code_of(tar), ErrorCode::limit_exceeded);
  EXPECT_NE(message_.find("deep"), std::string::npos) << message_;
}

TEST_F(ImageBuilderTest, TheSameTarGivesTheSameBytes) {
  TarBuilder tar;
  for (int i = 0; i < 300; ++i)
    tar.file("d" + std::to_string(i % 7) + "/f" + std::to_string(i), std::string(i * 97, 'x'));
  tar.hard_link("link", "d0/f0").add({.path = "e", .pax = {{"SCHILY.xattr.user.a", std::string(500, 'b')}}});
  auto first = build({tar.finish()}, {}, std::uint64_t{64} << 20);
  ::setenv("TZ", "Asia/Tokyo", 1);
  mode_t mask = ::umask(0077);
  auto second = build({tar.finish()}, {}, std::uint64_t{64} << 20);
  ::umask(mask);
  ::unsetenv("TZ");
  constexpr std::size_t k_limit = std::size_t{128} << 20;
  EXPECT_TRUE(read_file(first, k_limit) == read_file(second, k_limit));
}

TEST_F(ImageBuilderTest, TheFileStaysSmallAtTheDefaultSize) {
  auto ext4 = build({TarBuilder().file("a", "x").finish()}, {}, k_default_disk_bytes);
  auto checked = test::check(ext4);
  EXPECT_EQ(checked.exit_code, 0) << checked.output;
  struct stat status{};
  ASSERT_EQ(::stat(ext4.c_str(), &status), 0);
  EXPECT_EQ(static_cast<std::uint64_t>(status.st_size), k_default_disk_bytes);
  EXPECT_LT(status.st_blocks * 512, 2'000'000);
}

}  // namespace
}  // namespace holt::image
