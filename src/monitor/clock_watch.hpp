// Notices when the host's wall clock was set, also by the host's own sleep, so that guests can be told.
#pragma once

#include <chrono>
#include <functional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace holt::monitor {

/// Belongs to the event loop's thread.
class ClockWatch {
 public:
  /// `on_jump` is called behind every step of the clock, and every ten minutes: clocks drift apart.
  ClockWatch(boost::asio::io_context& loop, std::function<void()> on_jump);

  void start();
  void stop();

 private:
  void arm();

  boost::asio::posix::stream_descriptor timer_;
  std::function<void()> on_jump_;
};

}  // namespace holt::monitor
