// Messages: what is written is read back; what a liar writes is refused before it costs anything.
#include "holt/protocol/messages.hpp"

#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace holt::protocol {
namespace {

using Json = nlohmann::ordered_json;

std::string cbor(const Json& value) {
  std::string bytes;
  Json::to_cbor(value, bytes);
  return bytes;
}

template <class Message>
Violation refusal(std::string_view payload) {
  auto message = decode<Message>(payload);
  EXPECT_FALSE(message.has_value()) << "accepted";
  return message ? Violation::handshake : message.error().rule;
}

TEST(Messages, RequestsComeBackAsTheyWere) {
  ExecRequest request{.argv = {"a", "", std::string("\0\xff", 2)},
                      .env = {{"NAME", "value"}, {"EMPTY", ""}},
                      .cwd = "/x",
                      .user = "nobody:0",
                      .timeout_ms = 1234,
                      .stdin_mode = StdinMode::stream,
                      .output_limit = std::numeric_limits<std::uint64_t>::max(),
                      .terminal = TerminalSize{.rows = 1, .columns = 2},
                      .key = "key"};
  auto back = std::get<ExecRequest>(decode_request(encode_request(request)).value());
  EXPECT_EQ(back.argv, request.argv);
  EXPECT_FALSE(back.script);
  ASSERT_EQ(back.env.size(), 2U);
  EXPECT_EQ(back.env[0].value, "value");
  EXPECT_EQ(back.timeout_ms, 1234);
  EXPECT_EQ(back.stdin_mode, StdinMode::stream);
  EXPECT_EQ(back.output_limit, request.output_limit);
  EXPECT_EQ(back.terminal->columns, 2U);
  EXPECT_EQ(back.key, "key");
}

TEST(Messages, EveryOperationIsKnownByItsName) {
  for (const Request& request :
       {Request(IdentityRequest{}),      Request(ExecRequest{}),          Request(ReadFileRequest{}),
        Request(WriteFileRequest{}),     Request(StatRequest{}),          Request(ExistsRequest{}),
        Request(ListRequest{}),          Request(MakeDirRequest{}),       Request(RemoveRequest{}),
        Request(RealPathRequest{}),      Request(RenameRequest{}),        Request(TreeOutRequest{}),
        Request(TreeInRequest{}),        Request(SyncRequest{}),          Request(ShutdownRequest{}),
        Request(StatusRequest{}),        Request(ClockRequest{}),         Request(StartCommandRequest{}),
        Request(CommandsRequest{}),      Request(AttachCommandRequest{}), Request(WaitCommandRequest{}),
        Request(SignalCommandRequest{}), Request(KillCommandRequest{}),   Request(SetAttributesRequest{})}) {
    auto back = decode_request(encode_request(request));
    ASSERT_TRUE(back.has_value()) << operation_name(request);
    EXPECT_EQ(back->index(), request.index()) << operation_name(request);
  }
}

TEST(Messages, ExtremesOfNumbersSurvive) {
  FileStatus status{.type = FileType::block_device,
                    .size = std::numeric_limits<std::uint64_t>::max(),
                    .mode = 07777,
                    .mtime_s = std::numeric_limits<std::int64_t>::min()};
  auto back = decode<FileStatus>(encode(status)).value();
  EXPECT_EQ(back.size, status.size);
  EXPECT_EQ(back.mtime_s, status.mtime_s);
  EXPECT_EQ(back.type, FileType::block_device);
}

TEST(Messages, AreOrdinaryCbor) {
  auto json = Json::from_cbor(encode(ExecReply{.exit_code = 3, .timed_out = true}));
  EXPECT_EQ(json.at("exit_code"), 3);
  EXPECT_TRUE(json.at("signal").is_null());
  EXPECT_EQ(json.at("timed_out"), true);
}

TEST(Messages, CHAN_04_MissingFieldsKeepTheirDefaultsAndUnknownOnesAreSkipped) {
  Json json = {
      {"future", {{"deep", {1, 2, {{"x", nullptr}}}}}}, {"message", "text"}, {"more", Json::array()}};
  auto failure = decode<Failure>(cbor(json)).value();
  EXPECT_EQ(failure.message, "text");
  EXPECT_EQ(failure.code, "INTERNAL");
}

TEST(Messages, CHAN_04_UnknownErrorCodesBecomeOneGenericKind) {
  EXPECT_EQ(error_code({.code = "NOT_FOUND"}), ErrorCode::not_found);
  EXPECT_EQ(error_code({.code = "SOMETHING_NEW"}), ErrorCode::internal);
}

TEST(Messages, WrongTypesAndRangesAreRefused) {
  EXPECT_EQ(refusal<ExecReply>(cbor({{"timed_out", 1}})), Violation::malformed_message);
  EXPECT_EQ(refusal<ExecReply>(cbor({{"exit_code", "x"}})), Violation::malformed_message);
  EXPECT_EQ(refusal<ExecReply>(cbor({{"exit_code", std::numeric_limits<std::uint64_t>::max()}})),
            Violation::malformed_message);
  EXPECT_EQ(refusal<FileStatus>(cbor({{"mode", std::uint64_t{1} << 32}})), Violation::malformed_message);
  EXPECT_EQ(refusal<FileStatus>(cbor({{"size", -1}})), Violation::malformed_message);
  EXPECT_EQ(refusal<FileStatus>(cbor({{"type", "hologram"}})), Violation::malformed_message);
  EXPECT_EQ(refusal<FileStatus>(cbor({{"size", nullptr}})), Violation::malformed_message);
  EXPECT_EQ(refusal<FileStatus>(cbor(Json::array())), Violation::malformed_message);
  EXPECT_EQ(refusal<FileStatus>(cbor({{"size", 1.5}})), Violation::malformed_message);
  EXPECT_EQ(refusal<FileStatus>(""), Violation::malformed_message);
}

TEST(Messages, CHAN_03_BytesBehindTheMessageAreRefused) {
  EXPECT_EQ(refusal<Done>(encode(Done{}) + "x"), Violation::malformed_message);
  EXPECT_FALSE(decode_request(encode_request(StatusRequest{}) + "x").has_value());
}

TEST(Messages, EveryCutIsRefused) {
  auto whole = encode_request(ExecRequest{.argv = {"a", "b"}, .env = {{"N", "V"}}, .timeout_ms = 70000});
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    EXPECT_FALSE(decode_request(std::string_view(whole).substr(0, cut)).has_value()) << cut;
  }
}

