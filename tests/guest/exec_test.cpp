// Commands through holt-guest as a process of this host: the promises of ExecRequest.
#include "guest/guest_client.hpp"
#include "holt/base/files.hpp"
#include "holt/base/ids.hpp"

#include <chrono>
#include <fstream>
#include <poll.h>

#include <gtest/gtest.h>

namespace holt::test {
namespace {

using namespace std::chrono_literals;
using protocol::ExecReply;
using protocol::ExecRequest;
using protocol::FrameType;
using protocol::StdinMode;
using Clock = std::chrono::steady_clock;

class Exec : public testing::Test {
 protected:
  ExecRequest shell(std::string script) { return {.script = std::move(script)}; }
  ExecReply run(const ExecRequest& request) { return client.call(request).reply<ExecReply>(); }
  bool appears(const std::filesystem::path& path, Clock::duration limit) {
    for (auto end = Clock::now() + limit; Clock::now() < end; ::poll(nullptr, 0, 10)) {
      if (std::filesystem::exists(path)) return true;
    }
    return false;
  }
  bool is_gone(const std::filesystem::path& pid_file) {
    std::ifstream file(pid_file);
    std::string pid;
    file >> pid;
    for (auto end = Clock::now() + 60s; Clock::now() < end; ::poll(nullptr, 0, 10)) {
      std::ifstream stat("/proc/" + pid + "/stat");
      std::string id;
      std::string name;
      std::string state;
      if (!(stat >> id >> name >> state) || state == "Z") return !pid.empty();
    }
    return false;
  }

