// What an image holds is what its machine sees, with umoci as the judge; and the kernel's rules for programs
// with rights hold there.
#include "holt/base/process.hpp"
#include "holt/image/pull.hpp"
#include "image/layout_builder.hpp"
#include "image/umoci.hpp"
#include "machine_vm/image_fixture.hpp"

#include <set>
#include <sstream>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <gmock/gmock.h>

namespace holt::test {
namespace {

using image::test::LayoutBuilder;
using image::test::Member;

using ImageTree = ImageMachine;

std::vector<std::string> sorted_lines(const std::string& text) {
  std::istringstream stream(text);
  std::multiset<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.insert(line);
  return {lines.begin(), lines.end()};
}

/// VFS_CAP_REVISION_2 with CAP_NET_RAW (13), effective: capabilities(7).
Member with_net_raw(Member program) {
  std::string value("\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", 20);
  program.pax = {{"SCHILY.xattr.security.capability", value}};
  return program;
}

/// Below /tree, each kind of entry, over three layers that take from each other.
std::vector<std::string> layers_of_a_tree(image::test::TarBuilder lower) {
  lower.folder("tree").folder("tree/closed", 0700).folder("tree/sticky", 01777).folder("tree/opaque");
  lower.file("tree/empty", "").file("tree/large", std::string(300'000, 'x') + "end");
  lower.file("tree/opaque/old", "old")
      .file("tree/gone", "gone")
      .folder("tree/folder")
      .file("tree/folder/x", "x");
  lower.symlink("tree/link", "../large").symlink("tree/dangling", "no where").symlink("tree/up", "folder");
  lower.symlink("tree/long", std::string(200, 'l'))
      .file("tree/one", "linked")
      .hard_link("tree/two", "tree/one");
  lower.hard_link("tree/three", "tree/one")
      .file("tree/line\nbreak \xff", "odd")
      .file("tree/Case", "a")
      .file("tree/case", "b");
  lower.add({.path = "tree/setuid", .content = "#!", .mode = 04755, .uid = 1000, .gid = 50});
  lower.add({.path = "tree/setgid", .type = '5', .mode = 02775, .uid = 65534, .gid = 100'000});
  lower.add({.path = "tree/fifo", .type = '6', .mode = 0620, .uid = 7});
  lower.add({.path = "tree/null", .type = '3', .mode = 0666, .major = 1, .minor = 3});
  lower.add({.path = "tree/zero-zero", .type = '3', .mode = 0600});
  lower.add({.path = "tree/disk", .type = '4', .mode = 0660, .gid = 6, .major = 259, .minor = 70'000});
  lower.add(with_net_raw({.path = "tree/ping", .content = "ping", .mode = 0755}));
  lower.add({.path = "tree/attributes",
             .pax = {{"SCHILY.xattr.user.a", "1"},
                     {"SCHILY.xattr.user.binary", std::string("\0\n=\xff", 4)},
                     {"SCHILY.xattr.trusted.x", "y"}}});
  image::test::TarBuilder upper;
  upper.file("tree/.wh.gone", "").file("tree/opaque/.wh..wh..opq", "").file("tree/opaque/new", "new");
  upper.file("tree/two", "no longer the same").folder("tree/up").file("tree/up/real", "a folder now");
  upper.add({.path = "tree/folder/", .type = '5', .mode = 0711, .uid = 5, .gid = 6});
  image::test::TarBuilder top;
  top.file("tree/gone", "back").file("tree/fifo", "a file now").add({.path = "tree/empty", .type = '6'});
  return {lower.finish(), upper.finish(), top.finish()};
}

TEST_F(ImageTree, IMG_20_TheMachineSeesTheTreeThatUmociUnpacks) {
  if (auto why = image::test::why_umoci_cannot_judge(data.path()); !why.empty()) GTEST_SKIP() << why;
  auto layout = data.path() / "layout";
  LayoutBuilder builder;
  builder.list(builder.image({.layers = layers_of_a_tree(scratch())}), "t").write(layout);
  auto unpacked = run_process(
      {.argv = {"umoci", "unpack", "--image", layout.string() + ":t", (data.path() / "bundle").string()},
       .env = {{"PATH", "/usr/bin:/bin"}, {"HOME", data.path().string()}}},
      {.deadline = Deadline::after(120s)});
  ASSERT_EQ(unpacked.status.shell_code(), 0) << unpacked.err;
  auto expected =
      run_process({.argv = {HOLT_SCRATCH_APP, "tree", (data.path() / "bundle/rootfs/tree").string()}},
                  {.deadline = Deadline::after(60s)});
  ASSERT_EQ(expected.status.shell_code(), 0);

  image::Store store(host.directories);
  image::import_image(store, layout.string(), {.reference = "test/tree:1"});
  Removed m(create({.image = "test/tree:1"}));
  auto seen = m->exec({"/app", "tree", "/tree"});
  EXPECT_EQ(seen.exit_code, 0);
  EXPECT_GT(sorted_lines(seen.out).size(), 25U);
  EXPECT_THAT(sorted_lines(seen.out), ::testing::ElementsAreArray(sorted_lines(expected.out)));
}

TEST_F(ImageTree, IMG_26_IMG_27_CapabilitiesAndSetuidWorkInTheMachine) {
  auto program = [](const char* path, unsigned mode) {
    return Member{.path = path, .content = read_file(HOLT_SCRATCH_APP, std::size_t{64} << 20), .mode = mode};
  };
  auto tar = scratch();
  tar.add(with_net_raw(program("capable", 0755))).add(program("as-root", 04755));
  auto owned = program("as-33", 04755);
  owned.uid = 33;
  Removed m(start(tar.add(owned)));
  auto who = [&](const char* path) { return m->exec({path, "who"}, {.user = "1000"}).out; };
  EXPECT_EQ(who("/app"), "1000 1000 0\n");
  EXPECT_EQ(who("/capable"), "1000 1000 2000\n") << "CAP_NET_RAW of security.capability";
  EXPECT_EQ(who("/as-33"), "1000 33 0\n");
  EXPECT_THAT(who("/as-root"), ::testing::StartsWith("1000 0 "));
}

}  // namespace
}  // namespace holt::test
