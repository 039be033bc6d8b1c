// Tar headers that are odd, and those that are impossible. What umoci (Go's archive/tar) accepts gives its
// tree, unless a comment says why not.
#include "image/compression.hpp"
#include "image/layer_fixture.hpp"

#include <clocale>

#include <fmt/format.h>

namespace holt::image {
namespace {

using test::Lines;
using test::Member;
using test::TarBuilder;
using namespace std::literals;

class LayerHeaders : public test::LayerTest {
 protected:
  Lines tree(const TarBuilder& tar) { return outline({tar}); }

  /// Expects that the second member of an archive is refused with its number.
  void expect_refused(const Member& member, ErrorCode code = ErrorCode::image_invalid) {
    expect_refused(TarBuilder().file("first", "x").add(member), code);
  }
  void expect_refused(const TarBuilder& tar, ErrorCode code = ErrorCode::image_invalid) {
    EXPECT_EQ(refusal(tar), code) << message_;
    EXPECT_NE(message_.find("member 2 of the archive"), std::string::npos) << message_;
  }
};

/// GNU's binary numbers: the first byte has its high bit set.
std::string base_256(std::size_t length, std::int64_t value) {
  std::string bytes(length, value < 0 ? '\xff' : '\0');
  for (std::size_t i = 0; i < 8 && i < length; ++i) {
    bytes[length - 1 - i] = static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i));
  }
  bytes[0] = static_cast<char>(static_cast<unsigned char>(bytes[0]) | 0x80U);
  return bytes;
}

TEST_F(LayerHeaders, IMG_24_NamesThatAreOddAndPossible) {
  EXPECT_EQ(tree(TarBuilder()
                     .file("new\nline", "1")
                     .file("./././dot", "2")
                     .file("/abs/olute", "3")
                     .file("bad\xff\xfe", "4")
                     .folder("folder/")
                     .folder("./")
                     .folder("")),
            (Lines{"d abs", "d folder", "f abs/olute=3", "f bad\xff\xfe=4", "f dot=2", "f new\nline=1"}));
}

TEST_F(LayerHeaders, IMG_24_NamesThatNoFileSystemHolds) {
  expect_refused({.path = "x", .pax = {{"path", std::string(5000, 'n')}}});
  expect_refused({.path = "x", .pax = {{"path", "d/" + std::string(256, 'n')}}});
  expect_refused({.path = ""});
  expect_refused({.path = "."});
  // A folder to libarchive, a file to Go.
  expect_refused({.path = "file/", .content = "x"});
  expect_refused({.path = "file", .pax = {{"path", "file/"}}});
}

TEST_F(LayerHeaders, IMG_24_NamesWithANul) {
  for (const char* key : {"path", "linkpath"}) {
    for (const auto& name : {"a\0b"s, "\0"s, "a\0"s}) {
      expect_refused({.path = "x", .type = '2', .link = "y", .pax = {{key, name}}});
      EXPECT_NE(message_.find(fmt::format("a NUL in the attribute '{}=", key)), std::string::npos)
          << message_;
    }
  }
}

TEST_F(LayerHeaders, IMG_24_LongNamesOfBothKinds) {
  std::string longest(255, 'n');
  EXPECT_EQ(tree(TarBuilder().gnu_long('L', "d/" + longest).file("d/nnn", "1")),
            (Lines{"d d", "f d/" + longest + "=1"}));
  EXPECT_EQ(tree(TarBuilder().gnu_long('K', longest).symlink("l", "nnn")), (Lines{"l l->" + longest}));
  EXPECT_EQ(
      tree(TarBuilder().gnu_long('L', "same").add({.path = "x", .content = "1", .pax = {{"path", "same"}}})),
      (Lines{"f same=1"}));
}

