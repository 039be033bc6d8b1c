// Where a member's name leads: inside the image, always. The expected trees are those of `umoci unpack`.
#include "image/layer_fixture.hpp"

#include <fmt/format.h>

namespace holt::image {
namespace {

using test::Lines;
using test::TarBuilder;

class LayerPaths : public test::LayerTest {
 protected:
  void SetUp() override { write_file_atomically(canary(), "untouched", {.mode = 0644}); }
  void TearDown() override { EXPECT_EQ(read_file(canary(), 100), "untouched"); }
  /// A file of the host that a member's name could mean.
  std::string canary() const { return (dir_.path() / "canary").string(); }
  /// Its path without the leading slash.
  std::string canary_name() const { return canary().substr(1); }
};

TEST_F(LayerPaths, IMG_17_NamesUpAndOutEndAtTheRoot) {
  EXPECT_EQ(outline({TarBuilder()
                         .file("../../up", "1")
                         .file("/absolute", "2")
                         .file("a/../../../b", "3")
                         .file("./c", "4")}),
            (Lines{"f absolute=2", "f b=3", "f c=4", "f up=1"}));
  auto ext4 = build({TarBuilder().file(canary(), "changed")});
  EXPECT_EQ(test::tree_of(ext4).at(canary_name()).content, "changed");
}

TEST_F(LayerPaths, IMG_17_ALinkToTheHostIsALinkInTheImage) {
  auto ext4 = build({TarBuilder().symlink("l", canary()).file("l", "over the link")});
  EXPECT_EQ(outline_of_clean(ext4), (Lines{"f l=over the link"}));
  std::string folder = dir_.path().string();
  ext4 = build({TarBuilder().symlink("l", folder).file("l/canary", "inside")});
  auto tree = test::tree_of(ext4);
  EXPECT_EQ(tree.at(canary_name()).content, "inside");
  EXPECT_EQ(tree.at("l").content, folder);
}

TEST_F(LayerPaths, IMG_17_ChainsOfLinksUpAndOut) {
  EXPECT_EQ(outline({TarBuilder()
                         .symlink("a", "..")
                         .symlink("b", "a/../..")
                         .symlink("c", "b/etc")
                         .file("c/passwd", "x")
                         .folder("d/e")
                         .symlink("d/e/out", "../../../../..")
                         .file("d/e/out/top", "y")}),
            (Lines{"d d", "d d/e", "d etc", "f etc/passwd=x", "f top=y", "l a->..", "l b->a/../..",
                   "l c->b/etc", "l d/e/out->../../../../.."}));
}

TEST_F(LayerPaths, IMG_17_HardLinksFindTheirTargetInsideOnly) {
  for (const std::string& target : {canary(), "../../../../.." + canary(), std::string("l/canary")}) {
    EXPECT_EQ(refusal(TarBuilder().symlink("l", dir_.path().string()).hard_link("h", target)),
              ErrorCode::image_invalid)
        << target;
  }
  EXPECT_EQ(outline({TarBuilder().file("etc/f", "1").symlink("l", "/etc").hard_link("h", "../l/../l/f")}),
            (Lines{"d etc", "f etc/f=1", "h h=etc/f", "l l->/etc"}));
}

TEST_F(LayerPaths, IMG_17_AHardLinkToALinkDoesNotFollowIt) {
  // The name that the chain ends in comes later, and a change through the link's other name stays inside.
  auto ext4 = build({TarBuilder()
                         .symlink("l", dir_.path().string())
                         .hard_link("h", "l")
                         .file("h/canary", "inside")
                         .add({.path = "h/canary", .content = "changed", .mode = 0777})});
  auto tree = test::tree_of(ext4);
  EXPECT_EQ(tree.at("h").inode, tree.at("l").inode);
  EXPECT_EQ(tree.at(canary_name()).content, "changed");
  EXPECT_EQ(test::check(ext4).exit_code, 0);
}

TEST_F(LayerPaths, IMG_17_LinksWithoutANameOrATargetAreRefused) {
  EXPECT_EQ(refusal(TarBuilder().symlink("l", "")), ErrorCode::image_invalid);
  EXPECT_EQ(refusal(TarBuilder().symlink("", "x")), ErrorCode::image_invalid);
  EXPECT_EQ(refusal(TarBuilder().hard_link("", "x")), ErrorCode::image_invalid);
  EXPECT_EQ(refusal(TarBuilder().file("x", "").hard_link("h", "")), ErrorCode::image_invalid);
  EXPECT_EQ(refusal(TarBuilder().symlink(".", "/")), ErrorCode::image_invalid);
  EXPECT_EQ(refusal(TarBuilder().symlink("..", "/")), ErrorCode::image_invalid);
  EXPECT_EQ(outline({TarBuilder().symlink("slash/", "/x")}), (Lines{"l slash->/x"}));
}

TEST_F(LayerPaths, IMG_17_FoldersAndLinksTakeEachOthersPlaceAndAreWrittenThrough) {
  EXPECT_EQ(outline({TarBuilder().folder("t").symlink("x", "/t").folder("x").file("x/f", "1")}),
            (Lines{"d t", "d x", "f x/f=1"}));
  EXPECT_EQ(
      outline({TarBuilder().folder("t").folder("x").file("x/gone", "").symlink("x", "/t").file("x/f", "1")}),
      (Lines{"d t", "f t/f=1", "l x->/t"}));
}

TEST_F(LayerPaths, IMG_17_WhiteoutsOfTheRootAndItsParents) {
  for (const char* name : {".wh.", ".wh..", ".wh...", "/.wh..", "../.wh...", "a/../.wh.."}) {
    EXPECT_EQ(refusal(TarBuilder().file(name, "")), ErrorCode::image_invalid) << name;
  }
  std::string folder = dir_.path().string();
  EXPECT_EQ(outline({TarBuilder().symlink("l", folder).symlink("dead", "/nowhere"),
                     TarBuilder().file("l/.wh.canary", "").file("dead/.wh.x", "").file("../../.wh.x", "")}),
            (Lines{"l dead->/nowhere", "l l->" + folder}));
}

TEST_F(LayerPaths, IMG_17_ALoopOfLinksIsRefused) {
  EXPECT_EQ(refusal(TarBuilder().symlink("a", "b").symlink("b", "a").file("a/x", "")),
            ErrorCode::image_invalid);
  EXPECT_EQ(refusal(TarBuilder().symlink("a", "a/b").file("a/x", "")), ErrorCode::image_invalid);
  EXPECT_EQ(refusal(TarBuilder().symlink("a", "b").symlink("b", "a").file("a/.wh.x", "")),
            ErrorCode::image_invalid);
}

// A path may lead through 40 links of 256 components each: what that costs counts over the whole image.
// A path may lead through 40 links of 256 components each: what that costs counts over the whole image.
TEST_F(LayerPaths, IMG_25_TheWayToAllMembersHasABound) {
  auto link = [](std::string path, std::string target) {
    return test::Member{
        .path = std::move(path), .type = '2', .link = "x", .pax = {{"linkpath", std::move(target)}}};
  };
  std::string round;
  for (int i = 0; i < 50; ++i) round += "d/../";
  TarBuilder chain = TarBuilder().folder("d").add(link("l0", round));
  for (int i = 1; i < 39; ++i) chain.add(link(fmt::format("l{}", i), fmt::format("{}l{}", round, i - 1)));
  auto files = chain;
  for (int i = 0; i < 20; ++i) files.file(fmt::format("l38/f{}", i), "");
  EXPECT_EQ(refusal(files, {.walk_steps = 50'000}), ErrorCode::limit_exceeded);
  EXPECT_NE(message_.find("above 50000 steps"), std::string::npos) << message_;
  auto links = chain;
  links.file("f", "");
  for (int i = 0; i < 20; ++i) links.hard_link(fmt::format("h{}", i), "l38/f");
  EXPECT_EQ(refusal(links, {.walk_steps = 50'000}), ErrorCode::limit_exceeded) << "to a hard link's target";
  TarBuilder slashes = TarBuilder().add(link("l", std::string(4000, '/')));
  for (int i = 0; i < 20; ++i) slashes.file(fmt::format("l/f{}", i), "");
  EXPECT_EQ(refusal(slashes, {.walk_steps = 50'000}), ErrorCode::limit_exceeded) << "components of no name";
  EXPECT_EQ(test::tree_of(build({files.finish()}, {.walk_steps = 200'000})).count("f19"), 1U);
}

TEST_F(LayerPaths, IMG_18_ParentsThatAreLinksAreLegal) {
  EXPECT_EQ(
      outline({TarBuilder().folder("var").symlink("var/run", "/run").symlink("a", "../../../../b"),
               TarBuilder().file("var/run/x", "1").file("a/y", "2")}),
      (Lines{"d b", "d run", "d var", "f b/y=2", "f run/x=1", "l a->../../../../b", "l var/run->/run"}));
}

TEST_F(LayerPaths, IMG_24_AFolderTooDeepIsALimit) {
  auto tar = TarBuilder().folder("a/b/c").symlink("l", "a/b/c");
  EXPECT_EQ(refusal(TarBuilder().file("a/b/c/d", ""), {.path_depth = 3}), ErrorCode::limit_exceeded);
  EXPECT_EQ(refusal(tar.folder("l/d"), {.path_depth = 3}), ErrorCode::limit_exceeded) << "through a link";
  EXPECT_NE(message_.find("folders deep"), std::string::npos) << message_;
}

TEST_F(LayerPaths, IMG_18_AParentThroughWhatIsNotThereIsMadeWhereItEnds) {
  EXPECT_EQ(outline({TarBuilder()
                         .symlink("a", "missing/../b")
                         .file("a/y", "1")
                         .file("q", "2")
                         .symlink("c", "q/../d")
                         .file("c/z", "3")}),
            (Lines{"d b", "d d", "f b/y=1", "f d/z=3", "f q=2", "l a->missing/../b", "l c->q/../d"}));
  EXPECT_EQ(refusal(TarBuilder().file("q", "").file("q/y", "")), ErrorCode::image_invalid);
  EXPECT_NE(message_.find("'q', which is no folder"), std::string::npos) << message_;
}

TEST_F(LayerPaths, IMG_18_ParentsThatALayerLeavesOutKeepTheLowerMetadata) {
  auto ext4 = build({TarBuilder().add({.path = "d/", .type = '5', .mode = 0711, .uid = 5, .gid = 6}),
                     TarBuilder().file("d/e/f", "1")});
  auto tree = test::tree_of(ext4);
  EXPECT_EQ(tree.at("d").mode, 0711U);
  EXPECT_EQ(tree.at("d").uid, 5U);
  EXPECT_EQ(tree.at("d/e").mode, 0755U);
  EXPECT_EQ(tree.at("d/e").uid, 0U);
}

TEST_F(LayerPaths, IMG_23_HardLinksShareTheInodeOfTheMergedTree) {
  auto ext4 = build({TarBuilder().add({.path = "f", .content = "1", .mode = 0600}),
                     TarBuilder().hard_link("sub/g", "f").hard_link("h", "/sub/g").hard_link("f", "f")});
  auto tree = test::tree_of(ext4);
  EXPECT_EQ(tree.at("f").links, 3U);
  EXPECT_EQ(tree.at("sub/g").inode, tree.at("f").inode);
  EXPECT_EQ(tree.at("h").inode, tree.at("f").inode);
  // A link's own header says nothing of the file; a mode that is changed through one name is seen through
  // all.
  EXPECT_EQ(tree.at("h").mode, 0600U);
  EXPECT_EQ(test::check(ext4).exit_code, 0);
}

TEST_F(LayerPaths, IMG_23_ALinkToASymlinkIsAnotherNameOfTheSymlink) {
  EXPECT_EQ(outline({TarBuilder().symlink("s", "/t"), TarBuilder().hard_link("z", "s").file("z/x", "1")}),
            (Lines{"d t", "f t/x=1", "h z=s", "l s->/t"}));
}

TEST_F(LayerPaths, IMG_23_ALinkWithoutATargetNamesBoth) {
  EXPECT_EQ(refusal(TarBuilder().hard_link("early", "late").file("late", "")), ErrorCode::image_invalid);
  EXPECT_NE(message_.find("'early'"), std::string::npos) << message_;
  EXPECT_NE(message_.find("'late'"), std::string::npos) << message_;
  EXPECT_EQ(refusal({TarBuilder().file("f", "").finish(),
                     TarBuilder().file(".wh.f", "").hard_link("g", "f").finish()}),
            ErrorCode::image_invalid);
  EXPECT_EQ(refusal(TarBuilder().hard_link("self", "self")), ErrorCode::image_invalid);
  EXPECT_EQ(refusal(TarBuilder().folder("d").hard_link("g", "d")), ErrorCode::image_invalid);
  EXPECT_EQ(refusal(TarBuilder().folder("d").hard_link("g", "/")), ErrorCode::image_invalid);
  EXPECT_EQ(
      refusal(TarBuilder().folder("d").file("d/lost+found", "").hard_link("lost+found", "d/lost+found")),
      ErrorCode::image_invalid);
}

TEST_F(LayerPaths, IMG_23_ALinkMadeBeforeItsTargetIsTakenAwayStays) {
  EXPECT_EQ(outline({TarBuilder().file("f", "1"), TarBuilder().hard_link("g", "f").file(".wh.f", "")}),
            (Lines{"f g=1"}));
  // The name takes the place of the folder that its target lies in.
  EXPECT_EQ(outline({TarBuilder().file("d/f", "1").hard_link("d", "d/f")}), (Lines{"f d=1"}));
}

TEST_F(LayerPaths, IMG_23_TheLimitOfExt4IsAClearError) {
  TarBuilder tar;
  tar.file("f", "");
  for (int i = 1; i < 65000; ++i) tar.hard_link(fmt::format("l{}", i), "f");
  auto ext4 = build({tar});
  EXPECT_EQ(test::tree_of(ext4).at("f").links, 65000U);
  EXPECT_EQ(test::check(ext4).exit_code, 0);
  EXPECT_EQ(refusal(tar.hard_link("one-more", "f")), ErrorCode::limit_exceeded);
  EXPECT_NE(message_.find("65000"), std::string::npos) << message_;
}

TEST_F(LayerPaths, IMG_28_TheLastOfTwoEntriesWithOneNameWins) {
  EXPECT_EQ(outline({TarBuilder()
                         .file("a", "1")
                         .file("a", "2")
                         .file("b", "1")
                         .folder("b")
                         .file("b/c", "3")
                         .folder("e")
                         .file("e/gone", "")
                         .file("e", "4")}),
            (Lines{"d b", "f a=2", "f b/c=3", "f e=4"}));
}

TEST_F(LayerPaths, IMG_28_NamesThatDifferInCaseAreTwo) {
  EXPECT_EQ(outline({TarBuilder().file("Name", "1").file("name", "2"), TarBuilder().file(".wh.NAME", "")}),
            (Lines{"f Name=1", "f name=2"}));
}

}  // namespace
}  // namespace holt::image