TEST(Messages, CHAN_03_ClaimedCountsReserveNothing) {
  std::string map_of_4g = "\xba\xff\xff\xff\xff";
  EXPECT_EQ(refusal<Done>(map_of_4g), Violation::too_many);
  std::string list =
      "\xa1\x67"
      "entries"
      "\x9b\x7f\xff\xff\xff\xff\xff\xff\xff";
  EXPECT_EQ(refusal<DirectoryPage>(list), Violation::too_many);
  std::string text =
      "\xa1\x67"
      "message"
      "\x7b\xff\xff\xff\xff\xff\xff\xff\xff";
  EXPECT_EQ(refusal<Failure>(text), Violation::malformed_message);
}

TEST(Messages, CHAN_03_NestingIsBounded) {
  std::string deep =
      "\xa1\x66"
      "future" +
      std::string(10'000, '\x81');
  EXPECT_EQ(refusal<Failure>(deep + '\0'), Violation::too_deep);
  Json nested = 1;
  for (int i = 0; i < 14; ++i) nested = Json::array({nested});
  EXPECT_TRUE(decode<Failure>(cbor({{"future", nested}})).has_value());
}

TEST(Messages, CHAN_03_AFieldThatStandsTwiceIsRefused) {
  std::string twice =
      "\xa2\x64"
      "code"
      "\x61"
      "A"
      "\x64"
      "code"
      "\x61"
      "B";
  EXPECT_EQ(refusal<Failure>(twice), Violation::malformed_message);
}

TEST(Messages, IndefiniteLengthsAndTagsAreRefused) {
  EXPECT_FALSE(decode<Done>("\xbf\xff").has_value());
  EXPECT_FALSE(decode<Failure>("\xa1\x66"
                               "future"
                               "\xc1\x00")
                   .has_value());
}

TEST(Messages, UnknownOperationsAndMisplacedNamesAreRefused) {
  EXPECT_FALSE(decode_request(cbor({{"op", "format_disk"}})).has_value());
  EXPECT_FALSE(decode_request(cbor({{"path", "/"}, {"op", "stat"}})).has_value());
  EXPECT_FALSE(decode_request(cbor(Json::object())).has_value());
}

}  // namespace
}  // namespace holt::protocol
