// Promises of base/ that everything else stands on.
#include "holt/base/cancellation.hpp"
#include "holt/base/directories.hpp"
#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "holt/base/ids.hpp"
#include "holt/base/process.hpp"
#include "holt/base/task.hpp"
#include "support/asking.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <set>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace holt {
namespace {

using namespace std::chrono_literals;

TEST(Error, EveryCodeHasAWordThatLeadsBack) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::internal); ++i) {
    auto code = static_cast<ErrorCode>(i);
    EXPECT_EQ(error_code_from(to_string(code)), code) << to_string(code);
  }
}

TEST(Error, PrintableEscapesControlsAndBadBytes) {
  EXPECT_EQ(printable("a\x1b[2Jb\xff\xc2\x9b\xc3\xa4"), "a\\x1b[2Jb\\xff\\xc2\\x9b\xc3\xa4");
  EXPECT_EQ(printable(std::string(10, 'x'), 4), "xxxx...");
}

TEST(Files, AtomicWriteReplacesAndLeavesNothingBeside) {
  TempDir dir;
  write_file_atomically(dir.path() / "f", "one");
  write_file_atomically(dir.path() / "f", "two");
  EXPECT_EQ(read_file(dir.path() / "f", 100), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);
}

TEST(Files, AtomicWriteIntoAMissingFolderSaysNotFound) {
  TempDir dir;
  try {
    write_file_atomically(dir.path() / "no" / "f", "x");
    FAIL() << "expected an error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::not_found);
  }
}

TEST(Files, ALockExcludesAnotherHolderInTheSameProcess) {
  TempDir dir;
  {
    FileLock held = FileLock::acquire(dir.path() / "lock", Deadline::after(1s));
    EXPECT_FALSE(FileLock::try_acquire(dir.path() / "lock"));
    EXPECT_TRUE(FileLock::holder(dir.path() / "lock"));
  }
  EXPECT_FALSE(FileLock::holder(dir.path() / "lock"));
  EXPECT_TRUE(FileLock::try_acquire(dir.path() / "lock"));
}

TEST(Directories, HoltHomeReplacesAll) {
  auto dirs = Directories::from_environment([](const std::string& name) {
    return name == "HOLT_HOME" ? std::optional<std::string>("/h") : std::nullopt;
  });
  EXPECT_EQ(dirs.state, "/h/state");
  EXPECT_EQ(dirs.runtime, "/h/run");
}

TEST(Directories, RelativeXdgValuesAreIgnored) {
  auto dirs = Directories::from_environment([](const std::string& name) -> std::optional<std::string> {
    if (name == "HOME") return "/u";
    if (name == "XDG_DATA_HOME") return "relative";
    if (name == "XDG_CACHE_HOME") return "/c";
    return std::nullopt;
  });
  EXPECT_EQ(dirs.data, "/u/.local/share/holt");
  EXPECT_EQ(dirs.cache, "/c/holt");
}

TEST(Encoding, Base64ReadsBothAlphabetsButNoMix) {
  EXPECT_EQ(base64_encode("\xfb\xff\xfe", Base64Alphabet::url_safe), "-__-");
  EXPECT_EQ(base64_decode("-__-"), "\xfb\xff\xfe");
  EXPECT_EQ(base64_decode("+//+"), "\xfb\xff\xfe");
  EXPECT_FALSE(base64_decode("+__+"));
  EXPECT_EQ(base64_decode("YQ"), "a");
  EXPECT_EQ(base64_decode("YQ="), "a");
  EXPECT_EQ(base64_decode("YQ=="), "a");
  EXPECT_FALSE(base64_decode("YQ==="));
  EXPECT_FALSE(base64_decode("YR=="));
  EXPECT_FALSE(base64_decode("YQ ="));
}

TEST(Encoding, ASplitCharacterComesOutWhole) {
  std::string text = "a\xe2\x82\xac\xf0\x9f\x98\x80z";
  Utf8Decoder decoder;
  std::string out;
  for (char c : text) out += decoder.feed({&c, 1});
  EXPECT_EQ(out + decoder.finish(), text);
}

