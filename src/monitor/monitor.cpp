#include "monitor/monitor.hpp"

#include "holt/base/log.hpp"
#include "machine/console.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

namespace holt::monitor {

using namespace machine;
using namespace protocol;

namespace {

using namespace std::chrono_literals;

// A guest has this long beyond its own grace to write its disk out, which a killed one would lose.
constexpr auto k_shutdown_margin = 15s;
constexpr auto k_quit_deadline = 2s;
constexpr auto k_kill_deadline = 5s;
// Clients get this long to take their last frames.
constexpr auto k_flush_deadline = 500ms;
constexpr auto k_owned_grace = 1s;
// The owner has ended: nobody waits, and nothing of its machine may be lost.
constexpr auto k_orphan_grace = 2s;
constexpr auto k_space_retry = 1s;

bool is_ours(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

/// A descriptor of exactly that process; nothing when it is gone or cannot be watched.
std::optional<Fd> open_process(const std::optional<ProcessIdentity>& process) {
  if (!process) return std::nullopt;
  Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, process->pid, 0)));
  if (!fd || !is_alive(*process)) return std::nullopt;
  return fd;
}

/// `by`: who or what stopped it.
Error stopped_error(const std::string& name, const std::string& by) {
  return {
      ErrorCode::guest_lost, fmt::format("The machine {} was stopped by {}", name, by), {.subject = name}};
}

}  // namespace

Monitor::Monitor(StartedMachine started, Launch launch, MachineRecord record, MachineFolder folder,
                 MachineStatus status, Fd listener, Fd control)
    : started_(std::move(started)),
      launch_(std::move(launch)),
      record_(std::move(record)),
      folder_(std::move(folder)),
      status_(std::move(status)),
      listener_(loop_, listener.release()),
      control_(loop_),
      owner_(loop_),
      vmm_watch_(loop_, duplicate(started_.vmm.process().pidfd()).release()),
      qmp_watch_(loop_, duplicate(started_.vmm.qmp().fd()).release()),
      signals_(loop_, SIGTERM, SIGINT, SIGHUP),
      idle_timer_(loop_),
      space_timer_(loop_),
      stop_timer_(loop_),
      quiet_timer_(loop_),
      clock_(loop_, [this] { set_guest_clock({}); }),
      events_(folder_.event_log()) {
  if (control && launch_.ownership != Ownership::independent) {
    control_.assign(control.release());
    if (auto process = open_process(launch_.owner)) owner_.assign(process->release());
  }
  relay_ = std::make_unique<Relay>(
      loop_, std::move(started_.link).release(), started_.channel,
      RelayEvents{
          .on_stop = [this](std::uint32_t grace_ms,
                            StopAnswer answer) { stop(grace_ms, "a call", std::move(answer)); },
          .on_own_request = [this](const Request& request,
                                   Answer answer) { take_request(request, std::move(answer)); },
          .on_guest_gone =
              [this](const Error& reason) {
                // The VMM's own end tells more than the end of its socket: it gets a moment to be noticed.
                if (reason.code() == ErrorCode::guest_protocol) return fail(reason);
                if (stopping_) return;
                stop_timer_.expires_after(k_quit_deadline);
                stop_timer_.async_wait([this, reason](const boost::system::error_code& error) {
                  if (!error && !ending_) fail(reason);
                });
              },
          .on_clients_changed = [this] { last_client_ = last_active_ = std::chrono::steady_clock::now(); }});
}

Ending Monitor::run() {
  accept_clients();
  watch_vmm();
  watch_owner();
  watch_signals();
  watch_qmp();
  clock_.start();
  if (record_.config.idle_stop || record_.config.idle_suspend) check_idle();
  loop_.run();
  // Clients read their last frames while nothing else can happen any more.
  loop_.restart();
  auto flush_until = std::chrono::steady_clock::now() + k_flush_deadline;
  while (relay_->waiting() > 0 && std::chrono::steady_clock::now() < flush_until) loop_.run_for(5ms);
  if (!ending_) throw Error(ErrorCode::internal, "The monitor's event loop ended by itself");
  auto ending = *ending_;
  ending.owner_ended = owner_ended_;
  return ending;
}