TEST_F(LayerHeaders, IMG_24_NamesAndTargetsMayStandInAnExtensionAlone) {
  std::string longest(255, 'n');
  EXPECT_EQ(tree(TarBuilder()
                     .file("f", "1")
                     .add({.path = "", .content = "2", .pax = {{"path", "g"}}})
                     .add({.path = "", .type = '5', .pax = {{"path", "d"}}})
                     .add({.path = "s", .type = '2', .pax = {{"linkpath", "f"}}})
                     .add({.path = "", .type = '2', .pax = {{"path", "d/s"}, {"linkpath", longest}}})
                     .add({.path = "h", .type = '1', .pax = {{"linkpath", "f"}}})
                     .add({.path = "", .type = '1', .pax = {{"path", "d/h"}, {"linkpath", "g"}}})
                     .gnu_long('K', longest)
                     .symlink("k", "")
                     .gnu_long('L', "d/k")
                     .gnu_long('K', "g")
                     .hard_link("", "")
                     .extended('x', "14 linkpath=f\n")
                     .gnu_long('L', "both")
                     .symlink("", "")),
            (Lines{"d d", "f d/h=2", "f f=1", "h d/k=d/h", "h g=d/h", "h h=f", "l both->f",
                   "l d/s->" + longest, "l k->" + longest, "l s->f"}));
  for (char type : {'1', '2'}) {
    expect_refused({.path = "l", .type = type});
    expect_refused({.path = "l", .type = type, .pax = {{"linkpath", ""}}});
    expect_refused(TarBuilder().file("first", "").gnu_long('K', "").add({.path = "l", .type = type}));
  }
}

// Go takes GNU's name, libarchive the one that came first: such an archive means two things.
TEST_F(LayerHeaders, IMG_24_HeadersThatDisagreeAreRefused) {
  expect_refused(
      TarBuilder().file("first", "").gnu_long('L', "one").add({.path = "x", .pax = {{"path", "other"}}}));
  expect_refused(TarBuilder()
                     .file("first", "")
                     .gnu_long('K', "one")
                     .add({.path = "x", .type = '2', .link = "l", .pax = {{"linkpath", "other"}}}));
  expect_refused(
      TarBuilder().file("first", "").extended('x', "10 path=a\n").add({.path = "x", .pax = {{"path", "b"}}}));
  expect_refused(TarBuilder().file("first", "").gnu_long('L', "a").gnu_long('L', "b").file("x", ""));
}

TEST_F(LayerHeaders, IMG_24_AnExtendedSizeCounts) {
  EXPECT_EQ(
      tree(TarBuilder()
               .add({.path = "f", .content = "12345", .pax = {{"size", "5"}}, .raw = {{124, "00000000000"}}})
               .file("g", "2")),
      (Lines{"f f=12345", "f g=2"}));
  expect_refused({.path = "f", .content = "12345", .pax = {{"size", "-5"}}});
  expect_refused({.path = "f", .content = "12345", .pax = {{"size", "5x"}}});
  expect_refused({.path = "f", .content = "12345", .pax = {{"size", ""}}});
  expect_refused({.path = "f", .content = "12345", .pax = {{"size", "99999999999999999999"}}});
  // Whether data follow a header that has none is where readers disagree most.
  expect_refused({.path = "d", .type = '5', .pax = {{"size", "512"}}});
  expect_refused({.path = "l", .type = '1', .content = "data", .link = "first"});
}

TEST_F(LayerHeaders, IMG_24_SizesOfFoldersWithoutDataDoNotMatter) {
  EXPECT_EQ(tree(TarBuilder().add({.path = "d", .type = '5', .raw = {{124, "00000001000"}}}).file("f", "1")),
            (Lines{"d d", "f f=1"}));
}

