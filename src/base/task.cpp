#include "holt/base/task.hpp"

#include "holt/base/error.hpp"

#include <memory>
#include <thread>

#include <boost/asio.hpp>

namespace holt {
namespace asio = boost::asio;
namespace {

/// Asio reports a cancelled wait as a system_error; holt's word for it is CANCELLED.
bool is_cancellation(const boost::system::error_code& error) {
  return error == asio::error::operation_aborted;
}

[[noreturn]] void throw_cancelled() {
  throw Error(ErrorCode::cancelled, "The operation was cancelled");
}

}  // namespace

namespace detail {

Task<void> run_on_thread(std::function<void(const CancellationToken&)> work) {
  auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) throw_cancelled();
  CancellationToken token;
  std::exception_ptr failure;
  std::thread thread;
  auto start = [&](auto handler) {
    auto slot = asio::get_associated_cancellation_slot(handler);
    if (slot.is_connected()) slot.assign([token](asio::cancellation_type) { token.cancel(); });
    auto executor = asio::get_associated_executor(handler);
    thread = std::thread([&work, &failure, token, handler = std::move(handler), executor,
                          guard = asio::make_work_guard(executor)]() mutable {
      try {
        work(token);
      } catch (...) {
        failure = std::current_exception();
      }
      asio::post(executor, std::move(handler));
    });
  };
  std::exception_ptr outer;
  try {
    co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(start, asio::use_awaitable);
  } catch (...) {
    outer = std::current_exception();
  }
  if (thread.joinable()) thread.join();
  if (failure) std::rethrow_exception(failure);
  if (outer) std::rethrow_exception(outer);
}

void run_to_end(std::function<Task<void>()> make, const CancellationToken& cancel) {
  asio::io_context loop(1);
  asio::cancellation_signal signal;
  std::exception_ptr failure;
  asio::co_spawn(loop, make(),
                 asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr e) { failure = e; }));
  {
    // The signal is emitted on the loop's own thread; the token may be cancelled on any.
    auto registration =
        cancel.on_cancel([&] { asio::post(loop, [&] { signal.emit(asio::cancellation_type::terminal); }); });
    loop.run();
  }
  if (!failure) return;
  try {
    std::rethrow_exception(failure);
  } catch (const boost::system::system_error& e) {
    if (is_cancellation(e.code())) throw_cancelled();
    throw;
  }
}

}  // namespace detail

Task<void> sleep_for(std::chrono::nanoseconds duration) {
  asio::steady_timer timer(co_await asio::this_coro::executor, duration);
  boost::system::error_code error;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
  if (is_cancellation(error)) throw_cancelled();
}

}  // namespace holt
