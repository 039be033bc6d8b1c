// Extended attributes, devices and special bits of layers; images that are the same and those that are
// sparse.
#include "image/compression.hpp"
#include "image/layer_fixture.hpp"

#include <clocale>
#include <sys/stat.h>

#include <fmt/format.h>

namespace holt::image {
namespace {

using test::Lines;
using test::TarBuilder;
using namespace std::literals;

class LayerAttributes : public test::LayerTest {
 protected:
  static TarBuilder with(std::string name, std::string value, char type = '0') {
    return TarBuilder().add(
        {.path = "f", .type = type, .pax = {{"SCHILY.xattr." + std::move(name), std::move(value)}}});
  }
  /// What debugfs lists of "/f".
  std::string attributes(const TarBuilder& tar) {
    auto ext4 = build({tar});
    auto checked = test::check(ext4);
    EXPECT_EQ(checked.exit_code, 0) << checked.output;
    return test::debugfs(ext4, "ea_list /f");
  }
};

TEST_F(LayerAttributes, IMG_26_CapabilitiesAndUserAttributesAreKept) {
  std::string capability("\x01\0\0\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
  EXPECT_NE(attributes(with("security.capability", capability))
                .find("security.capability (20) = 01 00 00 02 00 04"),
            std::string::npos);
  EXPECT_NE(attributes(with("user.empty", "")).find("user.empty (0)"), std::string::npos);
  EXPECT_NE(attributes(with("user.nul", "a\0b"s)).find("user.nul (3)"), std::string::npos);
  EXPECT_NE(attributes(with("user.most", std::string(3900, 'x'))).find("user.most (3900)"),
            std::string::npos);
}

TEST_F(LayerAttributes, IMG_26_WhatExt4CannotHoldIsAClearError) {
  for (std::size_t size : {std::size_t{60} << 10, std::size_t{70} << 10}) {
    EXPECT_EQ(refusal(with("user.big", std::string(size, 'x'))), ErrorCode::image_invalid);
    EXPECT_EQ(message_,
              fmt::format("member 1 of the archive, 'f', has an attribute 'user.big' of {} bytes", size));
  }
  EXPECT_EQ(refusal(with("user.", "x")), ErrorCode::image_invalid);
  EXPECT_EQ(refusal(with("user." + std::string(300, 'n'), "x")), ErrorCode::image_invalid);
  EXPECT_EQ(refusal(with("system.posix_acl_access", "no list")), ErrorCode::image_invalid);
  EXPECT_EQ(refusal(with("system.posix_acl_default", "\1\0\0\0"s, '5')), ErrorCode::image_invalid);
  EXPECT_EQ(refusal(with("user.a\0b"s, "x")), ErrorCode::image_invalid);
  for (char type : {'0', '5'}) {
    test::Member member{.path = "f", .type = type};
    for (int i = 0; i < 5000; ++i)
      member.pax.emplace_back(fmt::format("SCHILY.xattr.user.n{}", i), "0123456789");
    EXPECT_EQ(refusal(TarBuilder().add(member)), ErrorCode::limit_exceeded) << type;
  }
}

// The kernel would run no file that has one (EINVAL); setxattr refuses it, and so does umoci.
TEST_F(LayerAttributes, IMG_26_WhatIsNoSetOfCapabilitiesIsAClearError) {
  auto set = [](std::string_view magic, std::size_t size) {
    std::string value(magic);
    value.resize(size);
    return value;
  };
  for (const auto& value :
       {"x"s, ""s, set("\x01\0\0\x02"sv, 12), set("\x01\0\0\x02"sv, 24), set("\x01\0\0\x03"sv, 20),
        set("\x01\0\0\x04"sv, 24), set("\x03\0\0\x02"sv, 20), set("\0\0\0\0"sv, 20)}) {
    EXPECT_EQ(refusal(with("security.capability", value)), ErrorCode::image_invalid) << hex(value);
    EXPECT_NE(message_.find("is no set of capabilities"), std::string::npos) << message_;
  }
  for (const auto& value : {set("\x01\0\0\x01"sv, 12), set("\0\0\0\x02"sv, 20), set("\x01\0\0\x03"sv, 24)}) {
    EXPECT_NE(attributes(with("security.capability", value)).find("security.capability"), std::string::npos)
        << hex(value);
  }
}

TEST_F(LayerAttributes, IMG_26_NamesWithoutALinuxNamespaceAreLeftOut) {
  for (const char* name :
       {"", "nonamespace", "com.apple.provenance", "security.selinux", "system.nfs4_acl"}) {
    std::string listed = attributes(with(name, "x"));
    EXPECT_EQ(listed.find("(1)"), std::string::npos) << name << ": " << listed;
  }
}

TEST_F(LayerAttributes, IMG_26_NamesOfOverlayfsAreOrdinaryData) {
  auto ext4 = build({TarBuilder().folder("f").file("f/lower", "1"),
                     TarBuilder()
                         .add({.path = "f",
                               .type = '5',
                               .pax = {{"SCHILY.xattr.trusted.overlay.opaque", "y"},
                                       {"SCHILY.xattr.trusted.overlay.redirect", "/etc"},
                                       {"SCHILY.xattr.user.overlay.opaque", "y"}}})
                         .file("f/upper", "2")});
  std::string listed = test::debugfs(ext4, "ea_list /f");
  for (const char* name : {"trusted.overlay.opaque", "trusted.overlay.redirect", "user.overlay.opaque"}) {
    EXPECT_NE(listed.find(name), std::string::npos) << listed;
  }
  EXPECT_EQ(outline_of_clean(ext4), (Lines{"d f", "f f/lower=1", "f f/upper=2"}));
}

TEST_F(LayerAttributes, IMG_26_AnUpperEntryBringsItsOwnAttributesOnly) {
  auto ext4 = build({with("user.lower", "1"), with("user.upper", "2")});
  std::string listed = test::debugfs(ext4, "ea_list /f");
  EXPECT_EQ(listed.find("user.lower"), std::string::npos) << listed;
  EXPECT_NE(listed.find("user.upper"), std::string::npos) << listed;
}

TEST_F(LayerAttributes, IMG_27_DevicesFifosAndSpecialBits) {
  auto ext4 = build({TarBuilder()
                         .add({.path = "zero", .type = '3', .mode = 0600})
                         .add({.path = "null", .type = '3', .mode = 0666, .major = 1, .minor = 3})
                         .add({.path = "disk", .type = '4', .mode = 0660, .major = 8})
                         .add({.path = "far", .type = '4', .mode = 0660, .major = 4095, .minor = 1'048'575})
                         .add({.path = "pipe", .type = '6', .mode = 0622})
                         .add({.path = "su", .content = "x", .mode = 04755})
                         .add({.path = "tmp", .type = '5', .mode = 01777})
                         .add({.path = "odd", .content = "x", .mode = 0177777})
                         .add({.path = "link", .type = '2', .link = "x", .mode = 0})});
  auto tree = test::tree_of(ext4);
  EXPECT_EQ(tree.at("su").mode, 04755U);
  EXPECT_EQ(tree.at("tmp").mode, 01777U);
  EXPECT_EQ(tree.at("odd").mode, 07777U);
  EXPECT_EQ(tree.at("odd").type, 'f');
  EXPECT_EQ(tree.at("link").mode, 0777U);
  EXPECT_EQ(tree.at("null").mode, 0666U);
  EXPECT_EQ(outline_of_clean(ext4), (Lines{"b disk 8:0", "b far 4095:1048575", "c null 1:3", "c zero 0:0",
                                           "d tmp", "f odd=x", "f su=x", "l link->x", "p pipe"}));
}

TEST_F(LayerAttributes, IMG_27_ADeviceOfNoNumberIsNoWhiteout) {
  EXPECT_EQ(outline({TarBuilder().file("f", "1").folder("d").file("d/g", "2"),
                     TarBuilder().add({.path = "f", .type = '3'}).add({.path = "d/g", .type = '3'})}),
            (Lines{"c d/g 0:0", "c f 0:0", "d d"}));
}

TEST_F(LayerAttributes, IMG_27_TheHostGetsOneFileAndNoDevice) {
  auto ext4 = build({TarBuilder()
                         .add({.path = "null", .type = '3', .major = 1, .minor = 3})
                         .add({.path = "p", .type = '6'})});
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::recursive_directory_iterator(dir_.path()))
    files.push_back(file.path());
  EXPECT_EQ(files, std::vector{ext4});
  EXPECT_TRUE(std::filesystem::is_regular_file(ext4));
}

TEST_F(LayerAttributes, IMG_27_DeviceNumbersThatLinuxDoesNotHaveAreRefused) {
  EXPECT_EQ(refusal(TarBuilder().add({.path = "c", .type = '3', .major = 4096})), ErrorCode::image_invalid);
  EXPECT_EQ(refusal(TarBuilder().add({.path = "c", .type = '4', .minor = 1 << 20})),
            ErrorCode::image_invalid);
}

class LayerResults : public test::LayerTest {
 protected:
  static std::vector<std::string> some_layers() {
    TarBuilder lower;
    for (int i = 0; i < 300; ++i)
      lower.file(fmt::format("d{}/f{}", i % 7, i), std::string(static_cast<std::size_t>(i) * 97, 'x'));
    lower.hard_link("link", "d0/f0")
        .add({.path = "e", .pax = {{"SCHILY.xattr.user.a", std::string(500, 'b')}}});
    TarBuilder upper;
    upper.file(".wh.d3", "")
        .file("d1/.wh..wh..opq", "")
        .file("d1/\xc3\xa9", "")
        .symlink("s", std::string(100, 't'));
    return {test::gzip(lower.finish()), test::zstd(upper.finish())};
  }
  static std::string digest(const std::filesystem::path& file) {
    return sha256_hex(read_file(file, std::size_t{128} << 20));
  }
};

TEST_F(LayerResults, IMG_33_TheSameLayersGiveTheSameBytesEverywhere) {
  std::string first = digest(build(some_layers()));
  ::setenv("TZ", "Asia/Tokyo", 1);
  std::setlocale(LC_ALL, "C.UTF-8");
  mode_t mask = ::umask(0077);
  std::string second = digest(build(some_layers()));
  ::umask(mask);
  std::setlocale(LC_ALL, "C");
  ::unsetenv("TZ");
  EXPECT_EQ(first, second);
}

TEST_F(LayerResults, IMG_33_AnotherFileSystemMakesNoDifference) {
  struct stat here{};
  struct stat memory{};
  ASSERT_EQ(::stat(dir_.path().c_str(), &here), 0);
  if (::stat("/dev/shm", &memory) != 0 || here.st_dev == memory.st_dev || ::access("/dev/shm", W_OK) != 0) {
    GTEST_SKIP() << "there is no second file system: /dev/shm is missing or the same";
  }
  std::string first = digest(build(some_layers()));
  auto ext4 = std::filesystem::path("/dev/shm") / dir_.path().filename();
  ImageBuilder builder(ext4, {.disk_bytes = test::k_small_disk});
  std::string digests;
  for (const std::string& layer : some_layers()) {
    MemorySource packed(layer);
    DecompressedSource unpacked(packed, Compressions::layers);
    MeteredSource tar(unpacked, std::uint64_t{64} << 20);
    builder.apply_layer(tar);
    tar.drain();
    digests += tar.digest_hex();
  }
  builder.finish(sha256_hex(digests));
  std::string second = digest(ext4);
  std::filesystem::remove(ext4);
  EXPECT_EQ(first, second);
}

TEST_F(LayerResults, IMG_34_AFileSystemOf64GibTakesWhatIsInIt) {
  constexpr std::uint64_t k_declared = std::uint64_t{64} << 30;
  auto ext4 = build({TarBuilder().file("a", std::string(1 << 20, 'x')).finish()}, {}, k_declared);
  struct stat info{};
  ASSERT_EQ(::stat(ext4.c_str(), &info), 0);
  EXPECT_EQ(static_cast<std::uint64_t>(info.st_size), k_declared);
  EXPECT_LT(info.st_blocks * 512, 6 << 20);
  EXPECT_EQ(outline_of_clean(ext4).size(), 1U);
}

}  // namespace
}  // namespace holt::image
