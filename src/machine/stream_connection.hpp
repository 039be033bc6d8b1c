// One operation of a client: a connection to the monitor with one stream on it. Blocking.
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/base/deadline.hpp"
#include "holt/base/error.hpp"
#include "holt/base/fd.hpp"
#include "holt/protocol/flow.hpp"
#include "holt/protocol/frame.hpp"
#include "holt/protocol/messages.hpp"
#include "machine/record.hpp"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace holt::machine {

/// How long a call waits.
struct Wait {
  Deadline deadline = Deadline::never();
  std::optional<CancellationToken> cancel = std::nullopt;
};

/// Whether the guest may have changed anything by a request whose answer got lost.
enum class Effect { none, possible };

/// Thread-safe; one thread at a time should take frames.
class StreamConnection {
 public:
  /// Connects and sends the request. Throws Error: NOT_FOUND (no machine), INVALID_STATE (it does not run;
  /// retryable), TOO_LARGE (arguments), TIMEOUT, CANCELLED.
  static std::unique_ptr<StreamConnection> open(const MachineFolder& folder, const protocol::Request& request,
                                                Effect effect, const Wait& wait);
  ~StreamConnection();
  StreamConnection(const StreamConnection&) = delete;
  StreamConnection& operator=(const StreamConnection&) = delete;

  /// The next frame of the stream but credit; nothing behind the final one and after kill(). What it cost is
  /// given back to the guest at once. Throws Error: the guest's failure, GUEST_LOST or OUTCOME_UNKNOWN when
  /// the channel ended, TIMEOUT, CANCELLED.
  std::optional<protocol::Frame> next(const Wait& wait);
  /// The final reply's payload; frames before it are dropped.
  std::string reply(const Wait& wait);

  /// Bytes that next() sends to the command's input whenever there is credit, with the end behind them.
  void set_input(std::string input);
  /// Sends bytes, waits for credit and room. False when the stream is over: then next() tells why.
  bool send_input(std::string_view bytes, const Wait& wait);
  /// Sends one item of a tree.
  bool send_entry(const std::string& payload, const Wait& wait);
  void end_input();
  void send_signal(int signal_number);
  /// Ends the stream from our side: the guest kills the command or drops the transfer. Idempotent.
  void kill();

  /// Polls readable when next() may return.
  int poll_fd();

 private:
  StreamConnection(Fd socket, std::string subject, Effect effect);

  /// Waits until ready() holds, reading the socket meanwhile. `lock` is held whenever ready() runs.
  template <class Ready>
  void wait_until(std::unique_lock<std::mutex>& lock, const Wait& wait, Ready ready);
  void read_socket(std::unique_lock<std::mutex>& lock, const Wait& wait);
  void take_frame(protocol::Frame frame);
  void fail(Error error);
  Error lost() const;
  bool over() const { return killed_ || final_seen_ || broken_.has_value(); }
  void pump_input(std::unique_lock<std::mutex>& lock, const Wait& wait);
  bool send_costing(std::unique_lock<std::mutex>& lock, protocol::FrameType type, std::string_view payload,
                    const Wait& wait);
  void send(std::unique_lock<std::mutex>& lock, protocol::FrameHeader header, std::string_view payload,
            const Wait& wait);
  void mark_queue();

  const Fd socket_;
  const std::string subject_;
  const Effect effect_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool reading_ = false;  // a thread polls the socket without the lock
  bool sending_ = false;  // a thread sends a frame without the lock
  protocol::FrameParser parser_;
  protocol::FrameWriter writer_;
  protocol::SendCredit credit_;
  protocol::ReceiveWindow window_;
  std::deque<protocol::Frame> frames_;
  std::string input_;
  std::size_t input_sent_ = 0;
  bool input_open_ = false;
  bool greeted_ = false;
  bool final_seen_ = false;
  bool killed_ = false;
  std::optional<Error> broken_;
  Fd queue_event_;  // readable while frames_ or an end wait for next()
  Fd poll_;
};

}  // namespace holt::machine
