// The connection itself, and a host that breaks the rules: PID 1 must outlive it.
#include "guest/guest_client.hpp"
#include "holt/base/files.hpp"

#include <gtest/gtest.h>

namespace holt::test {
namespace {

using namespace std::chrono_literals;
using protocol::ExecRequest;
using protocol::FrameType;

TEST(Connection, GuestSaysHelloByItself) {
  HostedGuest guest(HostedGuest::Start::raw);
  auto hello =
      protocol::decode<protocol::Hello>(guest.client().connection_frame(FrameType::hello).payload).value();
  EXPECT_EQ(hello.version, protocol::k_version);
  EXPECT_EQ(hello.generation, "");
  EXPECT_TRUE(hello.program.starts_with("holt-guest"));
}

TEST(Connection, NothingRunsBeforeTheIdentity) {
  HostedGuest guest(HostedGuest::Start::greeted);
  EXPECT_EQ(guest.client().call(ExecRequest{.argv = {"true"}}).failure().code, "INVALID_STATE");
  guest.client().identify();
  EXPECT_FALSE(guest.client().call(ExecRequest{.argv = {"true"}}).failed());
}

TEST(Connection, FirstCommandMayBeSentAlongWithTheIdentity) {
  HostedGuest guest(HostedGuest::Start::greeted);
  auto& client = guest.client();
  auto identity = client.open(GuestClient::default_identity());
  auto command = client.open(ExecRequest{.argv = {"echo", "first"}});
  EXPECT_FALSE(client.wait(identity).failed());
  EXPECT_EQ(client.wait(command).output, "first\n");
}

TEST(Connection, IdentityIsTakenOnce) {
  HostedGuest guest;
  EXPECT_EQ(guest.client().call(GuestClient::default_identity()).failure().code, "INVALID_STATE");
}

TEST(Connection, MachineEnvironmentAndDirectoryReachCommands) {
  HostedGuest guest(HostedGuest::Start::greeted);
  auto identity = GuestClient::default_identity();
  identity.env = {{"LAYER", "machine"}, {"OTHER", "kept"}};
  identity.working_dir = "/usr/../usr";
  EXPECT_EQ(guest.client().identify(identity).working_dir, "/usr");
  auto result =
      guest.client().call(ExecRequest{.script = "echo $LAYER $OTHER; pwd", .env = {{"LAYER", "call"}}});
  EXPECT_EQ(result.output, "call kept\n/usr\n");
}

TEST(Connection, AnswersPings) {
  HostedGuest guest;
  guest.client().send({.type = FrameType::ping}, "abc");
  EXPECT_EQ(guest.client().connection_frame(FrameType::pong).payload, "abc");
}

TEST(Connection, CHAN_27_NewHelloEndsTheStreamsOfTheOldConnection) {
  HostedGuest guest;
  auto& client = guest.client();
  client.open(ExecRequest{.argv = {"sleep", "300"}});
  client.send({.type = FrameType::hello}, protocol::encode(protocol::Hello{}));
  auto hello = protocol::decode<protocol::Hello>(client.connection_frame(FrameType::hello).payload).value();
  EXPECT_EQ(hello.generation, "test");
  auto deadline = Deadline::after(60s);
  while (client.call(protocol::StatusRequest{}).reply<protocol::StatusReply>().processes > 0) {
    ASSERT_FALSE(deadline.passed()) << "the old connection's command lives on";
  }
}

/// Sends bytes that break a rule and expects the guest to say which, naming no byte of ours.
void expect_refusal(std::string_view bytes, std::string_view rule) {
  HostedGuest guest;
  guest.client().send_raw(bytes);
  auto goodbye = guest.client().connection_frame(FrameType::goodbye);
  auto failure = protocol::decode<protocol::Failure>(goodbye.payload).value();
  EXPECT_EQ(failure.code, "GUEST_PROTOCOL");
  EXPECT_TRUE(failure.message.starts_with(rule)) << failure.message;
  EXPECT_TRUE(guest.process().wait(Deadline::after(0ms)) == std::nullopt) << "the guest program ended";
}

std::string frame(protocol::FrameHeader header, std::string_view payload) {
  protocol::FrameWriter writer;
  writer.set_next_sequence(2);
  std::string bytes;
  writer.append(bytes, header, payload);
  return bytes;
}

TEST(Connection, CHAN_27_BrokenRulesEndTheConnectionAndNotTheProgram) {
  expect_refusal(std::string(16, '\xff'), "bad_header");
  expect_refusal(frame({.type = FrameType::request, .stream = 9}, "rubbish"), "malformed_message");
  expect_refusal(frame({.type = FrameType::output, .stream = 9}, "x"), "unknown_type");
  auto lost = frame({.type = FrameType::ping}, "x");
  lost[12] = 77;
  expect_refusal(lost, "bad_sequence");
}

TEST(Connection, CHAN_27_OverdraftOfInputIsRefused) {
  HostedGuest guest;
  auto& client = guest.client();
  auto stream = client.open(ExecRequest{.argv = {"sleep", "300"}, .stdin_mode = protocol::StdinMode::stream});
  for (int i = 0; i < 5; ++i) {
    client.send({.type = FrameType::input, .stream = stream}, std::string(protocol::k_max_payload, 'x'));
  }
  auto failure =
      protocol::decode<protocol::Failure>(client.connection_frame(FrameType::goodbye).payload).value();
  EXPECT_TRUE(failure.message.starts_with("overdraft")) << failure.message;
}

TEST(Connection, FramesForEndedStreamsAreDropped) {
  HostedGuest guest;
  auto& client = guest.client();
  auto stream = client.open(ExecRequest{.argv = {"true"}});
  client.wait(stream);
  client.send({.type = FrameType::cancel, .stream = stream});
  client.send({.type = FrameType::input, .stream = stream}, "late");
  EXPECT_EQ(client.call(ExecRequest{.argv = {"echo", "on"}}).output, "on\n");
}

TEST(Connection, CHAN_27_AHostThatLeavesInTheMiddleOfAWriteLeavesNothingBehind) {
  TempDir dir;
  HostedGuest guest;
  auto& client = guest.client();
  auto stream = client.open(protocol::WriteFileRequest{.path = (dir.path() / "f").string()});
  client.send_input(stream, std::string(2 << 20, 'x'));
  // A new greeting is what a host that comes back sends first.
  client.send({.type = FrameType::hello}, protocol::encode(protocol::Hello{}));
  client.connection_frame(FrameType::hello);
  EXPECT_EQ(client.call(ExecRequest{.argv = {"echo", "on"}}).output, "on\n");
  auto deadline = Deadline::after(60s);
  while (!std::filesystem::is_empty(dir.path())) ASSERT_FALSE(deadline.passed()) << "a file of the old host";
}

}  // namespace
}  // namespace holt::test
