// A descriptor for event loops: polls readable when a socket does, when a flag is up, or at a time.
#pragma once

#include "holt/base/deadline.hpp"
#include "holt/base/fd.hpp"

namespace holt::machine {

/// Not thread-safe but for fd().
class Watch {
 public:
  /// `socket` outlives it. Throws Error.
  explicit Watch(int socket);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  int fd() const { return poll_.get(); }
  /// Raises or lowers the flag.
  void set(bool up);
  /// Whether fd() polls readable also when the socket takes data.
  void want_room(bool wanted);
  void set_alarm(Deadline deadline);
  /// Closes the descriptors in a forked child, without a word to the socket; the object is of no other use.
  void abandon() noexcept;

 private:
  void add(int fd);

  const int socket_;
  Fd poll_;
  Fd flag_;
  Fd alarm_;
  bool up_ = false;
  bool wants_room_ = false;
};

}  // namespace holt::machine
