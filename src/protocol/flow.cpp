#include "holt/protocol/flow.hpp"

#include <algorithm>
#include <cassert>

namespace holt::protocol {

std::size_t SendCredit::payload_room() const {
  if (available_ <= k_header_size) return 0;
  return std::min<std::size_t>(available_ - k_header_size, k_max_payload);
}

void SendCredit::spend(std::size_t payload) {
  assert(can_send(payload));
  available_ -= static_cast<std::uint32_t>(frame_cost(payload));
}

std::expected<void, ProtocolError> SendCredit::grant(std::uint32_t bytes) {
  if (bytes > k_max_window - available_) {
    return std::unexpected(ProtocolError{Violation::credit_overflow, "more credit than a window can hold"});
  }
  available_ += bytes;
  return {};
}

std::expected<void, ProtocolError> ReceiveWindow::receive(std::size_t payload) {
  if (frame_cost(payload) > outstanding_) {
    return std::unexpected(ProtocolError{Violation::overdraft, "more data than the credit given"});
  }
  outstanding_ -= static_cast<std::uint32_t>(frame_cost(payload));
  return {};
}

std::uint32_t ReceiveWindow::release(std::size_t payload) {
  owed_ += static_cast<std::uint32_t>(frame_cost(payload));
  if (owed_ < k_initial_window / 2) return 0;
  std::uint32_t grant = owed_;
  owed_ = 0;
  outstanding_ += grant;
  return grant;
}

std::expected<void, ProtocolError> ReceiveWindow::grant(std::uint32_t bytes) {
  if (bytes > k_max_window - outstanding_) {
    return std::unexpected(ProtocolError{Violation::credit_overflow, "more credit than a window can hold"});
  }
  outstanding_ += bytes;
  return {};
}

std::string encode_credit(std::uint32_t bytes) {
  std::string payload(4, '\0');
  for (std::size_t i = 0; i < 4; ++i) payload[i] = static_cast<char>(bytes >> (8 * i));
  return payload;
}

std::expected<std::uint32_t, ProtocolError> decode_credit(std::string_view payload) {
  std::uint32_t bytes = 0;
  for (std::size_t i = 0; i < payload.size() && i < 4; ++i) {
    bytes |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(payload[i])) << (8 * i);
  }
  if (payload.size() != 4 || bytes == 0) {
    return std::unexpected(ProtocolError{Violation::malformed_message, "a credit frame without credit"});
  }
  return bytes;
}

}  // namespace holt::protocol
