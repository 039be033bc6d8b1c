// Coroutines of holt: Task<T> is Asio's awaitable, so a caller's own Asio code can await it.
//
//   holt::Task<int> length(holt::Workspace& w) {
//     auto bytes = co_await w.read_bytes("/etc/hostname");
//     co_return static_cast<int>(bytes.size());
//   }
//   int n = holt::sync_wait(length(workspace));
//
// A coroutine starts when it is awaited and runs on its awaiter's executor. Cancellation is Asio's: terminal
// cancellation of an awaiting coroutine cancels what it awaits and is seen as Error CANCELLED.
// Depends on Boost.Asio (headers) and base/cancellation.hpp.
#pragma once

#include "holt/base/cancellation.hpp"

#include <chrono>
#include <concepts>
#include <exception>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include <boost/asio/awaitable.hpp>

namespace holt {

template <class T = void>
using Task = boost::asio::awaitable<T>;

namespace detail {
/// Runs `work` on a thread of its own and resumes the awaiting coroutine on its own executor when the work
/// has ended. Cancelling the awaiter cancels the token given to `work`; the await still lasts until `work`
/// returns.
Task<void> run_on_thread(std::function<void(const CancellationToken&)> work);
/// Runs `make()` on an event loop of its own on this thread; `cancel` cancels it.
void run_to_end(std::function<Task<void>()> make, const CancellationToken& cancel);
}  // namespace detail

/// Awaits `fn(token)`, a blocking function, on a thread of its own. What it throws is thrown here. `fn`
/// should return soon after its token is cancelled; the await lasts until it does, so what `fn` refers to may
/// live in the awaiting coroutine.
template <std::invocable<const CancellationToken&> Fn>
Task<std::invoke_result_t<Fn, const CancellationToken&>> blocking(Fn fn) {
  using Result = std::invoke_result_t<Fn, const CancellationToken&>;
  if constexpr (std::is_void_v<Result>) {
    co_await detail::run_on_thread([&](const CancellationToken& token) { fn(token); });
  } else {
    std::optional<Result> result;
    co_await detail::run_on_thread([&](const CancellationToken& token) { result.emplace(fn(token)); });
    co_return std::move(*result);
  }
}

/// Awaits a pause. Throws Error CANCELLED when cancelled.
Task<void> sleep_for(std::chrono::nanoseconds duration);

/// Runs a coroutine to its end on this thread, with an event loop of its own, and returns its value or throws
/// what it throws. `cancel` cancels it from any thread. Not to be called from a coroutine.
template <class T>
T sync_wait(Task<T> task, const CancellationToken& cancel = {}) {
  // The lambda lives as long as run_to_end.
  // NOLINTBEGIN(cppcoreguidelines-avoid-capturing-lambda-coroutines)
  if constexpr (std::is_void_v<T>) {
    detail::run_to_end([&]() -> Task<void> { co_await std::move(task); }, cancel);
  } else {
    std::optional<T> result;
    detail::run_to_end([&]() -> Task<void> { result.emplace(co_await std::move(task)); }, cancel);
    return std::move(*result);
  }
  // NOLINTEND(cppcoreguidelines-avoid-capturing-lambda-coroutines)
}

}  // namespace holt
