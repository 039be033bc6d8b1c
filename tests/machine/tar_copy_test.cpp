// Tars in and out of a machine, with the real guest program.
#include "holt/base/ids.hpp"
#include "image/tar_builder.hpp"
#include "machine/hosted_machine.hpp"
#include "machine/tree_copy.hpp"
#include "support/asking.hpp"

#include <clocale>
#include <fcntl.h>
#include <sys/stat.h>

#include <gtest/gtest.h>

namespace holt::test {
namespace {

namespace fs = std::filesystem;
using namespace machine;
using image::test::TarBuilder;

class TarCopies : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(target());
    fs::create_directories(dir.path() / "outside");
    write_file_atomically(dir.path() / "outside/canary", "alive");
  }
  void TearDown() override {
    EXPECT_EQ(read_file(dir.path() / "outside/canary", 100), "alive");
    EXPECT_EQ(std::distance(fs::directory_iterator(dir.path() / "outside"), {}), 1) << "written outside";
  }
  fs::path target() const { return dir.path() / "target"; }
  std::string content(const std::string& name) const { return read_file(target() / name, 64 << 20); }

  /// In pieces that no header or block begins or ends with.
  CopyResult in(const std::string& tar, const CopyOptions& options = {}) {
    std::size_t at = 0;
    TarInput input = [&]() -> std::string_view {
      auto piece = std::string_view(tar).substr(at, 777);
      at += piece.size();
      return piece;
    };
    return copy_tar_in(machine.folder(), input, target().string(), options);
  }
  std::string out(const fs::path& source) {
    std::string tar;
    copy_tar_out(machine.folder(), source.string(), [&](std::string_view bytes) { tar += bytes; }, {});
    return tar;
  }
  /// Runs the host's tar(1) on a tar.
  std::string tar_program(const std::string& tar, const std::vector<std::string>& arguments) {
    write_file_atomically(dir.path() / "x.tar", tar);
    ProcessSpec spec{.argv = {"/bin/tar", "-f", (dir.path() / "x.tar").string()}};
    spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
    return run_process(spec, {.output_limit = std::size_t{128} << 20}).out;
  }

  TempDir dir;
  HostedMachine machine;
};