TEST_F(LayerHeaders, IMG_24_NumbersThatAreNone) {
  expect_refused({.path = "f", .raw = {{124, "0000000001x"}}});
  expect_refused({.path = "f", .raw = {{124, "-0000000001"}}});
  expect_refused({.path = "f", .raw = {{124, base_256(12, -1)}}});
  expect_refused({.path = "f", .raw = {{124, "\xbf" + std::string(11, '\xff')}}});
  expect_refused({.path = "f", .raw = {{100, "abcdefg"}}});
  expect_refused({.path = "f", .raw = {{108, "12 34"}}});
  expect_refused({.path = "f", .raw = {{136, "9"}}});
  expect_refused({.path = "f", .pax = {{"mtime", "nan"}}});
  expect_refused({.path = "f", .pax = {{"mtime", "1e9"}}});
  expect_refused({.path = "f", .pax = {{"mtime", "9223372036854775808"}}});
  expect_refused({.path = "f", .raw = {{136, "\x80\0\0\0\x80\0\0\0\0\0\0\0"s}}});
  expect_refused({.path = "c", .type = '3', .raw = {{329, "x"}}});
}

TEST_F(LayerHeaders, IMG_24_ASizeIsNotTrustedBeforeItsBytesAreThere) {
  expect_refused({.path = "f", .raw = {{124, base_256(12, std::int64_t{1} << 50)}}},
                 ErrorCode::limit_exceeded);
  expect_refused({.path = "f", .raw = {{124, base_256(12, INT64_MAX)}}});
  expect_refused({.path = "f", .raw = {{124, base_256(12, std::int64_t{1} << 30)}}});
}

