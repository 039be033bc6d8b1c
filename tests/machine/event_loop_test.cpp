// Streams that an event loop drives by their descriptors, against a guest that is a function.
#include "machine/exec_stream.hpp"
#include "machine/fake_guest.hpp"
#include "machine/file_streams.hpp"

#include <sys/wait.h>
#include <unistd.h>

namespace holt::test {
namespace {

using namespace machine;
using namespace protocol;

bool readable(int fd, int milliseconds = 10'000) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, milliseconds) == 1;
}

ExecStream begin(const FakeMachine& fake, const ExecOptions& options = {}) {
  return open_command(fake.folder(), {.argv = {"x"}}, options, 0, Sending::queues);
}

std::string exit_reply(std::int64_t code) {
  return encode(ExecReply{.exit_code = code});
}

/// What a frame of input has cost.
std::string credit_for(const Frame& frame) {
  return encode_credit(static_cast<std::uint32_t>(frame_cost(frame.payload.size())));
}

/// The next event, waited for by the descriptor.
std::optional<ExecEvent> next_of(ExecStream& stream) {
  auto deadline = Deadline::after(60s);
  for (;;) {
    auto event = stream.try_next();
    if (!event.pending) return std::move(event.value);
    if (deadline.passed()) throw Error(ErrorCode::timeout, "the test's patience ended");
    readable(stream.fd(), 100);
  }
}

TEST(EventLoop, TryNextWaitsForNothingAndTheDescriptorTellsOfEvents) {
  std::atomic<bool> asked = false;
  std::atomic<bool> go_on = false;
  FakeMachine fake([&](GuestVoice& guest, const Frame& frame) {
    if (frame.header.type != FrameType::request) return;
    guest.say(FrameType::started, frame.header.stream, encode(ExecStarted{.pid = 7}));
    asked = true;
    go_on.wait(false);
    guest.say(FrameType::output, frame.header.stream, "out");
    guest.say(FrameType::reply, frame.header.stream, exit_reply(3));
  });
  auto stream = begin(fake);
  ASSERT_TRUE(eventually([&] { return asked.load(); }));
  EXPECT_TRUE(eventually([&] {
    // What has come by now says nothing: only that the command was started.
    return stream.try_next().pending && !readable(stream.fd(), 20);
  }));
  go_on = true;
  go_on.notify_all();
  auto event = next_of(stream);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->data, "out");
  event = next_of(stream);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->result.exit_code, 3);
  EXPECT_FALSE(next_of(stream));
  EXPECT_TRUE(readable(stream.fd(), 0));
}

TEST(EventLoop, DescriptorPollsReadableAtTheDeadline) {
  FakeMachine fake([](GuestVoice&, const Frame&) {});
  auto stream = begin(fake, {.deadline = Deadline::after(50ms)});
  ASSERT_TRUE(eventually([&] { return code_of([&] { stream.try_next(); }) == ErrorCode::timeout; }));
  EXPECT_TRUE(readable(stream.fd(), 0));
}

TEST(EventLoop, KillWakesTheWatcherAndEndsTheStream) {
  FakeMachine fake([](GuestVoice&, const Frame&) {});
  auto stream = begin(fake);
  std::jthread killer([&] {
    eventually([&] { return !fake.seen().empty(); });
    stream.kill();
  });
  EXPECT_FALSE(next_of(stream));
  EXPECT_TRUE(eventually([&] {
    auto seen = fake.seen();
    return std::ranges::find(seen, FrameType::cancel) != seen.end();
  }));
}

TEST(EventLoop, WriterIsFreeWhileTheGuestTakesNothing) {
  std::atomic<std::uint64_t> arrived = 0;
  FakeMachine fake([&](GuestVoice&, const Frame& frame) {
    if (frame.header.type == FrameType::input) arrived += frame.payload.size();
  });
  auto stream = begin(fake, {.stdin_mode = holt::StdinMode::pipe});
  const std::string data(std::size_t{3} << 20, 'x');
  std::size_t sent = 0;
  ASSERT_TRUE(eventually([&] {
    auto n = stream.try_write_stdin(std::string_view(data).substr(sent));
    sent += n;
    return n == 0 && arrived == sent;
  }));
  EXPECT_GT(sent, 0U);
  EXPECT_LE(sent, std::size_t{1} << 20) << "more than the window";
  EXPECT_FALSE(readable(stream.input_fd(), 20));
}

TEST(EventLoop, WriterIsToldWhenTheGuestTakesMore) {
  FakeMachine fake([](GuestVoice& guest, const Frame& frame) {
    if (frame.header.type != FrameType::input) return;
    guest.say(FrameType::credit, frame.header.stream, credit_for(frame));
    if (frame.header.flags != 0) guest.say(FrameType::reply, frame.header.stream, exit_reply(0));
  });
  auto stream = begin(fake, {.stdin_mode = holt::StdinMode::pipe});
  const std::string data(std::size_t{3} << 20, 'x');
  for (std::size_t at = 0; at < data.size();) {
    auto n = stream.try_write_stdin(std::string_view(data).substr(at));
    at += n;
    if (n == 0) ASSERT_TRUE(readable(stream.input_fd()));
  }
  stream.close_stdin();
  auto event = next_of(stream);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->result.exit_code, 0);
  EXPECT_EQ(stream.try_write_stdin("to nobody"), 9U);
}

TEST(EventLoop, FileIsWrittenWithoutWaiting) {
  std::atomic<std::uint64_t> taken = 0;
  FakeMachine fake([&](GuestVoice& guest, const Frame& frame) {
    if (frame.header.type != FrameType::input) return;
    taken += frame.payload.size();
    guest.say(FrameType::credit, frame.header.stream, credit_for(frame));
    if (frame.header.flags != 0) {
      guest.say(FrameType::reply, frame.header.stream, encode(WriteFileReply{.bytes = taken.load()}));
    }
  });
  auto writer = open_writer(fake.folder(), "/x", {}, Sending::queues);
  const std::string data(std::size_t{3} << 20, 'x');
  for (std::size_t at = 0; at < data.size();) {
    auto n = writer.try_write(std::string_view(data).substr(at));
    at += n;
    if (n == 0) ASSERT_TRUE(readable(writer.write_fd()));
  }
  while (!writer.try_finish()) ASSERT_TRUE(readable(writer.finish_fd()));
  EXPECT_EQ(taken, data.size());
}

TEST(EventLoop, WriterIsToldWhyItsFileIsRefused) {
  FakeMachine fake([](GuestVoice& guest, const Frame& frame) {
    if (frame.header.type != FrameType::request) return;
    guest.say(FrameType::failure, frame.header.stream,
              encode(Failure{.code = std::string(to_string(ErrorCode::not_found)), .message = "no folder"}));
  });
  auto writer = open_writer(fake.folder(), "/no/x", {}, Sending::queues);
  EXPECT_TRUE(eventually([&] { return code_of([&] { writer.try_write("x"); }) == ErrorCode::not_found; }));
}

TEST(EventLoop, FRONT_24_ForkedChildLetsGoWithoutAWord) {
  std::atomic<bool> go_on = false;
  FakeMachine fake([&](GuestVoice& guest, const Frame& frame) {
    if (frame.header.type != FrameType::request) return;
    go_on.wait(false);
    guest.say(FrameType::reply, frame.header.stream, exit_reply(5));
  });
  auto stream = begin(fake);
  stream.fd();
  auto child = ::fork();
  if (child == 0) {
    stream.abandon();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  go_on = true;
  go_on.notify_all();
  auto event = next_of(stream);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->result.exit_code, 5);
}

}  // namespace
}  // namespace holt::test