void Monitor::accept_clients() {
  listener_.async_wait(listener_.wait_read, [this](const boost::system::error_code& error) {
    if (error) return;
    Fd socket(::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      if (is_ours(socket.get())) relay_->add_client(std::move(socket));
    } else if (errno == EMFILE || errno == ENFILE) {
      // Without a free descriptor the connection stays in the queue; asking again at once would spin.
      auto timer = std::make_shared<boost::asio::steady_timer>(loop_, 100ms);
      return timer->async_wait([this, timer](const boost::system::error_code&) { accept_clients(); });
    }
    accept_clients();
  });
}

void Monitor::watch_vmm() {
  vmm_watch_.async_wait(vmm_watch_.wait_read, [this](const boost::system::error_code& error) {
    if (!error) vmm_ended();
  });
}

void Monitor::watch_owner() {
  if (!control_.is_open()) return;
  control_.async_wait(control_.wait_read, [this](const boost::system::error_code& error) {
    if (error) return;
    char byte = 0;
    ssize_t n = ::recv(control_.native_handle(), &byte, 1, MSG_DONTWAIT);
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return watch_owner();
    owner_ended();
  });
  if (!owner_.is_open()) return;
  // A child of the owner may hold the socket open behind its end.
  owner_.async_wait(owner_.wait_read, [this](const boost::system::error_code& error) {
    if (!error) owner_ended();
  });
}

void Monitor::owner_ended() {
  if (stopping_) return;
  owner_ended_ = true;
  stopped_by_ = "the end of the program that started it";
  if (launch_.ownership != Ownership::stopped) return kill_vmm();
  note("owner-ended", "The program that started it has ended; it stops");
  stop(static_cast<std::uint32_t>(std::chrono::milliseconds(k_orphan_grace).count()), stopped_by_, {});
}

void Monitor::watch_signals() {
  signals_.async_wait([this](const boost::system::error_code& error, int number) {
    if (error) return;
    stop(static_cast<std::uint32_t>(std::chrono::milliseconds(k_owned_grace).count()),
         fmt::format("signal {} to its monitor", number), {});
    watch_signals();
  });
}

void Monitor::watch_qmp() {
  qmp_watch_.async_wait(qmp_watch_.wait_read, [this](const boost::system::error_code& error) {
    if (error) return;
    try {
      take_events();
    } catch (const Error& e) {
      if (!stopping_) return fail(e);
      return logger("monitor")->debug("{}", e.what());
    }
    if (!started_.vmm.qmp().ended()) watch_qmp();
  });
}

void Monitor::take_events() {
  auto text_of = [](const Json& data, const char* name) {
    auto value = data.is_object() ? data.value(name, Json()) : Json();
    return value.is_string() ? printable(value.get<std::string>(), 100) : std::string();
  };
  while (auto event = started_.vmm.qmp().poll_event()) {
    if (event->name == "SHUTDOWN") shutdown_reason_ = text_of(event->data, "reason");
    if (event->name == "BLOCK_IO_ERROR" && text_of(event->data, "action") == "stop") wait_for_space();
    if (event->name == "RESUME") out_of_space_ = false;
    if (event->name == "RESUME" && status_.state == MachineState::paused && !held_) {
      note("space", "The host's disk has space again; it goes on");
      status_.state = MachineState::running;
      status_.failure.reset();
      write_status();
    }
  }
}

void Monitor::wait_for_space() {
  // QEMU has stopped the guest; the failed write is tried again when it goes on.
  out_of_space_ = true;
  if (status_.state == MachineState::running) {
    status_.state = MachineState::paused;
    status_.failure =
        MachineFailure{.code = ErrorCode::storage_full,
                       .message = "The host's disk is full; the machine goes on when there is space",
                       .at = wall_now()};
    write_status();
    note("disk-full", status_.failure->message, status_.failure->code);
  }
  space_timer_.expires_after(k_space_retry);
  space_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) go_on();
  });
}

void Monitor::go_on() {
  try {
    started_.vmm.qmp().execute("cont", nullptr, Deadline::after(k_quit_deadline));
    take_events();
  } catch (const Error& e) {
    if (!stopping_) return fail(e);
    logger("monitor")->debug("{}", e.what());
  }
}

void Monitor::write_status() {
  try {
    folder_.write_status(status_);
  } catch (const Error& e) {
    // A full disk must not end a machine, least of all one that is about to flush.
    logger("monitor")->warn("the status of {} was not written: {}", record_.config.name, e.what());
  }
}

