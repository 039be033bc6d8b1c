#include "holt/base/log.hpp"
#include "monitor/monitor.hpp"
#include "monitor/suspender.hpp"

#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace holt::monitor {

using namespace machine;
using namespace protocol;

namespace {

using namespace std::chrono_literals;

constexpr auto k_qmp_deadline = 2s;
// Figures are not worth a wait of all others.
constexpr auto k_figures_deadline = 250ms;
// An idle guest takes what was sent to it within milliseconds, a busy one within its next turn.
constexpr auto k_quiet_deadline = 10s;
constexpr auto k_quiet_step = 1ms;
// Twice what a laptop's disk takes for it, and half a minute for everything else.
constexpr unsigned k_mib_per_second = 100;
constexpr auto k_suspend_deadline = 30s;

Error not_now(const std::string& name, std::string_view what, const char* hint) {
  return {ErrorCode::invalid_state,
          fmt::format("The machine {} {}", name, what),
          {.subject = name, .hint = hint, .retryable = true}};
}

std::uint64_t figure(const Json& object, const char* name) {
  auto value = object.is_object() ? object.value(name, Json()) : Json();
  return json_integer<std::uint64_t>(value).value_or(0);
}

}  // namespace

void Monitor::take_request(const Request& request, Answer answer) {
  if (const auto* life = std::get_if<LifeRequest>(&request))
    return change_life(life->change, std::move(answer));
  if (const auto* disk = std::get_if<ResizeDiskRequest>(&request))
    return resize_disk(disk->disk_bytes, std::move(answer));
  answer_stats(std::move(answer));
}

void Monitor::change_life(LifeChange change, Answer answer) {
  const auto& name = record_.config.name;
  if (stopping_ || suspension_) return answer(std::unexpected(not_now(name, "is ending", "Start it again.")));
  if (change == LifeChange::suspend) return suspend(std::move(answer));
  if (suspending_)
    return answer(std::unexpected(not_now(name, "is being suspended", "Try again in a moment.")));
  if (change == LifeChange::resume) return resume(std::move(answer));
  pause(answer);
}

void Monitor::pause(const Answer& answer) {
  if (held_) return answer(encode(Done{}));
  const auto& name = record_.config.name;
  if (out_of_space_) {
    return answer(std::unexpected(
        not_now(name, "stands still already: the host's disk is full", "It goes on when there is space.")));
  }
  try {
    started_.vmm.qmp().execute("stop", nullptr, Deadline::after(k_qmp_deadline));
  } catch (const Error& e) {
    return answer(std::unexpected(e));
  }
  held_ = true;
  status_.state = MachineState::paused;
  write_status();
  relay_->refuse_requests(not_now(name, "is paused", "'holt resume' lets it go on."));
  note("paused", "Its processors stand still");
  answer(encode(Done{}));
}

void Monitor::resume(Answer answer) {
  if (!held_) {
    if (out_of_space_) go_on();
    return answer(encode(Done{}));
  }
  try {
    started_.vmm.qmp().execute("cont", nullptr, Deadline::after(k_qmp_deadline));
  } catch (const Error& e) {
    return answer(std::unexpected(e));
  }
  held_ = false;
  last_client_ = last_active_ = std::chrono::steady_clock::now();
  status_.state = MachineState::running;
  write_status();
  relay_->accept_requests();
  note("resumed", "Its processors go on");
  // The guest's clock stood still as well; who asked gets the answer behind the correction.
  set_guest_clock([answer = std::move(answer)] { answer(encode(Done{})); });
}

void Monitor::suspend(Answer answer) {
  const auto& name = record_.config.name;
  auto refuse = [&](const Error& reason) {
    if (answer) answer(std::unexpected(reason));
  };
  if (record_.config.lifetime == Lifetime::ephemeral) {
    return refuse({ErrorCode::not_supported,
                   fmt::format("The machine {} ends with its owner", name),
                   {.subject = name, .hint = "Only persistent machines can be suspended."}});
  }
  if (out_of_space_)
    return refuse(not_now(name, "waits for space on the host's disk", "Make space and try again."));
  if (!suspending_) {
    // Looked at before anybody's call is ended for it.
    try {
      check_room(folder_, started_.vmm);
    } catch (const Error& e) {
      note("suspend-failed", e.what(), e.code());
      return refuse(e);
    }
  }
  if (answer) suspend_answers_.push_back(std::move(answer));
  if (std::exchange(suspending_, true)) return;
  status_.state = MachineState::stopping;
  write_status();
  relay_->refuse_requests(not_now(name, "is being suspended", "Start it again in a moment."));
  relay_->abandon_streams(
      {ErrorCode::guest_lost, fmt::format("The machine {} was suspended", name), {.subject = name}});
  // What the guest has not taken when it stops is lost: it gets the time to take it.
  try {
    if (std::exchange(held_, false)) {
      started_.vmm.qmp().execute("cont", nullptr, Deadline::after(k_qmp_deadline));
    }
  } catch (const Error& e) {
    return give_up_suspension(e);
  }
  await_quiet(Deadline::after(k_quiet_deadline));
}

