// Files through holt-guest as a process of this host: the promises of the file requests.
#include "holt/base/files.hpp"

#include "guest/guest_client.hpp"
#include "holt/base/ids.hpp"

#include <fcntl.h>
#include <fstream>
#include <set>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace holt::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using namespace protocol;

class Files : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return dir.path() / name; }
  void put(const std::string& name, std::string_view content, unsigned mode = 0644) {
    fs::create_directories(fs::path(path(name)).parent_path());
    write_file_atomically(path(name), content, {.mode = mode});
  }
  std::string content(const std::string& name) { return holt::read_file(path(name), std::size_t{1} << 30); }
  StreamResult read(const std::string& name) { return client.call(ReadFileRequest{.path = path(name)}); }
  StreamResult write(const std::string& name, std::string_view bytes) {
    return client.call(WriteFileRequest{.path = path(name)}, bytes);
  }
  Failure failure(const Request& request) { return client.call(request).failure(); }
  unsigned mode_of(const std::string& name) {
    struct stat status{};
    ::lstat(path(name).c_str(), &status);
    return status.st_mode & 07777;
  }
  std::size_t names_in(const std::string& name) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path(name)), {}));
  }

  TempDir dir;
  HostedGuest guest;
  GuestClient& client = guest.client();
};

TEST_F(Files, FILES_01_RoundTripAtTheEdgesOfSizes) {
  for (std::size_t size :
       {0U, 1U, 65535U, 65536U, 65537U, (1U << 20) - 1, 1U << 20, (1U << 20) + 1, 5'000'001U}) {
    auto bytes = random_bytes(size);
    auto written = write("file", bytes);
    ASSERT_EQ(written.reply<WriteFileReply>().bytes, size);
    ASSERT_TRUE(content("file") == bytes) << size;
    auto result = read("file");
    ASSERT_TRUE(result.output == bytes) << size;
    ASSERT_EQ(decode<FileStatus>(*result.started)->size, size);
    ASSERT_EQ(result.reply<ReadFileReply>().bytes, size);
  }
}

TEST_F(Files, ReadsPiecesByOffsetAndLength) {
  put("file", "0123456789");
  auto piece = client.call(ReadFileRequest{.path = path("file"), .offset = 3, .length = 4});
  EXPECT_EQ(piece.output, "3456");
  EXPECT_EQ(client.call(ReadFileRequest{.path = path("file"), .offset = 8, .length = 9}).output, "89");
  EXPECT_EQ(client.call(ReadFileRequest{.path = path("file"), .offset = 99}).output, "");
}

TEST_F(Files, FILES_09_FilesOfTheKernelWithoutSizeAreReadToTheirEnd) {
  EXPECT_NE(client.call(ReadFileRequest{.path = "/proc/self/status"}).output.find("holt-guest"),
            std::string::npos);
}

TEST_F(Files, FILES_09_WhatIsNoFileIsRefusedAndNeverBlocks) {
  ::mkfifo(path("fifo").c_str(), 0644);
  EXPECT_EQ(failure(ReadFileRequest{.path = dir.path()}).code, "IS_DIRECTORY");
  auto fifo = failure(ReadFileRequest{.path = path("fifo")});
  EXPECT_EQ(fifo.code, "NOT_REGULAR");
  EXPECT_TRUE(fifo.message.starts_with("not a regular file")) << fifo.message;
  EXPECT_EQ(failure(ReadFileRequest{.path = "/dev/zero"}).code, "NOT_REGULAR");
  EXPECT_EQ(write("fifo", "x").failure().code, "NOT_REGULAR");
  EXPECT_EQ(client.call(WriteFileRequest{.path = dir.path()}, "x").failure().code, "IS_DIRECTORY");
}