void Monitor::check_idle() {
  auto limit = std::min(record_.config.idle_stop.value_or(Duration::max()),
                        record_.config.idle_suspend.value_or(Duration::max()));
  // Ten looks within the limit, so that it is kept to a tenth.
  auto step = std::clamp<Duration>(limit / 10, 100ms, 30s);
  idle_timer_.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(step));
  idle_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || stopping_) return;
    // One that waits for space cannot say what it is at, and would lose what it has not written; one that a
    // client paused waits for its resume.
    if (relay_->clients() > 0 || out_of_space_ || held_ || suspending_) {
      last_client_ = last_active_ = std::chrono::steady_clock::now();
    }
    if (record_.config.idle_stop) ask_status();
    if (is_idle(record_.config.idle_stop, last_active_)) {
      note("idle", "It was idle and stops");
      return stop(2000, "its idle time", {});
    }
    if (is_idle(record_.config.idle_suspend, last_client_)) {
      note("idle", "It was idle and is suspended");
      last_client_ = std::chrono::steady_clock::now();
      suspend({});
    }
    check_idle();
  });
}

bool Monitor::is_idle(std::optional<Duration> limit, std::chrono::steady_clock::time_point since) const {
  return limit && std::chrono::steady_clock::now() - since >= *limit;
}

void Monitor::note(const char* kind, const std::string& message, std::optional<ErrorCode> code) {
  logger("monitor")->info("{}: {}", record_.config.name, message);
  events_.append({.kind = kind, .message = message, .code = code});
}

void Monitor::set_guest_clock(std::function<void()> then) {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  ClockRequest request{.wall_clock_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()};
  if (held_ || out_of_space_ || stopping_ || suspending_) return then ? then() : void();
  relay_->ask(request, [then = std::move(then)](const std::expected<std::string, Error>& answer) {
    if (!answer) logger("monitor")->debug("the clock was not set: {}", answer.error().what());
    if (then) then();
  });
}

void Monitor::ask_status() {
  if (std::exchange(asking_status_, true)) return;
  relay_->ask(StatusRequest{}, [this](const std::expected<std::string, Error>& payload) {
    asking_status_ = false;
    auto status = payload ? decode<StatusReply>(*payload) : std::unexpected(ProtocolError{});
    // A background server or job keeps its machine up.
    if (!status || status->processes > 0) last_active_ = std::chrono::steady_clock::now();
  });
}

void Monitor::stop(std::uint32_t grace_ms, std::string by, StopAnswer answer) {
  if (answer) stop_answers_.push_back(std::move(answer));
  // Its memory is written and its VMM about to end: whoever asks finds it suspended then.
  if (suspension_ || std::exchange(stopping_, true)) return;
  stopped_by_ = std::move(by);
  if (suspending_) give_up_suspension(stopped_error(record_.config.name, stopped_by_));
  clock_.stop();
  status_.state = MachineState::stopping;
  write_status();
  relay_->refuse_requests(Error(ErrorCode::invalid_state,
                                fmt::format("The machine {} is stopping", record_.config.name),
                                {.subject = record_.config.name, .retryable = true}));
  // The guest program ends its commands now; how they end then says nothing about what they were asked to do.
  relay_->interrupt_streams(stopped_error(record_.config.name, stopped_by_));
  unflushed_ = MachineFailure{.code = ErrorCode::storage_error,
                              .message = "The machine ended before it had written out its disk"};
  relay_->ask(ShutdownRequest{.grace_ms = grace_ms}, [this](const std::expected<std::string, Error>& reply) {
    note_shutdown(reply);
    quit_vmm();
  });
  if (out_of_space_ || std::exchange(held_, false)) go_on();
  stop_timer_.expires_after(std::chrono::milliseconds(grace_ms) + k_shutdown_margin);
  stop_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) kill_vmm();
  });
}

void Monitor::note_shutdown(const std::expected<std::string, Error>& reply) {
  if (ending_) return;
  if (reply) return unflushed_.reset();
  if (unflushed_)
    unflushed_->message = fmt::format("The guest did not write out its disk: {}", reply.error().what());
}

