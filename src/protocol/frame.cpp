#include "holt/protocol/frame.hpp"

#include <algorithm>
#include <array>
#include <cassert>

namespace holt::protocol {
namespace {

constexpr std::size_t k_staging_size = std::size_t{64} << 10;
/// From this much of a payload missing on, bytes are read straight into it.
constexpr std::size_t k_direct_read = std::size_t{16} << 10;
/// A payload's memory grows in steps of this size, as its bytes arrive.
constexpr std::size_t k_payload_step = k_max_payload;

enum class From : std::uint8_t { both, opener, server };
enum class On : std::uint8_t { connection, stream };
struct TypeRule {
  FrameType type;
  std::string_view name;
  From from;
  On on;
  std::size_t max_payload;
  std::uint8_t flags = 0;
};
constexpr auto k_end = static_cast<std::uint8_t>(FrameFlag::end_of_data);
constexpr std::size_t k_max_hello = 64U << 10;
constexpr std::array k_rules = {
    TypeRule{FrameType::hello, "hello", From::both, On::connection, k_max_hello},
    TypeRule{FrameType::ping, "ping", From::both, On::connection, 64},
    TypeRule{FrameType::pong, "pong", From::both, On::connection, 64},
    TypeRule{FrameType::goodbye, "goodbye", From::both, On::connection, k_max_hello},
    TypeRule{FrameType::request, "request", From::opener, On::stream, k_max_request},
    TypeRule{FrameType::input, "input", From::opener, On::stream, k_max_payload, k_end},
    TypeRule{FrameType::cancel, "cancel", From::opener, On::stream, 0},
    TypeRule{FrameType::signal, "signal", From::opener, On::stream, 1},
    TypeRule{FrameType::resize, "resize", From::opener, On::stream, 4},
    TypeRule{FrameType::started, "started", From::server, On::stream, k_max_payload},
    TypeRule{FrameType::output, "output", From::server, On::stream, k_max_payload},
    TypeRule{FrameType::error_output, "error_output", From::server, On::stream, k_max_payload},
    TypeRule{FrameType::reply, "reply", From::server, On::stream, k_max_payload},
    TypeRule{FrameType::failure, "failure", From::server, On::stream, k_max_payload},
    TypeRule{FrameType::entry, "entry", From::both, On::stream, k_max_payload},
    TypeRule{FrameType::credit, "credit", From::both, On::stream, 4},
};

const TypeRule* find_rule(FrameType type) {
  auto found = std::ranges::find(k_rules, type, &TypeRule::type);
  return found == k_rules.end() ? nullptr : &*found;
}

std::uint32_t load_u32(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(bytes[at + i])) << (8 * i);
  }
  return value;
}

void store_u32(std::span<char> out, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) out[at + i] = static_cast<char>(value >> (8 * i));
}

}  // namespace

bool costs_credit(FrameType type) {
  return type == FrameType::input || type == FrameType::output || type == FrameType::error_output ||
         type == FrameType::entry;
}

bool is_final(FrameType type) {
  return type == FrameType::reply || type == FrameType::failure;
}

std::string_view to_string(FrameType type) {
  const auto* rule = find_rule(type);
  return rule == nullptr ? "unknown" : rule->name;
}

std::string_view to_string(Violation rule) {
  switch (rule) {
    case Violation::frame_too_long:
      return "frame_too_long";
    case Violation::bad_header:
      return "bad_header";
    case Violation::unknown_type:
      return "unknown_type";
    case Violation::unknown_flag:
      return "unknown_flag";
    case Violation::bad_sequence:
      return "bad_sequence";
    case Violation::bad_stream:
      return "bad_stream";
    case Violation::overdraft:
      return "overdraft";
    case Violation::credit_overflow:
      return "credit_overflow";
    case Violation::malformed_message:
      return "malformed_message";
    case Violation::too_deep:
      return "too_deep";
    case Violation::too_many:
      return "too_many";
    case Violation::unexpected_frame:
      return "unexpected_frame";
    case Violation::handshake:
      return "handshake";
  }
  return "unknown";
}

std::string ProtocolError::text() const {
  return std::string(to_string(rule)) + ": " + detail;
}

void FrameWriter::write_header(std::span<char> out, FrameHeader header, std::size_t payload_size) {
  assert(out.size() == k_header_size);
  assert(find_rule(header.type) != nullptr && payload_size <= find_rule(header.type)->max_payload);
  store_u32(out, 0, static_cast<std::uint32_t>(payload_size));
  store_u32(out, 4, header.stream);
  out[8] = static_cast<char>(header.type);
  out[9] = static_cast<char>(header.flags);
  out[10] = 0;
  out[11] = 0;
  store_u32(out, 12, next_++);
}

