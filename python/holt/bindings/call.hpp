// Calls under way: what a thread or an event loop waits for by a descriptor.
#pragma once

#include "holt/base/error.hpp"
#include "holt/machine/operations.hpp"
#include "pool.hpp"
#include "registry.hpp"

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <nanobind/nanobind.h>
#include <nanobind/stl/unique_ptr.h>
#include <optional>
#include <utility>

namespace holt::python {

namespace nb = nanobind;

/// A call under way. Used with the interpreter's lock held; wait() gives it up meanwhile.
class Call : public Abandonable {
 public:
  /// Polls readable when take() has something. Changes never.
  virtual int fd() = 0;
  /// The result, once; nothing while the call runs. Throws what the call failed with.
  virtual std::optional<nb::object> take() = 0;

  /// Blocks until take() gives something. Throws also what a Python signal handler raises, with the call
  /// still under way.
  nb::object wait();
};

using CallPointer = std::unique_ptr<Call>;

/// Waits until `fd` polls readable, for at most `milliseconds`, without the interpreter's lock; false when it
/// does not. Runs Python's signal handlers and throws what they raise.
bool wait_readable(int fd, int milliseconds);
/// The same without an end.
void wait_readable(int fd);

/// A call that the event loop's descriptor drives.
template <class Result>
class OperationCall final : public Call {
 public:
  using Convert = std::function<nb::object(Result&)>;

  OperationCall(Operation<Result> operation, Convert convert)
      : operation_(std::move(operation)), convert_(std::move(convert)) {}

  int fd() override { return operation_.fd(); }
  void cancel() override { operation_.cancel(); }
  void abandon() noexcept override { operation_.abandon(); }
  std::optional<nb::object> take() override {
    auto result = operation_.try_get();
    if (!result) return std::nullopt;
    return convert_(*result);
  }

 private:
  Operation<Result> operation_;
  Convert convert_;
};

template <class Result, class Convert>
CallPointer call(Operation<Result> operation, Convert convert) {
  return std::make_unique<OperationCall<Result>>(std::move(operation), std::move(convert));
}
inline CallPointer call(Operation<NoResult> operation) {
  return call(std::move(operation), [](NoResult&) -> nb::object { return nb::none(); });
}

/// A blocking function on a thread of a lane, called again as long as it has no result.
template <class Result>
class JobCall final : public Call {
 public:
  using Work = std::function<std::optional<Result>(const CancellationToken&)>;
  using Convert = std::function<nb::object(Result&)>;

  JobCall(Lane lane, Work work, Convert convert)
      : state_(std::make_shared<State>()), convert_(std::move(convert)) {
    run_on_pool(
        lane,
        [state = state_, work = std::move(work)] {
          std::optional<Result> result;
          std::exception_ptr failure;
          try {
            result = work(state->cancel);
            if (!result) return Turn::again;
          } catch (...) {
            failure = std::current_exception();
          }
          std::lock_guard lock(state->mutex);
          state->result = std::move(result);
          state->failure = failure;
          state->done = true;
          set_event(state->event.get());
          return Turn::done;
        },
        state_->cancel);
  }
  ~JobCall() override { cancel(); }

  int fd() override { return state().event.get(); }
  void cancel() override {
    if (state_) state_->cancel.cancel();
  }
  void abandon() noexcept override {
    // The thread that shares it has stayed with the parent, perhaps with the lock.
    [[maybe_unused]] auto* kept = new std::shared_ptr<State>(std::move(state_));
  }
  std::optional<nb::object> take() override {
    std::optional<Result> result;
    {
      std::lock_guard lock(state().mutex);
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
  State& state() {
    if (!state_) throw Error(ErrorCode::invalid_state, "The call belongs to the parent of this process");
    return *state_;
  }

  std::shared_ptr<State> state_;
  Convert convert_;
};

/// A job that looks for its result until it is there; `convert` makes a Python object of it.
template <class Look, class Convert>
CallPointer repeated_job(Lane lane, Look look, Convert convert) {
  using Result = std::invoke_result_t<Look&, const CancellationToken&>::value_type;
  return std::make_unique<JobCall<Result>>(lane, std::move(look), std::move(convert));
}

/// A job whose result `convert` makes a Python object of.
template <class Work, class Convert>
CallPointer job(Lane lane, Work work, Convert convert) {
  return repeated_job(
      lane,
      [work = std::move(work)](const CancellationToken& cancel) mutable {
        return std::optional(work(cancel));
      },
      std::move(convert));
}

/// A job without a result.
template <class Work>
CallPointer job(Lane lane, Work work) {
  return job(
      lane,
      [work = std::move(work)](const CancellationToken& cancel) mutable {
        work(cancel);
        return NoResult{};
      },
      [](NoResult&) -> nb::object { return nb::none(); });
}

void bind_calls(nb::module_& module);

}  // namespace holt::python
