#include "holt/base/encoding.hpp"
#include "holt/base/ids.hpp"
#include "machine_vm/vm_fixture.hpp"

#include <poll.h>
#include <sys/stat.h>

namespace holt::test {
namespace {

using Commands = InOneMachine;

TEST_F(Commands, EXEC_08_EndAsTheyEnd) {
  EXPECT_EQ(m->exec_shell("exit 7").exit_code, 7);
  EXPECT_EQ(m->exec({"no-such-program"}).exit_code, 127);
  EXPECT_EQ(m->exec({"/etc/passwd"}).exit_code, 126);
  EXPECT_EQ(m->exec_shell("kill -9 $$").signal, 9);
  EXPECT_EQ(m->exec_shell("kill -9 $$").shell_code(), 137);
  auto timed_out = m->exec({"sleep", "100"}, {.timeout = 200ms});
  EXPECT_TRUE(timed_out.timed_out);
  EXPECT_EQ(timed_out.shell_code(), 124);
}

TEST_F(Commands, EXEC_19_AMissingWorkingFolderIsAnErrorThatSaysSo) {
  try {
    m->exec({"true"}, {.working_dir = "/nowhere"});
    FAIL() << "expected NOT_FOUND";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::not_found);
    EXPECT_NE(std::string(e.what()).find("No such file or directory"), std::string::npos) << e.what();
  }
}

TEST_F(Commands, EXEC_04_ExecKeepsOutputWrittenJustBeforeExit) {
  auto result = m->exec_shell("printf 'a\\0b'; printf '\\377\\n' >&2; exit 3");
  EXPECT_EQ(result.out, std::string("a\0b", 3));
  EXPECT_EQ(result.err, "\xff\n");
  EXPECT_EQ(result.exit_code, 3);
}

TEST_F(Commands, EXEC_07_OutputAboveTheLimitIsCutAndFlagged) {
  auto result = m->exec_shell("yes | head -c 3000000", {.output_limit = 1'000'000});
  EXPECT_EQ(result.out.size(), 1'000'000u);
  EXPECT_TRUE(result.out_truncated);
  EXPECT_EQ(result.exit_code, 0);
  auto nothing = m->exec_shell("echo x", {.output_limit = 0});
  EXPECT_EQ(nothing.out, "");
}

TEST_F(Commands, InputOfAnySizeArrivesWhole) {
  std::string input = random_bytes(5'000'000);
  auto result = m->exec({"sha256sum"}, {.input = input});
  EXPECT_EQ(result.out.substr(0, 64), sha256_hex(input));
  EXPECT_EQ(m->exec({"cat"}, {.input = input}).out, input);
}

TEST_F(Commands, InputToACommandThatDoesNotReadHangsNobody) {
  EXPECT_EQ(m->exec({"true"}, {.input = std::string(10'000'000, 'x')}).exit_code, 0);
}

TEST_F(Commands, AStreamTalksBothWays) {
  auto stream = m->exec_stream({"cat"}, {.stdin_mode = StdinMode::pipe});
  for (const std::string line : {"one\n", "two\n"}) {
    stream.write_stdin(line);
    auto event = stream.next({.deadline = patient()});
    ASSERT_TRUE(event);
    EXPECT_EQ(event->data, line);
  }
  stream.close_stdin();
  EXPECT_EQ(stream.next()->result.exit_code, 0);
  EXPECT_FALSE(stream.next());
}

TEST_F(Commands, AStreamsDescriptorTellsOfEvents) {
  auto stream = m->exec_stream({"cat"}, {.stdin_mode = StdinMode::pipe});
  pollfd ready{stream.fd(), POLLIN, 0};
  stream.write_stdin("x");
  ASSERT_GT(::poll(&ready, 1, 60'000), 0);
  while (true) {
    auto event = stream.next({.deadline = patient()});
    if (event && event->kind == ExecEvent::Kind::out) break;
  }
  stream.kill();
  EXPECT_GT(::poll(&ready, 1, 60'000), 0) << "a killed stream has something to say: its end";
}

TEST_F(Commands, EXEC_12_KillEndsAWaitingReaderAndTheWholeTree) {
  auto stream = m->exec_shell_stream("echo up; setsid sleep 1000 & sleep 1000");
  ASSERT_EQ(stream.next()->data, "up\n");
  std::jthread killer([&] { stream.kill(); });
  EXPECT_FALSE(stream.next({.deadline = patient()}));
  EXPECT_TRUE(eventually([&] {
    return m->exec_shell("pgrep -c sleep || true").out == "0\n" ||
           m->exec_shell("cat /proc/[0-9]*/comm | grep -c '^sleep$' || true").out == "0\n";
  }));
}

TEST_F(Commands, EXEC_11_CancellingExecThrowsAtOnceAndKillsTheCommand) {
  CancellationToken token;
  std::jthread canceller([&] { token.cancel(); });
  auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(code_of([&] { m->exec({"sleep", "1000"}, {.cancel = token}); }), ErrorCode::cancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
}

TEST_F(Commands, EXEC_14_AStalledReaderStopsNobodyElse) {
  auto stalled = m->exec_shell_stream("yes");
  ASSERT_TRUE(stalled.next());
  for (int i = 0; i < 5; i++) EXPECT_EQ(m->exec({"echo", "hi"}, {.deadline = patient()}).out, "hi\n");
  m->write_file("/tmp/mebibyte", std::string(1 << 20, 'x'));
  EXPECT_EQ(m->read_file("/tmp/mebibyte", {.call = {.deadline = patient()}}).size(), 1U << 20);
}

TEST_F(Commands, EXEC_13_ManyAtOnceAllGetTheirOwnOutput) {
  auto held_open = m->exec_stream({"sleep", "1000"});
  std::vector<std::jthread> threads;
  for (int i = 0; i < 200; i++) {
    threads.emplace_back([&, i] {
      auto text = std::to_string(i);
      EXPECT_EQ(m->exec_shell("sleep 1; echo " + text, {.deadline = patient()}).out, text + "\n");
    });
  }
  // Under emulation two hundred starts of programs keep its processors busy for seconds.
  EXPECT_NO_THROW(m->ping({.deadline = patient()}));
  EXPECT_EQ(m->state(), MachineState::running);
}

TEST_F(Commands, CHAN_14_ARepeatedKeyStartsNoSecondCommand) {
  ExecOptions options{.idempotency_key = "once"};
  for (int i = 0; i < 2; i++) {
    EXPECT_EQ(m->exec_shell("echo x >> /tmp/count; echo out; exit 4", options).shell_code(), 4);
    EXPECT_EQ(m->exec_shell("echo x >> /tmp/count; echo out; exit 4", options).out, "out\n");
  }
  EXPECT_EQ(code_of([&] { m->exec_shell("echo y >> /tmp/count", options); }), ErrorCode::conflict);
  EXPECT_EQ(m->read_file("/tmp/count"), "x\n");
}

TEST_F(Commands, EXEC_31_BadOptionsAreRefusedBeforeAnythingRuns) {
  EXPECT_EQ(code_of([&] { m->exec(std::vector<std::string>{}); }), ErrorCode::invalid_config);
  EXPECT_EQ(code_of([&] { m->exec({"true"}, {.timeout = Duration::zero()}); }), ErrorCode::invalid_config);
}

using Files = InOneMachine;

TEST_F(Files, FILES_01_ContentOfAnySizeComesBackTheSame) {
  for (std::size_t size : {0, 1, 65535, 65536, 65537, (1 << 20) - 1, 1 << 20, (1 << 20) + 1}) {
    auto content = random_bytes(size);
    m->write_file("/tmp/f", content);
    EXPECT_EQ(m->read_file("/tmp/f"), content) << size;
  }
}

TEST_F(Files, FILES_01_SixtyFourMebibytesTravelBothWays) {
  auto content = random_bytes(64 << 20);
  m->write_file("/root/big", content);
  EXPECT_EQ(m->exec({"sha256sum", "/root/big"}).out.substr(0, 64), sha256_hex(content));
  EXPECT_TRUE(m->read_file("/root/big") == content);
}

TEST_F(Files, FactsAndListingsAreTrue) {
  m->make_dir("/tmp/d/e");
  m->write_file("/tmp/d/file", "12345", {.mode = 0640});
  m->exec({"ln", "-s", "file", "/tmp/d/link"});
  auto facts = m->stat("/tmp/d/link");
  EXPECT_EQ(facts.type, FileType::regular);
  EXPECT_EQ(facts.size, 5u);
  EXPECT_EQ(facts.mode, 0640u);
  EXPECT_EQ(m->lstat("/tmp/d/link").target, "file");
  EXPECT_EQ(m->realpath("/tmp/d/link"), "/tmp/d/file");
  EXPECT_TRUE(m->exists("/tmp/d/e"));
  EXPECT_FALSE(m->exists("/tmp/d/x"));
  auto entries = m->list("/tmp/d");
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].name, "e");
  EXPECT_EQ(entries[2].type, FileType::symlink);
  EXPECT_EQ(entries[2].target, FileType::regular);
  m->rename("/tmp/d/file", "/tmp/d/moved");
  EXPECT_EQ(m->read_file("/tmp/d/moved"), "12345");
  m->remove_path("/tmp/d", RemoveKind::tree);
  EXPECT_FALSE(m->exists("/tmp/d"));
}

TEST_F(Files, FILES_10_FailuresAreTyped) {
  EXPECT_EQ(code_of([&] { m->read_file("/nowhere"); }), ErrorCode::not_found);
  EXPECT_EQ(code_of([&] { m->read_file("/etc"); }), ErrorCode::is_directory);
  EXPECT_EQ(code_of([&] { m->read_file("/dev/zero"); }), ErrorCode::not_regular);
  EXPECT_EQ(code_of([&] { m->write_file("/no/such/dir/f", "x"); }), ErrorCode::not_found);
  EXPECT_EQ(code_of([&] { m->list("/etc/passwd"); }), ErrorCode::not_a_directory);
  EXPECT_EQ(code_of([&] { m->read_file("/etc/passwd", {.limit = 3}); }), ErrorCode::too_large);
  EXPECT_NE(m->read_file("/proc/version").find("Linux"), std::string::npos);
}

TEST_F(Files, TreesTravelBothWays) {
  TempDir dir;
  auto in = dir.path() / "in";
  std::filesystem::create_directories(in / "sub/deep");
  for (int i = 0; i < 300; i++)
    write_file_atomically(in / "sub" / ("f" + std::to_string(i)), std::to_string(i));
  write_file_atomically(in / "sub/deep/run", "#!/bin/sh\n", {.mode = 0755});
  write_file_atomically(in / "big", std::string(3 << 20, 'b'));
  std::filesystem::create_symlink("../big", in / "sub/link");
  ::mkfifo((in / "fifo").c_str(), 0600);
  auto sent = m->copy_in(in, "/root/tree");
  EXPECT_EQ(sent.failed, 0u);
  EXPECT_EQ(sent.skipped, 1u) << "the FIFO";
  EXPECT_EQ(m->exec_shell("ls /root/tree/sub | wc -l").out, "302\n");
  auto got = m->copy_out("/root/tree", dir.path() / "out");
  EXPECT_EQ(got.failed, 0u);
  EXPECT_EQ(got.bytes, sent.bytes);
  EXPECT_EQ(read_file(dir.path() / "out/sub/f299", 100), "299");
  EXPECT_EQ(read_file(dir.path() / "out/sub/link", 4 << 20).size(), 3u << 20);
  EXPECT_TRUE(std::filesystem::is_symlink(dir.path() / "out/sub/link"));
  struct stat info{};
  ::stat((dir.path() / "out/sub/deep/run").c_str(), &info);
  EXPECT_EQ(info.st_mode & 07777, 0755u);
}

TEST_F(Files, ASingleFileTravelsUnderTheNameGiven) {
  TempDir dir;
  write_file_atomically(dir.path() / "a", "one");
  m->copy_in(dir.path() / "a", "/root/b");
  EXPECT_EQ(m->read_file("/root/b"), "one");
  m->copy_out("/root/b", dir.path() / "c");
  EXPECT_EQ(read_file(dir.path() / "c", 10), "one");
}

TEST_F(Files, FILES_04_ACopyOutOfSpecialFilesSkipsThemAndDropsSetuid) {
  TempDir dir;
  m->exec_shell(
      "mkdir /root/d; cd /root/d; mkfifo c; mknod d c 1 3; cp /bin/true f; chmod 4755 f; ln -s /etc/passwd "
      "a");
  auto got = m->copy_out("/root/d", dir.path() / "out", {.call = {.deadline = patient()}});
  EXPECT_EQ(got.skipped, 2u);
  struct stat info{};
  ASSERT_EQ(::stat((dir.path() / "out/f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0755u);
  EXPECT_EQ(std::filesystem::read_symlink(dir.path() / "out/a"), "/etc/passwd");
}

TEST_F(Files, AWriteThatIsGivenUpChangesNothing) {
  m->write_file("/root/f", "old");
  {
    auto writer = m->open_write("/root/f");
    writer.write(std::string(2 << 20, 'n'));
  }
  EXPECT_EQ(m->read_file("/root/f"), "old");
  EXPECT_TRUE(eventually([&] { return m->exec_shell("ls -A /root | grep -c tmp || true").out == "0\n"; }));
}

}  // namespace
}  // namespace holt::test