TEST(Encoding, BadBytesBecomeOneReplacementForEachMaximalPart) {
  EXPECT_EQ(utf8_replace("\xe2\x82z\xff"), "\xef\xbf\xbdz\xef\xbf\xbd");
  EXPECT_EQ(utf8_replace("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(Ids, Uuid7sOfOneProcessAreSortedAndWellFormed) {
  std::string last;
  for (int i = 0; i < 2000; ++i) {
    std::string id = uuid7();
    EXPECT_LT(last, id);
    EXPECT_EQ(id[14], '7');
    last = id;
  }
}

TEST(Process, RunsWithOnlyTheGivenEnvironmentAndDescriptors) {
  auto [a, b] = make_pipe();
  auto result = run_process(
      {.argv = {"/bin/sh", "-c", "env | grep -v ^PWD= | grep -v ^SHLVL= | grep -v ^_=; ls /proc/self/fd"},
       .env = {{"ONE", "1"}}},
      {.deadline = Deadline::after(10s)});
  EXPECT_EQ(result.status.exit_code, 0);
  EXPECT_EQ(result.out, "ONE=1\n0\n1\n2\n3\n");  // 3 is ls's own
}

TEST(Process, FeedsAndCollectsAtTheSameTime) {
  std::string big(3 << 20, 'x');
  auto result = run_process({.argv = {"/bin/cat"}}, {.deadline = Deadline::after(20s), .input = big});
  EXPECT_EQ(result.out.size(), big.size());
}

TEST(Process, AChildThatDoesNotReadItsInputIsNoHarm) {
  auto result = run_process({.argv = {"/bin/true"}},
                            {.deadline = Deadline::after(10s), .input = std::string(1 << 20, 'x')});
  EXPECT_EQ(result.status.exit_code, 0);
}

TEST(Process, AMissingProgramIsNotFound) {
  try {
    Process::start({.argv = {"/no/such/program"}});
    FAIL() << "expected an error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::not_found) << e.what();
  }
}

TEST(Process, ADeadlineKillsTheWholeSession) {
  EXPECT_THROW(
      run_process({.argv = {"/bin/sh", "-c", "sleep 300 & sleep 300"}}, {.deadline = Deadline::after(100ms)}),
      Error);
}

TEST(Process, AnIdentityOutlivesItsProcessAsDead) {
  Process process = Process::start({.argv = {"/bin/sleep", "100"}});
  auto identity = identify_process(process.pid());
  ASSERT_TRUE(identity);
  EXPECT_TRUE(is_alive(*identity));
  EXPECT_FALSE(is_ending(*identity));
  process.signal(SIGKILL);
  process.wait(Deadline::after(5s));
  EXPECT_FALSE(is_alive(*identity));
  EXPECT_TRUE(is_ending(*identity));
  EXPECT_FALSE(is_alive({.pid = ::getpid(), .start_ticks = identity->start_ticks + 1}));
  EXPECT_TRUE(is_ending({.pid = ::getpid(), .start_ticks = identity->start_ticks + 1}));
}

TEST(Process, OneThatEndsWhileItIsLookedAtIsGoneAndNoError) {
  for (int i = 0; i < 300; ++i) {
    Process process = Process::start({.argv = {"/bin/sleep", "100"}});
    std::atomic<bool> reaped = false;
    std::jthread reaper([&] {
      process.signal(SIGKILL);
      process.wait(Deadline::after(60s));
      reaped = true;
    });
    while (!reaped) EXPECT_NO_THROW(identify_process(process.pid()));
  }
}

TEST(Process, OneWhoseFirstThreadHasEndedLivesUntilItsLastHas) {
  auto [wait_end, held_end] = make_pipe();
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    held_end.reset();
    std::thread([fd = wait_end.get()] {
      char byte = 0;
      ::_exit(::read(fd, &byte, 1) == 0 ? 0 : 1);
    }).detach();
    ::syscall(SYS_exit, 0);
  }
  auto identity = identify_process(child);
  ASSERT_TRUE(identity);
  auto first_thread_has_ended = [&] {
    return read_file(fmt::format("/proc/{}/stat", child), 4096).find(") Z ") != std::string::npos;
  };
  EXPECT_TRUE(test::eventually(first_thread_has_ended));
  EXPECT_TRUE(is_alive(*identity)) << "its other thread holds its files and locks";
  held_end.reset();
  EXPECT_TRUE(test::eventually([&] { return !is_alive(*identity); }));
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

/// While it lives, this process can open nothing.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    struct rlimit none = before_;
    none.rlim_cur = 0;
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;

 private:
  struct rlimit before_{};
};

TEST(Process, OneThatCannotBeWatchedIsNotTakenForDead) {
  Process process = Process::start({.argv = {"/bin/sleep", "100"}});
  auto identity = identify_process(process.pid());
  ASSERT_TRUE(identity);
  {
    NoMoreDescriptors none;
    EXPECT_THROW(kill_and_wait(*identity, Deadline::after(5s)), Error);
  }
  EXPECT_TRUE(is_alive(*identity));
  EXPECT_TRUE(kill_and_wait(*identity, Deadline::after(5s)));
}

TEST(Cancellation, WakesPollersAndRunsCallbacksOnce) {
  CancellationToken token;
  int calls = 0;
  auto kept = token.on_cancel([&] { ++calls; });
  {
    auto dropped = token.on_cancel([&] { calls += 100; });
  }
  token.cancel();
  token.cancel();
  auto late = token.on_cancel([&] { ++calls; });
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(token.cancelled());
}

Task<int> add_on_threads() {
  int a = co_await blocking([](const CancellationToken&) { return 40; });
  int b = co_await blocking([](const CancellationToken&) { return 2; });
  co_return a + b;
}

TEST(Task, BlockingWorkGivesItsValue) {
  EXPECT_EQ(sync_wait(add_on_threads()), 42);
}

Task<void> fail_on_thread() {
  co_await blocking([](const CancellationToken&) { throw Error(ErrorCode::timeout, "too late"); });
}

TEST(Task, BlockingWorkThrowsIntoTheAwaiter) {
  try {
    sync_wait(fail_on_thread());
    FAIL() << "expected an error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::timeout);
  }
}

Task<void> wait_for_token(bool& ended) {
  co_await blocking([&](const CancellationToken& token) {
    while (!token.cancelled()) std::this_thread::yield();
    ended = true;
    token.throw_if_cancelled();
  });
}

TEST(Task, CancellationReachesBlockingWorkAndWaitsForItsEnd) {
  CancellationToken token;
  bool ended = false;
  std::thread canceller([&] { token.cancel(); });
  try {
    sync_wait(wait_for_token(ended), token);
    FAIL() << "expected an error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::cancelled) << e.what();
  }
  canceller.join();
  EXPECT_TRUE(ended);
}

TEST(Task, ACancelledSleepThrowsCancelled) {
  CancellationToken token;
  token.cancel();
  EXPECT_THROW(sync_wait(sleep_for(1h), token), Error);
}

}  // namespace
}  // namespace holt