TEST_F(Files, FILES_09_WhatIsBoundToNoFileAnswersWithinASecond) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  ASSERT_LT(path("socket").size(), sizeof address.sun_path);
  path("socket").copy(address.sun_path, sizeof address.sun_path);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(read("socket").failure().code, "NOT_REGULAR");
  EXPECT_EQ(failure(ReadFileRequest{.path = "/dev/tty"}).code, "NOT_REGULAR");
  // Whether there is something to read or it may be read at all is the host's affair; it must not wait.
  client.call(ReadFileRequest{.path = "/proc/kmsg"});
  EXPECT_NE(client.call(ReadFileRequest{.path = "/proc/self/environ"}).final_frame, std::nullopt);
  // The kernel's own files claim 4096 bytes and hold fewer.
  auto setting = client.call(ReadFileRequest{.path = "/sys/kernel/mm/transparent_hugepage/enabled"});
  EXPECT_FALSE(setting.failed()) << setting.failure().message;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
}

TEST_F(Files, FILES_10_MissingPathsAreNotFound) {
  EXPECT_EQ(read("no").failure().code, "NOT_FOUND");
  EXPECT_EQ(failure(StatRequest{.path = path("no")}).code, "NOT_FOUND");
  EXPECT_EQ(failure(ListRequest{.path = path("no")}).code, "NOT_FOUND");
  EXPECT_EQ(failure(RemoveRequest{.path = path("no"), .recursive = true}).code, "NOT_FOUND");
  EXPECT_EQ(write("no/file", "x").failure().code, "NOT_FOUND");
  EXPECT_FALSE(client.call(ExistsRequest{.path = path("no")}).reply<ExistsReply>().exists);
}

TEST_F(Files, FILES_10_FileWhereAParentShouldBe) {
  put("file", "x");
  auto write_below = client.call(WriteFileRequest{.path = path("file/x"), .make_parents = true}, "x");
  EXPECT_EQ(write_below.failure().code, "NOT_A_DIRECTORY");
  auto deeper = client.call(WriteFileRequest{.path = path("file/a/x"), .make_parents = true}, "x");
  EXPECT_EQ(deeper.failure().code, "NOT_A_DIRECTORY");
  EXPECT_EQ(failure(MakeDirRequest{.path = path("file/x")}).code, "NOT_A_DIRECTORY");
  EXPECT_EQ(failure(MakeDirRequest{.path = path("file")}).code, "CONFLICT");
  EXPECT_EQ(failure(ListRequest{.path = path("file")}).code, "NOT_A_DIRECTORY");
}

TEST_F(Files, FILES_10_WriteMakesParentsWhenAsked) {
  auto result = client.call(WriteFileRequest{.path = path("a/b/c"), .make_parents = true}, "x");
  EXPECT_TRUE(result.reply<WriteFileReply>().created);
  EXPECT_EQ(content("a/b/c"), "x");
  EXPECT_EQ(mode_of("a/b"), 0755U);
  EXPECT_EQ(mode_of("a/b/c"), 0644U);
}

TEST_F(Files, FILES_03_OverwriteKeepsModeOwnerAndAttributes) {
  put("file", "old", 0751);
  bool has_xattr = ::setxattr(path("file").c_str(), "user.note", "kept", 4, 0) == 0;
  if (::geteuid() == 0) ASSERT_EQ(::chown(path("file").c_str(), 1000, 1001), 0);
  EXPECT_FALSE(write("file", "new").reply<WriteFileReply>().created);
  struct stat status{};
  ::stat(path("file").c_str(), &status);
  EXPECT_EQ(content("file"), "new");
  EXPECT_EQ(status.st_mode & 07777, 0751U);
  if (::geteuid() == 0) {
    EXPECT_EQ(status.st_uid, 1000U);
    EXPECT_EQ(status.st_gid, 1001U);
  }
  std::string note(8, '\0');
  if (has_xattr) EXPECT_EQ(::getxattr(path("file").c_str(), "user.note", note.data(), note.size()), 4);
}

TEST_F(Files, FILES_03_OfSeveralHardLinksOnlyTheNameWrittenChanges) {
  put("one", "old");
  fs::create_hard_link(path("one"), path("two"));
  EXPECT_FALSE(write("one", "new").failed());
  EXPECT_EQ(content("one"), "new");
  EXPECT_EQ(content("two"), "old");
}

