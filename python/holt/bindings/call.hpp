// Calls under way: what a thread or an event loop waits for by a descriptor.
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/base/error.hpp"
#include "holt/base/fd.hpp"

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <nanobind/nanobind.h>
#include <optional>
#include <utility>

namespace holt::python {

namespace nb = nanobind;

/// A call under way. Used with the interpreter's lock held; wait() gives it up meanwhile.
class Call {
 public:
  Call() = default;
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Polls readable when take() has something. Changes never.
  virtual int fd() = 0;
  /// The result, once; nothing while the call runs. Throws what the call failed with.
  virtual std::optional<nb::object> take() = 0;
  /// Asks it to end. It still ends by take(), with CANCELLED or, just too late, its result.
  virtual void cancel() = 0;

  /// Blocks until take() gives something. Throws also what a Python signal handler raises, with the call
  /// still under way.
  nb::object wait();
};

/// Waits until `fd` polls readable, for at most `milliseconds`, without the interpreter's lock; false when it
/// does not. Runs Python's signal handlers and throws what they raise.
bool wait_readable(int fd, int milliseconds);

/// Runs work on one of a few threads and tells a descriptor when it is done.
void run_on_pool(std::function<void()> work);

/// An eventfd that does not block. Throws Error.
Fd make_event();
/// Makes it readable.
void set_event(int fd);

/// A blocking function on a thread of the pool.
template <class Result>
class JobCall final : public Call {
 public:
  using Work = std::function<Result(const CancellationToken&)>;
  using Convert = std::function<nb::object(Result&)>;

  JobCall(Work work, Convert convert) : state_(std::make_shared<State>()), convert_(std::move(convert)) {
    run_on_pool([state = state_, work = std::move(work)] {
      std::optional<Result> result;
      std::exception_ptr failure;
      try {
        result.emplace(work(state->cancel));
      } catch (...) {
        failure = std::current_exception();
      }
      std::lock_guard lock(state->mutex);
      state->result = std::move(result);
      state->failure = failure;
      state->done = true;
      set_event(state->event.get());
    });
  }
  ~JobCall() override { state_->cancel.cancel(); }

  int fd() override { return state_->event.get(); }
  void cancel() override { state_->cancel.cancel(); }
  std::optional<nb::object> take() override {
    std::optional<Result> result;
    {
      std::lock_guard lock(state_->mutex);
      if (!state_->done) return std::nullopt;
      if (state_->failure) std::rethrow_exception(state_->failure);
      result = std::exchange(state_->result, std::nullopt);
    }
    if (!result) throw Error(ErrorCode::invalid_state, "The result has been taken");
    return convert_(*result);
  }

 private:
  struct State {
    Fd event = make_event();
    CancellationToken cancel;
    std::mutex mutex;
    bool done = false;
    std::optional<Result> result;
    std::exception_ptr failure;
  };
  std::shared_ptr<State> state_;
  Convert convert_;
};

struct Nothing {};

template <class Work, class Convert>
std::unique_ptr<Call> job(Work work, Convert convert) {
  using Result = std::invoke_result_t<Work, const CancellationToken&>;
  if constexpr (std::is_void_v<Result>) {
    return std::make_unique<JobCall<Nothing>>(
        [work = std::move(work)](const CancellationToken& token) mutable {
          work(token);
          return Nothing{};
        },
        [](Nothing&) -> nb::object { return nb::none(); });
  } else {
    return std::make_unique<JobCall<Result>>(std::move(work), std::move(convert));
  }
}

template <class Work>
std::unique_ptr<Call> job(Work work) {
  return job(std::move(work), 0);
}

void bind_calls(nb::module_& module);

}  // namespace holt::python
