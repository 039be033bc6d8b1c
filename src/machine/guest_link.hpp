// The channel to the guest program before anybody else uses it: greeting, identity, one request at a time.
// Blocking. What comes from the guest is hostile: lengths, order and waits are bounded.
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/base/deadline.hpp"
#include "holt/base/fd.hpp"
#include "holt/protocol/frame.hpp"
#include "holt/protocol/messages.hpp"

#include <optional>
#include <string>
#include <vector>

namespace holt::machine {

/// One end of a frame connection, on the opener's side. Not thread-safe.
class GuestLink {
 public:
  explicit GuestLink(Fd fd);
  /// Goes on with a connection that a suspended guest has open.
  GuestLink(Fd fd, protocol::FrameParser parser, protocol::FrameWriter writer, std::uint32_t next_stream);

  /// Waits for the greeting that the guest sends by itself after a boot.
  protocol::Hello await_hello(Deadline deadline);
  /// Greets, and waits for the answer. Throws Error GUEST_PROTOCOL for another version.
  protocol::Hello greet(Deadline deadline);
  /// Sends the greeting without waiting.
  void send_hello(Deadline deadline);

  /// Sends frames that were made before, as they are.
  void send_bytes(const std::string& frames, Deadline deadline) { send(frames, deadline); }

  /// Sends a request and waits for its final frame; other frames of the stream are dropped. Throws the
  /// guest's failure as an Error, GUEST_LOST when the channel ends, GUEST_PROTOCOL, TIMEOUT.
  std::string request(const protocol::Request& request, Deadline deadline);
  /// The two halves of request().
  std::uint32_t send_request(const protocol::Request& request, Deadline deadline);
  std::string await_reply(std::uint32_t stream, Deadline deadline);
  /// The same where other streams are open: what comes on them goes to Parts::early.
  std::string await_reply_among_others(std::uint32_t stream, Deadline deadline);

  /// Hands the connection over to somebody who goes on with it.
  struct Parts {
    Fd fd;
    protocol::FrameParser parser;
    protocol::FrameWriter writer;
    std::uint32_t next_stream;
    std::vector<protocol::Frame> early = {};  ///< that came before anybody else read them
  };
  Parts release() &&;

 private:
  void send(const std::string& bytes, Deadline deadline);
  protocol::Frame next_frame(Deadline deadline);

  Fd fd_;
  protocol::FrameParser parser_;
  protocol::FrameWriter writer_;
  std::uint32_t next_stream_ = 1;
  std::vector<protocol::Frame> early_;
};

/// The guest's failure as an Error: its code, its text made fit to be shown.
Error error_of(const protocol::Failure& failure);
/// What a broken rule is to a caller.
Error guest_protocol_error(const protocol::ProtocolError& broken);

}  // namespace holt::machine
