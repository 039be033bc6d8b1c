// What a background command has written: the last bytes of each output, in the order in which they came.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace holt::guest {

/// Not thread-safe.
class CommandLog {
 public:
  /// Streams by number: 0 standard output, 1 standard error.
  static constexpr std::size_t k_streams = 2;
  /// Bytes of each stream that lie before a reader.
  using Position = std::array<std::uint64_t, k_streams>;
  struct Piece {
    std::size_t stream = 0;
    std::uint64_t offset = 0;  ///< in its stream; beyond the reader's position when bytes between are lost
    std::string_view bytes;    ///< valid until the log changes
  };

  /// Keeps at least the last `limit` bytes of each stream, and little more.
  explicit CommandLog(std::uint64_t limit) : limit_(limit) {}

  void append(std::size_t stream, std::string_view bytes);
  /// What a reader takes next; nothing when it has all.
  std::optional<Piece> read(const Position& position) const;

  std::uint64_t written(std::size_t stream) const { return streams_[stream].written; }
  /// Whether bytes of a stream from `offset` on are no longer here.
  bool has_lost(std::size_t stream, std::uint64_t offset) const;
  /// Bytes of memory in use, about.
  std::size_t memory() const { return streams_[0].cost + streams_[1].cost; }
  /// Gives up the oldest bytes of the larger stream. Precondition: memory() > 0.
  void give_up_oldest();
  void clear();

 private:
  struct Chunk {
    std::uint64_t sequence = 0;
    std::uint64_t offset = 0;
    std::string bytes;
    std::size_t cost() const { return sizeof(Chunk) + bytes.size(); }
  };
  struct Stream {
    std::deque<Chunk> chunks;
    std::uint64_t written = 0;
    std::size_t cost = 0;
  };
  void append_piece(Stream& stream, std::string_view bytes);
  static void drop_front(Stream& stream);

  std::uint64_t limit_;
  std::array<Stream, k_streams> streams_;
  std::uint64_t sequence_ = 0;  // of the youngest chunk
};

}  // namespace holt::guest
