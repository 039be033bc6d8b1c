// A guest that lies, and one that is merely slow: cases CHAN of the project's list, against relay and client.
#include "machine/background.hpp"
#include "machine/exec_stream.hpp"
#include "machine/file_streams.hpp"
#include "machine/hosted_machine.hpp"
#include "machine/socket_address.hpp"
#include "machine/tree_copy.hpp"
#include "support/sanitizers.hpp"

namespace holt::test {
namespace {

using namespace machine;
using namespace protocol;

/// A command whose stream will be abandoned, which frees nothing.
ExecStream open_to_abandon(const MachineFolder& folder, const Command& command, const ExecOptions& options) {
  LeakedOnPurpose leaked;
  return open_command(folder, command, options, 0);
}

bool is_request(const Frame& frame) {
  return frame.header.type == FrameType::request;
}

FakeMachine::OnFrame on_request(std::function<void(GuestVoice&, std::uint32_t stream)> answer) {
  return [answer = std::move(answer)](GuestVoice& guest, const Frame& frame) {
    if (is_request(frame)) answer(guest, frame.header.stream);
  };
}

std::string exit_reply(std::optional<std::int64_t> code, std::optional<std::int64_t> signal = std::nullopt) {
  return encode(ExecReply{.exit_code = code, .signal = signal});
}

ExecResult run(const FakeMachine& fake, ExecOptions options = {}) {
  if (!options.deadline) options.deadline = Deadline::after(60s);
  return run_command(fake.folder(), {.argv = {"x"}}, options);
}

TEST(Channel, AnHonestGuestIsHeard) {
  FakeMachine fake(on_request([](GuestVoice& guest, std::uint32_t stream) {
    guest.say(FrameType::started, stream, encode(ExecStarted{.pid = 7}));
    guest.say(FrameType::output, stream, "out");
    guest.say(FrameType::error_output, stream, "err");
    guest.say(FrameType::reply, stream, exit_reply(3));
  }));
  auto result = run(fake);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out, "out");
  EXPECT_EQ(result.err, "err");
  EXPECT_FALSE(fake.gone());
}

TEST(Channel, CHAN_02_FramesInPiecesAreFrames) {
  FakeMachine fake(on_request([](GuestVoice& guest, std::uint32_t stream) {
    std::string wire;
    FrameWriter writer;
    writer.append(wire, {.type = FrameType::output, .stream = stream}, "abc");
    writer.append(wire, {.type = FrameType::reply, .stream = stream}, exit_reply(0));
    for (char byte : wire) guest.raw(std::string(1, byte));
  }));
  EXPECT_EQ(run(fake).out, "abc");
}

struct Lie {
  const char* name;
  std::function<void(GuestVoice&, std::uint32_t stream)> tell;
};
void PrintTo(const Lie& lie, std::ostream* out) {
  *out << lie.name;
}

class ALie : public ::testing::TestWithParam<Lie> {};

TEST_P(ALie, EndsTheMachineAndTheCommandWithGuestProtocol) {
  FakeMachine fake(on_request(GetParam().tell));
  EXPECT_EQ(code_of([&] { run(fake); }), ErrorCode::guest_protocol);
  EXPECT_TRUE(eventually([&] { return fake.gone() == ErrorCode::guest_protocol; }));
}

INSTANTIATE_TEST_SUITE_P(
    Channel, ALie,
    ::testing::Values(
        Lie{"CHAN_01_LengthOverTheLimit",
            [](GuestVoice& g, std::uint32_t s) {
              g.forge(static_cast<std::uint8_t>(FrameType::output), s, 0x7fffffff);
            }},
        Lie{"CHAN_04_UnknownType", [](GuestVoice& g, std::uint32_t s) { g.forge(99, s, 0); }},
        Lie{"CHAN_06_FrameOfAnOpener",
            [](GuestVoice& g, std::uint32_t s) {
              g.forge(static_cast<std::uint8_t>(FrameType::cancel), s, 0);
            }},
        Lie{"CHAN_06_StreamNeverOpened",
            [](GuestVoice& g, std::uint32_t s) { g.say(FrameType::output, s + 1, "x"); }},
        Lie{"CHAN_07_StartedTwice",
            [](GuestVoice& g, std::uint32_t s) {
              g.say(FrameType::started, s, encode(ExecStarted{}));
              g.say(FrameType::started, s, encode(ExecStarted{}));
            }},
        Lie{"CHAN_13_ASecondGreeting",
            [](GuestVoice& g, std::uint32_t) { g.say(FrameType::hello, 0, encode(Hello{})); }},
        Lie{"CHAN_08_CreditOverflow",
            [](GuestVoice& g, std::uint32_t s) {
              g.say(FrameType::credit, s, encode_credit(k_max_window));
              g.say(FrameType::credit, s, encode_credit(k_max_window));
            }},
        Lie{"CHAN_01_LengthOneAboveTheLimit",
            [](GuestVoice& g, std::uint32_t s) {
              g.forge(static_cast<std::uint8_t>(FrameType::output), s, k_max_payload + 1);
            }},
        Lie{"CHAN_01_LengthOfThirtyTwoBits",
            [](GuestVoice& g, std::uint32_t s) {
              g.forge(static_cast<std::uint8_t>(FrameType::reply), s, 0xffffffff);
            }},
        Lie{"CHAN_06_DataOfTheConnectionItself",
            [](GuestVoice& g, std::uint32_t) {
              g.forge(static_cast<std::uint8_t>(FrameType::output), 0, 1, "x");
            }},
        Lie{"CHAN_07_DataBehindTheEnd",
            [](GuestVoice& g, std::uint32_t s) {
              g.say(FrameType::started, s, "rubbish");
              g.say(FrameType::failure, s, "rubbish");
              g.say(FrameType::output, s, "x");
            }},
        Lie{"CHAN_08_CreditForAStreamThatIsNotOpen",
            [](GuestVoice& g, std::uint32_t s) { g.say(FrameType::credit, s + 7, encode_credit(1)); }},
        Lie{"CHAN_08_CreditOfNothing",
            [](GuestVoice& g, std::uint32_t s) { g.say(FrameType::credit, s, std::string(4, '\0')); }},
        Lie{"CHAN_08_CreditOfRubbish",
            [](GuestVoice& g, std::uint32_t s) { g.say(FrameType::credit, s, "?"); }}),
    [](const auto& info) { return info.param.name; });

// The client does not read, so that it grants nothing beyond the first window.
TEST(Channel, CHAN_08_MoreThanWasGrantedIsALie) {
  FakeMachine fake(on_request([](GuestVoice& guest, std::uint32_t stream) {
    for (int i = 0; i < 6; i++) guest.say(FrameType::output, stream, std::string(k_max_payload, 'x'));
  }));
  auto unread = open_command(fake.folder(), {.argv = {"x"}}, {}, 0);
  EXPECT_TRUE(eventually([&] { return fake.gone() == ErrorCode::guest_protocol; }));
  EXPECT_EQ(code_of([&] {
              while (unread.next({.deadline = Deadline::after(60s)})) {
              }
            }),
            ErrorCode::guest_protocol);
}

TEST(Channel, CHAN_07_ASecondEndIsALieToo) {
  FakeMachine fake(on_request([](GuestVoice& guest, std::uint32_t stream) {
    guest.say(FrameType::reply, stream, exit_reply(0));
    guest.say(FrameType::reply, stream, exit_reply(1));
  }));
  EXPECT_EQ(run(fake).exit_code, 0) << "the first end is the only one";
  EXPECT_TRUE(eventually([&] { return fake.gone() == ErrorCode::guest_protocol; }));
}

TEST(Channel, CHAN_11_ImpossibleEndsOfACommandNeverBecomeACode) {
  for (const auto& payload : {exit_reply(256), exit_reply(-1), exit_reply(0, 9), exit_reply(std::nullopt),
                              exit_reply(std::nullopt, 0), exit_reply(std::nullopt, 200),
                              std::string("\xff\xff", 2), std::string()}) {
    FakeMachine fake(on_request([payload](GuestVoice& guest, std::uint32_t stream) {
      guest.say(FrameType::reply, stream, payload);
    }));
    EXPECT_EQ(code_of([&] { run(fake); }), ErrorCode::guest_protocol);
  }
}

TEST(Channel, CHAN_10_AGuestThatNeverAnswersMeetsEveryDeadline) {
  FakeMachine fake([](GuestVoice&, const Frame&) {});
  auto begin = std::chrono::steady_clock::now();
  CallOptions soon{.deadline = Deadline::after(300ms)};
  EXPECT_EQ(code_of([&] { run(fake, {.deadline = soon.deadline}); }), ErrorCode::timeout);
  EXPECT_EQ(code_of([&] { ask(fake.folder(), StatRequest{.path = "/"}, Effect::none, soon); }),
            ErrorCode::timeout);
  EXPECT_EQ(code_of([&] { open_reader(fake.folder(), "/x", {.call = soon}); }), ErrorCode::timeout);
  EXPECT_EQ(code_of([&] { list_directory(fake.folder(), "/", soon); }), ErrorCode::timeout);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
}

TEST(Channel, CHAN_10_ACommandThatAGuestSaysNothingOfEndsWithoutADeadlineOfTheCaller) {
  FakeMachine fake(on_request([](GuestVoice& guest, std::uint32_t stream) {
    guest.say(FrameType::credit, stream, encode_credit(1));
  }));
  // The one that waits in vain would wait for ever: its test ends it.
  CancellationToken test_ends;
  auto begins = [&](const std::function<void()>& action) {
    return std::jthread([action] { EXPECT_EQ(code_of(action), ErrorCode::timeout); });
  };
  std::vector<std::jthread> callers;
  callers.push_back(begins([&] { run_command(fake.folder(), {.argv = {"x"}}, {.cancel = test_ends}); }));
  callers.push_back(begins([&] {
    auto stream = open_command(fake.folder(), {.argv = {"x"}}, {.cancel = test_ends}, 0);
    stream.write_stdin("input");
    stream.next();
  }));
  callers.push_back(begins([&] {
    auto stream = open_command(fake.folder(), {.argv = {"x"}}, {}, 0, Sending::queues);
    pollfd due{stream.fd(), POLLIN, 0};
    while (::poll(&due, 1, static_cast<int>(k_patience / 1ms)) == 1) stream.try_next();
  }));
  callers.push_back(
      begins([&] { attach_to(fake.folder(), "c1", {.cancel = test_ends}).next({.cancel = test_ends}); }));
  std::jthread end([&](const std::stop_token& all_ended) {
    eventually([&] { return all_ended.stop_requested(); });
    if (!all_ended.stop_requested()) test_ends.cancel();
  });
  callers.clear();
}

TEST(Channel, CHAN_10_ACommandThatRunsIsWaitedForHoweverLateItsAnswerIsFetched) {
  FakeMachine fake([](GuestVoice& guest, const Frame& frame) {
    if (!is_request(frame)) return;
    auto stream = frame.header.stream;
    auto request = decode_request(frame.payload);
    if (request && std::holds_alternative<ExistsRequest>(*request))
      return guest.say(FrameType::reply, stream, encode(ExistsReply{}));
    guest.say(FrameType::started, stream, encode(ExecStarted{}));
    guest.say(FrameType::output, stream, "out");
  });
  auto connection = StreamConnection::open(fake.folder(), ExecRequest{.argv = {"x"}}, Effect::possible, {});
  ASSERT_TRUE(eventually([&] { return std::ranges::count(fake.seen(), FrameType::request) == 1; }));
  // The relay takes what comes in its order: the output lies in the socket when it answers this.
  ask_for<ExistsReply>(fake.folder(), ExistsRequest{.path = "/"}, Effect::none, {});
  connection->set_answer_deadline(Deadline::after(0ms));
  ASSERT_TRUE(connection->next({}));
  EXPECT_EQ(connection->next({})->payload, "out");
  EXPECT_EQ(code_of([&] { connection->next({.deadline = Deadline::after(10ms)}); }), ErrorCode::timeout);
}

TEST(Channel, CancellingTellsTheGuest) {
  FakeMachine fake([](GuestVoice&, const Frame&) {});
  CancellationToken token;
  std::jthread canceller([&] {
    eventually([&] { return !fake.seen().empty(); });
    token.cancel();
  });
  EXPECT_EQ(code_of([&] { run(fake, {.cancel = token}); }), ErrorCode::cancelled);
  EXPECT_TRUE(eventually([&] { return std::ranges::count(fake.seen(), FrameType::cancel) == 1; }));
}

TEST(Channel, CHAN_12_ALostChannelIsNeverAnExitCode) {
  for (bool started : {false, true}) {
    FakeMachine fake(on_request([started](GuestVoice& guest, std::uint32_t stream) {
      if (started) guest.say(FrameType::started, stream, encode(ExecStarted{}));
      guest.hang_up();
    }));
    EXPECT_EQ(code_of([&] { run(fake); }), ErrorCode::outcome_unknown);
    EXPECT_EQ(fake.gone(), ErrorCode::guest_lost);
  }
}

TEST(Channel, CHAN_12_AReadThatGotLostChangedNothing) {
  FakeMachine fake(on_request([](GuestVoice& guest, std::uint32_t) { guest.hang_up(); }));
  EXPECT_EQ(code_of([&] { ask(fake.folder(), StatRequest{.path = "/"}, Effect::none, {}); }),
            ErrorCode::guest_lost);
}

TEST(Channel, NoMonitorIsInvalidStateAndMayBeTriedAgain) {
  TempDir dir;
  MachineFolder folder(dir.path() / "m");
  make_private_directory(folder.path());
  folder.write_status({.state = MachineState::stopped, .host_boot_id = {}});
  try {
    ask(folder, StatRequest{.path = "/"}, Effect::none, {});
    FAIL() << "expected INVALID_STATE";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::invalid_state);
    EXPECT_TRUE(e.retryable());
  }
  EXPECT_EQ(
      code_of([&] { ask(MachineFolder(dir.path() / "none"), StatRequest{.path = "/"}, Effect::none, {}); }),
      ErrorCode::not_found);
}

