// Background commands through holt-guest as a process of this host: their logs, lists, waits and ends.
#include "guest/guest_client.hpp"
#include "holt/base/files.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace holt::test {
namespace {

using namespace std::chrono_literals;
using protocol::AttachCommandRequest;
using protocol::CommandsReply;
using protocol::CommandsRequest;
using protocol::CommandStatus;
using protocol::ExecReply;
using protocol::FrameType;
using protocol::KillCommandRequest;
using protocol::SignalCommandRequest;
using protocol::StartCommandRequest;
using protocol::WaitCommandRequest;

class Background : public testing::Test {
 protected:
  static StartCommandRequest script(std::string text) {
    return {.command = {.script = std::move(text)}, .log_limit = std::uint64_t{8} << 20};
  }
  CommandStatus start(const StartCommandRequest& request) {
    return client.call(request).reply<CommandStatus>();
  }
  CommandStatus wait(const std::string& id) {
    return client.call(WaitCommandRequest{.id = id}).reply<CommandStatus>();
  }
  std::vector<CommandStatus> list() { return client.call(CommandsRequest{}).reply<CommandsReply>().commands; }

  HostedGuest guest;
  GuestClient& client = guest.client();
};

TEST_F(Background, EXEC_28_OutputIsReadFromItsFirstByteWhileItRunsAndWhenItHasEnded) {
  auto command = start(script("echo one; echo two >&2; read go; echo three; exit 3"));
  EXPECT_FALSE(command.result);
  EXPECT_GT(command.pid, 0);
  EXPECT_EQ(command.argv.at(1), "-c");
  auto ended = wait(command.id);
  EXPECT_EQ(ended.result->exit_code, 3) << "its input is at its end";
  EXPECT_EQ(ended.stdout_bytes, 10U);
  for (int i = 0; i < 2; ++i) {
    auto log = client.call(AttachCommandRequest{.id = command.id});
    EXPECT_EQ(log.output, "one\nthree\n");
    EXPECT_EQ(log.error_output, "two\n");
    EXPECT_EQ(log.reply<ExecReply>().exit_code, 3);
    EXPECT_FALSE(log.reply<ExecReply>().stdout_truncated);
    EXPECT_EQ(log.order.back(), FrameType::reply);
  }
  EXPECT_EQ(
      client.call(AttachCommandRequest{.id = command.id, .stdout_offset = 4, .stderr_offset = 4}).output,
      "three\n");
}

TEST_F(Background, AnAttachedStreamFollowsWhatIsWritten) {
  TempDir dir;
  auto fifo = dir.path() / "go";
  auto command =
      start(script("mkfifo " + fifo.string() + "; echo begun; read x < " + fifo.string() + "; echo $x"));
  auto stream = client.open(AttachCommandRequest{.id = command.id});
  client.wait_until(stream, [](const StreamResult& r) { return r.output == "begun\n"; });
  write_file_atomically(dir.path() / "word", "on\n");
  client.call(
      protocol::ExecRequest{.script = "cat " + (dir.path() / "word").string() + " > " + fifo.string()});
  EXPECT_EQ(client.wait(stream).output, "begun\non\n");
}

TEST_F(Background, EXEC_11_ItSurvivesItsStartersAndWatchersConnections) {
  auto command = start(script("echo up; exec sleep 300"));
  auto watcher = client.open(AttachCommandRequest{.id = command.id});
  client.wait_until(watcher, [](const StreamResult& r) { return r.output == "up\n"; });
  client.send({.type = FrameType::cancel, .stream = watcher});
  EXPECT_EQ(client.wait(watcher).failure().code, "CANCELLED");
  // A new greeting ends every stream of before.
  client.open(AttachCommandRequest{.id = command.id});
  client.send({.type = FrameType::hello}, protocol::encode(protocol::Hello{.program = "test"}));
  client.connection_frame(FrameType::hello);
  ASSERT_EQ(list().size(), 1U);
  EXPECT_FALSE(list()[0].result);
  EXPECT_EQ(client.call(KillCommandRequest{.id = command.id}).reply<CommandStatus>().result->signal, 9);
}

TEST_F(Background, EXEC_12_KillEndsTheWholeTreeAndIsQuietAfterwards) {
  TempDir dir;
  auto pid_file = (dir.path() / "pid").string();
  auto command = start(script("setsid sh -c 'echo $$ > " + pid_file + "; exec sleep 300' & wait"));
  client.call(protocol::ExecRequest{.script = "until [ -s " + pid_file + " ]; do sleep 0.01; done"});
  auto killed = client.call(KillCommandRequest{.id = command.id}).reply<CommandStatus>();
  EXPECT_EQ(killed.result->signal, 9);
  auto alive = client.call(protocol::ExecRequest{.script = "kill -0 $(cat " + pid_file +
                                                           ") && grep -q '(sleep) [^Z]' /proc/$(cat " +
                                                           pid_file + ")/stat"});
  EXPECT_NE(alive.reply<ExecReply>().exit_code, 0) << "a child in a session of its own survived";
  EXPECT_EQ(client.call(KillCommandRequest{.id = command.id}).reply<CommandStatus>().result->signal, 9);
  EXPECT_FALSE(client.call(SignalCommandRequest{.id = command.id, .signal = 15}).failed());
}

TEST_F(Background, SignalsReachItAndBadOnesAreRefused) {
  auto command = start(script("trap 'echo got; exit 4' TERM; echo ready; while :; do sleep 0.02; done"));
  auto stream = client.open(AttachCommandRequest{.id = command.id});
  client.wait_until(stream, [](const StreamResult& r) { return r.output == "ready\n"; });
  EXPECT_EQ(client.call(SignalCommandRequest{.id = command.id, .signal = 65}).failure().code,
            "INVALID_CONFIG");
  EXPECT_FALSE(client.call(SignalCommandRequest{.id = command.id, .signal = 15}).failed());
  auto result = client.wait(stream);
  EXPECT_EQ(result.output, "ready\ngot\n");
  EXPECT_EQ(result.reply<ExecReply>().exit_code, 4);
}

TEST_F(Background, TheLogKeepsTheEndAndSaysThatItLostTheBeginning) {
  auto request = script("head -c 1000000 /dev/zero; printf end; printf err >&2");
  request.log_limit = 100'000;
  auto ended = wait(start(request).id);
  EXPECT_TRUE(ended.log_truncated);
  EXPECT_EQ(ended.stdout_bytes, 1'000'003U);
  auto log = client.call(AttachCommandRequest{.id = ended.id});
  EXPECT_TRUE(log.reply<ExecReply>().stdout_truncated);
  EXPECT_FALSE(log.reply<ExecReply>().stderr_truncated);
  EXPECT_GE(log.output.size(), 100'000U);
  EXPECT_LT(log.output.size(), 200'000U);
  EXPECT_EQ(log.output.substr(log.output.size() - 3), "end");
  EXPECT_EQ(log.error_output, "err");
  auto tail = client.call(AttachCommandRequest{.id = ended.id, .stdout_offset = 1'000'000});
  EXPECT_EQ(tail.output, "end");
  EXPECT_FALSE(tail.reply<ExecReply>().stdout_truncated) << "nothing of what was asked for is lost";
}

TEST_F(Background, AnOutputOfExactlyTheLimitIsKeptWhole) {
  auto request = script("head -c 100000 /dev/zero");
  request.log_limit = 100'000;
  auto ended = wait(start(request).id);
  EXPECT_FALSE(ended.log_truncated);
  EXPECT_EQ(client.call(AttachCommandRequest{.id = ended.id}).output.size(), 100'000U);
}

TEST_F(Background, TheTwoOutputsComeBackInTheirOrder) {
  auto ended =
      wait(start(script("for i in 1 2 3; do echo o$i; sleep 0.05; echo e$i >&2; sleep 0.05; done")).id);
  auto log = client.call(AttachCommandRequest{.id = ended.id});
  std::vector<FrameType> expected = {FrameType::started};
  for (int i = 0; i < 3; ++i) {
    expected.push_back(FrameType::output);
    expected.push_back(FrameType::error_output);
  }
  expected.push_back(FrameType::reply);
  EXPECT_EQ(log.order, expected);
}

TEST_F(Background, ASlowWatcherHoldsUpNeitherTheCommandNorOthers) {
  auto request = script("head -c 20000000 /dev/zero; echo end >&2");
  request.log_limit = 1'000'000;
  auto command = start(request);
  auto slow = client.open(AttachCommandRequest{.id = command.id});
  client.stall(slow);
  EXPECT_EQ(wait(command.id).result->exit_code, 0);
  client.unstall(slow);
  auto log = client.wait(slow);
  EXPECT_TRUE(log.reply<ExecReply>().stdout_truncated);
  EXPECT_EQ(log.error_output, "end\n");
}

TEST_F(Background, ARepeatedKeyGivesTheSameCommand) {
  auto request = script("exec sleep 300");
  request.command.key = "once";
  auto first = start(request);
  EXPECT_EQ(start(request).id, first.id);
  EXPECT_EQ(list().size(), 1U);
  client.call(KillCommandRequest{.id = first.id});
  EXPECT_EQ(start(request).id, first.id) << "also when it has ended";
}

TEST_F(Background, CHAN_14_ARepeatedKeyOfAForegroundCommandGetsTheFirstOnesResult) {
  TempDir dir;
  auto count = (dir.path() / "count").string();
  protocol::ExecRequest request{.script = "echo x >> " + count + "; echo out; echo err >&2; exit 5",
                                .key = "once"};
  for (int i = 0; i < 3; ++i) {
    auto result = client.call(request);
    EXPECT_EQ(result.output, "out\n");
    EXPECT_EQ(result.error_output, "err\n");
    EXPECT_EQ(result.reply<ExecReply>().exit_code, 5);
  }
  EXPECT_EQ(read_file(count, 100), "x\n");
  EXPECT_TRUE(list().empty()) << "it is none of the background";
  auto other = request;
  other.script = "true";
  EXPECT_EQ(client.call(other).failure().code, "CONFLICT");
  EXPECT_EQ(client.call(StartCommandRequest{.command = request}).failure().code, "CONFLICT");
}

TEST_F(Background, CHAN_14_WhoeverRepeatsACommandThatRunsMayCancelItForAll) {
  protocol::ExecRequest request{.script = "echo up; exec sleep 300", .key = "once"};
  auto first = client.open(request);
  auto second = client.open(request);
  client.wait_until(second, [](const StreamResult& r) { return r.output == "up\n"; });
  client.send({.type = FrameType::cancel, .stream = second});
  EXPECT_EQ(client.wait(second).failure().code, "CANCELLED");
  EXPECT_EQ(client.wait(first).failure().code, "CANCELLED");
  EXPECT_EQ(client.call(request).failure().code, "CANCELLED") << "and nothing is started again";
}

TEST_F(Background, CHAN_14_AKeyWhoseCommandWasForgottenStartsNothing) {
  protocol::ExecRequest request{.argv = {"true"}, .key = "once"};
  client.call(request);
  for (std::size_t i = 0; i < protocol::k_max_commands; ++i) wait(start(script("true")).id);
  EXPECT_EQ(client.call(request).failure().code, "CONFLICT");
  protocol::ExecRequest unstarted{.argv = {"true"}, .cwd = "/nowhere", .key = "other"};
  EXPECT_EQ(client.call(unstarted).failure().code, "NOT_FOUND");
  EXPECT_EQ(client.call(unstarted).failure().code, "NOT_FOUND") << "what ran nothing used up no key";
}

TEST_F(Background, WhatCannotRunIsACommandThatHasEnded) {
  auto missing = start({.command = {.argv = {"/nope"}}, .log_limit = 1000});
  EXPECT_EQ(missing.result->exit_code, 127);
  EXPECT_NE(client.call(AttachCommandRequest{.id = missing.id}).error_output.find("/nope"),
            std::string::npos);
  EXPECT_EQ(client.call(StartCommandRequest{.command = {.argv = {"true"}, .cwd = "/nowhere"}}).failure().code,
            "NOT_FOUND");
  EXPECT_EQ(list().size(), 1U) << "what was refused is not remembered";
}

TEST_F(Background, UnknownCommandsAreNotFound) {
  for (const protocol::Request& request :
       {protocol::Request(AttachCommandRequest{.id = "0123456789ab"}),
        protocol::Request(WaitCommandRequest{}), protocol::Request(KillCommandRequest{.id = "1"}),
        protocol::Request(SignalCommandRequest{.id = std::string(100'000, 'x'), .signal = 15})}) {
    EXPECT_EQ(client.call(request).failure().code, "NOT_FOUND");
  }
}

TEST_F(Background, TheOldestThatHaveEndedAreForgottenAndTheListFitsItsFrame) {
  std::string long_word(5000, 'w');
  auto first = start({.command = {.argv = {"true", long_word}}});
  wait(first.id);
  for (std::size_t i = 1; i < protocol::k_max_commands; ++i) {
    wait(start({.command = {.argv = {"true", long_word, "x"}}}).id);
  }
  EXPECT_EQ(list().size(), protocol::k_max_commands);
  EXPECT_EQ(list().back().argv.back(), "...");
  auto last = start(script("exec sleep 300"));
  auto all = list();
  EXPECT_EQ(all.size(), protocol::k_max_commands);
  EXPECT_EQ(all.back().id, last.id);
  EXPECT_EQ(client.call(WaitCommandRequest{.id = first.id}).failure().code, "NOT_FOUND");
}

TEST_F(Background, InputIsGivenWholeAndATimeoutEndsIt) {
  auto request = script("cat; sleep 300");
  request.input = std::string(1'000'000, 'i');
  request.command.timeout_ms = 500;
  auto ended = wait(start(request).id);
  EXPECT_TRUE(ended.result->timed_out);
  EXPECT_EQ(ended.stdout_bytes, 1'000'000U);
}

TEST_F(Background, ShutdownEndsItAndItsWatchersAreTold) {
  auto command = start(script("exec sleep 300"));
  auto watcher = client.open(AttachCommandRequest{.id = command.id});
  EXPECT_FALSE(client.call(protocol::ShutdownRequest{}).failed());
  EXPECT_EQ(client.wait(watcher).reply<ExecReply>().signal, 9);
  EXPECT_EQ(client.call(script("true")).failure().code, "INVALID_STATE");
}

}  // namespace
}  // namespace holt::test
