// Frames and flow control: what is legal comes through however it is cut, the rest is refused by its rule.
#include "holt/protocol/frame.hpp"

#include "holt/protocol/flow.hpp"

#include <gtest/gtest.h>

namespace holt::protocol {
namespace {

std::string wire(FrameHeader header, std::string_view payload, std::uint32_t sequence = 0) {
  FrameWriter writer;
  writer.set_next_sequence(sequence);
  std::string out;
  writer.append(out, header, payload);
  return out;
}

/// A header with any field, also those that no writer writes.
std::string raw_header(std::uint32_t length, std::uint32_t stream, std::uint8_t type, std::uint8_t flags = 0,
                       std::uint16_t reserved = 0, std::uint32_t sequence = 0) {
  std::string bytes;
  auto put = [&](std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  };
  put(length, 4);
  put(stream, 4);
  put(type, 1);
  put(flags, 1);
  put(reserved, 2);
  put(sequence, 4);
  return bytes;
}

Violation refusal(std::string_view bytes, Side side = Side::server) {
  FrameParser parser(side);
  auto fed = parser.feed(bytes);
  EXPECT_FALSE(fed.has_value()) << "accepted";
  EXPECT_FALSE(parser.feed("more").has_value()) << "went on after an error";
  return fed ? Violation::handshake : fed.error().rule;
}

constexpr std::string_view k_payload = "some payload bytes";

TEST(FrameParser, CHAN_02_EverySplitGivesTheSameFrames) {
  std::string bytes;
  FrameWriter writer;
  writer.append(bytes, {.type = FrameType::hello}, "");
  writer.append(bytes, {.type = FrameType::output, .stream = 7}, k_payload);
  writer.append(bytes, {.type = FrameType::reply, .stream = 7}, "");
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    FrameParser parser(Side::server);
    ASSERT_TRUE(parser.feed(bytes.substr(0, cut)));
    ASSERT_TRUE(parser.feed(bytes.substr(cut)));
    EXPECT_EQ(parser.next()->header.type, FrameType::hello);
    auto frame = parser.next();
    EXPECT_EQ(frame->payload, k_payload);
    EXPECT_EQ(frame->header.stream, 7U);
    EXPECT_EQ(parser.next()->header.type, FrameType::reply);
    EXPECT_FALSE(parser.next());
  }
}

TEST(FrameParser, CHAN_02_OneByteAtATimeWorks) {
  FrameParser parser(Side::server);
  for (char byte : wire({.type = FrameType::output, .stream = 1}, k_payload)) {
    EXPECT_FALSE(parser.next());
    ASSERT_TRUE(parser.feed({&byte, 1}));
  }
  EXPECT_EQ(parser.next()->payload, k_payload);
}

TEST(FrameParser, CHAN_02_AThousandFramesInOnePieceWork) {
  std::string bytes;
  FrameWriter writer;
  for (int i = 0; i < 1000; ++i)
    writer.append(bytes, {.type = FrameType::output, .stream = 1}, std::to_string(i));
  FrameParser parser(Side::server);
  ASSERT_TRUE(parser.feed(bytes));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(parser.next()->payload, std::to_string(i));
}

TEST(FrameParser, ReadsStraightIntoLargePayloads) {
  std::string payload(k_max_payload, 'p');
  auto bytes = wire({.type = FrameType::output, .stream = 1}, payload);
  for (std::size_t piece : {std::size_t{1} << 12, std::size_t{4093}, std::size_t{1} << 20}) {
    FrameParser parser(Side::server);
    for (std::string_view rest = bytes; !rest.empty();) {
      auto room = parser.space();
      ASSERT_FALSE(room.empty());
      auto count = std::min({room.size(), piece, rest.size()});
      std::copy_n(rest.begin(), count, room.begin());
      ASSERT_TRUE(parser.commit(count));
      rest.remove_prefix(count);
    }
    EXPECT_TRUE(parser.next()->payload == payload);
  }
}

TEST(FrameParser, SpaceAskedForAgainWithoutBytesLosesAndAddsNothing) {
  std::string payload(k_max_payload, 'p');
  payload.front() = 'a';
  payload.back() = 'z';
  auto bytes = wire({.type = FrameType::output, .stream = 1}, payload);
  FrameParser parser(Side::server);
  for (std::string_view rest = bytes; !rest.empty();) {
    parser.space();
    auto room = parser.space();
    ASSERT_FALSE(room.empty());
    auto count = std::min({room.size(), std::size_t{4093}, rest.size()});
    std::copy_n(rest.begin(), count, room.begin());
    ASSERT_TRUE(parser.commit(count));
    rest.remove_prefix(count);
  }
  auto frame = parser.next();
  ASSERT_TRUE(frame);
  EXPECT_TRUE(frame->payload == payload);
}

TEST(FrameParser, CHAN_01_LengthsUpToTheLimitWorkAndAboveAreRefusedByTheHeaderAlone) {
  FrameParser parser(Side::server);
  ASSERT_TRUE(parser.feed(wire({.type = FrameType::output, .stream = 1}, std::string(k_max_payload, 'x'))));
  EXPECT_EQ(parser.next()->payload.size(), k_max_payload);
  for (std::uint32_t length : {std::uint32_t{k_max_payload} + 1, 0x7fffffffU, 0x80000000U, 0xffffffffU}) {
    EXPECT_EQ(refusal(raw_header(length, 1, static_cast<std::uint8_t>(FrameType::output))),
              Violation::frame_too_long);
  }
  EXPECT_EQ(refusal(raw_header(65, 0, static_cast<std::uint8_t>(FrameType::ping))),
            Violation::frame_too_long);
}

TEST(FrameParser, RequestsMayBeLongerThanOtherFrames) {
  std::string payload(k_max_request, 'r');
  FrameParser parser(Side::opener);
  ASSERT_TRUE(parser.feed(wire({.type = FrameType::request, .stream = 1}, payload)));
  EXPECT_TRUE(parser.next()->payload == payload);
  EXPECT_EQ(
      refusal(raw_header(k_max_request + 1, 1, static_cast<std::uint8_t>(FrameType::request)), Side::opener),
      Violation::frame_too_long);
}

TEST(FrameParser, CHAN_04_UnknownTypesFlagsAndReservedBytesAreRefused) {
  for (int type : {0, 5, 15, 21, 31, 37, 50, 255}) {
    EXPECT_EQ(refusal(raw_header(0, 1, static_cast<std::uint8_t>(type))), Violation::unknown_type) << type;
  }
  EXPECT_EQ(refusal(raw_header(0, 1, static_cast<std::uint8_t>(FrameType::output), 1)),
            Violation::unknown_flag);
  EXPECT_EQ(refusal(raw_header(0, 1, static_cast<std::uint8_t>(FrameType::input), 2), Side::opener),
            Violation::unknown_flag);
  EXPECT_EQ(refusal(raw_header(0, 1, static_cast<std::uint8_t>(FrameType::output), 0, 1)),
            Violation::bad_header);
}

TEST(FrameParser, CHAN_06_EachSideSendsItsOwnTypesOnly) {
  for (auto type :
       {FrameType::request, FrameType::input, FrameType::cancel, FrameType::signal, FrameType::resize}) {
    EXPECT_EQ(refusal(raw_header(0, 1, static_cast<std::uint8_t>(type)), Side::server),
              Violation::unknown_type);
  }
  for (auto type : {FrameType::started, FrameType::output, FrameType::error_output, FrameType::reply,
                    FrameType::failure}) {
    EXPECT_EQ(refusal(raw_header(0, 1, static_cast<std::uint8_t>(type)), Side::opener),
              Violation::unknown_type);
  }
}

TEST(FrameParser, ConnectionFramesAreOnStreamZeroAndOthersNot) {
  EXPECT_EQ(refusal(wire({.type = FrameType::pong, .stream = 3}, "")), Violation::bad_stream);
  EXPECT_EQ(refusal(wire({.type = FrameType::output, .stream = 0}, "x")), Violation::bad_stream);
}

TEST(FrameParser, MissingOrDoubledFramesAreNoticed) {
  auto first = wire({.type = FrameType::pong}, "", 41);
  FrameParser parser(Side::server);
  ASSERT_TRUE(parser.feed(first)) << "any number begins";
  EXPECT_TRUE(parser.feed(wire({.type = FrameType::pong}, "", 42)));
  EXPECT_EQ(parser.feed(wire({.type = FrameType::pong}, "", 42)).error().rule, Violation::bad_sequence);
  EXPECT_EQ(refusal(first + wire({.type = FrameType::pong}, "", 43)), Violation::bad_sequence);
}

TEST(FrameParser, HelloCountsAnewAndNumbersWrapAround) {
  FrameParser parser(Side::server);
  ASSERT_TRUE(parser.feed(wire({.type = FrameType::pong}, "", 5)));
  ASSERT_TRUE(parser.feed(wire({.type = FrameType::hello}, "", 0xffffffff)));
  EXPECT_TRUE(parser.feed(wire({.type = FrameType::pong}, "", 0)));
}

TEST(FrameParser, UnparsedBytesGoOnInAnotherParser) {
  auto bytes = wire({.type = FrameType::output, .stream = 1}, k_payload, 9);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    FrameParser first(Side::server);
    ASSERT_TRUE(first.feed(bytes.substr(0, cut)));
    FrameParser second(Side::server);
    second.set_expected_sequence(first.expected_sequence());
    ASSERT_TRUE(second.feed(first.unparsed()));
    ASSERT_TRUE(second.feed(bytes.substr(cut)));
    EXPECT_EQ(second.next()->payload, k_payload) << cut;
  }
}