TEST(Channel, CHAN_09_AFloodOnOneStreamWaitsForItsReaderAndOthersGoOn) {
  std::atomic<std::uint32_t> flooded = 0;
  FakeMachine fake([&](GuestVoice& guest, const Frame& frame) {
    if (!is_request(frame)) return;
    if (flooded.exchange(frame.header.stream) == 0) {
      // Exactly the window: more would be a lie.
      for (int i = 0; i < 3; i++)
        guest.say(FrameType::error_output, frame.header.stream, std::string(k_max_payload, 'x'));
    } else {
      guest.say(FrameType::reply, frame.header.stream, exit_reply(0));
    }
  });
  auto stalled = open_command(fake.folder(), {.argv = {"flood"}}, {}, 0);
  ASSERT_TRUE(stalled.next({.deadline = Deadline::after(60s)}));
  for (int i = 0; i < 20; i++) EXPECT_EQ(run(fake).exit_code, 0);
  // With its window full it can be cancelled all the same.
  stalled.kill();
  EXPECT_TRUE(eventually([&] { return std::ranges::count(fake.seen(), FrameType::cancel) == 1; }));
  EXPECT_EQ(run(fake).exit_code, 0);
  EXPECT_FALSE(fake.gone());
}

TEST(Channel, CHAN_09_PingsWithoutEndDoNotGrowTheMonitor) {
  FakeMachine fake([](GuestVoice& guest, const Frame& frame) {
    if (!is_request(frame)) return;
    // It never reads an answer.
    for (int i = 0; i < 800'000; i++) guest.say(FrameType::ping, 0);
  });
  EXPECT_EQ(code_of([&] { run(fake); }), ErrorCode::guest_protocol);
  EXPECT_EQ(fake.gone(), ErrorCode::guest_protocol);
}

TEST(Channel, CHAN_09_GrantsWithoutEndEndTheClientThatLeavesThemUntaken) {
  std::atomic<std::uint32_t> flooded = 0;
  FakeMachine fake([&](GuestVoice& guest, const Frame& frame) {
    if (!is_request(frame)) return;
    auto stream = frame.header.stream;
    if (flooded.exchange(stream) != 0) return guest.say(FrameType::reply, stream, exit_reply(0));
    for (int i = 0; i < 200'000; i++) guest.say(FrameType::credit, stream, encode_credit(1));
  });
  auto stalled = open_command(fake.folder(), {.argv = {"flood"}}, {}, 0);
  EXPECT_TRUE(eventually([&] { return std::ranges::count(fake.seen(), FrameType::cancel) == 1; }));
  EXPECT_EQ(run(fake).exit_code, 0);
  EXPECT_FALSE(fake.gone());
}

TEST(Channel, WhatAClientMayNotAskIsRefusedBeforeTheGuest) {
  FakeMachine fake(on_request(
      [](GuestVoice& guest, std::uint32_t stream) { guest.say(FrameType::reply, stream, encode(Done{})); }));
  EXPECT_EQ(code_of([&] { ask(fake.folder(), IdentityRequest{}, Effect::none, {}); }),
            ErrorCode::not_supported);
  EXPECT_EQ(code_of([&] { ask(fake.folder(), SyncRequest{.freeze = Freeze::yes}, Effect::none, {}); }),
            ErrorCode::not_supported);
  EXPECT_EQ(code_of([&] { ask(fake.folder(), ClockRequest{}, Effect::none, {}); }), ErrorCode::not_supported);
  EXPECT_FALSE(code_of([&] { ask(fake.folder(), SyncRequest{}, Effect::none, {}); }));
}

TEST(Channel, AStopGivesFileOperationsUpAndLeavesCommandsTheirGrace) {
  FakeMachine fake([](GuestVoice&, const Frame&) {});
  auto command = open_command(fake.folder(), {.argv = {"x"}}, {}, 0);
  std::jthread reader(
      [&] { code_of([&] { ask(fake.folder(), StatRequest{.path = "/"}, Effect::none, {}); }); });
  ASSERT_TRUE(eventually([&] { return std::ranges::count(fake.seen(), FrameType::request) == 2; }));
  fake.interrupt(Error(ErrorCode::guest_lost, "stopped"));
  EXPECT_TRUE(eventually([&] { return std::ranges::count(fake.seen(), FrameType::cancel) == 1; }));
}

TEST(Channel, CHAN_14_ALostCallerEndsACommandUnlessItMayComeBackForIt) {
  FakeMachine fake([](GuestVoice& guest, const Frame& frame) {
    if (!is_request(frame)) return;
    auto request = decode_request(frame.payload);
    if (request && std::holds_alternative<ExistsRequest>(*request))
      guest.say(FrameType::reply, frame.header.stream, encode(ExistsReply{}));
  });
  auto seen = [&](FrameType type) { return std::ranges::count(fake.seen(), type); };
  auto is_cancelled = [&](const ExecOptions& options, auto end) {
    auto requests = seen(FrameType::request);
    auto cancels = seen(FrameType::cancel);
    {
      auto stream = open_to_abandon(fake.folder(), {.argv = {"x"}}, options);
      EXPECT_TRUE(eventually([&] { return seen(FrameType::request) > requests; }));
      end(stream);
    }
    // The relay takes what comes in its order: it has said what it had to say when it answers this.
    ask_for<ExistsReply>(fake.folder(), ExistsRequest{.path = "/"}, Effect::none, {});
    return seen(FrameType::cancel) > cancels;
  };
  auto lose = [](ExecStream& stream) { stream.abandon(); };
  auto kill = [](ExecStream& stream) { stream.kill(); };
  EXPECT_TRUE(is_cancelled({}, lose));
  EXPECT_FALSE(is_cancelled({.idempotency_key = "k"}, lose));
  EXPECT_TRUE(is_cancelled({.idempotency_key = "k"}, kill));
  EXPECT_TRUE(is_cancelled({.stdin_mode = holt::StdinMode::pipe, .idempotency_key = "k"}, lose))
      << "a part of an input would pass for all of it";
}

TEST(Channel, CHAN_14_ARepeatAttachesToTheCommandOfTheFirst) {
  HostedMachine machine;
  TempDir dir;
  auto fifo = (dir.path() / "go").string();
  auto script = "echo begun >> " + (dir.path() / "count").string() + "; mkfifo " + fifo +
                "; echo up; read x < " + fifo + "; echo $x; exit 3";
  ExecOptions options{.idempotency_key = "k"};
  {
    auto lost = open_to_abandon(machine.folder(), {.script = script}, options);
    EXPECT_EQ(lost.next()->data, "up\n");
    lost.abandon();
  }
  auto again = open_command(machine.folder(), {.script = script}, options, 0);
  EXPECT_EQ(again.next()->data, "up\n");
  run_command(machine.folder(), {.script = "echo on > " + fifo}, {});
  EXPECT_EQ(again.next()->data, "on\n");
  EXPECT_EQ(again.next()->result.exit_code, 3);
  auto ended = open_command(machine.folder(), {.script = script}, options, 0);
  EXPECT_EQ(ended.next()->data, "up\non\n");
  EXPECT_EQ(ended.next()->result.exit_code, 3);
  EXPECT_EQ(read_file(dir.path() / "count", 100), "begun\n");
  EXPECT_EQ(code_of([&] { run_command(machine.folder(), {.argv = {"true"}}, options); }),
            ErrorCode::conflict);
}

TEST(Channel, CHAN_28_RubbishFromAClientEndsThatClientOnly) {
  FakeMachine fake(on_request(
      [](GuestVoice& guest, std::uint32_t stream) { guest.say(FrameType::reply, stream, exit_reply(0)); }));
  for (const std::string& bytes :
       {std::string(100, '\xff'), std::string("GET / HTTP/1.1\r\n\r\n"), std::string(16, '\0')}) {
    SocketAddress address(fake.folder());
    Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(socket.get(), address.get(), address.size()), 0);
    write_all(socket.get(), bytes);
    ::shutdown(socket.get(), SHUT_WR);
    pollfd ended{socket.get(), POLLIN, 0};
    EXPECT_GT(::poll(&ended, 1, 10'000), 0) << "the monitor should close the connection";
    EXPECT_EQ(run(fake).exit_code, 0);
  }
  EXPECT_FALSE(fake.gone());
}

// ---- Content
// -----------------------------------------------------------------------------------------------

std::string status(std::uint64_t size) {
  return encode(FileStatus{.type = protocol::FileType::regular, .size = size});
}

TEST(Content, CHAN_16_AFileThatIsShorterOrLongerThanAnnouncedIsAnError) {
  for (std::size_t sent : {10u, 1000u}) {
    FakeMachine fake(on_request([sent](GuestVoice& guest, std::uint32_t stream) {
      guest.say(FrameType::started, stream, status(100));
      guest.say(FrameType::output, stream, std::string(sent, 'x'));
      guest.say(FrameType::reply, stream, encode(ReadFileReply{.bytes = sent}));
    }));
    EXPECT_EQ(code_of([&] {
                auto reader = open_reader(fake.folder(), "/f", {});
                while (reader.next()) {
                }
              }),
              ErrorCode::guest_protocol);
  }
}

TEST(Content, CHAN_15_NamesThatNoFileCanHaveAreRefused) {
  for (const std::string& name : {std::string(), std::string("."), std::string(".."), std::string("a/b"),
                                  std::string("/x"), std::string("a\0b", 3), std::string(70'000, 'n')}) {
    FakeMachine fake(on_request([name](GuestVoice& guest, std::uint32_t stream) {
      guest.say(FrameType::entry, stream, encode(DirectoryPage{.entries = {{.name = name}}}));
      guest.say(FrameType::reply, stream, encode(ListReply{.entries = 1}));
    }));
    EXPECT_EQ(code_of([&] { list_directory(fake.folder(), "/", {}); }), ErrorCode::guest_protocol)
        << name.substr(0, 10);
  }
}

TEST(Content, CHAN_15_OneNameTwiceIsALie) {
  FakeMachine fake(on_request([](GuestVoice& guest, std::uint32_t stream) {
    guest.say(FrameType::entry, stream, encode(DirectoryPage{.entries = {{.name = "a"}, {.name = "a"}}}));
    guest.say(FrameType::reply, stream, encode(ListReply{.entries = 2}));
  }));
  EXPECT_EQ(code_of([&] { list_directory(fake.folder(), "/", {}); }), ErrorCode::guest_protocol);
}

TEST(Content, CHAN_17_TextOfTheGuestIsShownWithoutControlBytes) {
  FakeMachine fake(on_request([](GuestVoice& guest, std::uint32_t stream) {
    guest.say(FrameType::failure, stream,
              encode(Failure{.code = "NOT_FOUND", .message = "\x1b]52;c;x\x07" + std::string(100'000, 'm')}));
  }));
  try {
    ask(fake.folder(), StatRequest{.path = "/"}, Effect::none, {});
    FAIL() << "expected NOT_FOUND";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::not_found);
    EXPECT_EQ(std::string(e.what()).find('\x1b'), std::string::npos);
    EXPECT_LT(std::string(e.what()).size(), 5000u);
  }
}

/// A tree that a hostile guest sends, and what is outside of the place it may write to.
class HostileTree : public ::testing::Test {
 protected:
  void SetUp() override {
    make_private_directory(dir.path() / "outside");
    write_file_atomically(dir.path() / "outside" / "canary", "alive");
  }
  void TearDown() override {
    EXPECT_EQ(read_file(dir.path() / "outside" / "canary", 100), "alive");
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir.path() / "outside"))
      count++;
    EXPECT_EQ(count, 1u) << "something was written outside";
  }

  std::optional<ErrorCode> copy(std::vector<std::pair<TreeEntry, std::string>> tree,
                                CopyResult* result = nullptr) {
    FakeMachine fake(on_request([tree](GuestVoice& guest, std::uint32_t stream) {
      for (const auto& [entry, content] : tree) {
        guest.say(FrameType::entry, stream, encode(entry));
        if (!content.empty()) guest.say(FrameType::output, stream, content);
      }
      guest.say(FrameType::reply, stream, encode(TreeReply{}));
    }));
    return code_of([&] {
      auto done = copy_tree_out(fake.folder(), "/d", target(), {});
      if (result != nullptr) *result = done;
    });
  }

  static TreeEntry directory(const std::string& path) {
    return {.path = path, .type = protocol::FileType::directory, .mode = 0755};
  }
  static TreeEntry file(const std::string& path, std::uint64_t size) {
    return {.path = path, .size = size, .mode = 06755};
  }
  static TreeEntry link(const std::string& path, const std::string& to) {
    return {.path = path, .type = protocol::FileType::symlink, .link_target = to};
  }
  std::filesystem::path target() const { return dir.path() / "out"; }

  TempDir dir;
};

TEST_F(HostileTree, FILES_04_PathsThatLeaveItAreRefused) {
  for (const std::string path : {"..", "../outside/x", "/etc/x", "a//b", "./a", "a/../../outside/x", "a/."}) {
    EXPECT_EQ(copy({{directory(""), ""}, {file(path, 1), "x"}}), ErrorCode::guest_protocol) << path;
  }
  EXPECT_EQ(copy({{directory(""), ""}, {file(std::string("a\0b", 3), 1), "x"}}), ErrorCode::guest_protocol);
  EXPECT_EQ(copy({{directory(""), ""}, {file(std::string(256, 'n'), 1), "x"}}), ErrorCode::guest_protocol);
}

TEST_F(HostileTree, FILES_04_ALinkOfTheTreeIsNeverFollowed) {
  CopyResult result;
  EXPECT_FALSE(
      copy({{directory(""), ""}, {link("a", "../outside"), ""}, {file("a/canary", 4), "dead"}}, &result));
  EXPECT_EQ(result.failed, 1u);
  EXPECT_TRUE(std::filesystem::is_symlink(target() / "a"));
}

TEST_F(HostileTree, FILES_05_ALinkAtTheDestinationIsReplacedNotWrittenThrough) {
  make_private_directory(target());
  std::filesystem::create_symlink("../outside/canary", target() / "x");
  std::filesystem::create_symlink("../outside", target() / "sub");
  CopyResult result;
  EXPECT_FALSE(
      copy({{directory(""), ""}, {file("x", 3), "new"}, {directory("sub"), ""}, {file("sub/y", 1), "y"}},
           &result));
  EXPECT_EQ(read_file(target() / "x", 10), "new");
  EXPECT_FALSE(std::filesystem::is_symlink(target() / "x"));
  EXPECT_EQ(result.failed, 2u) << "the folder under the link, and what should go into it";
}

TEST_F(HostileTree, FILES_04_SpecialBitsAreDroppedAndSpecialFilesSkipped) {
  CopyResult result;
  EXPECT_FALSE(
      copy({{directory(""), ""}, {file("f", 1), "x"}, {{.path = "p", .type = protocol::FileType::fifo}, ""}},
           &result));
  EXPECT_EQ(result.skipped, 1u);
  EXPECT_EQ(std::filesystem::status(target() / "f").permissions(), std::filesystem::perms(0755));
}

TEST_F(HostileTree, CHAN_16_APathTwiceOrBytesTooManyAreLies) {
  EXPECT_EQ(copy({{directory(""), ""}, {file("a", 1), "x"}, {directory("a"), ""}}),
            ErrorCode::guest_protocol);
  EXPECT_EQ(copy({{directory(""), ""}, {file("a", 1), "xyz"}}), ErrorCode::guest_protocol);
  EXPECT_EQ(copy({{directory(""), ""}, {file("a", 5), "xyz"}, {file("b", 0), ""}}),
            ErrorCode::guest_protocol);
}

TEST_F(HostileTree, CHAN_16_AFileThatEndsEarlyLeavesNothingUnderItsName) {
  EXPECT_EQ(copy({{file("", 100), "half"}}), ErrorCode::guest_protocol);
  EXPECT_FALSE(std::filesystem::exists(target()));
  std::size_t left = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir.path())) left++;
  EXPECT_EQ(left, 1u) << "a temporary file is left beside the target";
}

}  // namespace
}  // namespace holt::test
