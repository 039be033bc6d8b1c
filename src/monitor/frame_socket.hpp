// A frame connection on the monitor's event loop.
#pragma once

#include "holt/base/fd.hpp"
#include "holt/protocol/frame.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace holt::monitor {

/// Reads frames and sends frames, never blocks. Belongs to the event loop's thread. Callbacks run from the
/// loop, never from inside a call. Always held by shared_ptr.
class FrameSocket : public std::enable_shared_from_this<FrameSocket> {
 public:
  using OnFrame = std::function<void(protocol::Frame)>;
  /// Called once: the peer closed, the socket failed, or (with the rule) the peer broke the protocol.
  using OnEnd = std::function<void(std::optional<protocol::ProtocolError>)>;
  /// Called when the bytes that wait to be sent fell to the low mark.
  using OnDrained = std::function<void()>;

  FrameSocket(boost::asio::io_context& loop, Fd fd, protocol::FrameParser parser,
              protocol::FrameWriter writer);

  void start(OnFrame on_frame, OnEnd on_end, OnDrained on_drained = {});
  /// Queues a frame.
  void send(protocol::FrameHeader header, std::string payload);
  /// Bytes that wait to be sent.
  std::size_t waiting() const { return waiting_; }
  /// Frames sent from now on wait, numbered, until let_go(); nothing may wait already.
  void hold() { held_ = true; }
  void let_go();
  /// All that waits, as it would go out.
  std::string unsent() const;
  /// Stops and goes on reading.
  void pause();
  void resume();
  /// No callback comes any more. What waits to be sent is dropped.
  void close();
  /// Sends what waits, then closes.
  void close_when_sent();
  bool closed() const { return !descriptor_.is_open(); }
  /// Reads and delivers at once what has arrived. True when the peer has ended the connection.
  bool drain();
  /// Bytes that the peer has not taken from the socket yet.
  std::size_t untaken();
  const protocol::FrameParser& parser() const { return parser_; }
  const protocol::FrameWriter& writer() const { return writer_; }
  int fd() { return descriptor_.native_handle(); }

 private:
  struct Outgoing {
    std::string header;
    std::string payload;
  };
  void wait_readable();
  void wait_writable();
  void read_some();
  void deliver();
  void write_some();
  void finish(std::optional<protocol::ProtocolError> broken);

  boost::asio::posix::stream_descriptor descriptor_;
  protocol::FrameParser parser_;
  protocol::FrameWriter writer_;
  OnFrame on_frame_;
  OnEnd on_end_;
  OnDrained on_drained_;
  std::deque<Outgoing> outgoing_;
  std::size_t sent_of_first_ = 0;
  std::size_t waiting_ = 0;
  bool reading_ = false;
  bool writing_ = false;
  bool paused_ = false;
  bool closing_ = false;
  bool held_ = false;
};

}  // namespace holt::monitor
