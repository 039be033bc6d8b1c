// Bytes of a liar: valid streams with random damage. Nothing to hold but that both ends stay within bounds
// and say no; the sanitizers do the checking. The seed is fixed, so a failure comes again.
#include "holt/protocol/flow.hpp"
#include "holt/protocol/messages.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace holt::protocol {
namespace {

constexpr int k_rounds = 20'000;

std::vector<std::string> valid_messages() {
  return {encode_request(ExecRequest{.argv = {"sh", "-c", "echo"}, .env = {{"A", "b"}}, .timeout_ms = 5}),
          encode_request(RemoveRequest{.path = "/x", .recursive = true, .keep = {"/a", "/b"}}),
          encode(ExecReply{.exit_code = 1, .stdout_bytes = 1ULL << 40}),
          encode(DirectoryPage{.entries = {{.name = "n", .size = 3}, {.name = "m"}}}),
          encode(TreeReply{.failed = 1, .problems = {{.path = "p", .error_number = 2, .message = "m"}}}),
          encode(Hello{.program = "x", .capabilities = {"a", "b"}})};
}

std::string damaged(std::string bytes, std::mt19937& random) {
  auto at = [&] { return random() % std::max<std::size_t>(bytes.size(), 1); };
  for (auto times = 1 + random() % 4; times > 0; --times) {
    switch (random() % 5) {
      case 0:
        if (!bytes.empty()) bytes[at()] = static_cast<char>(random());
        break;
      case 1:
        bytes.insert(at(), 1 + random() % 8, static_cast<char>(random()));
        break;
      case 2:
        bytes.erase(std::min(at(), bytes.size()), random() % 8);
        break;
      case 3:
        bytes.resize(at());
        break;
      default:
        bytes += bytes.substr(at());
        break;
    }
  }
  return bytes;
}

TEST(Mutations, DamagedMessagesAreReadOrRefused) {
  std::mt19937 random(20'26);
  auto messages = valid_messages();
  int refused = 0;
  for (int i = 0; i < k_rounds; ++i) {
    auto bytes = damaged(messages[random() % messages.size()], random);
    refused += decode_request(bytes) ? 0 : 1;
    refused += decode<ExecReply>(bytes) ? 0 : 1;
    refused += decode<DirectoryPage>(bytes) ? 0 : 1;
    refused += decode<TreeReply>(bytes) ? 0 : 1;
  }
  EXPECT_GT(refused, k_rounds);
}

TEST(Mutations, DamagedStreamsEndInFramesOrAnError) {
  std::mt19937 random(7);
  auto messages = valid_messages();
  for (int i = 0; i < k_rounds; ++i) {
    std::string bytes;
    FrameWriter writer;
    for (int k = 0; k < 4; ++k) {
      writer.append(bytes, {.type = k % 2 == 0 ? FrameType::output : FrameType::reply, .stream = 1},
                    messages[random() % messages.size()]);
    }
    auto wire = damaged(std::move(bytes), random);
    FrameParser parser(i % 2 == 0 ? Side::server : Side::opener);
    std::size_t out = 0;
    for (std::string_view rest = wire; !rest.empty();) {
      auto piece = rest.substr(0, 1 + random() % 64);
      rest.remove_prefix(piece.size());
      bool good = parser.feed(piece).has_value();
      while (auto frame = parser.next()) out += frame->payload.size();
      if (!good) break;
    }
    ASSERT_LE(out, wire.size());
  }
}

}  // namespace
}  // namespace holt::protocol
