// Frames: the one framing of both hops (client to monitor, monitor to guest). Sans-IO: bytes in, frames out.
//
//   holt::protocol::FrameWriter writer;
//   std::string wire;
//   writer.append(wire, {.type = FrameType::ping, .stream = 0}, "x");
//
//   holt::protocol::FrameParser parser(holt::protocol::Side::opener);   // reads what an opener sends
//   if (auto fed = parser.feed(wire); !fed) drop_connection(fed.error());
//   while (auto frame = parser.next()) handle(*frame);
//
// The side that opens streams is the "opener" (the client towards its monitor, the monitor towards its
// guest); the other is the "server". docs/protocol.md tells a stream's life. Depends on the standard library
// only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace holt::protocol {

/// Version of frames and messages; both ends must have the same.
inline constexpr std::uint32_t k_version = 1;
/// Bytes of a frame header on the wire, all numbers little-endian:
/// u32 payload length, u32 stream, u8 type, u8 flags, u16 zero, u32 sequence number.
inline constexpr std::size_t k_header_size = 16;
/// Longest payload of every frame but a request.
inline constexpr std::size_t k_max_payload = std::size_t{256} << 10;
/// Longest payload of a request: the 2 MiB of arguments and environment that Linux passes to a program,
/// twice.
inline constexpr std::size_t k_max_request = std::size_t{4} << 20;

/// What a frame is. Opener: from the side that opens streams. Server: from the side that serves them.
enum class FrameType : std::uint8_t {
  // The connection itself, stream 0, both sides.
  hello = 1,    ///< Hello; the first frame of each side, numbers of later frames count on from its own
  ping = 2,     ///< at most 64 bytes, answered at once by a pong that carries the same
  pong = 3,     ///<
  goodbye = 4,  ///< Failure: the sender gives the connection up

  // Opener, on the stream it opens.
  request = 16,  ///< opens the stream; Request
  input = 17,    ///< bytes for standard input or a file; flag end_of_data with or without bytes. Costs credit
  cancel = 18,   ///< empty: kill the command or drop the transfer; the final frame still comes
  signal = 19,   ///< u8 signal number for the command's process group
  resize = 20,   ///< u16 rows, u16 columns of the terminal

  // Server, on a stream the opener opened.
  started =
      32,  ///< the work has begun: Started for exec, FileStatus for read_file, nothing else. At most once
  output = 33,        ///< standard output, or a file's bytes. Costs credit
  error_output = 34,  ///< standard error. Costs credit
  reply = 35,         ///< final: the operation's result
  failure = 36,       ///< final: Failure

  // Both sides, on a stream.
  entry = 48,   ///< one described item of a listing or a tree (DirectoryPage, TreeEntry). Costs credit
  credit = 49,  ///< u32: the receiver may send so many bytes more on this stream
};

/// Flags of a frame. Others than those known are refused.
enum class FrameFlag : std::uint8_t {
  end_of_data = 1,  ///< on input: nothing follows
};

/// Header of a frame in memory.
struct FrameHeader {
  FrameType type = FrameType::ping;
  std::uint32_t stream = 0;
  std::uint8_t flags = 0;
  std::uint32_t sequence = 0;  ///< set by FrameWriter

  bool has(FrameFlag flag) const { return (flags & static_cast<std::uint8_t>(flag)) != 0; }
};

struct Frame {
  FrameHeader header;
  std::string payload;
};

/// True for frames that use up credit: what they cost is frame_cost().
bool costs_credit(FrameType type);
/// True for reply and failure, behind which a stream is over.
bool is_final(FrameType type);
/// Header and payload together: what a frame of so many payload bytes takes from the window.
inline constexpr std::size_t frame_cost(std::size_t payload) {
  return k_header_size + payload;
}
/// Name of a type for logs, e.g. "error_output"; "unknown" for no type.
std::string_view to_string(FrameType type);

/// The rule that a peer broke.
enum class Violation {
  frame_too_long,
  bad_header,
  unknown_type,
  unknown_flag,
  bad_sequence,
  bad_stream,
  overdraft,
  credit_overflow,
  malformed_message,
  too_deep,
  too_many,
  unexpected_frame,
  handshake,
};
std::string_view to_string(Violation rule);

/// Why bytes of a peer were refused. `detail` is our own words, with no byte of the peer in it.
struct ProtocolError {
  Violation rule = Violation::bad_header;
  std::string detail;

  /// "RULE: DETAIL"
  std::string text() const;
};

/// Whose frames a parser reads, or a writer writes.
enum class Side { opener, server };

/// Numbers frames and lays them out. Not thread-safe.
class FrameWriter {
 public:
  /// Appends one frame. The payload must be within the limit of its type (checked by assertion only).
  void append(std::string& out, FrameHeader header, std::string_view payload);
  /// The 16 header bytes of a frame whose payload is written separately, right behind them.
  void append_header(std::string& out, FrameHeader header, std::size_t payload_size);
  /// Writes the header into exactly k_header_size bytes.
  void write_header(std::span<char> out, FrameHeader header, std::size_t payload_size);

  std::uint32_t next_sequence() const { return next_; }
  void set_next_sequence(std::uint32_t number) { next_ = number; }

 private:
  std::uint32_t next_ = 0;
};

/// Takes a byte stream apart. Memory is bounded by what has arrived, never by a length that is only claimed,
/// and by one frame plus one staging buffer beside the frames not yet taken. After an error it stays in that
/// error. Not thread-safe.
class FrameParser {
 public:
  explicit FrameParser(Side side);

  /// Takes any piece of the stream, however cut.
  std::expected<void, ProtocolError> feed(std::string_view bytes);

  /// The same without a copy for large payloads: read into space(), then say how much arrived. When nothing
  /// did, space() may be asked for again without commit().
  std::span<char> space();
  std::expected<void, ProtocolError> commit(std::size_t bytes);

  /// The next whole frame, nothing when more bytes are needed.
  std::optional<Frame> next();

  /// Bytes that arrived and belong to no whole frame yet, to carry them over to another parser.
  std::string unparsed() const;
  /// Number that the first header of unparsed(), or else the next one, must have. Nothing: any.
  std::optional<std::uint32_t> expected_sequence() const;
  void set_expected_sequence(std::optional<std::uint32_t> number) { expected_ = number; }

 private:
  std::expected<void, ProtocolError> begin_frame();
  void finish_frame();
  std::unexpected<ProtocolError> fail(Violation rule, std::string detail);

  Side side_;
  std::deque<Frame> ready_;
  std::optional<std::uint32_t> expected_;  // nothing: any number begins
  std::optional<ProtocolError> error_;

  std::string head_;         // bytes of an unfinished header
  bool in_payload_ = false;  // the header is whole
  FrameHeader header_;
  std::size_t payload_size_ = 0;
  std::string payload_;  // what has arrived of it; longer only while room of it is handed out
  std::size_t payload_filled_ = 0;
  bool handed_payload_ = false;  // space() gave out room of payload_, else staging_
  std::string staging_;
};

}  // namespace holt::protocol
