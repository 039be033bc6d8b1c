// An owned file descriptor.
//
//   holt::Fd fd(::open(path, O_RDONLY | O_CLOEXEC));
//   if (!fd) throw holt::system_error(errno, "open the record", path);
#pragma once

#include <utility>

namespace holt {

/// Closes its descriptor when it goes. Movable, not copyable. -1 means none.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  /// Gives the descriptor away.
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// A connected pair of Unix stream sockets, both close-on-exec. Throws Error.
std::pair<Fd, Fd> socket_pair();

/// A pipe {read end, write end}, both close-on-exec. Throws Error.
std::pair<Fd, Fd> make_pipe();

/// A duplicate of `fd`, close-on-exec. Throws Error.
Fd duplicate(int fd);

}  // namespace holt
