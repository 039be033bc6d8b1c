#include "guest/command_log.hpp"

#include <algorithm>

namespace holt::guest {
namespace {

constexpr std::size_t k_chunk = std::size_t{32} << 10;

}  // namespace

void CommandLog::append(std::size_t stream, std::string_view bytes) {
  auto& target = streams_[stream];
  while (!bytes.empty()) {
    auto piece = bytes.substr(0, k_chunk);
    append_piece(target, piece);
    bytes.remove_prefix(piece.size());
  }
  // The overhead of small chunks counts: a command that writes bytes one by one, in turn, pays for it.
  while (!target.chunks.empty() && target.cost - target.chunks.front().cost() >= limit_) drop_front(target);
}

void CommandLog::append_piece(Stream& stream, std::string_view bytes) {
  bool continues = !stream.chunks.empty() && stream.chunks.back().sequence == sequence_ &&
                   stream.chunks.back().bytes.size() + bytes.size() <= k_chunk;
  if (!continues) {
    stream.chunks.push_back({.sequence = ++sequence_, .offset = stream.written, .bytes = {}});
  } else {
    stream.cost -= stream.chunks.back().cost();
  }
  stream.chunks.back().bytes += bytes;
  stream.cost += stream.chunks.back().cost();
  stream.written += bytes.size();
}

void CommandLog::drop_front(Stream& stream) {
  stream.cost -= stream.chunks.front().cost();
  stream.chunks.pop_front();
}

std::optional<CommandLog::Piece> CommandLog::read(const Position& position) const {
  const Chunk* next = nullptr;
  std::size_t of = 0;
  for (std::size_t i = 0; i < k_streams; ++i) {
    const auto& chunks = streams_[i].chunks;
    auto found = std::ranges::partition_point(
        chunks, [&](const Chunk& chunk) { return chunk.offset + chunk.bytes.size() <= position[i]; });
    if (found == chunks.end() || (next != nullptr && next->sequence < found->sequence)) continue;
    next = &*found;
    of = i;
  }
  if (next == nullptr) return std::nullopt;
  auto offset = std::max(next->offset, position[of]);
  return Piece{
      .stream = of, .offset = offset, .bytes = std::string_view(next->bytes).substr(offset - next->offset)};
}

bool CommandLog::has_lost(std::size_t stream, std::uint64_t offset) const {
  const auto& of = streams_[stream];
  auto begin = of.chunks.empty() ? of.written : of.chunks.front().offset;
  return offset < begin;
}

void CommandLog::give_up_oldest() {
  drop_front(streams_[0].cost >= streams_[1].cost ? streams_[0] : streams_[1]);
}

void CommandLog::clear() {
  for (auto& stream : streams_) {
    stream.chunks.clear();
    stream.cost = 0;
  }
}

}  // namespace holt::guest
