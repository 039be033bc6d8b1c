// The monitor's relay between a guest that lies and clients that do: frames in any order, with any ids,
// credit and payload. What must hold: a guest's lie ends the guest's channel, a client's ends that client,
// and what the relay keeps for both stays within what was granted.
#include "monitor/relay.hpp"

#include "fuzz.hpp"
#include "holt/base/fd.hpp"
#include "holt/protocol/messages.hpp"
#include "machine/guest_link.hpp"

#include <array>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>

using namespace holt;
using namespace holt::protocol;

namespace {

constexpr std::size_t k_clients = 3;
// docs/protocol.md, "Frames".
constexpr std::size_t k_type_at = 8;
// Two windows of credit, the backlog at which clients are paused, and a request.
constexpr std::size_t k_most_waiting = std::size_t{16} << 20;

/// One end of a connection, with a frame writer that numbers frames as the other end expects.
struct Peer {
  Fd socket;
  FrameWriter writer;

  /// Also what no writer writes: a type with more payload than it may have.
  void say(FrameHeader header, std::string_view payload) {
    auto type = std::exchange(header.type, FrameType::input);
    std::string wire;
    writer.append(wire, header, payload);
    wire[k_type_at] = static_cast<char>(type);
    raw(wire);
  }
  void raw(std::string_view bytes) {
    if (socket) (void)::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void drain() {
    std::array<char, 65536> bytes;
    while (socket && ::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
  }
};

Request some_request(std::uint8_t choice) {
  switch (choice % 6) {
    case 0:
      return ExecRequest{.argv = {"x"}, .key = (choice & 64) != 0 ? "key" : ""};
    case 1:
      return ReadFileRequest{.path = "/x"};
    case 2:
      return WriteFileRequest{.path = "/x"};
    case 3:
      return TreeOutRequest{.path = "/x"};
    case 4:
      return IdentityRequest{};
    default:
      return StatRequest{.path = "/x"};
  }
}

constexpr std::array k_types = {
    FrameType::hello,   FrameType::ping,    FrameType::pong,   FrameType::goodbye,
    FrameType::request, FrameType::input,   FrameType::cancel, FrameType::signal,
    FrameType::resize,  FrameType::started, FrameType::output, FrameType::error_output,
    FrameType::reply,   FrameType::failure, FrameType::entry,  FrameType::credit};

void speak(Peer& peer, fuzz::Input& input) {
  auto choice = input.byte();
  FrameHeader header{.type = k_types[input.byte() % k_types.size()], .stream = input.byte() % 8U};
  if ((choice & 8) != 0) header.flags = 1;
  std::string payload;
  switch (choice % 4) {
    case 0:
      payload = input.piece();
      break;
    case 1:
      // Well-formed, so that the run gets past the parsers.
      if (header.type == FrameType::hello) payload = encode(Hello{});
      if (header.type == FrameType::request) payload = encode_request(some_request(input.byte()));
      if (header.type == FrameType::credit) payload = encode_credit(1U + input.byte() * 65536U);
      if (header.type == FrameType::failure) payload = encode(Failure{});
      if (header.type == FrameType::reply) payload = encode(ExecReply{.exit_code = input.byte()});
      break;
    case 2:
      payload.assign(std::size_t{input.byte()} * 1024, 'x');
      break;
    default:
      return peer.raw(input.piece());
  }
  if (payload.size() <= k_max_payload) peer.say(header, payload);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  boost::asio::io_context loop;
  auto [ours, theirs] = socket_pair();
  Peer guest{.socket = std::move(theirs), .writer = {}};
  bool gone = false;
  std::optional<monitor::Relay> relay;
  relay.emplace(
      loop, machine::GuestLink(std::move(ours)).release(), monitor::RelayState{.generation = "g"},
      monitor::RelayEvents{.on_stop = [](std::uint32_t, const auto& answer) { answer(std::nullopt); },
                           .on_own_request =
                               [](const Request&, const auto& answer) {
                                 answer(std::unexpected(Error(ErrorCode::not_supported, "no")));
                               },
                           .on_guest_gone =
                               [&](const Error& reason) {
                                 gone = true;
                                 relay->end_streams(reason);
                               }});
  std::array<Peer, k_clients> clients;
  for (auto& client : clients) {
    auto [near, far] = socket_pair();
    relay->add_client(std::move(near));
    client.socket = std::move(far);
    client.say({.type = FrameType::hello}, encode(Hello{}));
  }
  bool reads = (input.byte() & 1) != 0;
  while (!input.empty()) {
    auto who = input.byte() % 8U;
    if (who < k_clients) {
      speak(clients.at(who), input);
    } else if (who < 6) {
      speak(guest, input);
    } else if (who == 6) {
      clients.at(input.byte() % k_clients).socket.reset();
    } else {
      relay->interrupt_streams(Error(ErrorCode::guest_lost, "stopped"));
    }
    loop.poll();
    fuzz::require(relay->waiting() <= k_most_waiting);
    if (!reads) continue;
    guest.drain();
    for (auto& client : clients) client.drain();
  }
  guest.socket.reset();
  loop.poll();
  fuzz::require(gone);
  relay.reset();
  loop.poll();
  return 0;
}
