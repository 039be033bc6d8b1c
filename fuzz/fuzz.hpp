// What the fuzzers share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace holt::fuzz {

/// Ends the run when something that must hold does not.
inline void require(bool holds) {
  if (!holds) std::abort();
}

/// Choices and pieces, taken from the front of the input.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}
  bool empty() const { return rest_.empty(); }
  std::uint8_t byte() { return static_cast<std::uint8_t>(take(1).empty() ? 0 : last_); }
  /// At most `size` bytes.
  std::string_view take(std::size_t size) {
    auto piece = rest_.substr(0, size);
    rest_.remove_prefix(piece.size());
    if (!piece.empty()) last_ = static_cast<std::uint8_t>(piece.front());
    return piece;
  }
  /// A piece behind its length of two bytes.
  std::string_view piece() {
    std::size_t size = byte();
    size |= static_cast<std::size_t>(byte()) << 8;
    return take(size);
  }
  std::string_view all() { return take(rest_.size()); }

 private:
  std::string_view rest_;
  std::uint8_t last_ = 0;
};

}  // namespace holt::fuzz
