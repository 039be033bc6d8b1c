// Compressions of layers, and what an archive may cost.
#include "image/compression.hpp"
#include "image/layer_fixture.hpp"

#include <sys/stat.h>

#include <fmt/format.h>

namespace holt::image {
namespace {

using test::gzip;
using test::Lines;
using test::TarBuilder;
using test::zstd;
using namespace std::literals;

class LayerBombs : public test::LayerTest {
 protected:
  using Compress = std::string (*)(std::string_view);
  static std::string zstd_default(std::string_view bytes) { return zstd(bytes); }
  static constexpr std::array<Compress, 2> k_both{gzip, zstd_default};

  /// Bytes on the host's disk under the test's folder.
  std::uint64_t disk_use() const {
    std::uint64_t bytes = 0;
    for (const auto& file : std::filesystem::directory_iterator(dir_.path())) {
      struct stat info{};
      if (::stat(file.path().c_str(), &info) == 0) bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
    }
    return bytes;
  }
};

/// The header of a file of 10 GiB, without its data.
std::string header_of_ten_gib() {
  TarBuilder tar;
  tar.add({.path = "zeros", .pax = {{"size", std::to_string(std::uint64_t{10} << 30)}}});
  return tar.bytes();
}

TEST_F(LayerBombs, IMG_25_TenGibibytesOfZerosStopAtTheLimitOfBytes) {
  for (Compress compress : k_both) {
    // A piece of 1 MiB, 10,240 times: 10 GiB.
    std::string piece = compress(std::string(1 << 20, '\0'));
    std::string bomb = compress(header_of_ten_gib());
    for (int i = 0; i < 10'240; ++i) bomb += piece;
    EXPECT_LT(bomb.size(), std::size_t{60} << 20);
    EXPECT_EQ(refusal({bomb}, {.unpacked_bytes = std::uint64_t{32} << 20}), ErrorCode::limit_exceeded);
    EXPECT_LT(disk_use(), std::uint64_t{40} << 20) << "the disk suffered before the limit did its work";
    EXPECT_EQ(refusal({bomb}, {.file_bytes = std::uint64_t{1} << 30}), ErrorCode::limit_exceeded);
    for (const auto& file : std::filesystem::directory_iterator(dir_.path()))
      std::filesystem::remove(file.path());
  }
}

TEST_F(LayerBombs, IMG_25_DataThatNobodyWantsCountToo) {
  // Behind the end of the archive, and of an entry that is passed over.
  std::string zeros(std::size_t{8} << 20, '\0');
  Limits limits{.entries = 100, .unpacked_bytes = std::uint64_t{1} << 20};
  EXPECT_EQ(refusal({TarBuilder().file("f", "").finish() + zeros}, limits), ErrorCode::limit_exceeded);
  EXPECT_EQ(refusal({TarBuilder().file(".wh..wh.x", zeros).finish()}, limits), ErrorCode::limit_exceeded);
}

TEST_F(LayerBombs, IMG_25_AFileOfATebibyteOfHolesIsRefused) {
  std::string map = "1\n0\n4\n";
  map.resize(512);
  TarBuilder tar;
  tar.add({.path = "x",
           .content = map + "data",
           .pax = {{"GNU.sparse.major", "1"},
                   {"GNU.sparse.minor", "0"},
                   {"GNU.sparse.name", "s"},
                   {"GNU.sparse.realsize", std::to_string(std::uint64_t{1} << 40)}}});
  EXPECT_EQ(refusal(tar), ErrorCode::limit_exceeded);
}

// Scaled: 5,000 members against 1,000 instead of 5,000,000 against the default of 1,000,000.
TEST_F(LayerBombs, IMG_25_MembersOfAllLayersCount) {
  TarBuilder tar;
  for (int i = 0; i < 5000; ++i) tar.file(fmt::format("f{}", i), "");
  EXPECT_EQ(refusal(tar, {.entries = 1000}), ErrorCode::limit_exceeded);
  TarBuilder some;
  for (int i = 0; i < 600; ++i) some.file(fmt::format("f{}", i), "");
  EXPECT_EQ(refusal({some.finish(), some.finish()}, {.entries = 1000}), ErrorCode::limit_exceeded);
}

TEST_F(LayerBombs, IMG_25_FoldersThatNobodyNamedCountAsMemory) {
  TarBuilder tar;
  for (int i = 0; i < 200; ++i) {
    std::string path = fmt::format("{}", i);
    for (int depth = 0; depth < 100; ++depth) path += "/d";
    tar.add({.path = "x", .type = '5', .pax = {{"path", path}}});
  }
  EXPECT_EQ(refusal(tar, {.tree_bytes = std::uint64_t{1} << 20}), ErrorCode::limit_exceeded);
  EXPECT_NE(message_.find("memory"), std::string::npos) << message_;
}

TEST_F(LayerBombs, IMG_25_LimitsAreThereToBeSet) {
  auto files = TarBuilder().file("a", "0123456789").file("b", "0123456789");
  EXPECT_EQ(refusal(files, {.unpacked_bytes = 19}), ErrorCode::limit_exceeded);
  EXPECT_EQ(refusal(files, {.file_bytes = 9}), ErrorCode::limit_exceeded);
  EXPECT_EQ(outline_of_clean(build({files.finish()}, {.entries = 2, .unpacked_bytes = 20, .file_bytes = 10}))
                .size(),
            2U);
}

TEST_F(LayerBombs, IMG_25_ManyMembersAndFramesAreOneStream) {
  std::string tar = TarBuilder().file("f", std::string(5000, 'x')).file("g", "2").finish();
  Lines expected{"f f=" + std::string(5000, 'x'), "f g=2"};
  for (Compress compress : k_both) {
    std::string pieces;
    for (std::size_t at = 0; at < tar.size(); at += 700)
      pieces += compress(std::string_view(tar).substr(at, 700));
    EXPECT_EQ(outline_of_clean(build({pieces})), expected);
    std::string nothing = compress("");
    std::string empties;
    for (int i = 0; i < 10'000; ++i) empties += nothing;
    EXPECT_EQ(outline_of_clean(build({empties + pieces + empties})), expected);
  }
  // Frames that readers pass over, as in zstd:chunked.
  std::string skipped = "\x50\x2a\x4d\x18\x03\0\0\0abc"s;
  EXPECT_EQ(outline_of_clean(build({skipped + zstd(tar) + skipped})), expected);
}

TEST_F(LayerBombs, IMG_25_DamagedOrCutCompressionIsRefused) {
  std::string tar = TarBuilder().file("f", std::string(5000, 'x')).finish();
  for (Compress compress : k_both) {
    std::string packed = compress(tar);
    for (std::size_t length : {std::size_t{11}, packed.size() / 2, packed.size() - 1}) {
      EXPECT_EQ(refusal({packed.substr(0, length)}), ErrorCode::image_invalid) << length;
    }
    // Strict as Go's readers are: nothing but another member may follow, padding neither.
    EXPECT_EQ(refusal({packed + "garbage"}), ErrorCode::image_invalid);
    EXPECT_EQ(refusal({packed + std::string(512, '\0')}), ErrorCode::image_invalid);
    EXPECT_EQ(refusal({packed + packed.substr(0, 8)}), ErrorCode::image_invalid);
  }
  std::string wrong_sum = gzip(tar);
  wrong_sum[wrong_sum.size() - 6] = static_cast<char>(wrong_sum[wrong_sum.size() - 6] ^ 1);
  EXPECT_EQ(refusal({wrong_sum}), ErrorCode::image_invalid);
}

TEST_F(LayerBombs, IMG_25_NestedAndOtherCompressionsAreNotSupported) {
  std::string tar = TarBuilder().file("f", "x").finish();
  for (Compress outer : k_both) {
    for (Compress inner : k_both) EXPECT_EQ(refusal({outer(inner(tar))}), ErrorCode::not_supported);
    EXPECT_EQ(refusal({outer("\xfd"
                             "7zXZ\0----------------"sv)}),
              ErrorCode::not_supported);
  }
  for (const std::string& head :
       {"\xfd"
        "7zXZ\0"s,
        "BZh91AY&SY"s, "BZh31AY&SY"s, "LZIP\x01"s, "\x04\x22\x4d\x18"s, "\x1f\x9d\x90"s}) {
    EXPECT_EQ(refusal({head + std::string(2000, 'x')}), ErrorCode::not_supported) << head;
  }
}

TEST_F(LayerBombs, IMG_25_TheWindowOfZstdIsBounded) {
  // Magic, a descriptor without sizes, the window's exponent above 10 in the upper five bits; no block is
  // needed.
  auto frame = [](int log) {
    return "\x28\xb5\x2f\xfd\0"s + static_cast<char>((log - 10) << 3) + std::string(64, '\0');
  };
  for (int log : {27, 31, 41}) {
    EXPECT_EQ(refusal({frame(log)}), ErrorCode::limit_exceeded) << log;
    EXPECT_NE(message_.find("64 MiB"), std::string::npos) << message_;
  }
  std::string tar = TarBuilder().file("f", "x").finish();
  EXPECT_EQ(outline_of_clean(build({test::zstd_with_window(tar, 26)})), (Lines{"f f=x"}));
}

// The window is memory beside that of the names.
TEST_F(LayerBombs, IMG_25_ALargeWindowOfZstdTakesRoomFromTheNames) {
  Limits limits{.tree_bytes = std::uint64_t{32} << 20};
  std::string tar = TarBuilder().file("f", "x").finish();
  EXPECT_EQ(refusal({test::zstd_with_window(tar, 26)}, limits), ErrorCode::limit_exceeded);
  EXPECT_NE(message_.find("window"), std::string::npos) << message_;
  for (const std::string& layer : {test::zstd_with_window(tar, 23), gzip(tar), tar}) {
    EXPECT_EQ(outline_of_clean(build({layer}, limits)), (Lines{"f f=x"}));
  }
}

TEST_F(LayerBombs, IMG_25_NamesOfOneFileCountAsMemory) {
  // 64 bytes and the name for each, 68,890 in all; links are counted by inode.
  Limits limits{.tree_bytes = 69'500};
  TarBuilder files;
  for (int i = 0; i < 1000; ++i) files.file(fmt::format("f{}", i), "");
  EXPECT_EQ(outline_of_clean(build({files.finish()}, limits)).size(), 1000U);
  EXPECT_EQ(refusal(files.hard_link("h", "f999"), limits), ErrorCode::limit_exceeded);
}

/// One byte at a time.
class DribblingSource final : public ByteSource {
 public:
  explicit DribblingSource(std::string_view bytes) : bytes_(bytes) {}
  std::string_view read() override {
    auto byte = bytes_.substr(0, 1);
    bytes_.remove_prefix(byte.size());
    return byte;
  }

 private:
  std::string_view bytes_;
};

TEST_F(LayerBombs, IMG_25_HowTheBytesComeDoesNotMatter) {
  std::string tar =
      TarBuilder().gnu_long('L', std::string(200, 'n')).file("n", std::string(3000, 'x')).finish();
  auto expected = outline_of_clean(build({tar}));
  for (const std::string& packed :
       {tar, gzip(tar), zstd(tar), gzip(tar.substr(0, 99)) + gzip(tar.substr(99))}) {
    auto ext4 = dir_.path() / "dribbled";
    DribblingSource source(packed);
    DecompressedSource unpacked(source, Compressions::layers);
    ImageBuilder builder(ext4, {.disk_bytes = test::k_small_disk});
    builder.apply_layer(unpacked);
    builder.finish(std::string(64, 'a'));
    EXPECT_EQ(outline_of_clean(ext4), expected);
  }
}

/// Asks for cancellation amid its bytes.
class CancellingSource final : public ByteSource {
 public:
  CancellingSource(std::string_view bytes, const CancellationToken& cancel)
      : bytes_(bytes), cancel_(cancel) {}
  std::string_view read() override {
    if (++reads_ == 2) cancel_.cancel();
    auto piece = bytes_.substr(0, 65536);
    bytes_.remove_prefix(piece.size());
    return piece;
  }
  std::size_t left() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
  const CancellationToken& cancel_;
  int reads_ = 0;
};

TEST_F(LayerBombs, ABuildEndsSoonWhenItIsCancelled) {
  for (const std::string& tar : {TarBuilder().file("f", std::string(5'000'000, 'x')).finish(), [] {
                                   TarBuilder many;
                                   for (int i = 0; i < 5000; ++i) many.file(fmt::format("f{}", i), "");
                                   return many.finish();
                                 }()}) {
    CancellationToken cancel;
    CancellingSource source(tar, cancel);
    ImageBuilder builder(dir_.path() / fmt::format("c{}", ++builds_),
                         {.disk_bytes = test::k_small_disk, .cancel = cancel});
    try {
      builder.apply_layer(source);
      FAIL() << "built to its end";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::cancelled);
    }
    EXPECT_GT(source.left(), tar.size() / 2);
  }
}

}  // namespace
}  // namespace holt::image
