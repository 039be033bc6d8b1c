// Copies between host and guest with the real guest program: cases FILES of the project's list that need no
// VM.
#include "holt/base/encoding.hpp"
#include "holt/base/ids.hpp"
#include "machine/file_streams.hpp"
#include "machine/hosted_machine.hpp"
#include "machine/tree_copy.hpp"
#include "machine/tree_walk.hpp"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <set>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace holt::test {
namespace {

namespace fs = std::filesystem;
using namespace machine;

class Copies : public ::testing::Test {
 protected:
  void SetUp() override {
    // Folders of the "guest" and of the "host" lie on one file system here, and apart.
    fs::create_directories(guest());
    fs::create_directories(host());
    fs::permissions(dir.path(), fs::perms(0755));
  }
  fs::path guest() const { return dir.path() / "guest"; }
  fs::path host() const { return dir.path() / "host"; }

  static void put(const fs::path& path, std::string_view content, unsigned mode = 0644) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << content;
    fs::permissions(path, fs::perms(mode));
  }
  static std::string content(const fs::path& path) { return read_file(path, std::size_t{64} << 20); }
  static struct stat facts(const fs::path& path) {
    struct stat info{};
    if (::lstat(path.c_str(), &info) != 0) ADD_FAILURE() << "no " << path;
    return info;
  }
  static void set_time(const fs::path& path, std::int64_t seconds, long nanoseconds) {
    timespec times[2] = {{0, UTIME_OMIT}, {seconds, nanoseconds}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
  }
  /// A file of `size` bytes with `data` at its middle and nothing else.
  static void put_sparse(const fs::path& path, std::uint64_t size, std::string_view data) {
    Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    ASSERT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
    ASSERT_EQ(::pwrite(fd.get(), data.data(), data.size(), static_cast<off_t>(size / 2)),
              static_cast<ssize_t>(data.size()));
  }
  static std::string at_middle(const fs::path& path, std::size_t size) {
    std::string bytes(size, '\0');
    Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    auto n = ::pread(fd.get(), bytes.data(), size, static_cast<off_t>(fs::file_size(path) / 2));
    bytes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return bytes;
  }
  static std::uint64_t allocated(const fs::path& path) {
    return static_cast<std::uint64_t>(facts(path).st_blocks) * 512;
  }

  CopyResult in(const fs::path& source, const fs::path& target, const CopyOptions& options = {}) {
    return copy_tree_in(machine.folder(), source, target.string(), options);
  }
  CopyResult out(const fs::path& source, const fs::path& target, const CopyOptions& options = {}) {
    return copy_tree_out(machine.folder(), source.string(), target, options);
  }

  // In memory where the host has such a place: a busy disk takes a minute for as many files.
  TempDir dir{fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path()};
  HostedMachine machine;
};

constexpr std::uint64_t k_gib = std::uint64_t{1} << 30;

TEST_F(Copies, FILES_01_SparseFilesOfFiveGibibytesStaySparseBothWays) {
  put_sparse(host() / "sparse", 5 * k_gib, "island");
  auto sent = in(host() / "sparse", guest() / "sparse");
  EXPECT_EQ(sent.bytes, 5 * k_gib);
  EXPECT_EQ(fs::file_size(guest() / "sparse"), 5 * k_gib);
  EXPECT_EQ(at_middle(guest() / "sparse", 6), "island");
  EXPECT_LT(allocated(guest() / "sparse"), 1u << 20);
  out(guest() / "sparse", host() / "back");
  EXPECT_EQ(fs::file_size(host() / "back"), 5 * k_gib);
  EXPECT_EQ(at_middle(host() / "back", 6), "island");
  EXPECT_LT(allocated(host() / "back"), 1u << 20);
}

TEST_F(Copies, FILES_01_HolesAtTheStartTheEndAndEverywhereElseKeepTheirPlace) {
  constexpr std::size_t k_step = 64 << 10;
  std::string expected;
  {
    Fd fd(::open((host() / "f").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    for (int i = 0; i < 40; i++) {
      auto piece = i % 3 == 1 ? random_bytes(k_step) : std::string(k_step, '\0');
      if (i % 3 == 1) ASSERT_EQ(::pwrite(fd.get(), piece.data(), k_step, i * k_step), k_step);
      expected += piece;
    }
    expected.resize(expected.size() + 777);
    ASSERT_EQ(::ftruncate(fd.get(), static_cast<off_t>(expected.size())), 0);
  }
  in(host() / "f", guest() / "f");
  EXPECT_TRUE(content(guest() / "f") == expected);
  out(guest() / "f", host() / "g");
  EXPECT_TRUE(content(host() / "g") == expected);
  EXPECT_LT(allocated(host() / "g"), expected.size() / 2);
}

TEST_F(Copies, FILES_02_AWriteWhoseGuestDiesLeavesTheOldContentAndNothingElse) {
  put(guest() / "d/f", "old");
  auto writer = open_writer(machine.folder(), (guest() / "d/f").string(), {});
  writer.write(std::string(3 << 20, 'n'));
  machine.process().signal(SIGKILL);
  machine.process().wait(Deadline::after(60s));
  EXPECT_EQ(code_of([&] { writer.finish(); }), ErrorCode::outcome_unknown);
  EXPECT_EQ(content(guest() / "d/f"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(guest() / "d"), {}), 1);
}

TEST_F(Copies, FILES_03_ACopyOntoALinkGivesItsTargetTheContent) {
  put(guest() / "target", "old");
  fs::create_symlink("target", guest() / "link");
  put(host() / "f", "new");
  in(host() / "f", guest() / "link");
  EXPECT_TRUE(fs::is_symlink(guest() / "link"));
  EXPECT_EQ(content(guest() / "target"), "new");
}

TEST_F(Copies, FILES_05_AFolderSwappedForALinkDuringTheCopyRedirectsNothing) {
  for (int i = 0; i < 400; i++) put(guest() / "tree/sub" / std::to_string(i), "inside");
  fs::create_directories(dir.path() / "outside");
  fs::create_directories(host() / "out/sub");
  std::atomic<bool> done = false;
  std::jthread swapper([&] {
    while (!done) {
      std::error_code ignored;
      fs::rename(host() / "out/sub", host() / "out/aside", ignored);
      fs::create_directory_symlink(dir.path() / "outside", host() / "out/sub", ignored);
      fs::remove(host() / "out/sub", ignored);
      fs::rename(host() / "out/aside", host() / "out/sub", ignored);
    }
  });
  for (int i = 0; i < 5; i++) out(guest() / "tree", host() / "out");
  done = true;
  swapper.join();
  EXPECT_TRUE(fs::is_empty(dir.path() / "outside"));
}

TEST_F(Copies, FILES_06_LinksOfTheHostAreCopiedAsLinksAndOddThingsSkipped) {
  auto tree = host() / "tree";
  put(tree / "plain", "x");
  put(host() / "secret", "hidden");
  fs::create_symlink("../secret", tree / "link");
  fs::create_symlink("loop", tree / "loop");
  fs::create_symlink("/proc/self/mem", tree / "memory");
  ::mkfifo((tree / "fifo").c_str(), 0600);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  auto name = (tree / "socket").string();
  ASSERT_LT(name.size(), sizeof address.sun_path);
  std::ranges::copy(name, address.sun_path);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  auto result = in(tree, guest() / "tree");
  EXPECT_EQ(result.skipped, 2u);
  EXPECT_EQ(result.failed, 0u);
  for (const char* link : {"link", "loop", "memory"})
    EXPECT_TRUE(fs::is_symlink(guest() / "tree" / link)) << link;
  EXPECT_FALSE(fs::exists(guest() / "tree/fifo"));
}

TEST_F(Copies, FILES_06_WhatCannotBeReadIsNamedAndTheRestCopied) {
  put(host() / "tree/a", "a");
  put(host() / "tree/z", "z");
  // Nobody can read it, root neither, once links are followed.
  fs::create_symlink("closed", host() / "tree/closed");
  auto result = in(host() / "tree", guest() / "tree", {.follow = FollowLinks::yes});
  EXPECT_EQ(result.failed, 1u);
  ASSERT_EQ(result.problems.size(), 1u);
  EXPECT_EQ(result.problems[0].path, "closed");
  EXPECT_EQ(content(guest() / "tree/z"), "z");
}

TEST_F(Copies, FILES_06_AFileThatGrowsMeanwhileIsCutAtTheSizeSeenFirst) {
  put(host() / "log", std::string(1 << 20, 'l'));
  std::atomic<bool> done = false;
  std::jthread writer([&] {
    std::ofstream log(host() / "log", std::ios::app);
    while (!done) log << "more\n" << std::flush;
  });
  for (int i = 0; i < 10; i++) {
    auto result = in(host() / "log", guest() / "log");
    EXPECT_EQ(result.failed, 0u);
    EXPECT_EQ(fs::file_size(guest() / "log"), result.bytes);
  }
  done = true;
}

TEST_F(Copies, FILES_06_TenThousandSmallFilesTravelInOneStream) {
  fs::create_directories(host() / "many");
  for (int i = 0; i < 10'000; i++) std::ofstream(host() / "many" / std::to_string(i)) << i;
  EXPECT_EQ(in(host() / "many", guest() / "many").files, 10'001u);
  EXPECT_EQ(content(guest() / "many/9999"), "9999");
}

const std::vector<std::string> k_odd_names = {"a b",
                                              "new\nline",
                                              "tab\t",
                                              "quote'\"",
                                              "*",
                                              "$(x)",
                                              "-rf",
                                              "trailing.",
                                              "...",
                                              "\xf0\x9f\x98\x80",
                                              "\xc3\xa9",
                                              "e\xcc\x81",
                                              "back\\slash",
                                              "<>:\"|?",
                                              "\xff\xfe",
                                              "\x1b[31m",
                                              std::string(255, 'n')};

TEST_F(Copies, FILES_07_NamesOfAnyBytesTravelBothWays) {
  for (const auto& name : k_odd_names) put(host() / "tree" / name, name);
  EXPECT_EQ(in(host() / "tree", guest() / "tree").failed, 0u);
  EXPECT_EQ(out(guest() / "tree", host() / "back").failed, 0u);
  for (const auto& name : k_odd_names) EXPECT_EQ(content(host() / "back" / name), name);
  std::set<std::string> names;
  for (const auto& entry : list_directory(machine.folder(), (guest() / "tree").string(), {}))
    names.insert(entry.name);
  EXPECT_EQ(names, std::set<std::string>(k_odd_names.begin(), k_odd_names.end()));
  EXPECT_EQ(code_of([&] {
              open_writer(machine.folder(), (guest() / std::string(256, 'n')).string(), {}).finish();
            }),
            ErrorCode::storage_error)
      << "a name of 256 bytes";
}

TEST_F(Copies, FILES_10_ACopyOutOfWhatIsMissingIsNotFound) {
  EXPECT_EQ(code_of([&] { out(guest() / "no", host() / "no"); }), ErrorCode::not_found);
  EXPECT_EQ(code_of([&] { in(host() / "no", guest() / "no"); }), ErrorCode::not_found);
  EXPECT_FALSE(fs::exists(host() / "no"));
  put(host() / "f", "x");
  EXPECT_EQ(in(host() / "f", guest() / "no/parent/f").failed, 1u);
}

TEST_F(Copies, FILES_12_AFolderOfAHundredThousandEntriesIsListedWhole) {
  fs::create_directories(guest() / "many");
  Fd folder(::open((guest() / "many").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < 100'000; i++) {
    Fd file(::openat(folder.get(), std::to_string(i).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    ASSERT_TRUE(file);
  }
  EXPECT_EQ(list_directory(machine.folder(), (guest() / "many").string(), {}).size(), 100'000u);
  auto walk = walk_tree(machine.folder(), (guest() / "many").string(), {});
  ASSERT_TRUE(walk.next());
  std::set<std::string> names;
  while (auto entry = walk.next()) names.insert(entry->path);
  EXPECT_EQ(names.size(), 99'999u);
}

TEST_F(Copies, FILES_14_OfManyWritersOneWinsWhole) {
  constexpr int k_writers = 50;
  auto path = (guest() / "one").string();
  std::atomic<int> created = 0;
  std::atomic<int> refused = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < k_writers; i++) {
      threads.emplace_back([&, i] {
        auto writer = open_writer(machine.folder(), path, {});
        writer.write(std::string(1 << 20, static_cast<char>('0' + i)));
        writer.finish();
        auto code = code_of([&] {
          auto once = open_writer(machine.folder(), path + ".once", {.existing = Existing::refuse});
          once.write(std::to_string(i));
          once.finish();
        });
        code ? ++refused : ++created;
        if (code) EXPECT_EQ(code, ErrorCode::conflict);
      });
    }
  }
  auto winner = content(guest() / "one");
  EXPECT_TRUE(winner == std::string(1 << 20, winner.at(0)));
  EXPECT_EQ(created, 1);
  EXPECT_EQ(refused, k_writers - 1);
}

TEST_F(Copies, FILES_15_AWriteThatExpectsOtherContentChangesNothing) {
  put(guest() / "f", "old", 0751);
  auto write = [&](const std::string& bytes, const std::string& expected) {
    return code_of([&] {
      auto writer = open_writer(machine.folder(), (guest() / "f").string(), {.expected_sha256 = expected});
      writer.write(bytes);
      writer.finish();
    });
  };
  EXPECT_EQ(write("new", std::string(64, '0')), ErrorCode::conflict);
  EXPECT_EQ(content(guest() / "f"), "old");
  EXPECT_EQ(write("new", "no digest"), ErrorCode::invalid_config);
  EXPECT_EQ(write("new", sha256_hex("old")), std::nullopt);
  EXPECT_EQ(content(guest() / "f"), "new");
  EXPECT_EQ(facts(guest() / "f").st_mode & 07777, 0751u);
  EXPECT_EQ(write("newer", sha256_hex("old")), ErrorCode::conflict);
  fs::remove(guest() / "f");
  EXPECT_EQ(write("new", sha256_hex("")), ErrorCode::conflict) << "a missing file has no content";
}

TEST_F(Copies, FILES_15_OfManyConditionalWritersEachSeesTheOneBefore) {
  put(guest() / "counter", "0");
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; i++) {
    threads.emplace_back([&] {
      for (int added = 0; added < 5;) {
        auto before = content(guest() / "counter");
        auto failed = code_of([&] {
          auto writer = open_writer(machine.folder(), (guest() / "counter").string(),
                                    {.expected_sha256 = sha256_hex(before)});
          writer.write(std::to_string(std::stoi(before) + 1));
          writer.finish();
        });
        if (!failed) added++;
        if (failed && failed != ErrorCode::conflict) return;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(content(guest() / "counter"), "40");
}

TEST_F(Copies, FILES_16_TheFileApiActsWithTheRightsOfTheNamedUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to act as another user";
  put(guest() / "roots", "secret", 0600);
  put(guest() / "closed", "c", 0000);
  fs::create_directories(guest() / "open");
  fs::permissions(guest() / "open", fs::perms(0777));
  put(host() / "tree/f", "x");
  auto folder = machine.folder();
  auto path = [&](const char* name) { return (guest() / name).string(); };
  EXPECT_EQ(code_of([&] { open_reader(folder, path("roots"), {.user = "1000"}); }),
            ErrorCode::permission_denied);
  EXPECT_FALSE(code_of([&] { open_reader(folder, path("closed"), {}); })) << "root reads everything";
  EXPECT_EQ(code_of([&] { change_attributes(folder, path("roots"), {.mode = 0644}, {.user = "1000"}); }),
            ErrorCode::permission_denied);
  EXPECT_EQ(out(guest() / "roots", host() / "roots", {.user = "1000"}).failed, 1u);
  EXPECT_EQ(in(host() / "tree", guest() / "open/tree", {.user = "1000:1000"}).failed, 0u);
  EXPECT_EQ(facts(guest() / "open/tree/f").st_uid, 1000u);
  EXPECT_EQ(facts(guest() / "open/tree/f").st_mode & 07777, 0644u) << "whatever the umask";
}

TEST_F(Copies, FILES_28_TimesTravelToTheNanosecondAndOwnersOnlyWhenAsked) {
  auto tree = host() / "tree";
  put(tree / "sub/f", "x", 0640);
  put(tree / "old", "y");
  fs::create_symlink("old", tree / "link");
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown((tree / "sub/f").c_str(), 1234, 2345), 0);
    ASSERT_EQ(::lchown((tree / "link").c_str(), 77, 78), 0);
  }
  set_time(tree / "sub/f", 1'700'000'000, 123'456'789);
  set_time(tree / "old", -5, 999'999'999);
  set_time(tree / "link", 1'600'000'000, 1);
  set_time(tree / "sub", 1'500'000'000, 7);
  in(tree, guest() / "plain");
  EXPECT_EQ(facts(guest() / "plain/sub/f").st_uid, ::geteuid());
  EXPECT_EQ(facts(guest() / "plain/sub/f").st_mode & 07777, 0640u);
  in(tree, guest() / "kept", {.owners = Owners::kept});
  out(guest() / "kept", host() / "back", {.owners = Owners::kept});
  for (const auto& root : {guest() / "plain", guest() / "kept", host() / "back"}) {
    EXPECT_EQ(facts(root / "sub/f").st_mtim.tv_sec, 1'700'000'000) << root;
    EXPECT_EQ(facts(root / "sub/f").st_mtim.tv_nsec, 123'456'789) << root;
    EXPECT_EQ(facts(root / "old").st_mtim.tv_sec, -5) << root;
    EXPECT_EQ(facts(root / "old").st_mtim.tv_nsec, 999'999'999) << root;
    EXPECT_EQ(facts(root / "link").st_mtim.tv_sec, 1'600'000'000) << root;
    EXPECT_EQ(facts(root / "sub").st_mtim.tv_sec, 1'500'000'000) << root;
  }
  if (::geteuid() != 0) return;
  for (const auto& root : {guest() / "kept", host() / "back"}) {
    EXPECT_EQ(facts(root / "sub/f").st_uid, 1234u) << root;
    EXPECT_EQ(facts(root / "sub/f").st_gid, 2345u) << root;
    EXPECT_EQ(facts(root / "link").st_uid, 77u) << root;
  }
  out(guest() / "kept", host() / "mine");
  EXPECT_EQ(facts(host() / "mine/sub/f").st_uid, 0u) << "the caller's, unless asked";
}

TEST_F(Copies, OneOwnerCanBeGivenToEverything) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give files away";
  put(host() / "tree/sub/f", "x");
  in(host() / "tree", guest() / "tree", {.owners = Owners::kept, .owner = "12:34"});
  EXPECT_EQ(facts(guest() / "tree").st_uid, 12u);
  EXPECT_EQ(facts(guest() / "tree/sub/f").st_gid, 34u);
  in(host() / "tree/sub/f", guest() / "root-owned", {.owner = "root"});
  EXPECT_EQ(code_of([&] { in(host() / "tree", guest() / "x", {.owner = "no-such-user"}); }),
            ErrorCode::not_found);
  in(host() / "tree/sub/f", guest() / "moded", {.mode = 0600});
  EXPECT_EQ(facts(guest() / "moded").st_mode & 07777, 0600u);
}

TEST_F(Copies, AttributesChangeAsAsked) {
  put(guest() / "f", "x", 0644);
  fs::create_symlink("f", guest() / "link");
  auto change = [&](const char* name, const FileAttributes& attributes,
                    const AttributeOptions& options = {}) {
    return code_of(
        [&] { change_attributes(machine.folder(), (guest() / name).string(), attributes, options); });
  };
  EXPECT_FALSE(change("link", {.mode = 04751, .mtime_ns = -1}));
  EXPECT_EQ(facts(guest() / "f").st_mode & 07777, 04751u);
  EXPECT_EQ(facts(guest() / "f").st_mtim.tv_sec, -1);
  EXPECT_EQ(facts(guest() / "f").st_mtim.tv_nsec, 999'999'999);
  EXPECT_FALSE(change("link", {.mtime_ns = 5'000'000'000}, {.follow = FollowLinks::no}));
  EXPECT_EQ(facts(guest() / "link").st_mtim.tv_sec, 5);
  EXPECT_EQ(facts(guest() / "f").st_mtim.tv_sec, -1);
  EXPECT_EQ(change("link", {.mode = 0600}, {.follow = FollowLinks::no}), ErrorCode::not_supported);
  EXPECT_EQ(change("none", {.mode = 0600}), ErrorCode::not_found);
  EXPECT_EQ(change("f", {.owner = "1x"}), ErrorCode::invalid_config);
  if (::geteuid() != 0) return;
  EXPECT_FALSE(change("f", {.mode = 04755, .owner = "1000"}));
  EXPECT_EQ(facts(guest() / "f").st_uid, 1000u);
  EXPECT_EQ(facts(guest() / "f").st_gid, 0u) << "a user alone leaves the group";
  EXPECT_EQ(facts(guest() / "f").st_mode & 07777, 04755u) << "the owner first, or the kernel clears the bit";
  EXPECT_FALSE(change("f", {.owner = "0:50"}));
  EXPECT_EQ(facts(guest() / "f").st_gid, 50u);
}

TEST_F(Copies, AWriteSetsOwnerTimeAndModeInOneStep) {
  auto writer = open_writer(machine.folder(), (guest() / "f").string(),
                            {.mode = 0600,
                             .owner = ::geteuid() == 0 ? "7:8" : "",
                             .mtime_ns = 1'234'567'890'123'456'789,
                             .durability = Durability::now});
  writer.write("x");
  writer.finish();
  EXPECT_EQ(facts(guest() / "f").st_mode & 07777, 0600u);
  EXPECT_EQ(facts(guest() / "f").st_mtim.tv_nsec, 123'456'789);
  if (::geteuid() == 0) EXPECT_EQ(facts(guest() / "f").st_gid, 8u);
}

TEST_F(Copies, AWalkNamesFoldersBeforeWhatIsInThem) {
  put(guest() / "t/a/b/c", "123");
  put(guest() / "t/d", "");
  fs::create_symlink("/etc", guest() / "t/link");
  std::vector<std::string> seen;
  auto walk = walk_tree(machine.folder(), (guest() / "t").string(), {});
  while (auto entry = walk.next()) {
    auto above = fs::path(entry->path).parent_path().string();
    EXPECT_TRUE(above.empty() || std::ranges::count(seen, above) == 1) << entry->path;
    seen.push_back(entry->path);
    if (entry->path == "a/b/c") EXPECT_EQ(entry->size, 3u);
    if (entry->path == "link") EXPECT_EQ(entry->target, "/etc");
  }
  std::ranges::sort(seen);
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "a/b", "a/b/c", "d", "link"}));
  auto shallow = walk_tree(machine.folder(), (guest() / "t").string(), {.max_depth = 1});
  std::size_t count = 0;
  while (shallow.next()) count++;
  EXPECT_EQ(count, 3u);
}

TEST_F(Copies, AWalkOfNoFolderIsRefusedAndAClosedFolderNamed) {
  put(guest() / "f", "x");
  put(guest() / "t/closed/hidden", "x");
  fs::permissions(guest() / "t/closed", fs::perms::none);
  auto first = [&](const fs::path& path, const std::string& user = "") {
    return walk_tree(machine.folder(), path.string(), {.user = user}).next();
  };
  EXPECT_EQ(code_of([&] { first(guest() / "f"); }), ErrorCode::not_a_directory);
  EXPECT_EQ(code_of([&] { first(guest() / "none"); }), ErrorCode::not_found);
  if (::geteuid() == 0) {
    auto closed = first(guest() / "t", "nobody");
    ASSERT_TRUE(closed);
    EXPECT_EQ(closed->path, "closed");
    EXPECT_NE(closed->problem, "");
    EXPECT_EQ(code_of([&] { first(guest() / "t/closed", "nobody"); }), ErrorCode::permission_denied);
    EXPECT_EQ(out(guest() / "t", host() / "t", {.user = "nobody"}).failed, 1u);
  }
  fs::permissions(guest() / "t/closed", fs::perms(0755));
}

}  // namespace
}  // namespace holt::test
