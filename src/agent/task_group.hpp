// Coroutines that run side by side and all end before their parent goes on.
//
//   TaskGroup group(co_await asio::this_coro::executor);
//   group.spawn(one());
//   group.spawn(two());
//   co_await group.join();            // both have ended, also when this coroutine was cancelled meanwhile
//   if (group.error()) ...
#pragma once

#include "holt/agent/tool.hpp"
#include "holt/base/task.hpp"

#include <exception>
#include <functional>
#include <memory>
#include <optional>

#include <boost/asio/any_io_executor.hpp>

namespace holt::detail {

/// Single-threaded: made, used and joined on one strand. Must be joined before its end of life.
class TaskGroup {
 public:
  enum class OnError { go_on, cancel_others };
  explicit TaskGroup(boost::asio::any_io_executor executor, OnError on_error = OnError::go_on);
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  /// Starts a coroutine. Its exception becomes error() if it is the first.
  void spawn(Task<void> task);
  bool running() const;
  /// Cancels all that run; they still have to be joined.
  void cancel();
  /// Called, once, when cancel() is first called or the joining coroutine is cancelled.
  void on_cancel(std::function<void()> callback);
  /// Waits until all have ended. Never throws: when the awaiting coroutine is cancelled it cancels the group
  /// and goes on waiting.
  Task<void> join();
  std::exception_ptr error() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// True for Error CANCELLED and for Asio's operation_aborted.
bool is_cancellation(std::exception_ptr error);

enum class TimedEnd { finished, timed_out };
/// Awaits `task` and cancels it after `timeout`; `cancel` is told of every cancellation. Throws what the task
/// throws, unless the time ran out first.
Task<TimedEnd> run_with_timeout(Task<void> task, std::optional<Seconds> timeout, CancellationToken cancel);

/// Bounded by ten years, so that a clock can add it.
std::chrono::nanoseconds to_nanoseconds(Seconds seconds);

}  // namespace holt::detail