TEST_F(LayerHeaders, IMG_24_NumbersThatAreOddAndPossible) {
  auto ext4 =
      build({TarBuilder()
                 .add({.path = "spaces", .raw = {{100, "   644 \0"s}, {108, "\0\0\0\0\0\0\0\0"s}}})
                 .add({.path = "binary", .raw = {{108, base_256(8, 3'000'000'000)}, {136, base_256(12, -5)}}})
                 .add({.path = "most", .pax = {{"uid", "4294967294"}, {"gid", "4294967294"}}})
                 .add({.path = "late", .pax = {{"mtime", "9223372036854775807"}}})
                 .add({.path = "extra", .mode = 0107755})});
  auto tree = test::tree_of(ext4);
  EXPECT_EQ(tree.at("spaces").mode, 0644U);
  EXPECT_EQ(tree.at("spaces").uid, 0U);
  EXPECT_EQ(tree.at("binary").uid, 3'000'000'000U);
  EXPECT_EQ(tree.at("binary").seconds, static_cast<std::uint32_t>(-5));
  EXPECT_EQ(tree.at("most").uid, 4294967294U);
  EXPECT_EQ(tree.at("most").gid, 4294967294U);
  EXPECT_EQ(tree.at("extra").mode, 07755U);
  EXPECT_EQ(test::check(ext4).exit_code, 0);
}

// 2^32-1 is "unchanged" to chown: umoci would leave the file to root.
TEST_F(LayerHeaders, IMG_24_OwnersThatNoFileHas) {
  for (const char* id : {"4294967295", "4294967296", "-1"}) {
    expect_refused({.path = "f", .pax = {{"uid", id}}});
    expect_refused({.path = "f", .pax = {{"gid", id}}});
  }
  for (std::int64_t id : {std::int64_t{4294967295}, std::int64_t{4294967296}, std::int64_t{-1}}) {
    expect_refused({.path = "f", .raw = {{108, base_256(8, id)}}});
  }
}

TEST_F(LayerHeaders, IMG_24_AWrongChecksumOrAnUnknownTypeIsRefused) {
  std::string damaged = TarBuilder().file("first", "").file("second", "").finish();
  damaged[512] = 'X';
  EXPECT_EQ(refusal({damaged}), ErrorCode::image_invalid);
  EXPECT_NE(message_.find("member 2 of the archive"), std::string::npos) << message_;
  for (char type : {'8', 'A', 'D', 'M', 'Q', 'V', 'X', 'z', '\xff'})
    expect_refused({.path = "f", .type = type});
}

TEST_F(LayerHeaders, IMG_24_OldHeadersAndGlobalOnes) {
  // V7: no magic, no prefix, type 0, a folder by its slash.
  std::string none(8, '\0');
  EXPECT_EQ(tree(TarBuilder()
                     .add({.path = "old/", .type = '\0', .raw = {{257, none}}})
                     .add({.path = "old/f", .type = '\0', .content = "1", .raw = {{257, none}}})
                     .add({.path = "g", .type = '7', .content = "2"})
                     .extended('g', "17 comment=hello\n")
                     .file("h", "3")),
            (Lines{"d old", "f g=2", "f h=3", "f old/f=1"}));
}

TEST_F(LayerHeaders, IMG_24_ExtendedHeadersThatAreDamaged) {
  for (const std::string& body :
       {"path=a\n"s, "8 path=a\n"s, "99 path=a\n"s, "10 path=ab\n"s, "5 \n"s, "6 pat\n"s, "4 =\n"s,
        "0 path=a\n"s, "99999999999999999999 path=a\n"s, "8 k\0k=v\n"s}) {
    expect_refused(TarBuilder().file("first", "").extended('x', body).file("f", ""));
  }
  expect_refused(TarBuilder().file("first", "").extended('x', std::string((1 << 20) + 1, ' ')).file("f", ""));
}

std::string sparse_10(const std::string& map, const std::string& data, std::size_t size,
                      TarBuilder tar = {}) {
  std::string padded = map;
  padded.resize((map.size() + 511) / 512 * 512);
  return tar
      .add({.path = "x",
            .content = padded + data,
            .pax = {{"GNU.sparse.major", "1"},
                    {"GNU.sparse.minor", "0"},
                    {"GNU.sparse.name", "s"},
                    {"GNU.sparse.realsize", std::to_string(size)}}})
      .finish();
}

TEST_F(LayerHeaders, IMG_24_SparseMembersOfEveryFormat) {
  std::string expected = "ab"s + std::string(8190, '\0') + "cd";
  auto content = [&](const std::string& tar) {
    auto ext4 = build({tar});
    EXPECT_EQ(test::check(ext4).exit_code, 0);
    return test::tree_of(ext4).at("s").content;
  };
  EXPECT_EQ(content(sparse_10("2\n0\n2\n8192\n2\n", "abcd", 8194)), expected);
  EXPECT_EQ(content(TarBuilder()
                        .add({.path = "x",
                              .content = "abcd",
                              .pax = {{"GNU.sparse.size", "8194"},
                                      {"GNU.sparse.numblocks", "2"},
                                      {"GNU.sparse.map", "0,2,8192,2"},
                                      {"GNU.sparse.name", "s"}}})
                        .finish()),
            expected);
  EXPECT_EQ(content(TarBuilder()
                        .add({.path = "s",
                              .content = "abcd",
                              .pax = {{"GNU.sparse.size", "8194"},
                                      {"GNU.sparse.numblocks", "2"},
                                      {"GNU.sparse.offset", "0"},
                                      {"GNU.sparse.numbytes", "2"},
                                      {"GNU.sparse.offset", "8192"},
                                      {"GNU.sparse.numbytes", "2"}}})
                        .finish()),
            expected);
  EXPECT_EQ(content(TarBuilder()
                        .add({.path = "s",
                              .type = 'S',
                              .content = "abcd",
                              .raw = {{257, "ustar  \0"s},
                                      {329, std::string(16, '\0')},
                                      {386,
                                       "00000000000\0"s
                                       "00000000002\0"s
                                       "00000020000\0"s
                                       "00000000002\0"s},
                                      {483, "00000020002"}}})
                        .finish()),
            expected);
}

// Go's archive/tar knows none of them, libarchive all.
TEST_F(LayerHeaders, IMG_24_RecordsThatOnlySomeReadersKnowHaveNoEffect) {
  auto tar = TarBuilder()
                 .add({.path = "closed",
                       .mode = 0600,
                       .pax = {{"SCHILY.acl.access", "user::rwx,group::rwx,other::rwx"}}})
                 .add({.path = "setuid",
                       .mode = 04755,
                       .pax = {{"SCHILY.acl.access", "user::rw-,group::---,other::---"}}})
                 .add({.path = "folder",
                       .type = '5',
                       .mode = 0700,
                       .pax = {{"SCHILY.acl.default", "user::rwx,group::rwx,other::rwx"}}})
                 .add({.path = "size", .content = "x", .pax = {{"SCHILY.realsize", "1000"}}})
                 .add({.path = "holes", .content = "x", .pax = {{"SUN.holesdata", " 0 1 1000"}}})
                 .add({.path = "null",
                       .type = '3',
                       .major = 1,
                       .minor = 3,
                       .pax = {{"SCHILY.devmajor", "8"}, {"SCHILY.devminor", "0"}}})
                 .add({.path = "attribute", .pax = {{"LIBARCHIVE.xattr.user.x", "MQ"}}})
                 .add({.path = "named", .pax = {{"path", "first"}, {"path", "last"}, {"linkpath", ""}}})
                 .add({.path = "empty", .pax = {{"path", ""}}});
  auto ext4 = build({tar});
  auto tree = test::tree_of(ext4);
  EXPECT_EQ(tree.at("closed").mode, 0600U);
  EXPECT_EQ(tree.at("setuid").mode, 04755U);
  EXPECT_EQ(tree.at("folder").mode, 0700U);
  EXPECT_EQ(tree.at("size").size, 1U);
  EXPECT_EQ(tree.at("holes").size, 1U);
  EXPECT_EQ(std::pair(tree.at("null").major, tree.at("null").minor), std::pair(1U, 3U));
  EXPECT_TRUE(tree.contains("last") && tree.contains("empty") && !tree.contains("first"));
  EXPECT_EQ(test::debugfs(ext4, "ea_list /attribute").find("user.x"), std::string::npos);
  EXPECT_EQ(test::check(ext4).exit_code, 0);
}

// The stream comes in pieces of every size: records are changed before a reader has seen the first of them.
TEST_F(LayerHeaders, IMG_24_RecordsAreLookedAtWhereverAPieceEnds) {
  class Pieces final : public ByteSource {
   public:
    Pieces(std::string_view bytes, std::size_t size) : bytes_(bytes), size_(size) {}
    std::string_view read() override {
      std::string_view piece = bytes_.substr(0, size_);
      bytes_.remove_prefix(piece.size());
      return piece;
    }

   private:
    std::string_view bytes_;
    std::size_t size_;
  };
  std::string tar = TarBuilder()
                        .file("first", std::string(700, 'f'))
                        .add({.path = "x",
                              .content = "1",
                              .mode = 0600,
                              .pax = {{"SCHILY.acl.access", "user::rwx,group::rwx,other::rwx"},
                                      {"comment", std::string(600, 'c')},
                                      {"path", "right"}}})
                        .finish();
  for (std::size_t size : {1, 7, 511, 512, 513, 1500}) {
    auto ext4 = dir_.path() / fmt::format("pieces{}.ext4", size);
    ImageBuilder builder(ext4, {.disk_bytes = test::k_small_disk});
    Pieces pieces(tar, size);
    builder.apply_layer(pieces);
    builder.finish(std::string(64, 'a'));
    auto tree = test::tree_of(ext4);
    EXPECT_EQ(tree.at("right").mode, 0600U) << size;
    EXPECT_EQ(tree.at("right").content, "1") << size;
    EXPECT_EQ(tree.at("first").size, 700U) << size;
  }
}

TEST_F(LayerHeaders, IMG_24_TimesBeforeTheEpochHaveTheirFraction) {
  struct Time {
    const char* text;
    std::int64_t seconds;
    std::uint32_t nanoseconds;
  };
  // As Go's archive/tar reads them: Unix() and Nanosecond().
  for (auto [text, seconds, nanoseconds] : std::vector<Time>{{"-0.5", -1, 500'000'000},
                                                             {"-00.5", -1, 500'000'000},
                                                             {"-0.000000001", -1, 999'999'999},
                                                             {"-0.0000000001", 0, 0},
                                                             {"-0.0", 0, 0},
                                                             {"-0", 0, 0},
                                                             {"-1.0", -1, 0},
                                                             {"-1.000000001", -2, 999'999'999},
                                                             {"-1.5", -2, 500'000'000},
                                                             {"-1.9999999999", -2, 1},
                                                             {"-10.25", -11, 750'000'000},
                                                             {"-5.", -5, 0},
                                                             {"0.5", 0, 500'000'000},
                                                             {"1.9999999999", 1, 999'999'999}}) {
    auto ext4 = build({TarBuilder().add({.path = "f", .pax = {{"mtime", "7.5"}, {"mtime", text}}})});
    EXPECT_EQ(test::stat_field(ext4, "/f", "mtime"),
              fmt::format("0x{:08x}:{:08x}", static_cast<std::uint32_t>(seconds), nanoseconds << 2U))
        << text;
  }
  auto later = build({TarBuilder().add({.path = "f", .pax = {{"mtime", "-0.5"}, {"mtime", "7.5"}}})});
  EXPECT_EQ(test::stat_field(later, "/f", "mtime"), "0x00000007:77359400");
  auto changed = build({TarBuilder().add({.path = "f", .pax = {{"mtime", "7.5"}, {"ctime", "-0.25"}}})});
  EXPECT_EQ(test::stat_field(changed, "/f", "mtime"), "0x00000007:77359400");
}

// libarchive obeys each of them, Go none.
TEST_F(LayerHeaders, IMG_24_SparseRecordsOfNoFormatAreRefused) {
  using Records = std::vector<std::pair<std::string, std::string>>;
  for (const Records& records : std::vector<Records>{
           {{"GNU.sparse.name", "evil"}},
           {{"GNU.sparse.realsize", "1000"}},
           {{"GNU.sparse.size", "1000"}},
           {{"GNU.sparse.major", "2"}, {"GNU.sparse.minor", "0"}, {"GNU.sparse.realsize", "1000"}},
           {{"GNU.sparse.major", "1"}, {"GNU.sparse.minor", "0"}},
           {{"GNU.sparse.size", "9"}, {"GNU.sparse.numblocks", "2"}, {"GNU.sparse.map", "0,1"}},
           {{"GNU.sparse.size", "9"}, {"GNU.sparse.numblocks", "1"}, {"GNU.sparse.map", "0,-1"}},
           {{"GNU.sparse.size", "9x"}, {"GNU.sparse.numblocks", "1"}, {"GNU.sparse.map", "0,1"}},
           {{"GNU.sparse.size", "9"},
            {"GNU.sparse.realsize", "8"},
            {"GNU.sparse.numblocks", "1"},
            {"GNU.sparse.map", "0,1"}},
           {{"GNU.sparse.size", "9"},
            {"GNU.sparse.numblocks", "1"},
            {"GNU.sparse.numbytes", "1"},
            {"GNU.sparse.offset", "0"}}}) {
    expect_refused({.path = "good", .content = "x", .pax = records});
  }
  Records real{{"GNU.sparse.size", "9"}, {"GNU.sparse.numblocks", "1"}, {"GNU.sparse.map", "0,1"}};
  expect_refused({.path = "folder", .type = '5', .pax = real});
}

TEST_F(LayerHeaders, IMG_24_SparseMapsThatLie) {
  EXPECT_EQ(refusal({sparse_10("2\n0\n4\n2\n4\n", "abcdefgh", 8192)}), ErrorCode::image_invalid)
      << "overlapping pieces";
  EXPECT_EQ(refusal({sparse_10("1\n8192\n4\n", "abcd", 4096)}), ErrorCode::image_invalid)
      << "a piece behind the end";
  EXPECT_EQ(refusal({sparse_10("1\n9223372036854775800\n4\n", "abcd", 4096)}), ErrorCode::image_invalid);
  EXPECT_EQ(refusal({sparse_10("1\n0\n4\n", "abcd", std::size_t{1} << 62)}), ErrorCode::limit_exceeded)
      << "8 EiB";
  EXPECT_EQ(refusal({sparse_10("x\n", "abcd", 4096)}), ErrorCode::image_invalid);
  EXPECT_EQ(refusal({sparse_10("999999999\n0\n", "", 4096)}), ErrorCode::limit_exceeded)
      << "a map without bound";
  EXPECT_EQ(refusal({sparse_10("99999999999999999999999\n0\n", "", 4096)}), ErrorCode::limit_exceeded);
}

TEST_F(LayerHeaders, IMG_24_ArchivesThatAreCut) {
  std::string whole = TarBuilder().file("first", "").file("second", std::string(1000, 's')).finish();
  for (std::size_t length : {512 + 100, 512 + 511, 512 + 512, 512 + 1000, 512 + 512 + 999}) {
    EXPECT_EQ(refusal({whole.substr(0, length)}), ErrorCode::image_invalid) << length;
    EXPECT_NE(message_.find("member 2"), std::string::npos) << length << ": " << message_;
  }
  EXPECT_EQ(refusal({TarBuilder().file("first", "").extended('x', "10 path=a\n").bytes()}),
            ErrorCode::image_invalid);
}

// As umoci takes it.
TEST_F(LayerHeaders, IMG_24_AStreamWithoutBytesIsALayerWithoutMembers) {
  for (const std::string& layer : {std::string(), test::gzip(""), test::zstd("")}) {
    EXPECT_EQ(outline_of_clean(build({TarBuilder().file("f", "1").finish(), layer})), Lines{"f f=1"})
        << layer.size();
  }
}

TEST_F(LayerHeaders, IMG_24_TheEndMayBeMissingOrLong) {
  Lines expected{"f f=1"};
  TarBuilder tar = TarBuilder().file("f", "1");
  EXPECT_EQ(outline_of_clean(build({tar.bytes()})), expected) << "without the empty blocks";
  for (std::size_t left_out : {1, 511}) {
    EXPECT_EQ(outline_of_clean(build({tar.bytes().substr(0, tar.bytes().size() - left_out)})), expected)
        << "without all of the padding, as by umoci insert";
  }
  EXPECT_EQ(outline_of_clean(build({tar.bytes() + std::string(512, '\0')})), expected) << "with one of them";
  EXPECT_EQ(outline_of_clean(build({tar.finish() + std::string(20'000, '\0')})), expected) << "padded";
  EXPECT_EQ(outline_of_clean(build({tar.finish() + TarBuilder().file("g", "2").finish()})), expected)
      << "two archives glued: the second is not read, as by umoci";
  EXPECT_EQ(outline_of_clean(build({std::string(1024, '\0')})), Lines{}) << "an empty layer";
}

TEST_F(LayerHeaders, IMG_24_MembersBehindOneEmptyBlockAreRefused) {
  std::string first = TarBuilder().file("first", "").bytes();
  EXPECT_EQ(refusal({first + std::string(512, '\0') + TarBuilder().file("hidden", "").finish()}),
            ErrorCode::image_invalid);
}

TEST_F(LayerHeaders, IMG_24_NamesAreBytesInEveryLocale) {
  std::string name = "d/\xc3\xa9\xed\xa0\x80\xff";  // text, a surrogate, and no UTF-8 at all
  auto tar = TarBuilder().add({.path = "x", .content = "1", .pax = {{"path", name}}});
  Lines expected{"d d", "f " + name + "=1"};
  EXPECT_EQ(tree(tar), expected);
  ASSERT_NE(std::setlocale(LC_ALL, "C.UTF-8"), nullptr);
  EXPECT_EQ(tree(tar), expected);
  std::setlocale(LC_ALL, "C");
}

}  // namespace
}  // namespace holt::image
