// A stream as seen by the code that serves its operation.
#pragma once

#include "guest/outcome.hpp"
#include "holt/protocol/frame.hpp"

#include <cstdint>
#include <expected>
#include <string>

namespace holt::guest {

class Server;

/// Serves one operation. Called on the loop thread.
class StreamHandler {
 public:
  virtual ~StreamHandler() = default;
  /// input, entry, cancel, signal or resize.
  virtual void on_frame(protocol::Frame frame) = 0;
  virtual std::expected<void, protocol::ProtocolError> on_credit(std::uint32_t bytes) = 0;
  /// The host is gone: stop, and send nothing more.
  virtual void on_disconnect() = 0;
};

/// Where a handler answers. A value; what is sent after the stream or its connection has ended is dropped.
/// Loop thread only.
class Outlet {
 public:
  Outlet() = default;
  Outlet(Server& server, std::uint32_t stream, std::uint64_t connection)
      : server_(&server), stream_(stream), connection_(connection) {}

  void send(protocol::FrameType type, std::string payload) const;
  /// Says that so many payload bytes of an input or entry frame have been dealt with.
  void release(std::size_t payload) const;
  /// Final: the handler may be destroyed when the loop comes round.
  template <class Message>
  void reply(const Message& message) const {
    send(protocol::FrameType::reply, protocol::encode(message));
  }
  void fail(const Failure& failure) const { send(protocol::FrameType::failure, protocol::encode(failure)); }
  bool congested() const;

  std::uint32_t stream() const { return stream_; }
  std::uint64_t connection() const { return connection_; }

 private:
  Server* server_ = nullptr;
  std::uint32_t stream_ = 0;
  std::uint64_t connection_ = 0;
};

}  // namespace holt::guest
