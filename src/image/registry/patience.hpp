// How often and after which waits a request is made again.
//
//   Patience patience(options.retries, surroundings, cancel);
//   return patience.with([&] { return client.get(...); });
#pragma once

#include "image/registry/refusal.hpp"
#include "image/registry/surroundings.hpp"

#include <chrono>
#include <optional>

namespace holt::image {

/// What servers that want to be asked later get in waits, of one document or blob.
inline constexpr Duration k_patience = std::chrono::seconds(60);

/// The patience for one document or blob. A broken transfer, 408 and 5xx are tried again `retries` times,
/// after 0.5 s doubled each time up to 8 s, less up to a quarter by chance. 429, and 503 with Retry-After,
/// are tried again after what the server asks for, for k_patience in all.
class Patience {
 public:
  Patience(int retries, const Surroundings& surroundings, std::optional<CancellationToken> cancel)
      : retries_(retries), surroundings_(surroundings), cancel_(std::move(cancel)) {}

  /// Calls until it returns, or until there is no patience left: then throws what came last, LIMIT_EXCEEDED
  /// for servers that want more time than they get.
  template <class Attempt>
  auto with(Attempt attempt) {
    while (true) {
      try {
        return attempt();
      } catch (const Refusal& refusal) {
        if (!grants(refusal)) throw;
      } catch (const TransferError& error) {
        if (!grants(error)) throw;
      }
    }
  }

  /// Something has come, so that a server that cannot be reached now has just gone.
  void note_progress() { progress_ = true; }

 private:
  bool grants(const Refusal& refusal);
  bool grants(const TransferError& error);
  bool grants_retry();
  Duration back_off(int times) const;

  int retries_;
  Surroundings surroundings_;
  std::optional<CancellationToken> cancel_;
  int tried_ = 0;
  int put_off_ = 0;
  Duration waited_ = Duration::zero();
  bool progress_ = false;
};

}  // namespace holt::image