TEST(Credit, IsSpentByHeaderAndPayloadAndBoundsTheNextFrame) {
  SendCredit credit;
  EXPECT_EQ(credit.payload_room(), k_max_payload);
  while (credit.payload_room() == k_max_payload) credit.spend(k_max_payload);
  auto last = credit.payload_room();
  EXPECT_TRUE(credit.can_send(last));
  EXPECT_FALSE(credit.can_send(last + 1));
  credit.spend(last);
  EXPECT_EQ(credit.available(), 0U);
  EXPECT_EQ(credit.payload_room(), 0U);
  ASSERT_TRUE(credit.grant(1));
  EXPECT_EQ(credit.payload_room(), 0U) << "a byte of credit pays for no frame";
}

TEST(Credit, CHAN_08_OverflowIsRefused) {
  SendCredit credit;
  EXPECT_TRUE(credit.grant(k_max_window - k_initial_window));
  EXPECT_EQ(credit.grant(1).error().rule, Violation::credit_overflow);
  EXPECT_EQ(SendCredit().grant(0xffffffff).error().rule, Violation::credit_overflow);
}

TEST(Window, CHAN_08_OverdraftIsRefusedAndGrantsKeepTheSenderGoing) {
  ReceiveWindow window;
  SendCredit credit;
  std::uint64_t sent = 0;
  for (int i = 0; i < 1000; ++i) {
    auto payload = credit.payload_room();
    ASSERT_GT(payload, 0U) << "stuck after " << sent;
    credit.spend(payload);
    ASSERT_TRUE(window.receive(payload));
    sent += payload;
    if (auto grant = window.release(payload); grant != 0) ASSERT_TRUE(credit.grant(grant));
  }
  ReceiveWindow full;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(full.receive(k_max_payload));
  EXPECT_EQ(full.receive(k_max_payload).error().rule, Violation::overdraft) << "headers count too";
}

TEST(Window, EmptyFramesCostCreditAsWell) {
  ReceiveWindow window;
  std::uint32_t frames = 0;
  while (window.receive(0)) ++frames;
  EXPECT_EQ(frames, k_initial_window / k_header_size);
}

TEST(CreditFrame, CHAN_08_RoundTripsAndRefusesNothingAndRubbish) {
  EXPECT_EQ(decode_credit(encode_credit(0x12345678)), 0x12345678U);
  for (std::string bad : {std::string(), std::string(4, '\0'), std::string(3, 'x'), std::string(5, 'x')}) {
    EXPECT_FALSE(decode_credit(bad).has_value());
  }
}

}  // namespace
}  // namespace holt::protocol
