// Terminals of commands, and their limits, through holt-guest as a process of this host.
#include "guest/guest_client.hpp"

#include <chrono>
#include <csignal>

#include <gtest/gtest.h>

namespace holt::test {
namespace {

using namespace std::chrono_literals;
using protocol::ExecReply;
using protocol::ExecRequest;
using protocol::FrameType;
using protocol::StdinMode;

class Terminal : public testing::Test {
 protected:
  static ExecRequest script(std::string text, protocol::TerminalSize size = {.rows = 30, .columns = 100}) {
    return {.script = std::move(text), .terminal = size};
  }
  static ExecRequest talking(std::string text) {
    auto request = script(std::move(text));
    request.stdin_mode = StdinMode::stream;
    return request;
  }
  void resize(std::uint32_t stream, std::uint16_t rows, std::uint16_t columns) {
    std::string payload;
    for (auto number : {rows, columns}) {
      payload += static_cast<char>(number & 0xff);
      payload += static_cast<char>(number >> 8);
    }
    client.send({.type = FrameType::resize, .stream = stream}, payload);
  }
  /// Waits until the output has a text, at its end.
  void wait_for(std::uint32_t stream, const std::string& text) {
    client.wait_until(stream, [&](const StreamResult& r) { return r.output.ends_with(text); });
  }