void FrameWriter::append_header(std::string& out, FrameHeader header, std::size_t payload_size) {
  std::array<char, k_header_size> bytes{};
  write_header(bytes, header, payload_size);
  out.append(bytes.data(), bytes.size());
}

void FrameWriter::append(std::string& out, FrameHeader header, std::string_view payload) {
  append_header(out, header, payload.size());
  out.append(payload);
}

FrameParser::FrameParser(Side side) : side_(side) {
  head_.reserve(k_header_size);
}

std::unexpected<ProtocolError> FrameParser::fail(Violation rule, std::string detail) {
  error_ = ProtocolError{rule, std::move(detail)};
  return std::unexpected(*error_);
}

std::expected<void, ProtocolError> FrameParser::begin_frame() {
  payload_size_ = load_u32(head_, 0);
  header_.stream = load_u32(head_, 4);
  header_.type = static_cast<FrameType>(static_cast<std::uint8_t>(head_[8]));
  header_.flags = static_cast<std::uint8_t>(head_[9]);
  header_.sequence = load_u32(head_, 12);
  bool reserved_used = head_[10] != 0 || head_[11] != 0;
  head_.clear();

  const auto* rule = find_rule(header_.type);
  if (reserved_used) return fail(Violation::bad_header, "reserved bytes of a frame header are not zero");
  if (rule == nullptr) return fail(Violation::unknown_type, "a frame of an unknown type");
  From forbidden = side_ == Side::opener ? From::server : From::opener;
  if (rule->from == forbidden) return fail(Violation::unknown_type, "a frame type of the other side");
  if (payload_size_ > rule->max_payload) {
    return fail(Violation::frame_too_long,
                "a payload over the limit of " + std::to_string(rule->max_payload));
  }
  if ((header_.flags & ~rule->flags) != 0)
    return fail(Violation::unknown_flag, "a flag its type does not have");
  if ((rule->on == On::connection) != (header_.stream == 0)) {
    return fail(Violation::bad_stream, "a frame type on a stream it does not belong to");
  }
  bool counts_anew = header_.type == FrameType::hello;
  if (!counts_anew && expected_ && header_.sequence != *expected_) {
    return fail(Violation::bad_sequence, "frames are missing or doubled");
  }
  expected_ = header_.sequence + 1;
  payload_.clear();
  payload_.reserve(std::min(payload_size_, k_payload_step));
  in_payload_ = true;
  return {};
}

void FrameParser::finish_frame() {
  ready_.push_back(Frame{header_, std::move(payload_)});
  payload_.clear();
  in_payload_ = false;
}

std::expected<void, ProtocolError> FrameParser::feed(std::string_view bytes) {
  if (error_) return std::unexpected(*error_);
  while (!bytes.empty()) {
    if (!in_payload_) {
      auto piece = bytes.substr(0, k_header_size - head_.size());
      head_.append(piece);
      bytes.remove_prefix(piece.size());
      if (head_.size() < k_header_size) break;
      if (auto begun = begin_frame(); !begun) return begun;
    }
    auto piece = bytes.substr(0, payload_size_ - payload_.size());
    payload_.append(piece);
    bytes.remove_prefix(piece.size());
    if (payload_.size() == payload_size_) finish_frame();
  }
  return {};
}

std::span<char> FrameParser::space() {
  // Room that was handed out and never filled is no part of the payload.
  if (handed_payload_) payload_.resize(payload_filled_);
  std::size_t missing = in_payload_ ? payload_size_ - payload_.size() : 0;
  handed_payload_ = missing >= k_direct_read;
  if (!handed_payload_) {
    if (staging_.empty()) staging_.resize(k_staging_size);
    return staging_;
  }
  payload_filled_ = payload_.size();
  std::size_t room = std::min(missing, k_payload_step);
  payload_.resize_and_overwrite(payload_filled_ + room, [](char*, std::size_t size) { return size; });
  return std::span(payload_).subspan(payload_filled_);
}

std::expected<void, ProtocolError> FrameParser::commit(std::size_t bytes) {
  if (!handed_payload_) return feed(std::string_view(staging_).substr(0, bytes));
  handed_payload_ = false;
  payload_.resize(payload_filled_ + bytes);
  if (payload_.size() == payload_size_) finish_frame();
  return {};
}

std::optional<Frame> FrameParser::next() {
  if (ready_.empty()) return std::nullopt;
  auto frame = std::move(ready_.front());
  ready_.pop_front();
  return frame;
}

std::optional<std::uint32_t> FrameParser::expected_sequence() const {
  return in_payload_ ? header_.sequence : expected_;
}

std::string FrameParser::unparsed() const {
  if (!in_payload_) return head_;
  std::string bytes;
  FrameWriter writer;
  writer.set_next_sequence(header_.sequence);
  writer.append_header(bytes, header_, payload_size_);
  return bytes + payload_;
}

}  // namespace holt::protocol
