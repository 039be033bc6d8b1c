#include "machine/watch.hpp"

#include "holt/base/error.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace holt::machine {

Watch::Watch(int socket)
    : socket_(socket),
      poll_(::epoll_create1(EPOLL_CLOEXEC)),
      flag_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!poll_ || !flag_) throw system_error(errno, "make a descriptor to poll");
  add(socket);
  add(flag_.get());
}

void Watch::add(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    throw system_error(errno, "poll a descriptor");
}

void Watch::set(bool up) {
  if (up == up_) return;
  up_ = up;
  std::uint64_t value = 1;
  [[maybe_unused]] auto n =
      up ? ::write(flag_.get(), &value, sizeof value) : ::read(flag_.get(), &value, sizeof value);
}

void Watch::want_room(bool wanted) {
  if (wanted == wants_room_) return;
  epoll_event event{};
  event.events = wanted ? EPOLLIN | EPOLLOUT : EPOLLIN;
  if (::epoll_ctl(poll_.get(), EPOLL_CTL_MOD, socket_, &event) == 0) wants_room_ = wanted;
}

void Watch::set_alarm(Deadline deadline) {
  using namespace std::chrono;
  auto at = deadline.at();
  if (!alarm_) {
    if (!at) return;
    alarm_ = Fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (!alarm_) throw system_error(errno, "make a timer");
    add(alarm_.get());
  }
  itimerspec when{};
  if (at) {
    // The steady clock is CLOCK_MONOTONIC; a time of zero would switch the timer off.
    auto since = std::max<nanoseconds>(at->time_since_epoch(), nanoseconds(1));
    auto whole = duration_cast<seconds>(since);
    when.it_value = {.tv_sec = whole.count(), .tv_nsec = (since - whole).count()};
  }
  ::timerfd_settime(alarm_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void Watch::abandon() noexcept {
  for (const auto* fd : {&poll_, &flag_, &alarm_}) {
    if (*fd) ::close(fd->get());
  }
}

}  // namespace holt::machine