  HostedGuest guest;
  GuestClient& client = guest.client();
};

TEST_F(Terminal, EXEC_21_TheSizeIsRightBeforeTheProgramStartsAndItIsATerminal) {
  auto result =
      client.call(script("stty size; tty; echo $TERM; echo err >&2; test -t 0 && test -t 1 && test -t 2"));
  EXPECT_EQ(result.output.substr(0, 8), "30 100\r\n");
  EXPECT_NE(result.output.find("\r\n/dev/pts/"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("\r\nxterm-256color\r\nerr\r\n"), std::string::npos) << result.output;
  EXPECT_EQ(result.error_output, "") << "a terminal is one stream";
  EXPECT_EQ(result.reply<ExecReply>().exit_code, 0);
}

TEST_F(Terminal, EXEC_21_AResizeIsSeenAndSignalled) {
  auto stream =
      client.open(script("trap 'stty size; exit 5' WINCH; echo ready; while :; do sleep 0.02; done"));
  wait_for(stream, "ready\r\n");
  resize(stream, 41, 121);
  auto result = client.wait(stream);
  EXPECT_EQ(result.output, "ready\r\n41 121\r\n");
  EXPECT_EQ(result.reply<ExecReply>().exit_code, 5);
}

TEST_F(Terminal, EXEC_21_OutputAtTheEndIsWholeAndTheCodeComesThrough) {
  for (int i = 0; i < 50; ++i) {
    auto result = client.call(script("printf x; exit 3"));
    ASSERT_EQ(result.output, "x") << "round " << i;
    ASSERT_EQ(result.reply<ExecReply>().exit_code, 3);
    auto large = client.call(script("head -c 100000 /dev/zero; printf end"));
    ASSERT_EQ(large.output.size(), 100'003U) << "round " << i;
  }
}

TEST_F(Terminal, EXEC_21_OutputIsWholeThoughABackgroundChildKeepsTheTerminal) {
  auto result = client.call(script("sleep 2 & head -c 20000 /dev/zero; printf end"));
  EXPECT_EQ(result.output.size(), 20'003U);
}

TEST_F(Terminal, EXEC_21_ControlCInterruptsTheForegroundJob) {
  auto stream =
      client.open(talking("trap 'echo outer' INT; sh -c 'trap \"echo inner; exit 0\" INT; echo ready; "
                          "while :; do sleep 0.02; done'; exit 6"));
  wait_for(stream, "ready\r\n");
  client.send_input(stream, "\x03");
  auto result = client.wait(stream);
  EXPECT_NE(result.output.find("inner"), std::string::npos) << result.output;
  EXPECT_EQ(result.reply<ExecReply>().exit_code, 6);
}

TEST_F(Terminal, EXEC_21_ControlDEndsTheInputAndSoDoesItsEnd) {
  auto typed = client.open(talking("cat; echo done"));
  client.send_input(typed, "line\n\x04");
  EXPECT_EQ(client.wait(typed).output, "line\r\nline\r\ndone\r\n");
  auto ended = client.open(talking("cat; echo done"));
  client.send_input(ended, "half");
  client.end_input(ended);
  EXPECT_EQ(client.wait(ended).output, "halfhalfdone\r\n");
  EXPECT_EQ(client.call(script("cat; echo done")).output, "done\r\n") << "no input asked for";
}

TEST_F(Terminal, EXEC_21_APastedLineOf64KibibytesHangsNobody) {
  auto raw = client.open(talking("stty raw -echo; echo ready; head -c 65536 | wc -c"));
  wait_for(raw, "ready\n");
  client.send_input(raw, std::string(65536, 'p'));
  auto result = client.wait(raw);
  EXPECT_NE(result.output.find("65536"), std::string::npos) << result.output;
  // The line discipline keeps 4095 bytes of a line, as on any Linux.
  auto cooked = client.open(talking("stty -echo; echo ready; head -n 1 | wc -c"));
  wait_for(cooked, "ready\r\n");
  client.send_input(cooked, std::string(65536, 'p'));
  client.send_input(cooked, "\n");
  auto cut = client.wait(cooked);
  EXPECT_NE(cut.output.find("4096"), std::string::npos) << cut.output;
}

TEST_F(Terminal, EXEC_21_AWindowOfZeroByZeroWorks) {
  auto result = client.call(script("stty size", {.rows = 0, .columns = 0}));
  EXPECT_EQ(result.output, "0 0\r\n");
  auto huge = client.call(script("stty size", {.rows = 100'000, .columns = 100'000}));
  EXPECT_EQ(huge.output, "65535 65535\r\n");
}

TEST_F(Terminal, EXEC_21_ACancelEndsIt) {
  auto stream = client.open(talking("trap '' HUP INT TERM; echo up; while :; do sleep 1; done"));
  wait_for(stream, "up\r\n");
  client.send({.type = FrameType::cancel, .stream = stream});
  EXPECT_EQ(client.wait(stream).failure().code, "CANCELLED");
}

TEST_F(Terminal, AReaderThatStallsHoldsItUpAndLosesNothing) {
  auto stream = client.open(script("head -c 3000000 /dev/zero; printf end"));
  client.stall(stream);
  client.wait_until(stream, [](const StreamResult& r) { return r.output.size() > 900'000; });
  client.unstall(stream);
  EXPECT_EQ(client.wait(stream).output.size(), 3'000'003U);
}

TEST_F(Terminal, ABackgroundCommandCanHaveOne) {
  auto status = client
                    .call(protocol::StartCommandRequest{
                        .command = script("read x; tty; stty size; sleep 300"), .log_limit = 1000})
                    .reply<protocol::CommandStatus>();
  EXPECT_TRUE(status.terminal);
  auto stream = client.open(protocol::AttachCommandRequest{.id = status.id});
  wait_for(stream, "30 100\r\n");
  client.call(protocol::KillCommandRequest{.id = status.id});
  EXPECT_EQ(client.wait(stream).reply<ExecReply>().signal, 9);
}

class Limits : public Terminal {
 protected:
  StreamResult limited(std::string text, const protocol::CommandLimits& limits) {
    return client.call(ExecRequest{.script = std::move(text), .limits = limits});
  }
};

TEST_F(Limits, OfAProcessAreSetBeforeTheProgramStarts) {
  auto result =
      limited("ulimit -t; ulimit -n; ulimit -c", {.cpu_seconds = 7, .open_files = 33, .core_bytes = 0});
  EXPECT_EQ(result.output, "7\n33\n0\n");
  EXPECT_EQ(limited("head -c 5000 /dev/zero > /tmp/holt-limit-$$", {.file_bytes = 1000})
                .reply<ExecReply>()
                .exit_code,
            128 + SIGXFSZ);
  client.call(ExecRequest{.script = "rm -f /tmp/holt-limit-*"});
  EXPECT_EQ(limited("while :; do :; done", {.cpu_seconds = 1}).reply<ExecReply>().signal, SIGXCPU);
}

TEST_F(Limits, OfATreeNeedGroups) {
  auto result = limited("true", {.processes = 10});
  if (!guest.has_cgroups()) {
    EXPECT_EQ(result.failure().code, "NOT_SUPPORTED");
  }
}

}  // namespace
}  // namespace holt::test