void Monitor::await_quiet(Deadline deadline) {
  if (!suspending_ || ending_) return;
  if (relay_->untaken() == 0) {
    relay_->hold_guest();
    return write_suspension();
  }
  if (deadline.passed()) {
    return give_up_suspension(
        {ErrorCode::timeout,
         fmt::format("The guest of {} does not take what was sent to it", record_.config.name),
         {.subject = record_.config.name}});
  }
  quiet_timer_.expires_after(k_quiet_step);
  quiet_timer_.async_wait([this, deadline](const boost::system::error_code& error) {
    if (!error) await_quiet(deadline);
  });
}

void Monitor::write_suspension() {
  auto deadline =
      Deadline::after(k_suspend_deadline + std::chrono::seconds(launch_.shape.memory_mb / k_mib_per_second));
  try {
    Suspender suspender(started_.vmm, launch_, folder_, [this] { relay_->drain_guest(); });
    auto suspension = suspender.write_files(deadline);
    suspension.disk_bytes = record_.disk_bytes;
    suspension.channel = relay_->state();
    machine::write_suspension(folder_, suspension);
    suspension_ = std::move(suspension);
  } catch (const Error& e) {
    return give_up_suspension(e);
  }
  suspending_ = false;
  clock_.stop();
  quit_vmm();
}

void Monitor::give_up_suspension(const Error& reason) {
  suspending_ = false;
  note("suspend-failed", reason.what(), reason.code());
  delete_suspended_files(folder_);
  for (auto& answer : std::exchange(suspend_answers_, {})) answer(std::unexpected(reason));
  if (stopping_) return;
  try {
    started_.vmm.qmp().execute("cont", nullptr, Deadline::after(k_qmp_deadline));
  } catch (const Error& e) {
    return fail(e);
  }
  relay_->let_guest_go();
  status_.state = MachineState::running;
  write_status();
  relay_->accept_requests();
  set_guest_clock({});
}

void Monitor::keep_late_words() {
  relay_->drain_guest();
  auto channel = relay_->state();
  if (channel == suspension_->channel) return;
  suspension_->channel = std::move(channel);
  try {
    machine::write_suspension(folder_, *suspension_);
  } catch (const Error& e) {
    // The resume finds a gap in the numbers, and says so.
    logger("monitor")->warn("{}", e.what());
  }
}

void Monitor::answer_stats(Answer answer) {
  StatsReply stats;
  try {
    auto devices =
        started_.vmm.qmp().execute("query-blockstats", nullptr, Deadline::after(k_figures_deadline));
    for (const auto& device : devices.is_array() ? devices : Json::array()) {
      auto figures = device.is_object() ? device.value("stats", Json()) : Json();
      stats.disk_read += figure(figures, "rd_bytes");
      stats.disk_written += figure(figures, "wr_bytes");
    }
  } catch (const Error& e) {
    if (started_.vmm.qmp().ended()) return answer(std::unexpected(e));
    logger("monitor")->debug("{}", e.what());
  }
  if (held_ || out_of_space_ || stopping_ || suspending_) return answer(encode(stats));
  relay_->ask(StatusRequest{},
              [answer = std::move(answer), stats](const std::expected<std::string, Error>& payload) mutable {
                auto status = payload ? decode<StatusReply>(*payload) : std::unexpected(ProtocolError{});
                if (status) {
                  stats.guest_answered = true;
                  stats.processes = status->processes;
                  stats.uptime_ms = status->uptime_ms;
                  stats.memory_total = status->memory_total;
                  stats.memory_available = std::min(status->memory_available, status->memory_total);
                }
                answer(encode(stats));
              });
}

void Monitor::resize_disk(std::uint64_t bytes, Answer answer) {
  const auto& name = record_.config.name;
  if (stopping_ || suspension_ || suspending_ || held_ || out_of_space_) {
    return answer(std::unexpected(not_now(name, "does not run", "The disk grows with the next start.")));
  }
  if (bytes < record_.disk_bytes) {
    return answer(std::unexpected(Error(ErrorCode::not_supported, "A disk cannot become smaller")));
  }
  try {
    started_.vmm.resize_disk(bytes, Deadline::after(k_qmp_deadline));
  } catch (const Error& e) {
    return answer(std::unexpected(e));
  }
  record_.disk_bytes = bytes;
  relay_->ask(GrowRequest{.root_size = bytes},
              [this, answer = std::move(answer)](const std::expected<std::string, Error>& reply) {
                if (!reply) return answer(std::unexpected(reply.error()));
                note("resized", fmt::format("Its disk has {} GiB", record_.disk_bytes >> 30));
                answer(encode(Done{}));
              });
}

}  // namespace holt::monitor
