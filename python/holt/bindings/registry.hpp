// The objects of this process that a forked child must let go without a word to their sockets.
#pragma once

namespace holt::python {

/// Made and destroyed with the interpreter's lock held, which guards the list of all of them.
class Abandonable {
 public:
  Abandonable();
  virtual ~Abandonable();
  Abandonable(const Abandonable&) = delete;
  Abandonable& operator=(const Abandonable&) = delete;

  /// In the child: closes descriptors, takes no lock, tells nobody. The object is not used after that.
  virtual void abandon() noexcept = 0;
  /// At the interpreter's end: whoever waits for it shall return.
  virtual void cancel() = 0;
};

void abandon_all() noexcept;
void cancel_all();

}  // namespace holt::python