TEST_F(TarCopies, MembersOfEveryKindArrive) {
  auto result = in(TarBuilder()
                       .folder("./")
                       .folder("sub/", 0751)
                       .file("sub/f", "content")
                       .file("without/parents/g", "g")
                       .symlink("link", "sub/f")
                       .hard_link("sub/second", "sub/f")
                       .add({.path = "fifo", .type = '6'})
                       .add({.path = "device", .type = '3', .major = 1, .minor = 3})
                       .finish());
  EXPECT_EQ(result.failed, 0u);
  EXPECT_EQ(result.skipped, 2u);
  EXPECT_EQ(content("sub/f"), "content");
  EXPECT_EQ(content("without/parents/g"), "g");
  EXPECT_EQ(fs::read_symlink(target() / "link"), "sub/f");
  EXPECT_TRUE(fs::equivalent(target() / "sub/f", target() / "sub/second"));
  struct stat info{};
  ::stat((target() / "sub").c_str(), &info);
  EXPECT_EQ(info.st_mode & 07777, 0751u);
  EXPECT_EQ(info.st_mtim.tv_sec, 1'000'000'000);
  EXPECT_FALSE(fs::exists(target() / "fifo"));
}

TEST_F(TarCopies, FILES_04_NamesThatLeadOutFailAndTheRestArrives) {
  fs::create_symlink(dir.path() / "outside", target() / "away");
  auto result = in(TarBuilder()
                       .file("../outside/a", "dead")
                       .file("x/../../outside/b", "dead")
                       .file("/etc/holt-absolute", "kept below")
                       .symlink("d", "../outside")
                       .file("d/canary", "dead")
                       .file("away/c", "dead")
                       .symlink("victim", "../outside/canary")
                       .file("victim", "replaced")
                       .hard_link("stolen", "../outside/canary")
                       .hard_link("stolen2", "away/canary")
                       .file("good", "good")
                       .finish());
  EXPECT_EQ(result.failed, 8u) << "two names, two through links and the folders they want, two hard links";
  EXPECT_EQ(content("good"), "good");
  EXPECT_EQ(content("etc/holt-absolute"), "kept below");
  EXPECT_EQ(content("victim"), "replaced");
  EXPECT_FALSE(fs::is_symlink(target() / "victim"));
  EXPECT_FALSE(fs::exists(target() / "stolen"));
  EXPECT_FALSE(fs::exists(target() / "stolen2"));
}

TEST_F(TarCopies, WhatIsNoTarIsSaidToBeNone) {
  EXPECT_EQ(code_of([&] { in("not a tar at all, and long enough to be looked at"); }),
            ErrorCode::image_invalid);
  auto whole = TarBuilder().file("a", "first").file("b", std::string(100'000, 'b')).finish();
  EXPECT_EQ(code_of([&] { in(whole.substr(0, 60'000)); }), ErrorCode::image_invalid);
  // The guest takes it away when it hears of the end, which this call does not wait for.
  EXPECT_TRUE(eventually([&] { return !fs::exists(target() / "b"); })) << "half a file";
  EXPECT_EQ(in(TarBuilder().finish()).failed, 0u) << "an empty tar is one";
}

TEST_F(TarCopies, OwnersTravelWhenAskedAndTimesAlways) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give files away";
  auto tar =
      TarBuilder()
          .add({.path = "f", .content = "x", .uid = 1000, .gid = 1001, .pax = {{"mtime", "1234567890.5"}}})
          .finish();
  struct stat info{};
  in(tar);
  ::stat((target() / "f").c_str(), &info);
  EXPECT_EQ(info.st_uid, 0u);
  EXPECT_EQ(info.st_mtim.tv_sec, 1234567890);
  EXPECT_EQ(info.st_mtim.tv_nsec, 500'000'000);
  in(tar, {.owners = Owners::kept});
  ::stat((target() / "f").c_str(), &info);
  EXPECT_EQ(info.st_uid, 1000u);
  EXPECT_EQ(info.st_gid, 1001u);
}

TEST_F(TarCopies, AFolderComesOutAsATarThatOtherProgramsRead) {
  auto tree = dir.path() / "tree";
  fs::create_directories(tree / "sub");
  write_file_atomically(tree / "sub/f", "content", {.mode = 0640});
  write_file_atomically(tree / "\xff odd\n", "odd");
  write_file_atomically(tree / std::string(200, 'l'), "long");
  fs::create_symlink("sub/f", tree / "link");
  auto tar = out(tree);
  EXPECT_EQ(tar_program(tar, {"-xO", "./sub/f"}), "content");
  EXPECT_EQ(tar_program(tar, {"-xO", "./" + std::string(200, 'l')}), "long");
  EXPECT_NE(tar_program(tar, {"-tv", "--quoting-style=literal"}).find("link -> sub/f"), std::string::npos);
  EXPECT_EQ(in(tar).failed, 0u);
  EXPECT_EQ(content("\xff odd\n"), "odd");
  struct stat info{};
  ::stat((target() / "sub/f").c_str(), &info);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
}

TEST_F(TarCopies, NamesAreBytesInEveryLocaleAndOnlyOddOnesAreMarkedSo) {
  auto tree = dir.path() / "tree";
  fs::create_directories(tree);
  for (const char* name : {"plain", "\xc3\xa9", "\xff"}) write_file_atomically(tree / name, name);
  fs::create_symlink("\xfe", tree / "link");
  ASSERT_NE(std::setlocale(LC_ALL, "C.UTF-8"), nullptr);
  auto in_utf8 = out(tree);
  std::setlocale(LC_ALL, "C");
  EXPECT_EQ(out(tree), in_utf8);
  // GNU tar warns of each such record.
  std::size_t marked = 0;
  for (auto at = in_utf8.find("hdrcharset"); at != std::string::npos; at = in_utf8.find("hdrcharset", at + 1))
    ++marked;
  EXPECT_EQ(marked, 2u);
  EXPECT_EQ(in(in_utf8).failed, 0u);
  for (const char* name : {"plain", "\xc3\xa9", "\xff"}) EXPECT_EQ(content(name), name);
  EXPECT_EQ(fs::read_symlink(target() / "link"), "\xfe");
}

TEST_F(TarCopies, AFileComesOutUnderItsName) {
  write_file_atomically(dir.path() / "one", "1");
  EXPECT_EQ(tar_program(out(dir.path() / "one"), {"-xO", "one"}), "1");
}

TEST_F(TarCopies, HolesOfATarAreHolesInTheMachine) {
  auto tree = dir.path() / "tree";
  fs::create_directories(tree);
  Fd fd(::open((tree / "sparse").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_EQ(::pwrite(fd.get(), "end", 3, (64 << 20) - 3), 3);
  run_process({.argv = {"/bin/tar", "-C", tree.string(), "-S", "-cf", (dir.path() / "s.tar").string(), "."}},
              {});
  auto tar = read_file(dir.path() / "s.tar", 1 << 20);
  EXPECT_EQ(in(tar).failed, 0u);
  EXPECT_EQ(fs::file_size(target() / "sparse"), 64u << 20);
  EXPECT_EQ(content("sparse").substr((64 << 20) - 3), "end");
  struct stat info{};
  ::stat((target() / "sparse").c_str(), &info);
  EXPECT_LT(info.st_blocks * 512, 1 << 20);
  // The way out has no word for a hole and writes it as zeroes.
  EXPECT_EQ(tar_program(out(target()), {"-xO", "./sparse"}).size(), 64u << 20);
}

TEST_F(TarCopies, AnOutputThatFailsEndsTheCopyWithItsOwnError) {
  write_file_atomically(dir.path() / "big", std::string(4 << 20, 'x'));
  auto full = [](std::string_view) { throw Error(ErrorCode::storage_full, "no room"); };
  EXPECT_EQ(code_of([&] { copy_tar_out(machine.folder(), (dir.path() / "big").string(), full, {}); }),
            ErrorCode::storage_full);
}

}  // namespace
}  // namespace holt::test