TEST_F(Files, FILES_03_AFolderThatMayNotBeWrittenKeepsItsFiles) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to act as another user";
  fs::permissions(dir.path(), fs::perms(0755));
  put("closed/file", "old", 0666);
  auto denied = client.call(WriteFileRequest{.path = path("closed/file"), .user = "1000"}, "new");
  EXPECT_EQ(denied.failure().code, "PERMISSION_DENIED");
  EXPECT_EQ(content("closed/file"), "old");
  EXPECT_EQ(names_in("closed"), 1U);
}

TEST_F(Files, FILES_03_WriteGoesThroughLinksAlsoDanglingOnes) {
  put("target", "old");
  fs::create_symlink("target", path("link"));
  fs::create_symlink(path("made"), path("dangling"));
  EXPECT_FALSE(write("link", "new").failed());
  EXPECT_FALSE(write("dangling", "new").failed());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(content("target"), "new");
  EXPECT_EQ(content("made"), "new");
}

TEST_F(Files, FILES_08_LinkLoopsEndWithAnError) {
  fs::create_symlink("b", path("a"));
  fs::create_symlink("a", path("b"));
  for (const auto& failed :
       {read("a").failure(), write("a", "x").failure(), failure(RealPathRequest{.path = path("a")}),
        failure(StatRequest{.path = path("a")})}) {
    EXPECT_EQ(failed.error_number, ELOOP);
  }
  auto result = client.call(ListRequest{.path = dir.path()});
  auto page = decode<DirectoryPage>(result.entries.at(0)).value();
  ASSERT_EQ(page.entries.size(), 2U);
  EXPECT_EQ(page.entries[0].target, FileType::symlink);
  EXPECT_FALSE(page.entries[0].size);
}

TEST_F(Files, FILES_02_FailedOrCancelledWritesChangeNothingAndLeaveNothing) {
  put("d/file", "old");
  auto short_write = client.call(WriteFileRequest{.path = path("d/file"), .size = 5}, "abc");
  EXPECT_TRUE(short_write.failed());
  auto long_write = client.call(WriteFileRequest{.path = path("d/file"), .size = 2}, "abc");
  EXPECT_TRUE(long_write.failed());
  auto stream = client.open(WriteFileRequest{.path = path("d/file")});
  client.send_input(stream, std::string(3 << 20, 'x'));
  client.send({.type = FrameType::cancel, .stream = stream});
  EXPECT_EQ(client.wait(stream).failure().code, "CANCELLED");
  auto lost = client.open(WriteFileRequest{.path = path("d/file")});
  client.send_input(lost, std::string(3 << 20, 'x'));
  client.close();
  EXPECT_TRUE(guest.process().wait(Deadline::after(60s)));
  EXPECT_EQ(content("d/file"), "old");
  EXPECT_EQ(names_in("d"), 1U);
}

TEST_F(Files, FILES_02_ReadersSeeTheOldOrTheNewContentWhole) {
  put("file", std::string(1 << 20, 'a'));
  auto stream = client.open(WriteFileRequest{.path = path("file")});
  client.send_input(stream, std::string(2 << 20, 'b'));
  EXPECT_EQ(content("file"), std::string(1 << 20, 'a'));
  client.end_input(stream);
  EXPECT_FALSE(client.wait(stream).failed());
  EXPECT_EQ(content("file"), std::string(2 << 20, 'b'));
}

TEST_F(Files, FILES_14_ExactlyOneCreateOnlyWins) {
  std::vector<std::uint32_t> streams;
  for (int i = 0; i < 20; ++i) {
    streams.push_back(client.open(WriteFileRequest{.path = path("once"), .write = WriteMode::create_only}));
    client.send_input(streams.back(), std::to_string(i));
    client.end_input(streams.back());
  }
  int winners = 0;
  for (auto stream : streams) {
    auto result = client.wait(stream);
    winners += result.failed() ? 0 : 1;
    if (result.failed()) EXPECT_EQ(result.failure().code, "CONFLICT");
  }
  EXPECT_EQ(winners, 1);
}

