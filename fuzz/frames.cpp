// Both frame parsers, the host's of what a guest says and the guest's of what a host says, in pieces of any
// size.
#include "fuzz.hpp"
#include "holt/protocol/flow.hpp"
#include "holt/protocol/frame.hpp"

#include <algorithm>

using namespace holt;
using namespace holt::protocol;

namespace {

void check(const Frame& frame) {
  auto limit = frame.header.type == FrameType::request ? k_max_request : k_max_payload;
  fuzz::require(frame.payload.size() <= limit);
  // What was read can be written, and reads the same again.
  std::string wire;
  FrameWriter writer;
  writer.set_next_sequence(frame.header.sequence);
  writer.append(wire, frame.header, frame.payload);
  bool from_opener = true;
  for (auto side : {Side::opener, Side::server}) {
    FrameParser again(side);
    if (!again.feed(wire)) {
      from_opener = false;
      continue;
    }
    auto same = again.next();
    fuzz::require(same && same->payload == frame.payload && same->header.stream == frame.header.stream);
    return;
  }
  fuzz::require(from_opener);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  auto choice = input.byte();
  FrameParser parser((choice & 1) != 0 ? Side::opener : Side::server);
  ReceiveWindow window;
  while (!input.empty()) {
    auto length = input.byte();
    auto piece = input.take(std::size_t{1} + length * ((choice & 4) != 0 ? 64U : 1U));
    std::expected<void, ProtocolError> fed;
    if ((choice & 2) != 0) {
      auto room = parser.space();
      piece = piece.substr(0, room.size());
      std::ranges::copy(piece, room.begin());
      fed = parser.commit(piece.size());
    } else {
      fed = parser.feed(piece);
    }
    while (auto frame = parser.next()) {
      check(*frame);
      if (costs_credit(frame->header.type) && window.receive(frame->payload.size())) {
        window.release(frame->payload.size());
      }
      if (frame->header.type == FrameType::credit) {
        SendCredit credit;
        if (auto bytes = decode_credit(frame->payload)) (void)credit.grant(*bytes);
      }
    }
    if (!fed) {
      fuzz::require(!fed.error().text().empty());
      return 0;
    }
  }
  return 0;
}
