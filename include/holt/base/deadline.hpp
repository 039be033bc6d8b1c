// Deadlines on the monotonic clock, for every call that waits.
//
//   auto deadline = holt::Deadline::after(std::chrono::seconds(5));
//   ::poll(fds, 1, deadline.poll_timeout());
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include <climits>

namespace holt {

using Duration = std::chrono::nanoseconds;

/// A point on the steady clock, or never. A value.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline never() { return Deadline(std::nullopt); }
  /// So far from now; more than ten years is never.
  static Deadline after(Duration duration) {
    if (duration > std::chrono::hours(24 * 3653)) return never();
    return Deadline(Clock::now() + duration);
  }
  /// after(*duration), or never().
  static Deadline within(std::optional<Duration> duration) { return duration ? after(*duration) : never(); }

  bool passed() const { return at_ && Clock::now() >= *at_; }
  std::optional<Clock::time_point> at() const { return at_; }
  /// What is left, not below zero; the longest duration when never.
  Duration left() const {
    if (!at_) return Duration::max();
    return std::max(Duration(*at_ - Clock::now()), Duration::zero());
  }
  /// Milliseconds for poll(2), rounded up; -1 when never.
  int poll_timeout() const {
    if (!at_) return -1;
    auto ms = std::chrono::ceil<std::chrono::milliseconds>(left()).count();
    return static_cast<int>(std::min<long long>(ms, INT_MAX));
  }
  /// The earlier of the two.
  Deadline earlier(Deadline other) const {
    if (!at_) return other;
    if (!other.at_) return *this;
    return Deadline(std::min(*at_, *other.at_));
  }

 private:
  explicit Deadline(std::optional<Clock::time_point> at) : at_(at) {}
  std::optional<Clock::time_point> at_;
};

}  // namespace holt
