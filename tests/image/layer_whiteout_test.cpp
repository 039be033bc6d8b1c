// What a layer takes away from those below it. The expected trees are those of `umoci unpack`, but where a
// comment says otherwise.
#include "image/layer_fixture.hpp"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

namespace holt::image {
namespace {

using test::Lines;
using test::TarBuilder;

class LayerWhiteouts : public test::LayerTest {
 protected:
  static TarBuilder lower() {
    return TarBuilder().folder("d").file("d/a", "1").folder("d/s").file("d/s/b", "2").file("f", "3");
  }
  /// The lower layer with this one above it.
  Lines under(const TarBuilder& upper) { return outline({lower(), upper}); }
};

TEST_F(LayerWhiteouts, IMG_21_AWhiteoutTakesAwayAFileOrAWholeFolder) {
  EXPECT_EQ(under(TarBuilder().file(".wh.f", "")), (Lines{"d d", "d d/s", "f d/a=1", "f d/s/b=2"}));
  EXPECT_EQ(under(TarBuilder().file(".wh.d", "")), (Lines{"f f=3"}));
  EXPECT_EQ(under(TarBuilder().file("./d/s/../.wh.s", "")), (Lines{"d d", "f d/a=1", "f f=3"}));
}

TEST_F(LayerWhiteouts, IMG_21_AWhiteoutSparesItsOwnLayerInAnyOrder) {
  Lines replaced{"d d", "d d/s", "f d/a=1", "f d/s/b=2", "f f=new"};
  EXPECT_EQ(under(TarBuilder().file(".wh.f", "").file("f", "new")), replaced);
  EXPECT_EQ(under(TarBuilder().file("f", "new").file(".wh.f", "")), replaced);
  Lines emptied{"d d", "f d/new=n", "f f=3"};
  EXPECT_EQ(under(TarBuilder().file(".wh.d", "").file("d/new", "n")), emptied);
  EXPECT_EQ(under(TarBuilder().file("d/new", "n").file(".wh.d", "")), emptied);
  // With an entry of its own for the folder too.
  EXPECT_EQ(under(TarBuilder().folder("d").file(".wh.d", "").file("d/new", "n")), emptied);
}

TEST_F(LayerWhiteouts, IMG_21_AnOpaqueMarkerActsTheSameBeforeAndAfterItsSiblings) {
  Lines expected{"d d", "d d/s", "f d/new=n", "f d/s/deep=x", "f f=3"};
  EXPECT_EQ(under(TarBuilder().file("d/.wh..wh..opq", "").file("d/new", "n").file("d/s/deep", "x")),
            expected);
  EXPECT_EQ(under(TarBuilder().file("d/new", "n").file("d/s/deep", "x").file("d/.wh..wh..opq", "")),
            expected);
  EXPECT_EQ(under(TarBuilder().file("d/new", "n").file("d/.wh..wh..opq", "").file("d/s/deep", "x")),
            expected);
}

TEST_F(LayerWhiteouts, IMG_21_AnOpaqueMarkerKeepsItsFolderAndMayStandInTheRoot) {
  EXPECT_EQ(under(TarBuilder().file("d/s/.wh..wh..opq", "")), (Lines{"d d", "d d/s", "f d/a=1", "f f=3"}));
  EXPECT_EQ(under(TarBuilder().file("new", "n").file(".wh..wh..opq", "")), (Lines{"f new=n"}));
}

TEST_F(LayerWhiteouts, IMG_21_MarkersForNothingDoNothing) {
  Lines unchanged{"d d", "d d/s", "f d/a=1", "f d/s/b=2", "f f=3"};
  EXPECT_EQ(under(TarBuilder()
                      .file(".wh.missing", "")
                      .file("no/.wh.x", "")
                      .file("no/.wh..wh..opq", "")
                      .file("f/.wh.below", "")),
            unchanged);
}

TEST_F(LayerWhiteouts, IMG_21_TheKindOfAMarkersEntryDoesNotMatter) {
  Lines without{"d d", "d d/s", "f d/a=1", "f d/s/b=2"};
  EXPECT_EQ(under(TarBuilder().folder(".wh.f")), without);
  EXPECT_EQ(under(TarBuilder().symlink(".wh.f", "d/a")), without);
  EXPECT_EQ(under(TarBuilder().hard_link(".wh.f", "d/a")), without);
  EXPECT_EQ(under(TarBuilder().add({.path = ".wh.f", .type = '3'})), without);
  EXPECT_EQ(under(TarBuilder().file(".wh.f", std::string(3000, 'x'))), without);
}

TEST_F(LayerWhiteouts, IMG_21_MarkersOfNoNameAreRefused) {
  for (const char* name : {".wh.", ".wh..", ".wh...", "d/.wh.", "d/.wh..", "d/.wh..."}) {
    EXPECT_EQ(refusal(TarBuilder().file(name, "")), ErrorCode::image_invalid) << name;
    EXPECT_NE(message_.find("member 1"), std::string::npos) << message_;
  }
}

// umoci makes an entry of what lies below such a name; nothing in the guest may have one.
TEST_F(LayerWhiteouts, IMG_21_NoMarkerIsVisible) {
  Lines unchanged{"d d", "d d/s", "f d/a=1", "f d/s/b=2", "f f=3"};
  EXPECT_EQ(under(TarBuilder()
                      .folder(".wh..wh.plnk")
                      .file(".wh..wh.plnk/12.34", "x")
                      .file("d/.wh..wh.orph", "")
                      .file(".wh..wh.", "")),
            unchanged);
  EXPECT_EQ(refusal(TarBuilder().file(".wh.d/x", "")), ErrorCode::image_invalid);
  EXPECT_EQ(refusal(TarBuilder().symlink("l", ".wh.d/e").file("l/x", "")), ErrorCode::image_invalid);
  EXPECT_EQ(refusal(TarBuilder().hard_link("l", ".wh.d")), ErrorCode::image_invalid);
}

TEST_F(LayerWhiteouts, IMG_21_MarkersInTheLowestLayerActOnNothing) {
  EXPECT_EQ(
      outline({TarBuilder().file("f", "1").file(".wh.f", "").file("d/.wh..wh..opq", "").file("d/g", "2")}),
      (Lines{"d d", "f d/g=2", "f f=1"}));
}

TEST_F(LayerWhiteouts, IMG_21_ANameFromAnExtendedHeaderIsAMarkerToo) {
  EXPECT_EQ(under(TarBuilder().add({.path = "x", .pax = {{"path", "d/.wh.a"}}})),
            (Lines{"d d", "d d/s", "f d/s/b=2", "f f=3"}));
}

TEST_F(LayerWhiteouts, IMG_21_WhatTheLayerBelowTookAwayComesBackOnlyByAnEntry) {
  EXPECT_EQ(outline({lower(), TarBuilder().file(".wh.d", ""), TarBuilder().file("d/again", "4")}),
            (Lines{"d d", "f d/again=4", "f f=3"}));
}

TEST_F(LayerWhiteouts, IMG_21_AWhiteoutGoesThroughALinkInsideTheRoot) {
  TarBuilder links =
      TarBuilder().folder("d").file("d/a", "1").file("d/b", "2").symlink("l", "/d").symlink("up", "../../d");
  EXPECT_EQ(outline({links, TarBuilder().file("l/.wh.a", "")}),
            (Lines{"d d", "f d/b=2", "l l->/d", "l up->../../d"}));
  EXPECT_EQ(outline({links, TarBuilder().file("up/.wh..wh..opq", "")}),
            (Lines{"d d", "l l->/d", "l up->../../d"}));
  // The link itself, though something came through it in the same layer.
  EXPECT_EQ(outline({links, TarBuilder().file("l/n", "3").file(".wh.l", "")}),
            (Lines{"d d", "f d/a=1", "f d/b=2", "f d/n=3", "l up->../../d"}));
  EXPECT_EQ(outline({links, TarBuilder().file("dead/.wh.a", "").file(".wh.up", "")}),
            (Lines{"d d", "f d/a=1", "f d/b=2", "l l->/d"}));
}

TEST_F(LayerWhiteouts, IMG_21_OneNameGoesAndTheOtherNamesOfTheFileStay) {
  TarBuilder linked = TarBuilder().file("f", "x").hard_link("g", "f").hard_link("h", "f");
  auto ext4 = build({linked, TarBuilder().file(".wh.f", "")});
  EXPECT_EQ(test::tree_of(ext4).at("g").links, 2U);
  EXPECT_EQ(outline_of_clean(ext4), (Lines{"f g=x", "h h=g"}));
}

TEST_F(LayerWhiteouts, IMG_19_AFolderEntryReplacesALinkAndLeavesItsTarget) {
  TarBuilder links = TarBuilder().folder("target").file("target/old", "1").symlink("x", "/target");
  Lines expected{"d target", "d x", "f target/old=1", "f x/new=2"};
  EXPECT_EQ(outline({links, TarBuilder().folder("x").file("x/new", "2")}), expected);
  EXPECT_EQ(outline({links, TarBuilder().folder("x").file("x/.wh..wh..opq", "").file("x/new", "2")}),
            expected);
  EXPECT_EQ(outline({links, TarBuilder().folder("x").file("x/new", "2").file("x/.wh..wh..opq", "")}),
            expected);
}

TEST_F(LayerWhiteouts, IMG_20_TheUpperKindWinsInEveryPair) {
  const std::vector<std::pair<std::string, TarBuilder>> kinds{
      {"f x=content", TarBuilder().file("x", "content")},
      {"d x", TarBuilder().folder("x").file("x/inside", std::string(9000, 'i'))},
      {"l x->elsewhere", TarBuilder().symlink("x", "elsewhere")},
      {"h x=other", TarBuilder().file("other", "o").hard_link("x", "other")},
      {"p x", TarBuilder().add({.path = "x", .type = '6'})},
      {"c x 1:3", TarBuilder().add({.path = "x", .type = '3', .major = 1, .minor = 3})},
      {"b x 8:0", TarBuilder().add({.path = "x", .type = '4', .major = 8, .minor = 0})}};
  for (const auto& [lower_line, lower_layer] : kinds) {
    for (const auto& [upper_line, upper_layer] : kinds) {
      Lines lines = outline({lower_layer, upper_layer});
      EXPECT_EQ(std::ranges::count(lines, upper_line), 1) << upper_line << " over " << lower_line;
      bool folder_stays = upper_line == "d x";
      EXPECT_EQ(std::ranges::any_of(lines, [](const auto& line) { return line.contains("x/inside"); }),
                folder_stays)
          << upper_line << " over " << lower_line;
    }
  }
}

TEST_F(LayerWhiteouts, IMG_20_FoldersMergeAndTakeTheUpperMetadata) {
  auto ext4 =
      build({TarBuilder().folder("d", 0700).file("d/a", "1"),
             TarBuilder().add({.path = "d/", .type = '5', .mode = 01777, .uid = 7, .gid = 8, .mtime = 1234}),
             TarBuilder().file("d/b", "2")});
  auto folder = test::tree_of(ext4).at("d");
  EXPECT_EQ(folder.mode, 01777U);
  EXPECT_EQ(folder.uid, 7U);
  EXPECT_EQ(folder.gid, 8U);
  EXPECT_EQ(folder.seconds, 1234U);
  EXPECT_EQ(outline_of_clean(ext4), (Lines{"d d", "f d/a=1", "f d/b=2"}));
}

// Processor time, which does not depend on what else the host does, of one build against another. Half a
// second for what it does depend on: caches that others use as well.
class ManyLayerMarkers : public LayerWhiteouts {
 protected:
  double seconds_of(const std::vector<std::string>& layers) {
    double begin = processor_seconds();
    std::filesystem::remove(build(layers, {}, std::uint64_t{2} << 30));
    return processor_seconds() - begin;
  }
  static double processor_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
  }
  static std::string many(const std::string& prefix, const std::string& suffix = "") {
    TarBuilder tar;
    for (int i = 0; i < k_many; ++i) tar.file(fmt::format("{}{}{}", prefix, i, suffix), "");
    return tar.finish();
  }
  static constexpr int k_many = 100'000;
};

TEST_F(ManyLayerMarkers, IMG_22_AHundredThousandMarkersCostWhatFilesCost) {
  std::string files = many("d/");
  double plain = seconds_of({files});
  TarBuilder again;
  for (int i = 0; i < k_many; ++i) again.file("d/.wh..wh..opq", "");
  std::string opaque = again.finish();
  double bound = 3 * plain + 0.5;
  EXPECT_LT(seconds_of({files, opaque}), bound) << "one folder made opaque again and again";
  EXPECT_LT(seconds_of({files, many("d/.wh.")}), bound) << "each file of one folder taken away";
  EXPECT_LT(seconds_of({files, files.substr(0, files.size() - 1024) + opaque}), bound)
      << "a folder made opaque again and again that holds as many files of the same layer";
  EXPECT_LT(seconds_of({files, many("d/", "/.wh..wh..opq")}), bound) << "an opaque marker below each file";
}

TEST_F(ManyLayerMarkers, IMG_22_ThreeHundredLayersEachTakingAwayTheOneBefore) {
  std::vector<TarBuilder> layers;
  for (int i = 0; i < 300; ++i) {
    TarBuilder layer;
    if (i > 0) layer.file(fmt::format(".wh.d{}", i - 1), "");
    layer.folder(fmt::format("d{}", i)).file(fmt::format("d{}/f", i), "x");
    layers.push_back(layer);
  }
  EXPECT_EQ(outline(layers), (Lines{"d d299", "f d299/f=x"}));
}

}  // namespace
}  // namespace holt::image
