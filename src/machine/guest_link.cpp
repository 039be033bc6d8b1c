#include "machine/guest_link.hpp"

#include "holt/base/error.hpp"

#include <cerrno>
#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>

namespace holt::machine {

using namespace protocol;

namespace {

// Frames that a guest may send before the one that is waited for.
constexpr int k_most_frames = 1000;
// What the windows of some sixty streams allow; a resumed guest seldom has as many at work.
constexpr std::size_t k_most_early_bytes = std::size_t{64} << 20;

[[noreturn]] void throw_lost() {
  throw Error(ErrorCode::guest_lost, "The channel to the guest program ended");
}

[[noreturn]] void throw_unexpected(FrameType type) {
  throw Error(ErrorCode::guest_protocol,
              fmt::format("The guest program sent a frame of type {} out of turn", to_string(type)));
}

template <class Message>
Message decoded(const std::string& payload) {
  auto message = decode<Message>(payload);
  if (!message) throw guest_protocol_error(message.error());
  return std::move(*message);
}

}  // namespace

Error error_of(const Failure& failure) {
  return {error_code(failure), printable(failure.message), {.subject = printable(failure.path)}};
}

Error guest_protocol_error(const ProtocolError& broken) {
  return {ErrorCode::guest_protocol, fmt::format("The guest program broke the protocol: {}", broken.text())};
}

GuestLink::GuestLink(Fd fd) : fd_(std::move(fd)), parser_(Side::server) {}

GuestLink::GuestLink(Fd fd, FrameParser parser, FrameWriter writer, std::uint32_t next_stream)
    : fd_(std::move(fd)), parser_(std::move(parser)), writer_(writer), next_stream_(next_stream) {}

Hello GuestLink::await_hello(Deadline deadline) {
  for (int frames = 0; frames < k_most_frames; frames++) {
    auto frame = next_frame(deadline);
    // Left over from the connection before: the template's guest may have been in the middle of something.
    if (frame.header.type != FrameType::hello) continue;
    auto hello = decoded<Hello>(frame.payload);
    if (hello.version != k_version) {
      throw Error(ErrorCode::guest_protocol,
                  fmt::format("The guest program speaks version {} of the protocol, holt version {}",
                              hello.version, k_version),
                  {.hint = "Run scripts/setup again: the initramfs is of another version of holt."});
    }
    return hello;
  }
  throw Error(ErrorCode::guest_protocol, "The guest program sent no greeting");
}

void GuestLink::send_hello(Deadline deadline) {
  std::string wire;
  writer_.append(wire, {.type = FrameType::hello}, encode(Hello{.program = "holt"}));
  send(wire, deadline);
}

Hello GuestLink::greet(Deadline deadline) {
  send_hello(deadline);
  return await_hello(deadline);
}

std::uint32_t GuestLink::send_request(const Request& request, Deadline deadline) {
  std::uint32_t stream = next_stream_++;
  std::string wire;
  writer_.append(wire, {.type = FrameType::request, .stream = stream}, encode_request(request));
  send(wire, deadline);
  return stream;
}

std::string GuestLink::await_reply(std::uint32_t stream, Deadline deadline) {
  for (int frames = 0; frames < k_most_frames; frames++) {
    auto frame = next_frame(deadline);
    if (frame.header.stream != stream) throw_unexpected(frame.header.type);
    if (frame.header.type == FrameType::reply) return std::move(frame.payload);
    if (frame.header.type == FrameType::failure) throw error_of(decoded<Failure>(frame.payload));
  }
  throw Error(ErrorCode::guest_protocol, "The guest program sent no reply");
}

std::string GuestLink::request(const Request& request, Deadline deadline) {
  return await_reply(send_request(request, deadline), deadline);
}

std::string GuestLink::await_reply_among_others(std::uint32_t stream, Deadline deadline) {
  std::size_t bytes = 0;
  while (bytes < k_most_early_bytes) {
    auto frame = next_frame(deadline);
    if (frame.header.stream != stream) {
      bytes += frame_cost(frame.payload.size());
      early_.push_back(std::move(frame));
      continue;
    }
    if (frame.header.type == FrameType::reply) return std::move(frame.payload);
    if (frame.header.type == FrameType::failure) throw error_of(decoded<Failure>(frame.payload));
  }
  throw Error(ErrorCode::guest_protocol, "The guest program sent no reply");
}

GuestLink::Parts GuestLink::release() && {
  return {std::move(fd_), std::move(parser_), writer_, next_stream_, std::move(early_)};
}

void GuestLink::send(const std::string& bytes, Deadline deadline) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    ssize_t n = ::send(fd_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) throw_lost();
    pollfd writable{fd_.get(), POLLOUT, 0};
    if (::poll(&writable, 1, deadline.poll_timeout()) == 0 && deadline.passed()) {
      throw Error(ErrorCode::timeout, "The guest program takes no data");
    }
  }
}

Frame GuestLink::next_frame(Deadline deadline) {
  for (;;) {
    if (auto frame = parser_.next()) return std::move(*frame);
    pollfd readable{fd_.get(), POLLIN, 0};
    int ready = ::poll(&readable, 1, deadline.poll_timeout());
    if (ready == 0 && deadline.passed())
      throw Error(ErrorCode::timeout, "The guest program did not answer in time");
    if (ready <= 0) continue;
    auto room = parser_.space();
    ssize_t n = ::recv(fd_.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) throw_lost();
    if (auto fed = parser_.commit(static_cast<std::size_t>(n)); !fed) throw guest_protocol_error(fed.error());
  }
}

}  // namespace holt::machine
