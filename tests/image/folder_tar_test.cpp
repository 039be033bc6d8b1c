// Folders packed on the way into the store.
#include "image/local/folder_tar.hpp"

#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "image/tar_reader.hpp"

#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

namespace holt::image {
namespace {

namespace fs = std::filesystem;

struct Read {
  TarMember member;
  std::string content;
};

std::vector<Read> members_of(const fs::path& folder) {
  FolderTar tar(folder);
  TarReader reader(tar);
  std::vector<Read> all;
  while (true) {
    auto member = reader.next();
    if (!member) {
      ADD_FAILURE() << member.error();
      return all;
    }
    if (!*member) return all;
    all.push_back({.member = **member, .content = {}});
    while (true) {
      auto data = reader.next_data();
      if (!data) {
        ADD_FAILURE() << data.error();
        return all;
      }
      if (!*data) break;
      all.back().content.resize((*data)->offset, '\0');
      all.back().content += (*data)->bytes;
    }
    all.back().content.resize(all.back().member.size, '\0');
  }
}

std::string bytes_of(const fs::path& folder) {
  FolderTar tar(folder);
  return read_all(tar, std::size_t{64} << 20);
}

class FolderTarTest : public ::testing::Test {
 protected:
  fs::path root() const { return dir_.path() / "root"; }
  void SetUp() override { make_private_directory(root()); }
  const Read* find(const std::vector<Read>& all, const std::string& path) {
    for (const Read& read : all) {
      if (read.member.path == path || read.member.path == path + "/") return &read;
    }
    ADD_FAILURE() << path << " was not packed";
    return nullptr;
  }
  TempDir dir_;
};

TEST_F(FolderTarTest, PacksEveryKindInTheOrderOfNames) {
  write_file_atomically(root() / "b", "content", {.mode = 0640});
  ASSERT_EQ(::chmod((root() / "b").c_str(), 04755), 0);
  fs::create_directories(root() / "a/deep");
  write_file_atomically(root() / "a/deep/file", std::string(3'000'000, 'x'));
  fs::create_symlink("/etc/shadow", root() / "link");
  fs::create_hard_link(root() / "b", root() / "same");
  ASSERT_EQ(::mkfifo((root() / "pipe").c_str(), 0600), 0);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  Fd folder(::open(root().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  // A path that is short enough wherever the temporary folder lies.
  std::string socket_path = "/proc/self/fd/" + std::to_string(folder.get()) + "/socket";
  socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
  int bound = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ASSERT_EQ(bound, 0);

  auto all = members_of(root());
  std::vector<std::string> names;
  for (const Read& read : all) names.push_back(read.member.path);
  EXPECT_EQ(names,
            (std::vector<std::string>{"./", "a/", "a/deep/", "a/deep/file", "b", "link", "pipe", "same"}));
  EXPECT_EQ(find(all, "a/deep/file")->content.size(), 3'000'000U);
  EXPECT_EQ(find(all, "b")->content, "content");
  EXPECT_EQ(find(all, "b")->member.metadata.permissions, 04755U);
  EXPECT_EQ(find(all, "b")->member.metadata.uid, ::getuid());
  EXPECT_EQ(find(all, "link")->member.symlink, "/etc/shadow");
  EXPECT_EQ(find(all, "same")->member.hard_link, "b");
  EXPECT_EQ(find(all, "pipe")->member.kind, EntryKind::fifo);
}

TEST_F(FolderTarTest, KeepsNamesThatAreNoText) {
  const std::string odd = "\xff\xfe" + std::string(120, 'n');
  write_file_atomically(root() / odd, "odd");
  write_file_atomically(root() / "\xc3\xa4", "umlaut");
  auto all = members_of(root());
  EXPECT_EQ(find(all, odd)->content, "odd");
  EXPECT_EQ(find(all, "\xc3\xa4")->content, "umlaut");
}

TEST_F(FolderTarTest, KeepsExtendedAttributes) {
  write_file_atomically(root() / "f", "x");
  if (::setxattr((root() / "f").c_str(), "user.holt", "value", 5, 0) != 0) {
    GTEST_SKIP() << "the file system of the temporary folder has no user attributes";
  }
  auto all = members_of(root());
  auto xattrs = find(all, "f")->member.metadata.xattrs;
  EXPECT_EQ(xattrs, (std::vector<std::pair<std::string, std::string>>{{"user.holt", "value"}}));
}

TEST_F(FolderTarTest, HolesStayHoles) {
  Fd file(::open((root() / "sparse").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  constexpr off_t k_end = off_t{32} << 20;
  ASSERT_EQ(::pwrite(file.get(), "end", 3, k_end), 3);
  file.reset();
  auto all = members_of(root());
  const Read* sparse = find(all, "sparse");
  ASSERT_EQ(sparse->content.size(), static_cast<std::size_t>(k_end) + 3);
  EXPECT_EQ(sparse->content.substr(k_end), "end");
  EXPECT_EQ(sparse->content.find_first_not_of('\0'), static_cast<std::size_t>(k_end));
}

TEST_F(FolderTarTest, TheSameTreeGivesTheSameBytes) {
  fs::path other = dir_.path() / "other";
  for (const fs::path& folder : {root(), other}) {
    fs::create_directories(folder / "d");
    for (const char* name : {"z", "m", "a"}) write_file_atomically(folder / name, name);
    fs::create_hard_link(folder / "a", folder / "d/linked");
    timespec times[2]{{folder == other ? 77 : 0, 1}, {1'000'000'000, 5}};
    for (const char* name : {"z", "m", "a", "d", "."}) {
      ASSERT_EQ(::utimensat(AT_FDCWD, (folder / name).c_str(), times, 0), 0);
    }
  }
  ASSERT_EQ(::chmod(other.c_str(), 0700), 0);
  EXPECT_EQ(bytes_of(root()), bytes_of(other));
}

TEST_F(FolderTarTest, IMG_30_KeepsAFifoAndNamesAnUnreadableFile) {
  ASSERT_EQ(::mkfifo((root() / "a-pipe").c_str(), 0600), 0);
  write_file_atomically(root() / "secret", "x");
  constexpr uid_t k_nobody = 65534;
  bool privileged = ::geteuid() == 0;
  if (privileged) {
    ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
    ASSERT_EQ(::chmod(root().c_str(), 0755), 0);
  } else {
    ASSERT_EQ(::chmod((root() / "secret").c_str(), 0), 0);
  }
  std::string sentence;
  ErrorCode code = ErrorCode::internal;
  // The user id for files belongs to a thread.
  std::thread([&] {
    if (privileged) ::setfsuid(k_nobody);
    try {
      bytes_of(root());
    } catch (const Error& error) {
      code = error.code();
      sentence = error.what();
    }
  }).join();
  EXPECT_EQ(code, ErrorCode::permission_denied);
  EXPECT_NE(sentence.find((root() / "secret").string()), std::string::npos) << sentence;
}

TEST_F(FolderTarTest, EndsAtCancellation) {
  CancellationToken cancel;
  FolderTar tar(root(), cancel);
  cancel.cancel();
  EXPECT_THROW(tar.read(), Error);
}

}  // namespace
}  // namespace holt::image
