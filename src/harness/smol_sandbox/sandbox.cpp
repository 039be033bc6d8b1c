#include "harness/smol_sandbox/sandbox.hpp"

#include "harness/wording.hpp"
#include "holt/base/log.hpp"

#include <chrono>
#include <thread>

#include <fmt/format.h>

namespace holt::smol {
namespace {

constexpr std::chrono::seconds k_settling{3};
constexpr std::chrono::milliseconds k_settling_step{10};
constexpr const char* k_logger = "pydantic_ai_harness.smol_sandbox._backend";

bool is_host_code(ErrorCode code) {
  return code == ErrorCode::unsupported_platform || code == ErrorCode::runtime_not_installed ||
         code == ErrorCode::kvm_unavailable || code == ErrorCode::hypervisor_unavailable;
}

/// True for an error at a path inside the machine; one about the machine itself names that.
bool is_about_a_path(const Error& error) {
  return error.subject().starts_with('/');
}

[[noreturn]] void throw_gone(const std::string& name) {
  throw WorkspaceUnavailableError(
      wording::smol_gone(name) +
      ". It is not replaced; ask for a new one with workspace='new' (holt::new_workspace).");
}

/// The state of a machine after it failed a request; nothing when it is gone. A machine that is being ended
/// still passes for running for a moment: one that answers is.
std::optional<MachineState> settled_state(const Machine& machine) {
  for (Deadline deadline = Deadline::after(k_settling);; std::this_thread::sleep_for(k_settling_step)) {
    MachineState state{};
    try {
      state = machine.state();
      bool passing = state == MachineState::starting || state == MachineState::stopping;
      if (deadline.passed()) return state;
      if (passing) continue;
      if (state != MachineState::running) return state;
      machine.ping({.deadline = deadline});
      return state;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::not_found) return std::nullopt;
      if (deadline.passed()) return state;
    }
  }
}

[[noreturn]] void throw_no_host(const Error& error) {
  std::string code(to_string(error.code()));
  throw WorkspaceUnavailableError(wording::smol_no_host(code, error.what()), error.code());
}

}  // namespace

Sandbox::Sandbox(SmolSandboxBackendOptions options) : options_(std::move(options)) {
  if (options_.ref) ref_ = options_.ref;
  if (options_.sandbox) ref_ = WorkspaceRef{k_provider, options_.sandbox->name()};
}

Sandbox::~Sandbox() {
  if (thread_.joinable()) thread_.join();
}

std::optional<WorkspaceRef> Sandbox::ref() const {
  std::lock_guard lock(mutex_);
  return ref_;
}

void Sandbox::set_ref(std::optional<std::string> name) {
  std::lock_guard lock(mutex_);
  ref_.reset();
  if (name) ref_ = WorkspaceRef{k_provider, *name};
}

Sandbox::Ready Sandbox::acquire(const CancellationToken& cancel) {
  auto wake = cancel.on_cancel([this] {
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  if (ready_) return *ready_;
  if (!acquiring_) {
    if (thread_.joinable()) thread_.join();
    failure_ = nullptr;
    // The constructor may throw, and then there is nothing to wait for.
    thread_ = std::thread([this] { acquire_in_background(); });
    acquiring_ = true;
  }
  changed_.wait(lock, [&] { return !acquiring_ || cancel.cancelled(); });
  if (ready_) return *ready_;
  if (!acquiring_) std::rethrow_exception(failure_);
  cancel.throw_if_cancelled();
  throw Error(ErrorCode::internal, "The machine's acquisition ended without a result");
}

void Sandbox::acquire_in_background() {
  std::optional<Ready> ready;
  std::exception_ptr failure;
  try {
    ready = make_ready();
  } catch (...) {
    failure = std::current_exception();
  }
  std::lock_guard lock(mutex_);
  ready_ = std::move(ready);
  failure_ = failure;
  acquiring_ = false;
  changed_.notify_all();
}

Sandbox::Ready Sandbox::make_ready() {
  if (options_.sandbox) {
    Machine machine = *options_.sandbox;
    try {
      machine.start({.on_progress = options_.on_progress});
    } catch (const Error& error) {
      if (error.code() == ErrorCode::not_found) throw_gone(machine.name());
      if (is_host_code(error.code())) throw_no_host(error);
      throw;
    }
    return prepare(std::move(machine));
  }
  auto known = ref();
  return prepare(known ? attach_machine(known->id) : make_machine());
}

Machine Sandbox::make_machine() {
  MachineConfig config;
  config.name = new_name();
  config.image = options_.image.value_or("");
  if (options_.cpus) config.resources.cpus = static_cast<unsigned>(*options_.cpus);
  if (options_.memory_mb) config.resources.memory_mb = static_cast<unsigned>(*options_.memory_mb);
  config.idle_stop = options_.idle_stop;
  // Known before anything is made: whoever holds the ref can destroy what a cancelled run began.
  set_ref(config.name);
  logger(k_logger)->info("Creating smol VM {}", config.name);
  try {
    HostConfig host = host_of(options_);
    NameTurn turn(host, config.name);
    return Machine::create(config, {.on_progress = options_.on_progress}, host);
  } catch (const Error& error) {
    set_ref(std::nullopt);
    if (is_host_code(error.code())) throw_no_host(error);
    throw;
  }
}

Machine Sandbox::attach_machine(const std::string& name) {
  try {
    return Machine::connect(name, {.on_progress = options_.on_progress}, host_of(options_));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::not_found) throw_gone(name);
    if (is_host_code(error.code())) throw_no_host(error);
    throw;
  }
}

Sandbox::Ready Sandbox::prepare(Machine machine) {
  MachineInfo info = machine.info();
  std::string directory = options_.working_dir.value_or(info.working_dir.empty() ? "/" : info.working_dir);
  try {
    if (options_.working_dir) machine.make_dir(directory);
    return {.machine = machine, .working_dir = machine.realpath(directory)};
  } catch (const Error& error) {
    if (!is_about_a_path(error)) explain_and_throw(machine, error);
    throw WorkspaceError(wording::smol_no_working_dir(directory, machine.name(), error.what()), error.code());
  }
}

bool Sandbox::start_again(const Ready& ready, const Error& error, const CancellationToken& cancel) {
  if (error.code() != ErrorCode::invalid_state || !error.retryable()) return false;
  Machine machine = ready.machine;
  try {
    // One that failed or that somebody paused is not ours to start. Another caller may have started it
    // meanwhile; a stop under way, of the idle limit for one, is waited for by start().
    MachineState state = machine.state();
    if (state == MachineState::created || state == MachineState::failed || state == MachineState::paused) {
      return false;
    }
    machine.start({.on_progress = options_.on_progress, .call = {.cancel = cancel}});
  } catch (const Error& failed) {
    explain_and_throw(machine, failed);
  }
  return true;
}

void Sandbox::explain_and_throw(const Machine& machine, const Error& error) {
  bool lost = error.code() == ErrorCode::outcome_unknown || error.code() == ErrorCode::guest_lost ||
              error.code() == ErrorCode::guest_protocol || error.code() == ErrorCode::invalid_state ||
              error.code() == ErrorCode::not_found;
  if (!lost || is_about_a_path(error)) throw;
  std::optional<MachineState> state = settled_state(machine);
  if (!state) throw_gone(machine.name());
  if (*state != MachineState::running) {
    throw WorkspaceUnavailableError(wording::smol_not_running(machine.name(), to_string(*state)),
                                    ErrorCode::guest_lost);
  }
  throw;
}

}  // namespace holt::smol