  TempDir dir;
  HostedGuest guest;
  GuestClient& client = guest.client();
};

TEST_F(Exec, EXEC_16_KeepsTheStreamsApartAndReportsTheCode) {
  auto result = client.call(shell("printf out; printf err >&2; exit 7"));
  auto reply = result.reply<ExecReply>();
  EXPECT_EQ(result.output, "out");
  EXPECT_EQ(result.error_output, "err");
  EXPECT_EQ(reply.exit_code, 7);
  EXPECT_EQ(reply.stdout_bytes, 3U);
  EXPECT_EQ(result.order.front(), FrameType::started);
}

TEST_F(Exec, EXEC_16_TenThousandAlternatingLinesStayInOrder) {
  auto result = client.call(shell("i=0; while [ $i -lt 10000 ]; do echo $i; echo $i >&2; i=$((i+1)); done"));
  std::string expected;
  for (int i = 0; i < 10000; ++i) expected += std::to_string(i) + "\n";
  EXPECT_TRUE(result.output == expected);
  EXPECT_TRUE(result.error_output == expected);
}

TEST_F(Exec, EXEC_29_PassesArgumentsByteForByte) {
  std::string odd = "a b\t$(id) `id` ; && \xff\n\"'";
  auto result = client.call(ExecRequest{.argv = {"printf", "%s|", odd, "", "x"}});
  EXPECT_EQ(result.output, odd + "||x|");
}

TEST_F(Exec, EXEC_08_AnswersTheCodesThatShellsUse) {
  std::filesystem::path plain = dir.path() / "plain";
  write_file_atomically(plain, "true\n", {.mode = 0644});
  std::filesystem::path corrupt = dir.path() / "corrupt";
  write_file_atomically(corrupt,
                        std::string("\x7f"
                                    "ELF") +
                            std::string(60, '\1'),
                        {.mode = 0755});
  std::filesystem::path lost = dir.path() / "lost";
  write_file_atomically(lost, "#!/nope/interpreter\n", {.mode = 0755});
  std::filesystem::path bare = dir.path() / "bare";
  write_file_atomically(bare, "true\n", {.mode = 0755});

  EXPECT_EQ(run(ExecRequest{.argv = {"true"}}).exit_code, 0);
  EXPECT_EQ(run(ExecRequest{.argv = {"false"}}).exit_code, 1);
  EXPECT_EQ(run(shell("exit 255")).exit_code, 255);
  EXPECT_EQ(run(shell("kill -9 $$")).signal, 9);
  EXPECT_EQ(run(shell("kill -TERM $$")).signal, 15);
  struct Case {
    std::string program;
    int code;
  };
  for (const auto& [program, code] :
       {Case{"/nope", 127}, Case{"no-such-program", 127}, Case{"/etc", 126}, Case{plain, 126},
        Case{corrupt, 126}, Case{lost, 127}, Case{bare, 126}}) {
    auto result = client.call(ExecRequest{.argv = {program}});
    EXPECT_EQ(result.reply<ExecReply>().exit_code, code) << program;
    EXPECT_NE(result.error_output.find(program), std::string::npos) << result.error_output;
    EXPECT_EQ(std::ranges::count(result.error_output, '\n'), 1) << result.error_output;
    EXPECT_FALSE(result.started) << program;
  }
}

TEST_F(Exec, EXEC_09_OwnCodesOfTheGuestPassThrough) {
  for (int code : {124, 125, 126, 127}) {
    auto result = client.call(shell("exit " + std::to_string(code)));
    EXPECT_EQ(result.reply<ExecReply>().exit_code, code);
    EXPECT_FALSE(result.reply<ExecReply>().timed_out);
    EXPECT_EQ(result.error_output, "");
  }
}

TEST_F(Exec, EXEC_19_BadWorkingDirectoryFailsBeforeAnythingRuns) {
  auto missing = client.call(ExecRequest{.argv = {"true"}, .cwd = "/no/such/dir"});
  EXPECT_EQ(missing.failure().code, "NOT_FOUND");
  EXPECT_NE(missing.failure().message.find("No such file or directory"), std::string::npos);
  auto file = client.call(ExecRequest{.argv = {"true"}, .cwd = "/etc/passwd"});
  EXPECT_EQ(file.failure().code, "NOT_A_DIRECTORY");
}

TEST_F(Exec, EXEC_19_StartsInTheDirectoryAsked) {
  std::filesystem::create_symlink(dir.path(), dir.path() / "link");
  auto result = client.call(ExecRequest{.argv = {"pwd", "-P"}, .cwd = dir.path() / "link"});
  EXPECT_EQ(result.output, std::filesystem::canonical(dir.path()).string() + "\n");
}

TEST_F(Exec, EXEC_10_StdinIsAtItsEndUnlessAskedFor) {
  auto result = client.call(shell("read value || printf eof; readlink /proc/self/fd/0"));
  EXPECT_EQ(result.output, "eof/dev/null\n");
}

TEST_F(Exec, EXEC_04_KeepsOutputWrittenJustBeforeExit) {
  for (int i = 0; i < 50; ++i) {
    auto result = client.call(shell("head -c 300000 /dev/zero; echo END >&2; exit 7"));
    ASSERT_EQ(result.output.size(), 300000U) << "round " << i;
    ASSERT_EQ(result.error_output, "END\n");
    ASSERT_EQ(result.reply<ExecReply>().exit_code, 7);
    ASSERT_EQ(result.order.back(), FrameType::reply);
  }
}

TEST_F(Exec, EXEC_05_DrainsBothStreamsWhileStdinIsFed) {
  auto bytes = random_bytes(16 << 20);
  auto request = shell("tee /dev/stderr");
  request.stdin_mode = StdinMode::stream;
  auto result = client.call(request, bytes);
  EXPECT_EQ(result.reply<ExecReply>().exit_code, 0);
  EXPECT_TRUE(result.output == bytes) << result.output.size();
  EXPECT_TRUE(result.error_output == bytes) << result.error_output.size();
}

TEST_F(Exec, InputThatNobodyReadsIsDropped) {
  auto request = shell("exec <&-; sleep 0.2; echo done");
  request.stdin_mode = StdinMode::stream;
  auto result = client.call(request, std::string(8 << 20, 'x'));
  EXPECT_EQ(result.output, "done\n");
}

TEST_F(Exec, EXEC_03_BackgroundChildDoesNotHoldTheCallOpenAndGetsNoSigpipe) {
  auto file = dir.path() / "ok";
  auto result =
      client.call(shell("(sleep 2; echo late; echo later; touch " + file.string() + ") & echo done"));
  EXPECT_FALSE(std::filesystem::exists(file)) << "the reply waited for the background child";
  EXPECT_EQ(result.output, "done\n");
  EXPECT_EQ(result.reply<ExecReply>().exit_code, 0);
  EXPECT_TRUE(appears(file, 60s)) << "the background child was killed or blocked";
}

TEST_F(Exec, EXEC_01_TimeoutEndsTheWholeTreeAndKeepsPartialOutput) {
  auto pid_file = dir.path() / "pid";
  auto request =
      shell("echo part; setsid sh -c 'echo $$ > " + pid_file.string() + "; exec sleep 300' & sleep 302");
  request.timeout_ms = 2500;  // its child has written its pid by then
  auto begun = Clock::now();
  auto result = client.call(request);
  EXPECT_LT(Clock::now() - begun, 60s);
  EXPECT_TRUE(result.reply<ExecReply>().timed_out);
  EXPECT_EQ(result.output, "part\n");
  EXPECT_TRUE(is_gone(pid_file)) << "a child in a session of its own survived";
}

TEST_F(Exec, EXEC_01_TimeoutReachesOrphansInSessionsOfTheirOwn) {
  if (!guest.has_cgroups()) GTEST_SKIP() << "needs a writable cgroup v2 hierarchy on this host";
  auto pid_file = dir.path() / "pid";
  auto request = shell("(setsid sh -c 'echo $$ > " + pid_file.string() + "; exec sleep 300' &) ; sleep 302");
  request.timeout_ms = 2500;  // its child has written its pid by then
  EXPECT_TRUE(client.call(request).reply<ExecReply>().timed_out);
  EXPECT_TRUE(is_gone(pid_file));
}

TEST_F(Exec, EXEC_02_TimeoutFiresWhateverTheCommandWaitsFor) {
  for (const char* script : {"cat", "trap '' TERM; sleep 300", "kill -STOP $$", "while :; do echo x; done"}) {
    auto request = shell(script);
    request.stdin_mode = StdinMode::stream;
    request.timeout_ms = 300;
    request.output_limit = 1 << 16;
    auto begun = Clock::now();
    auto result = client.wait(client.open(request));
    EXPECT_TRUE(result.reply<ExecReply>().timed_out) << script;
    EXPECT_LT(Clock::now() - begun, 60s) << script;
  }
}

TEST_F(Exec, EXEC_07_TruncationIsAnnouncedExactlyAtTheLimit) {
  for (auto [size, truncated] : {std::pair(9999, false), {10000, false}, {10001, true}}) {
    auto request = shell("head -c " + std::to_string(size) + " /dev/zero");
    request.output_limit = 10000;
    auto result = client.call(request);
    auto reply = result.reply<ExecReply>();
    EXPECT_EQ(reply.stdout_truncated, truncated) << size;
    EXPECT_FALSE(reply.stderr_truncated);
    EXPECT_EQ(result.output.size(), static_cast<std::size_t>(std::min(size, 10000)));
    EXPECT_EQ(reply.stdout_bytes, static_cast<std::uint64_t>(size));
  }
}

TEST_F(Exec, EXEC_12_CancelKillsTheTreeAndEndsTheStream) {
  auto pid_file = dir.path() / "pid";
  auto stream = client.open(shell("sh -c 'echo $$ > " + pid_file.string() + "; sleep 300' & wait"));
  ASSERT_TRUE(appears(pid_file, 60s));
  client.send({.type = FrameType::cancel, .stream = stream});
  EXPECT_EQ(client.wait(stream).failure().code, "CANCELLED");
  EXPECT_TRUE(is_gone(pid_file));
}

TEST_F(Exec, EXEC_11_DisconnectKillsWhatRuns) {
  auto pid_file = dir.path() / "pid";
  client.open(shell("echo $$ > " + pid_file.string() + "; sleep 300"));
  ASSERT_TRUE(appears(pid_file, 60s));
  client.close();
  EXPECT_TRUE(is_gone(pid_file));
}

TEST_F(Exec, EXEC_14_SlowReaderStopsItsOwnCommandOnly) {
  auto slow = client.open(ExecRequest{.argv = {"yes"}});
  client.stall(slow);
  client.wait_until(slow, [](const StreamResult& r) { return r.output.size() > 900'000; });
  EXPECT_EQ(client.call(shell("echo hi")).output, "hi\n");
  EXPECT_TRUE(client.falls_silent_for(200ms)) << "sent on without credit";
  client.send({.type = FrameType::cancel, .stream = slow});
  EXPECT_TRUE(client.wait(slow).failed());
}

TEST_F(Exec, StalledOutputIsWholeWhenTheReaderComesBack) {
  auto stream = client.open(shell("head -c 5000000 /dev/zero; echo end >&2"));
  client.stall(stream);
  client.wait_until(stream, [](const StreamResult& r) { return r.output.size() > 900'000; });
  client.unstall(stream);
  auto result = client.wait(stream);
  EXPECT_EQ(result.output.size(), 5'000'000U);
  EXPECT_EQ(result.error_output, "end\n");
}

TEST_F(Exec, EXEC_13_TwoHundredCommandsAtOnceAreNotMixed) {
  std::vector<std::uint32_t> streams;
  for (int i = 0; i < 200; ++i) streams.push_back(client.open(shell("sleep 0.3; echo " + std::to_string(i))));
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(client.wait(streams[static_cast<std::size_t>(i)]).output, std::to_string(i) + "\n");
  }
}

TEST_F(Exec, EXEC_17_EnvironmentArrivesUnchangedAndNothingElse) {
  std::string value = " a\"b'\n$(id) \xc3\xa4";
  auto result = client.call(ExecRequest{.argv = {"env", "-0"}, .env = {{"ODD", value}}});
  EXPECT_NE(result.output.find("ODD=" + value + std::string(1, '\0')), std::string::npos);
  EXPECT_EQ(std::ranges::count(result.output, '\0'), 3) << "PATH, HOME, ODD: " << result.output;
}

TEST_F(Exec, EXEC_18_LargeEnvironmentAndArgumentsWorkUpToTheKernelsLimit) {
  auto good =
      client.call(ExecRequest{.argv = {"sh", "-c", "echo ${#BIG} ${#1}", "sh", std::string(131'071, 'a')},
                              .env = {{"BIG", std::string(131'000, 'x')}}});
  EXPECT_EQ(good.output, "131000 131071\n");
  auto long_argument = client.call(ExecRequest{.argv = {"true", std::string(131'072, 'a')}});
  EXPECT_EQ(long_argument.reply<ExecReply>().exit_code, 126);
  EXPECT_NE(long_argument.error_output.find("Argument list too long"), std::string::npos);
  std::vector<std::string> many = {"true"};
  many.resize(31, std::string(130'000, 'a'));
  EXPECT_EQ(run(ExecRequest{.argv = many}).exit_code, 126);
}

TEST_F(Exec, EXEC_17_BadVariablesAreRefusedByNameWithoutTheirValue) {
  for (const auto& name : {std::string(), std::string("A=B"), std::string("A\0B", 3)}) {
    auto failure = client.call(ExecRequest{.argv = {"true"}, .env = {{name, "secret"}}}).failure();
    EXPECT_EQ(failure.code, "INVALID_CONFIG");
    EXPECT_EQ(failure.path, name);
    EXPECT_EQ(failure.message.find("secret"), std::string::npos);
  }
  auto nul = client.call(ExecRequest{.argv = {"true"}, .env = {{"NAME", std::string("a\0b", 3)}}}).failure();
  EXPECT_EQ(nul.code, "INVALID_CONFIG");
  EXPECT_NE(nul.message.find("NAME"), std::string::npos);
}

TEST_F(Exec, EXEC_20_UsersAreNamesOrNumbers) {
  EXPECT_EQ(client.call(ExecRequest{.argv = {"id", "-u"}, .user = "0"}).output, "0\n");
  EXPECT_EQ(client.call(ExecRequest{.argv = {"true"}, .user = "no-such-user"}).failure().code, "NOT_FOUND");
  for (const char* bad : {"-1", "4294967295", "4294967296", "nobody\n"}) {
    EXPECT_EQ(client.call(ExecRequest{.argv = {"true"}, .user = bad}).failure().code, "INVALID_CONFIG")
        << bad;
  }
  if (::geteuid() != 0) GTEST_SKIP() << "the rest needs root";
  EXPECT_EQ(client.call(ExecRequest{.argv = {"id", "-u"}, .cwd = "/", .user = "1000"}).output, "1000\n");
  auto named = client.call(ExecRequest{.script = "id -u; id -g; echo $HOME", .cwd = "/", .user = "nobody"});
  EXPECT_EQ(named.output, "65534\n65534\n/nonexistent\n");
  EXPECT_EQ(client.call(ExecRequest{.script = "id -u; id -g", .cwd = "/", .user = "nobody:0"}).output,
            "65534\n0\n");
}

TEST_F(Exec, ChildStartsWithDefaultSignalsAndNoForeignDescriptors) {
  auto result =
      client.call(shell("grep -E 'SigBlk|SigIgn' /proc/self/status; umask; ls /proc/self/fd | wc -l"));
  EXPECT_EQ(result.output, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n0022\n4\n");
}

TEST_F(Exec, EXEC_31_BadTimeoutsAreRefused) {
  for (std::int64_t timeout : {0, -1}) {
    auto request = shell("true");
    request.timeout_ms = timeout;
    EXPECT_EQ(client.call(request).failure().code, "INVALID_CONFIG");
  }
  auto request = shell("true");
  request.timeout_ms = 1'000'000'000'000;
  EXPECT_EQ(run(request).exit_code, 0);
}

TEST_F(Exec, EXEC_23_SignalsReachTheForegroundGroup) {
  auto stream = client.open(shell("trap 'echo got; exit 3' INT; echo ready; while :; do sleep 0.05; done"));
  client.wait_until(stream, [](const StreamResult& r) { return r.output == "ready\n"; });
  client.send({.type = FrameType::signal, .stream = stream}, std::string(1, '\2'));
  auto result = client.wait(stream);
  EXPECT_EQ(result.output, "ready\ngot\n");
  EXPECT_EQ(result.reply<ExecReply>().exit_code, 3);
}

TEST_F(Exec, EXEC_24_LeavesNoZombieAndNoGroupBehind) {
  for (int i = 0; i < 100; ++i) run(shell("(sleep 0.01 &)"));
  auto status = [&] { return client.call(protocol::StatusRequest{}).reply<protocol::StatusReply>(); };
  auto end = Clock::now() + 5s;
  while (status().processes > 0 && Clock::now() < end) ::poll(nullptr, 0, 10);
  EXPECT_EQ(status().processes, 0U);
  EXPECT_EQ(status().commands, 0U);
}

TEST_F(Exec, ShutdownEndsCommandsAndRefusesNewOnes) {
  auto stream = client.open(shell("echo up; sleep 300"));
  client.wait_until(stream, [](const StreamResult& r) { return r.output == "up\n"; });
  EXPECT_FALSE(client.call(protocol::ShutdownRequest{}).failed());
  EXPECT_EQ(client.wait(stream).reply<ExecReply>().signal, 9);
  EXPECT_EQ(client.call(shell("true")).failure().code, "INVALID_STATE");
}

}  // namespace
}  // namespace holt::test
