// The machine behind a SmolSandboxBackend: made or attached once, whoever asks first, and what its failures
// mean for the workspace.
#pragma once

#include "harness/smol_sandbox/names.hpp"

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace holt::smol {

/// Blocking; thread-safe. Its end waits for an acquisition that is under way.
class Sandbox {
 public:
  explicit Sandbox(SmolSandboxBackendOptions options);
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  const SmolSandboxBackendOptions& options() const { return options_; }
  std::optional<WorkspaceRef> ref() const;

  /// A machine that is ready for use.
  struct Ready {
    Machine machine;
    std::string working_dir;  ///< absolute, links resolved
  };
  /// Makes or attaches the machine where that is still to be done. A caller that is cancelled leaves; the
  /// boot goes on for the others. Throws WorkspaceUnavailableError, WorkspaceError, and what the engine
  /// throws; the next call tries again.
  Ready acquire(const CancellationToken& cancel);

  /// acquire(), then `use`. A machine that has stopped while nobody used it is started and `use` called once
  /// more; what else the engine throws is looked at by explain().
  template <class Fn>
  auto with(const CancellationToken& cancel, Fn use) {
    Ready ready = acquire(cancel);
    try {
      return use(ready);
    } catch (const Error& error) {
      if (!start_again(ready, error, cancel)) explain_and_throw(ready.machine, error);
    }
    try {
      return use(ready);
    } catch (const Error& error) {
      explain_and_throw(ready.machine, error);
    }
  }

 private:
  void acquire_in_background();
  Ready make_ready();
  Machine make_machine();
  Machine attach_machine(const std::string& name);
  Ready prepare(Machine machine);
  bool start_again(const Ready& ready, const Error& error, const CancellationToken& cancel);
  /// Throws WorkspaceUnavailableError when the machine is gone or down, else the error as it is.
  [[noreturn]] void explain_and_throw(const Machine& machine, const Error& error);
  void set_ref(std::optional<std::string> name);

  SmolSandboxBackendOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<WorkspaceRef> ref_;
  bool acquiring_ = false;
  std::optional<Ready> ready_;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace holt::smol