void Monitor::quit_vmm() {
  if (ending_) return;
  space_timer_.cancel();
  stop_timer_.expires_after(k_quit_deadline);
  stop_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) kill_vmm();
  });
  try {
    started_.vmm.qmp().execute("quit", nullptr, Deadline::after(k_quit_deadline));
  } catch (const Error& e) {
    // It may end before it answers; its pidfd tells.
    logger("monitor")->debug("{}", e.what());
  }
}

void Monitor::kill_vmm() {
  stopping_ = true;
  space_timer_.cancel();
  if (unflushed_ && out_of_space_) {
    unflushed_->code = ErrorCode::storage_full;
    unflushed_->message = "The host's disk is full; the machine ended before it had written out its disk";
  }
  started_.vmm.process().signal(SIGKILL);
  stop_timer_.expires_after(k_kill_deadline);
  stop_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    // Nothing may be removed or started while it lives: the lock stays with this process.
    for (auto& answer : std::exchange(stop_answers_, {})) {
      answer(Error(ErrorCode::timeout, fmt::format("QEMU of {} cannot be ended", record_.config.name)));
    }
  });
}

void Monitor::fail(const Error& reason) {
  if (!failure_) failure_ = reason;
  kill_vmm();
}

void Monitor::vmm_ended() {
  auto status = started_.vmm.process().wait(Deadline::after(k_kill_deadline)).value_or(ExitStatus{});
  Ending ending;
  if (suspension_) {
    keep_late_words();
    ending.state = MachineState::suspended;
  } else if (failure_) {
    ending = {MachineState::failed,
              MachineFailure{.code = failure_->code(), .message = failure_->what(), .at = wall_now()}};
  } else if (!stopping_) {
    try {
      take_events();
    } catch (const Error& e) {
      // Its last words were no protocol; how it ended is known all the same.
      logger("monitor")->debug("{}", e.what());
    }
    std::string how = status.signal ? fmt::format("QEMU was ended by signal {}", *status.signal)
                      : shutdown_reason_
                          ? fmt::format("the guest ended itself ({})", *shutdown_reason_)
                          : fmt::format("QEMU ended with code {}", status.exit_code.value_or(0));
    if (auto panic = started_.console->find_line("Kernel panic"); !panic.empty()) how += ": " + panic;
    ending = {MachineState::failed, MachineFailure{.code = ErrorCode::guest_lost,
                                                   .message = fmt::format("{}: {}", record_.config.name, how),
                                                   .at = wall_now(),
                                                   .signal = status.signal}};
  } else if (unflushed_) {
    logger("monitor")->warn("{}: {}", record_.config.name, unflushed_->message);
    unflushed_->at = wall_now();
    ending.failure = std::exchange(unflushed_, {});
  }
  finish(std::move(ending));
}

void Monitor::note_end(const Ending& ending) {
  if (ending.state == MachineState::suspended) {
    return note("suspended", "Its memory is in files and its VMM has ended");
  }
  const char* kind = ending.state == MachineState::failed ? "failed" : "stopped";
  if (ending.failure) return note(kind, ending.failure->message, ending.failure->code);
  note(kind, "Its disk is written out and its VMM has ended");
}

void Monitor::finish(Ending ending) {
  ending_ = std::move(ending);
  std::optional<Error> failure;
  if (ending_->failure) {
    failure.emplace(ending_->failure->code, ending_->failure->message,
                    ErrorDetails{.subject = record_.config.name});
  }
  note_end(*ending_);
  bool suspended = ending_->state == MachineState::suspended;
  if (suspended) {
    for (auto& answer : std::exchange(suspend_answers_, {})) answer(encode(Done{}));
    failure.emplace(ErrorCode::invalid_state,
                    fmt::format("The machine {} was suspended", record_.config.name),
                    ErrorDetails{.subject = record_.config.name, .retryable = true});
  }
  for (auto& answer : std::exchange(stop_answers_, {})) answer(failure);
  for (auto& answer : std::exchange(suspend_answers_, {})) {
    answer(std::unexpected(failure.value_or(stopped_error(record_.config.name, stopped_by_))));
  }
  // Whoever hears of the end and asks for the state is not told that it still runs.
  if (!suspended && status_.state != MachineState::stopping) {
    status_.state = MachineState::stopping;
    write_status();
  }
  auto stopped = stopped_error(record_.config.name, suspended ? "its suspension" : stopped_by_);
  relay_->end_streams(failure && !suspended ? *failure : stopped);
  loop_.stop();
}

}  // namespace holt::monitor
