// The guest's end of the channel: a port or socket, frames in, frames out. Loop thread only.
#pragma once

#include "guest/loop.hpp"
#include "holt/base/fd.hpp"
#include "holt/protocol/frame.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <string>

namespace holt::guest {

/// Above this many unsent bytes nobody should send more data; answers and results always go.
inline constexpr std::size_t k_high_water = std::size_t{2} << 20;
inline constexpr std::size_t k_low_water = std::size_t{512} << 10;

/// Owns the descriptor. A port that the host left is polled for its return; a socket that ended ends the
/// loop.
class Channel {
 public:
  enum class Kind { virtio_port, socket };
  struct Callbacks {
    std::function<void(protocol::Frame)> on_frame;
    /// The peer is gone, or broke the protocol: what belongs to the connection is to go too.
    std::function<void()> on_reset;
    /// Unsent bytes fell to the low-water mark.
    std::function<void()> on_drained;
  };

  Channel(Loop& loop, Fd fd, Kind kind);
  void start(Callbacks callbacks);

  void send(protocol::FrameHeader header, std::string payload);
  std::size_t backlog() const { return backlog_; }

  /// Tells the peer which rule it broke; then nothing is read until it has left and come back.
  void drop(const protocol::ProtocolError& error);

  // For carrying the connection over an exec.
  int fd() const { return fd_.get(); }
  /// Bytes and frames that arrived and were not handled yet.
  std::string take_unhandled();
  std::uint32_t next_sequence() const { return writer_.next_sequence(); }
  void restore(std::uint32_t next_sequence, std::string_view unhandled);
  /// Writes out all that is queued, blocking.
  void flush_blocking();

 private:
  void on_ready(std::uint32_t events);
  void read_some();
  void handle_frames();
  void flush();
  void lost();
  void wait_for_host();

  Loop& loop_;
  Fd fd_;
  Kind kind_;
  Loop::Watch watch_ = Loop::Watch::none;
  Callbacks callbacks_;
  protocol::FrameParser parser_{protocol::Side::opener};
  protocol::FrameWriter writer_;
  std::deque<std::string> queue_;
  std::size_t written_ = 0;  // of queue_.front()
  std::size_t backlog_ = 0;
  bool flush_pending_ = false;
  bool was_high_ = false;
  bool broken_ = false;  // what arrives is dropped until the host has left
};

}  // namespace holt::guest
