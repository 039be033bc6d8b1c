// Several at once, some of them killed, and disks that are full.
#include "image/ext4_reader.hpp"
#include "image/store_fixture.hpp"

#include <csignal>
#include <random>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace holt::image {
namespace {

using test::FakeImage;
using test::FakeSource;
using test::TarBuilder;
using test::three_layers;
using namespace std::chrono_literals;

class PullTogether : public test::StoreFixture {
 protected:
  /// Runs `body` in a process of its own; its result is the exit code.
  static pid_t in_child(const std::function<int()>& body) {
    pid_t pid = ::fork();
    if (pid != 0) return pid;
    int code = 99;
    try {
      code = body();
    } catch (const Error& error) {
      ::dprintf(STDERR_FILENO, "child: %s\n", error.what());
    } catch (...) {
      ::dprintf(STDERR_FILENO, "child: another exception\n");
    }
    ::_exit(code);
  }
  static int wait_for(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  /// Hidden files of unfinished writes, but for those in folders that the next builder clears.
  std::vector<std::string> temporaries() const {
    std::vector<std::string> found;
    auto all = std::filesystem::recursive_directory_iterator(store_.folder());
    for (auto it = begin(all); it != end(all); ++it) {
      const auto& entry = *it;
      if (entry.path() == store_.folder() / "staging") it.disable_recursion_pending();
      std::string name = entry.path().filename();
      if (name.starts_with(".") || name.ends_with(".tmp")) found.push_back(entry.path());
    }
    return found;
  }
};

TEST_F(PullTogether, ThreadsThatWantOneImageBuildItOnce) {
  FakeImage fake({.layers = three_layers()});
  std::vector<std::unique_ptr<FakeSource>> sources;
  for (int i = 0; i < 5; ++i) sources.push_back(std::make_unique<FakeSource>(fake));
  {
    std::vector<std::jthread> threads;
    threads.reserve(sources.size());
    for (std::size_t i = 0; i < sources.size(); ++i)
      threads.emplace_back([&, i] { acquire_from(*sources[i], "app:" + std::to_string(i)); });
  }
  std::size_t fetches = 0;
  for (const auto& source : sources) fetches += source->fetches().size();
  EXPECT_EQ(fetches, 3U) << "each layer is fetched once";
  EXPECT_EQ(store_.list().size(), 5U);
  EXPECT_EQ(files_in("entries"), 1U);
  EXPECT_EQ(files_in("staging"), 0U);
  expect_sound();
}

TEST_F(PullTogether, ImagesThatShareALayerFetchItOnce) {
  auto layers = three_layers();
  FakeImage one({.layers = {layers[0], layers[1]}});
  FakeImage two({.layers = {layers[0], layers[2]}});
  FakeSource first(one);
  FakeSource second(two);
  {
    std::jthread a([&] { acquire_from(first, "one:1"); });
    std::jthread b([&] { acquire_from(second, "two:1"); });
  }
  auto fetches = [&](FakeSource& source) {
    auto all = source.fetches();
    return all.contains(one.layer(0)) ? all.at(one.layer(0)).size() : 0;
  };
  EXPECT_EQ(fetches(first) + fetches(second), 1U);
  expect_sound();
}

TEST_F(PullTogether, IMG_07_FiveProcessesPullOneImageAndTwoAreKilled) {
  constexpr int k_rounds = 20;
  constexpr int k_processes = 5;
  FakeImage fake({.layers = three_layers()});
  std::mt19937 random(7);
  for (int round = 0; round < k_rounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    std::vector<pid_t> children;
    for (int i = 0; i < k_processes; ++i) {
      children.push_back(in_child([&] {
        FakeSource slow(fake);
        slow.piece = 20'000;
        slow.before_piece = [](const Descriptor&, std::uint64_t, BlobSink&) {
          std::this_thread::sleep_for(2ms);  // a slow line, waited for by nobody
        };
        acquire_from(slow);
        return 0;
      }));
    }
    for (int victim : {0, 1}) {
      ::usleep(std::uniform_int_distribution<useconds_t>(0, 40'000)(random));
      ::kill(children[static_cast<std::size_t>(victim)], SIGKILL);
    }
    for (int i = 0; i < k_processes; ++i) {
      int code = wait_for(children[static_cast<std::size_t>(i)]);
      if (i >= 2) EXPECT_EQ(code, 0) << "a survivor failed";
      if (i < 2) EXPECT_TRUE(code == 128 + SIGKILL || code == 0) << code;
    }
    Image image = store_.resolve("app:1");
    EXPECT_EQ(test::content_of(image.ext4, "/a"), "2");
    expect_sound();
    EXPECT_EQ(temporaries(), std::vector<std::string>());
    EXPECT_TRUE(blobs_.all_partial().empty()) << "the beginning of a download is left";
    acquire_image(fake);
    EXPECT_EQ(files_in("staging"), 0U) << "what a killed one was building is left";
    // No lock outlived its holder: everything can be taken away at once.
    store_.remove("app:1");
    EXPECT_EQ(files_in("entries"), 0U);
    EXPECT_TRUE(blobs_.all().empty());
    if (HasFailure()) break;
  }
}

TEST_F(PullTogether, IMG_07_WhoWaitsGoesOnFromWhatAKilledOneHas) {
  FakeImage fake({.layers = {TarBuilder().file("big", test::noise(1'000'000, 1)).finish()}}, nullptr);
  pid_t child = in_child([&] {
    FakeSource source(fake);
    source.piece = 100'000;
    source.before_piece = [](const Descriptor&, std::uint64_t at, BlobSink&) {
      if (at >= 500'000) ::kill(::getpid(), SIGKILL);
    };
    acquire_from(source);
    return 0;
  });
  FakeSource source(fake);
  ASSERT_EQ(wait_for(child), 128 + SIGKILL);
  acquire_from(source);
  EXPECT_EQ(source.fetches().at(fake.layer(0)), std::vector<std::uint64_t>{500'000});
  EXPECT_EQ(files_in("staging"), 0U) << "what the killed one was building is left";
  expect_sound();
}

class FullDisk : public PullTogether {
 protected:
  /// Runs `body` in a process that sees a file system of `megabytes` in the store's place. 255 when there can
  /// be none.
  int on_a_disk_of(int megabytes, const std::function<int()>& body) {
    make_private_directory(store_.folder());
    pid_t child = ::fork();
    if (child == 0) {
      std::string size = "size=" + std::to_string(megabytes) + "m";
      bool mounted = (::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
                     ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                     ::mount("tmpfs", store_.folder().c_str(), "tmpfs", 0, size.c_str()) == 0;
      int code = 255;
      try {
        if (mounted) code = body();
      } catch (const std::exception& error) {
        ::dprintf(STDERR_FILENO, "on a small disk: %s\n", error.what());
        code = 99;
      }
      ::_exit(code);
    }
    return wait_for(child);
  }
  bool enlarge(int megabytes) {
    std::string size = "size=" + std::to_string(megabytes) + "m";
    return ::mount("tmpfs", store_.folder().c_str(), "tmpfs", MS_REMOUNT, size.c_str()) == 0;
  }
  std::uint64_t used() const {
    struct statvfs info{};
    ::statvfs(store_.folder().c_str(), &info);
    return (info.f_blocks - info.f_bfree) * info.f_frsize;
  }
  /// 0: the first try is STORAGE_FULL and leaves nothing, the second on a larger disk succeeds.
  int full_then_enlarged(const FakeImage& fake, const std::function<void(const Error&)>& look) {
    auto before = used();
    FakeSource source(fake);
    try {
      acquire_from(source);
      return 1;
    } catch (const Error& error) {
      ::dprintf(STDERR_FILENO, "%s\n", error.what());
      if (error.code() != ErrorCode::storage_full) return 2;
      look(error);
    }
    prune(store_);
    if (!blobs_.all_partial().empty() ||
        files_in("entries") + files_in("references") + files_in("staging") > 0)
      return 3;
    // Some pages of folders and lock files.
    if (used() > before + 200'000) return 4;
    if (!enlarge(100)) return 5;
    return test::content_of(acquire_from(source).ext4, "/small") == "x" ? 0 : 6;
  }
};

constexpr const char* k_codes =
    "1: no error, 2: another error, 3: files are left, 4: bytes are left, 5: cannot enlarge, 6: wrong "
    "content, "
    "99: an exception";

TEST_F(FullDisk, IMG_31_ADownloadThatCannotFitIsNotBegun) {
  FakeImage fake(
      {.layers = {TarBuilder().file("small", "x").file("f", test::noise(20'000'000, 1)).finish()}});
  int code = on_a_disk_of(12, [&] {
    return full_then_enlarged(fake, [&](const Error& error) {
      if (std::string(error.what()).find("needs 200") == std::string::npos) ::_exit(7);
      if (blobs_.partial_size(fake.layer(0)) != 0) ::_exit(8);
    });
  });
  if (code == 255)
    GTEST_SKIP() << "a small file system cannot be mounted here: needs root or user namespaces";
  EXPECT_EQ(code, 0) << k_codes << ", 7: not said how much, 8: begun";
}

TEST_F(FullDisk, IMG_31_ADiskThatFillsUpWhileUnpackingLeavesNothing) {
  // A few KB that become 20 MB.
  std::string big;
  while (big.size() < 20'000'000) big += test::noise(4096, 1);
  FakeImage fake({.layers = {TarBuilder().file("small", "x").file("f", big).finish()}}, test::zstd);
  int code = on_a_disk_of(12, [&] {
    return full_then_enlarged(fake, [&](const Error& error) {
      std::string needs = "needs at least " + std::to_string(big.size() + 1) + " bytes, ";
      if (std::string(error.what()).find(needs) == std::string::npos || error.hint().empty()) ::_exit(7);
    });
  });
  if (code == 255)
    GTEST_SKIP() << "a small file system cannot be mounted here: needs root or user namespaces";
  EXPECT_EQ(code, 0) << k_codes << ", 7: not said how much";
}

TEST_F(FullDisk, IMG_31_ADiskThatFillsUpWhileDownloadingLeavesNothing) {
  FakeImage fake({.layers = {TarBuilder().file("small", "x").file("f", test::noise(8'000'000, 1)).finish()}});
  int code = on_a_disk_of(12, [&] {
    // There is room for the blob, and then, with the file system beside it, there is not.
    return full_then_enlarged(fake, [](const Error& error) {
      if (std::string(error.what()).find("needs at least 80") == std::string::npos) ::_exit(7);
    });
  });
  if (code == 255)
    GTEST_SKIP() << "a small file system cannot be mounted here: needs root or user namespaces";
  EXPECT_EQ(code, 0) << k_codes << ", 7: not said how much";
}

}  // namespace
}  // namespace holt::image
