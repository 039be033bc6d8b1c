#include "agent/task_group.hpp"

#include "holt/base/error.hpp"

#include <algorithm>
#include <list>

#include <boost/asio.hpp>

namespace holt::detail {
namespace asio = boost::asio;

struct TaskGroup::State {
  explicit State(asio::any_io_executor given)
      : executor(std::move(given)), wake(executor, asio::steady_timer::time_point::max()) {}

  void cancel() {
    if (!cancelled && when_cancelled) when_cancelled();
    cancelled = true;
    for (auto& signal : signals) signal.emit(asio::cancellation_type::terminal);
  }
  void ended(std::exception_ptr failure) {
    --running;
    if (failure && !error) {
      error = failure;
      if (on_error == OnError::cancel_others && running > 0) cancel();
    }
    if (running == 0) wake.cancel();
  }

  asio::any_io_executor executor;
  OnError on_error = OnError::go_on;
  asio::steady_timer wake;  // never fires; cancelled to wake join()
  std::list<asio::cancellation_signal> signals;
  std::size_t running = 0;
  bool cancelled = false;
  std::function<void()> when_cancelled;
  std::exception_ptr error;
};

TaskGroup::TaskGroup(asio::any_io_executor executor, OnError on_error)
    : state_(std::make_shared<State>(std::move(executor))) {
  state_->on_error = on_error;
}

TaskGroup::~TaskGroup() = default;

void TaskGroup::spawn(Task<void> task) {
  auto& signal = state_->signals.emplace_back();
  ++state_->running;
  asio::co_spawn(state_->executor, std::move(task),
                 asio::bind_cancellation_slot(
                     signal.slot(), [state = state_](std::exception_ptr failure) { state->ended(failure); }));
}

bool TaskGroup::running() const {
  return state_->running > 0;
}
void TaskGroup::cancel() {
  state_->cancel();
}
void TaskGroup::on_cancel(std::function<void()> callback) {
  state_->when_cancelled = std::move(callback);
}
std::exception_ptr TaskGroup::error() const {
  return state_->error;
}

Task<void> TaskGroup::join() {
  auto state = state_;
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  bool told = false;
  while (state->running > 0) {
    auto seen = co_await asio::this_coro::cancellation_state;
    if (!told && seen.cancelled() != asio::cancellation_type::none) {
      told = true;
      state->cancel();
      continue;
    }
    boost::system::error_code ignored;
    co_await state->wake.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  co_await asio::this_coro::throw_if_cancelled(throws);
}

bool is_cancellation(std::exception_ptr error) {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.code() == ErrorCode::cancelled;
  } catch (const boost::system::system_error& e) {
    return e.code() == asio::error::operation_aborted;
  } catch (...) {
    return false;
  }
}

Task<TimedEnd> run_with_timeout(Task<void> task, std::optional<Seconds> timeout, CancellationToken cancel) {
  auto executor = co_await asio::this_coro::executor;
  // Shared with the timer, whose handler may already be on its way when the task ends.
  auto group = std::make_shared<TaskGroup>(executor);
  auto timed_out = std::make_shared<bool>(false);
  asio::steady_timer timer(executor);
  group->on_cancel([cancel] { cancel.cancel(); });
  group->spawn(std::move(task));
  if (timeout) {
    timer.expires_after(to_nanoseconds(*timeout));
    timer.async_wait([group, timed_out](boost::system::error_code error) {
      if (error || !group->running()) return;
      *timed_out = true;
      group->cancel();
    });
  }
  auto joined = group->join();
  co_await std::move(joined);
  timer.cancel();
  if (*timed_out) co_return TimedEnd::timed_out;
  if (group->error()) std::rethrow_exception(group->error());
  co_return TimedEnd::finished;
}

std::chrono::nanoseconds to_nanoseconds(Seconds seconds) {
  constexpr Seconds k_longest = std::chrono::hours(24 * 3653);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::min(seconds, k_longest));
}

}  // namespace holt::detail
