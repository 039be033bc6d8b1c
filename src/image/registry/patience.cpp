#include "image/registry/patience.hpp"

#include "holt/base/retry_after.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr int k_request_timeout = 408;
constexpr int k_too_many = 429;
constexpr int k_unavailable = 503;

Duration seconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

}  // namespace

Duration Patience::back_off(int times) const {
  return seconds(back_off_seconds(times, surroundings_.chance()));
}

bool Patience::grants_retry() {
  if (tried_ >= retries_) return false;
  surroundings_.wait(back_off(tried_++), cancel_);
  return true;
}

bool Patience::grants(const Refusal& refusal) {
  bool later = refusal.status() == k_too_many || (refusal.status() == k_unavailable && refusal.retry_after());
  if (!later) return (refusal.status() == k_request_timeout || refusal.status() >= 500) && grants_retry();
  // As a number of any size: what was asked for may be more than a Duration holds.
  double asked = refusal.retry_after().value_or(0);
  double most = std::chrono::duration<double>(k_patience - waited_).count();
  Duration wait = std::max(back_off(put_off_), seconds(std::min(asked, most)));
  if (asked > most || wait > k_patience - waited_) {
    throw Error(ErrorCode::limit_exceeded,
                fmt::format("{}; more than the {} s that holt waits in all", refusal.what(),
                            std::chrono::duration_cast<std::chrono::seconds>(k_patience).count()),
                {.subject = refusal.subject(), .hint = "Try again later.", .retryable = true});
  }
  ++put_off_;
  waited_ += wait;
  surroundings_.wait(wait, cancel_);
  return true;
}

bool Patience::grants(const TransferError& error) {
  switch (error.kind()) {
    case TransferError::Kind::broken:
      return grants_retry();
    case TransferError::Kind::unreachable:
      return progress_ && grants_retry();
    default:
      return false;
  }
}

}  // namespace holt::image
