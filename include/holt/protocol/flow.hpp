// Flow control of one direction of one stream: credit in bytes, headers included.
//
// A stream starts with k_initial_window in each direction. The receiver grants more as it gets rid of what it
// received. A monitor hands credit through, so the window is between the two ends and what waits in the
// middle is never more than the client granted. Depends on frame.hpp only. Not thread-safe.
#pragma once

#include "holt/protocol/frame.hpp"

#include <cstdint>
#include <expected>

namespace holt::protocol {

/// What either side may send on a new stream before any credit.
inline constexpr std::uint32_t k_initial_window = std::uint32_t{1} << 20;
/// Credit above this is refused as an overflow.
inline constexpr std::uint32_t k_max_window = std::uint32_t{64} << 20;

/// What this side may still send.
class SendCredit {
 public:
  std::uint32_t available() const { return available_; }
  /// Payload bytes that the next frame may carry, at most k_max_payload; 0 when not even one byte fits.
  std::size_t payload_room() const;
  bool can_send(std::size_t payload) const { return frame_cost(payload) <= available_; }
  /// Precondition: can_send(payload).
  void spend(std::size_t payload);
  /// A credit frame arrived. Refuses an overflow.
  std::expected<void, ProtocolError> grant(std::uint32_t bytes);

 private:
  std::uint32_t available_ = k_initial_window;
};

/// What the peer may still send, and what it is to be given back.
class ReceiveWindow {
 public:
  ReceiveWindow() = default;
  /// Of a stream that was open before: what the peer may still send on it.
  explicit ReceiveWindow(std::uint32_t outstanding) : outstanding_(outstanding) {}

  /// A frame that costs credit arrived. Refuses an overdraft.
  std::expected<void, ProtocolError> receive(std::size_t payload);
  /// A received frame has been dealt with. Returns the credit to grant now: 0, or at least half a window, so
  /// that grants stay rare.
  std::uint32_t release(std::size_t payload);
  /// For a middle hop: credit that passed through from the other end.
  std::expected<void, ProtocolError> grant(std::uint32_t bytes);

  std::uint32_t outstanding() const { return outstanding_; }

 private:
  std::uint32_t outstanding_ = k_initial_window;  // the peer may send
  std::uint32_t owed_ = 0;                        // dealt with, not granted yet
};

/// Payload of a credit frame, and back. A grant of 0 is refused.
std::string encode_credit(std::uint32_t bytes);
std::expected<std::uint32_t, ProtocolError> decode_credit(std::string_view payload);

}  // namespace holt::protocol