TEST_F(Files, StalledReaderHoldsUpNobodyElse) {
  put("large", std::string(8 << 20, 'x'));
  put("small", "hi");
  std::vector<std::uint32_t> stalled;
  for (int i = 0; i < 8; ++i) {
    stalled.push_back(client.open(ReadFileRequest{.path = path("large")}));
    client.stall(stalled.back());
  }
  for (auto stream : stalled) {
    client.wait_until(stream, [](const StreamResult& r) { return r.output.size() > 500'000; });
  }
  EXPECT_EQ(read("small").output, "hi");
  client.unstall(stalled.back());
  EXPECT_EQ(client.wait(stalled.back()).output.size(), std::size_t{8} << 20);
}

TEST_F(Files, TooManyOperationsAtOnceAreRefusedAtOnce) {
  put("large", std::string(4 << 20, 'x'));
  std::vector<std::uint32_t> streams;
  for (int i = 0; i < 70; ++i) {
    streams.push_back(client.open(ReadFileRequest{.path = path("large")}));
    client.stall(streams.back());
  }
  EXPECT_EQ(client.wait(streams.back()).failure().code, "LIMIT_EXCEEDED");
  EXPECT_FALSE(client.call(ShutdownRequest{}).failed()) << "the flush of a machine has no limit to wait for";
}

TEST_F(Files, FILES_07_AnyNameOfBytesWorks) {
  for (std::string name :
       {"a b", "new\nline", "quote'\"", "$(x)", "-rf", "\xff\xfe", "*", "trailing.", "\xf0\x9f\x98\x80"}) {
    ASSERT_FALSE(write(name, name).failed()) << name;
    EXPECT_EQ(read(name).output, name);
  }
  auto result = client.call(ListRequest{.path = dir.path()});
  auto page = decode<DirectoryPage>(result.entries.at(0)).value();
  std::set<std::string> names;
  for (const auto& entry : page.entries) names.insert(entry.name);
  EXPECT_EQ(names.size(), 9U);
  EXPECT_TRUE(names.contains("\xff\xfe"));
  EXPECT_EQ(write(std::string(256, 'n'), "x").failure().error_number, ENAMETOOLONG);
}

TEST_F(Files, FILES_08_PathFormsAreTheKernels) {
  put("a/x", "x");
  put("b/x", "y");
  EXPECT_EQ(client.call(ReadFileRequest{.path = path("a/../b//./x")}).output, "y");
  EXPECT_EQ(failure(StatRequest{.path = ""}).code, "INVALID_CONFIG");
  EXPECT_EQ(failure(StatRequest{.path = std::string("/tmp\0x", 6)}).code, "INVALID_CONFIG");
  EXPECT_EQ(failure(StatRequest{.path = "/" + std::string(4095, 'x')}).code, "TOO_LARGE");
  EXPECT_EQ(failure(StatRequest{.path = path("a%2fx")}).code, "NOT_FOUND");
}

TEST_F(Files, FILES_13_StatTellsTypesSizesAndTimes) {
  put("file", "four", 0640);
  timespec times[2] = {{.tv_sec = 0, .tv_nsec = 0}, {.tv_sec = -5, .tv_nsec = 123456789}};
  ::utimensat(AT_FDCWD, path("file").c_str(), times, 0);
  fs::create_symlink("file", path("link"));
  auto status = client.call(StatRequest{.path = path("link")}).reply<FileStatus>();
  EXPECT_EQ(status.type, FileType::regular);
  EXPECT_EQ(status.size, 4U);
  EXPECT_EQ(status.mode, 0640U);
  EXPECT_EQ(status.mtime_s, -5);
  EXPECT_EQ(status.mtime_ns, 123456789U);
  auto link = client.call(StatRequest{.path = path("link"), .links = Links::keep}).reply<FileStatus>();
  EXPECT_EQ(link.type, FileType::symlink);
  EXPECT_EQ(link.link_target, "file");
}

TEST_F(Files, FILES_13_NoSizeTimeOrModeIsCut) {
  constexpr std::uint64_t k_tebibyte = std::uint64_t{1} << 40;
  {
    Fd fd(::open(path("sparse").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    ASSERT_EQ(::pwrite(fd.get(), "data", 4, 0), 4);
    ASSERT_EQ(::ftruncate(fd.get(), static_cast<off_t>(k_tebibyte)), 0);
  }
  auto stat = [&](const std::string& name) {
    return client.call(StatRequest{.path = path(name)}).reply<FileStatus>();
  };
  EXPECT_EQ(stat("sparse").size, k_tebibyte);
  EXPECT_LE(stat("sparse").allocated, 65536U);
  ::chmod(path("sparse").c_str(), 07777);
  EXPECT_EQ(stat("sparse").mode, 07777U);
  constexpr std::int64_t k_year_2200 = 7'258'118'400;
  timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, {.tv_sec = k_year_2200, .tv_nsec = 1}};
  ::utimensat(AT_FDCWD, path("sparse").c_str(), times, 0);
  EXPECT_EQ(stat("sparse").mtime_s, k_year_2200);
  EXPECT_EQ(stat("sparse").mtime_ns, 1U);
  fs::create_symlink("gone", path("dangling"));
  EXPECT_EQ(failure(StatRequest{.path = path("dangling")}).code, "NOT_FOUND");
  auto link = client.call(StatRequest{.path = path("dangling"), .links = Links::keep}).reply<FileStatus>();
  EXPECT_EQ(link.type, FileType::symlink);
}

TEST_F(Files, FILES_12_ListsManyEntriesInPages) {
  fs::create_directory(path("many"));
  for (int i = 0; i < 3000; ++i) std::ofstream(path("many/" + std::string(200, 'n') + std::to_string(i)));
  auto result = client.call(ListRequest{.path = path("many")});
  EXPECT_EQ(result.reply<ListReply>().entries, 3000U);
  EXPECT_GT(result.entries.size(), 5U);
  std::set<std::string> names;
  for (const auto& payload : result.entries) {
    for (const auto& entry : decode<DirectoryPage>(payload)->entries) names.insert(entry.name);
  }
  EXPECT_EQ(names.size(), 3000U);
}

TEST_F(Files, ListFollowsLinksForTheirTarget) {
  put("real/file", "abc");
  fs::create_symlink("real", path("to_dir"));
  fs::create_symlink("nothing", path("dangling"));
  auto page = decode<DirectoryPage>(client.call(ListRequest{.path = dir.path()}).entries.at(0)).value();
  for (const auto& entry : page.entries) {
    if (entry.name == "to_dir") EXPECT_EQ(entry.target, FileType::directory);
    if (entry.name == "to_dir") EXPECT_EQ(entry.type, FileType::symlink);
    if (entry.name == "dangling") EXPECT_EQ(entry.target, FileType::symlink);
    if (entry.name == "dangling") EXPECT_FALSE(entry.size);
  }
}

TEST_F(Files, MakeDirIsQuietWhenItIsThere) {
  EXPECT_FALSE(client.call(MakeDirRequest{.path = path("a/b/")}).failed());
  EXPECT_FALSE(client.call(MakeDirRequest{.path = path("a/b")}).failed());
  EXPECT_TRUE(fs::is_directory(path("a/b")));
}

TEST_F(Files, FILES_11_RemoveTakesTreesAndLinksButNotTheirTargets) {
  put("tree/a/b/c", "x");
  put("tree/d", "x");
  put("outside/kept", "x");
  fs::create_symlink(path("outside"), path("tree/link"));
  fs::create_symlink(path("outside"), path("alone"));
  EXPECT_TRUE(client.call(RemoveRequest{.path = path("tree")}).failed()) << "not empty and not recursive";
  EXPECT_EQ(client.call(RemoveRequest{.path = path("tree"), .recursive = true}).reply<RemoveReply>().entries,
            6U);
  EXPECT_FALSE(client.call(RemoveRequest{.path = path("alone"), .recursive = true}).failed());
  EXPECT_FALSE(fs::exists(path("tree")));
  EXPECT_TRUE(fs::exists(path("outside/kept")));
}

/// In memory where the host has such a place: a disk takes minutes for as many entries.
TempDir place_for_many() {
  return TempDir(fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path());
}

TEST_F(Files, FILES_11_RemoveReachesTheBottomOfADeepTree) {
  // Deeper than any path may be long.
  constexpr std::uint64_t k_levels = 10'000;
  auto place = place_for_many();
  Fd folder(::open(place.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (std::uint64_t i = 0; i < k_levels; ++i) {
    ASSERT_EQ(::mkdirat(folder.get(), "dddddddddd", 0755), 0);
    folder.reset(::openat(folder.get(), "dddddddddd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  // While somebody has the lowest open, the kernel keeps all above it, and walks what it keeps at each
  // removal.
  folder.reset();
  auto stream = client.open(RemoveRequest{.path = place.path() / "dddddddddd", .recursive = true});
  EXPECT_EQ(client.wait(stream, 60s).reply<RemoveReply>().entries, k_levels);
}

TEST_F(Files, FILES_11_RemoveTakesAWideTree) {
  constexpr std::uint64_t k_files = 200'000;
  auto place = place_for_many();
  auto wide = place.path() / "wide";
  fs::create_directory(wide);
  Fd folder(::open(wide.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (std::uint64_t i = 0; i < k_files; ++i) {
    ASSERT_EQ(::mknodat(folder.get(), std::to_string(i).c_str(), S_IFREG | 0644, 0), 0);
  }
  auto stream = client.open(RemoveRequest{.path = wide, .recursive = true});
  EXPECT_EQ(client.wait(stream, 120s).reply<RemoveReply>().entries, k_files + 1);
}

TEST_F(Files, FILES_11_TheWorkingFolderAndThoseAboveItAreNotRemoved) {
  HostedGuest other(HostedGuest::Start::greeted);
  auto identity = GuestClient::default_identity();
  fs::create_directories(path("work/here"));
  identity.working_dir = path("work/here");
  other.client().identify(identity);
  for (const auto& victim : {path("work/here"), path("work"), std::string("."), std::string("..")}) {
    auto failed = other.client().call(RemoveRequest{.path = victim, .recursive = true}).failure();
    EXPECT_EQ(failed.code, "INVALID_CONFIG") << victim;
  }
  EXPECT_TRUE(fs::exists(path("work/here")));
}

TEST_F(Files, FILES_11_RemoveSparesTheRootAndWhatIsToStay) {
  fs::create_directories(path("keep/below"));
  fs::create_symlink("keep", path("alias"));
  for (const auto& victim : {std::string("/"), std::string("/proc/.."), path("keep"), path("keep/below/.."),
                             dir.path().string(), path("alias/below/../")}) {
    auto failed = failure(RemoveRequest{.path = victim, .recursive = true, .keep = {path("alias")}});
    EXPECT_EQ(failed.code, "INVALID_CONFIG") << victim;
  }
  EXPECT_TRUE(fs::exists(path("keep/below")));
  EXPECT_FALSE(
      client.call(RemoveRequest{.path = path("keep/below"), .recursive = true, .keep = {path("keep")}})
          .failed());
}

TEST_F(Files, RealPathResolvesAsPosixDoes) {
  fs::create_directories(path("real/sub"));
  fs::create_symlink("real/sub", path("link"));
  fs::create_symlink("../real", path("real/up"));
  auto real = fs::canonical(dir.path()).string();
  auto resolve = [&](const std::string& name) {
    return client.call(RealPathRequest{.path = path(name)}).reply<RealPathReply>().path;
  };
  EXPECT_EQ(resolve("link/missing/name"), real + "/real/sub/missing/name");
  EXPECT_EQ(resolve("link/.."), real + "/real");
  EXPECT_EQ(resolve("real/up/sub"), real + "/real/sub");
  EXPECT_EQ(client.call(RealPathRequest{.path = "/.."}).reply<RealPathReply>().path, "/");
}

TEST_F(Files, RenameCanRefuseToReplace) {
  put("a", "a");
  put("b", "b");
  RenameRequest request{.from = path("a"), .to = path("b"), .write = WriteMode::create_only};
  EXPECT_EQ(failure(request).code, "CONFLICT");
  request.write = WriteMode::replace;
  EXPECT_FALSE(client.call(request).failed());
  EXPECT_EQ(content("b"), "a");
}

TEST_F(Files, FILES_16_PermissionsAreThoseOfTheNamedUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to act as another user";
  ::chmod(dir.path().c_str(), 0755);
  put("secret", "x", 0600);
  EXPECT_EQ(failure(ReadFileRequest{.path = path("secret"), .user = "nobody"}).code, "PERMISSION_DENIED");
  auto denied = client.call(WriteFileRequest{.path = path("new"), .user = "nobody"}, "x");
  EXPECT_EQ(denied.failure().code, "PERMISSION_DENIED");
  fs::create_directory(path("open"));
  ::chmod(path("open").c_str(), 0777);
  put("open/locked", "x", 0444);
  auto locked = client.call(WriteFileRequest{.path = path("open/locked"), .user = "nobody"}, "y");
  EXPECT_EQ(locked.failure().code, "PERMISSION_DENIED") << "the folder's rights alone are not enough";
  EXPECT_FALSE(client.call(WriteFileRequest{.path = path("open/own"), .user = "nobody"}, "y").failed());
  struct stat status{};
  ::stat(path("open/own").c_str(), &status);
  EXPECT_EQ(status.st_uid, 65534U);
  EXPECT_EQ(read("secret").output, "x") << "the thread kept the other user's rights";
}

TEST_F(Files, TreesComeOutWhole) {
  put("tree/a/file", "one", 0755);
  put("tree/empty", "");
  put("tree/large", std::string(3 << 20, 'z'));
  fs::create_symlink("/etc/passwd", path("tree/link"));
  ::mkfifo(path("tree/fifo").c_str(), 0600);
  auto result = client.call(TreeOutRequest{.path = path("tree")});
  EXPECT_EQ(result.reply<TreeReply>().entries, 7U);
  EXPECT_EQ(result.reply<TreeReply>().bytes, 3U + (3U << 20));
  std::map<std::string, TreeEntry> entries;
  for (const auto& payload : result.entries) {
    auto entry = decode<TreeEntry>(payload).value();
    entries[entry.path] = entry;
  }
  EXPECT_EQ(entries[""].type, FileType::directory);
  EXPECT_EQ(entries["a/file"].mode, 0755U);
  EXPECT_EQ(entries["link"].link_target, "/etc/passwd");
  EXPECT_EQ(entries["fifo"].type, FileType::fifo);
  auto names =
      client.call(TreeOutRequest{.path = path("tree"), .content = TreeContent::names_only, .max_depth = 1});
  EXPECT_EQ(names.reply<TreeReply>().entries, 6U);
  EXPECT_EQ(names.output, "");
}

TEST_F(Files, TreesGoInWholeAndReplaceFiles) {
  put("in/old", "old", 0600);
  put("elsewhere", "safe");
  fs::create_symlink(path("elsewhere"), path("in/trap"));
  auto stream = client.open(TreeInRequest{.path = path("in")});
  client.send_entry(stream, {.path = "", .type = FileType::directory, .mode = 0755});
  client.send_entry(stream, {.path = "sub", .type = FileType::directory, .mode = 0555, .mtime_s = 1000});
  client.send_entry(stream, {.path = "sub/file", .size = 3, .mode = 0751, .mtime_s = 77, .mtime_ns = 5});
  client.send_input(stream, "abc");
  client.send_entry(stream, {.path = "old", .size = 3, .mode = 0644});
  client.send_input(stream, "new");
  client.send_entry(stream, {.path = "trap", .size = 1, .mode = 0644});
  client.send_input(stream, "t");
  client.send_entry(stream, {.path = "link", .type = FileType::symlink, .link_target = "old"});
  client.send_entry(stream, {.path = "large", .size = 3 << 20, .mode = 0644});
  client.send_input(stream, std::string(3 << 20, 'L'));
  client.end_input(stream);
  auto reply = client.wait(stream).reply<TreeReply>();
  EXPECT_EQ(reply.failed, 0U);
  EXPECT_EQ(reply.entries, 7U);
  EXPECT_EQ(content("in/sub/file"), "abc");
  EXPECT_EQ(mode_of("in/sub/file"), 0751U);
  EXPECT_EQ(mode_of("in/sub"), 0555U);
  EXPECT_EQ(content("in/old"), "new");
  EXPECT_EQ(content("in/trap"), "t");
  EXPECT_EQ(content("elsewhere"), "safe") << "written through a link";
  EXPECT_EQ(content("in/link"), "new");
  EXPECT_EQ(content("in/large").size(), std::size_t{3} << 20);
  struct stat status{};
  ::stat(path("in/sub").c_str(), &status);
  EXPECT_EQ(status.st_mtim.tv_sec, 1000);
  ::chmod(path("in/sub").c_str(), 0755);
}

TEST_F(Files, FILES_04_TreesNeverLeaveTheirRoot) {
  fs::create_directory(path("in"));
  fs::create_directory(path("outside"));
  fs::create_symlink(path("outside"), path("in/away"));
  auto stream = client.open(TreeInRequest{.path = path("in")});
  client.send_entry(stream, {.path = "away/file", .size = 1, .mode = 0644});
  client.send_input(stream, "x");
  client.end_input(stream);
  EXPECT_EQ(client.wait(stream).reply<TreeReply>().failed, 1U);
  EXPECT_TRUE(fs::is_empty(path("outside")));
  const std::vector<std::string> hostile_paths = {
      "..", "a/../b", "/x", ".", "a//b", "a/", std::string("a\0b", 3)};
  for (const auto& bad : hostile_paths) {
    auto hostile = client.open(TreeInRequest{.path = path("in")});
    client.send_entry(hostile, {.path = bad, .type = FileType::directory});
    EXPECT_EQ(client.wait(hostile).failure().code, "GUEST_PROTOCOL") << bad;
  }
}

TEST_F(Files, SingleFilesTravelAsTreesToo) {
  put("file", "content", 0700);
  auto out = client.call(TreeOutRequest{.path = path("file")});
  EXPECT_EQ(out.output, "content");
  auto stream = client.open(TreeInRequest{.path = path("deep/copy"), .make_parents = true});
  client.send_entry(stream, decode<TreeEntry>(out.entries.at(0)).value());
  client.send_input(stream, out.output);
  client.end_input(stream);
  EXPECT_EQ(client.wait(stream).reply<TreeReply>().failed, 0U);
  EXPECT_EQ(content("deep/copy"), "content");
  EXPECT_EQ(mode_of("deep/copy"), 0700U);
}

TEST_F(Files, ItemsThatCannotBeWrittenAreNamedAndTheRestGoesOn) {
  fs::create_directories(path("in/dir"));
  auto stream = client.open(TreeInRequest{.path = path("in")});
  client.send_entry(stream, {.path = "dir", .size = 3, .mode = 0644});
  client.send_input(stream, "abc");
  client.send_entry(stream, {.path = "good", .size = 2, .mode = 0644});
  client.send_input(stream, "ok");
  client.end_input(stream);
  auto reply = client.wait(stream).reply<TreeReply>();
  ASSERT_EQ(reply.failed, 1U);
  EXPECT_EQ(reply.problems[0].path, "dir");
  EXPECT_EQ(reply.problems[0].error_number, EISDIR);
  EXPECT_EQ(content("in/good"), "ok");
}

}  // namespace
}  // namespace holt::test
