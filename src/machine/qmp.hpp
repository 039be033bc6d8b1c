// A client of QEMU's machine protocol (docs/interop/qmp-spec.txt of QEMU) over an inherited socket. Blocking
// calls with deadlines. What QEMU says is bounded and checked: under TCG QEMU is no more trusted than its
// guest.
//
//   QmpClient qmp(std::move(fd));
//   qmp.greet(deadline);
//   qmp.execute("stop", {}, deadline);
#pragma once

#include "holt/base/deadline.hpp"
#include "holt/base/fd.hpp"
#include "holt/base/json.hpp"

#include <deque>
#include <optional>
#include <string>

namespace holt::machine {

/// One asynchronous event.
struct QmpEvent {
  std::string name = {};
  Json data;
};

/// Not thread-safe.
class QmpClient {
 public:
  explicit QmpClient(Fd fd) : fd_(std::move(fd)) {}

  /// Waits for the greeting and negotiates. Throws as execute().
  void greet(Deadline deadline);

  /// Sends a command and waits for its answer: the member "return". Events that come meanwhile are kept.
  /// Throws Error: HYPERVISOR_UNAVAILABLE when QEMU refused the command or ended, TIMEOUT.
  Json execute(const std::string& command, const Json& arguments, Deadline deadline);
  /// "getfd": QEMU gets a duplicate of `fd` under `name`.
  void give_fd(const std::string& name, int fd, Deadline deadline);

  /// Reads what is there without waiting and returns the next event. Nothing when there is none; check
  /// ended().
  std::optional<QmpEvent> poll_event();
  bool ended() const { return ended_; }
  int fd() const { return fd_.get(); }

 private:
  void send(const std::string& line, std::optional<int> passed_fd, Deadline deadline);
  Json call(const std::string& command, const Json& arguments, std::optional<int> passed_fd,
            Deadline deadline);
  Json next_message(Deadline deadline);
  bool read_more(Deadline deadline);
  std::optional<Json> take_line();
  void keep_event(const Json& message);

  Fd fd_;
  std::string buffer_;
  std::deque<QmpEvent> events_;
  bool ended_ = false;
  std::int64_t last_id_ = 0;
};

}  // namespace holt::machine
