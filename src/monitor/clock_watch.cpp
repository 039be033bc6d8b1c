#include "monitor/clock_watch.hpp"

#include "holt/base/error.hpp"

#include <cerrno>
#include <sys/timerfd.h>
#include <unistd.h>

namespace holt::monitor {
namespace {

constexpr time_t k_interval_seconds = 600;

int make_timer() {
  int fd = ::timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
  if (fd < 0) throw system_error(errno, "make a timer");
  return fd;
}

}  // namespace

ClockWatch::ClockWatch(boost::asio::io_context& loop, std::function<void()> on_jump)
    : timer_(loop, make_timer()), on_jump_(std::move(on_jump)) {}

void ClockWatch::start() {
  arm();
}

void ClockWatch::stop() {
  boost::system::error_code ignored;
  timer_.cancel(ignored);
}

void ClockWatch::arm() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  itimerspec when{};
  when.it_value = {.tv_sec = now.tv_sec + k_interval_seconds, .tv_nsec = 0};
  // Cancelled, that is readable at once, when the clock is set; timerfd_create(2).
  ::timerfd_settime(timer_.native_handle(), TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &when, nullptr);
  timer_.async_wait(timer_.wait_read, [this](const boost::system::error_code& error) {
    if (error) return;
    std::uint64_t expirations = 0;
    [[maybe_unused]] auto count = ::read(timer_.native_handle(), &expirations, sizeof expirations);
    on_jump_();
    arm();
  });
}

}  // namespace holt::monitor
