// One operation of a client: a connection to the monitor with one stream on it. For threads that wait, and
// for event loops that watch its descriptor.
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/base/deadline.hpp"
#include "holt/base/error.hpp"
#include "holt/base/fd.hpp"
#include "holt/machine/types.hpp"
#include "holt/protocol/flow.hpp"
#include "holt/protocol/frame.hpp"
#include "holt/protocol/messages.hpp"
#include "machine/record.hpp"
#include "machine/watch.hpp"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
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

/// What a sender does while the socket takes nothing.
enum class Sending {
  waits,   ///< until it does
  queues,  ///< goes on; what is left is sent by the calls that follow, when the descriptor polls readable
};

/// Thread-safe; one thread at a time should take frames.
class StreamConnection {
 public:
  /// Connects and sends the request. Throws Error: NOT_FOUND (no machine), INVALID_STATE (it does not run;
  /// retryable), TOO_LARGE (arguments), TIMEOUT, CANCELLED.
  static std::unique_ptr<StreamConnection> open(const MachineFolder& folder, const protocol::Request& request,
                                                Effect effect, const Wait& wait,
                                                Sending sending = Sending::waits);
  ~StreamConnection();
  StreamConnection(const StreamConnection&) = delete;
  StreamConnection& operator=(const StreamConnection&) = delete;

  /// The next frame of the stream but credit; nothing behind the final one and after kill(). What it cost is
  /// given back to the guest at once. Throws Error: the guest's failure, GUEST_LOST or OUTCOME_UNKNOWN when
  /// the channel ended, TIMEOUT, CANCELLED.
  std::optional<protocol::Frame> next(const Wait& wait);
  /// As next(), without waiting for the socket.
  Tried<protocol::Frame> try_next();
  /// The final reply's payload; frames before it are dropped.
  std::string reply(const Wait& wait);

  /// Bytes that next() sends to the command's input whenever there is credit, with the end behind them.
  void set_input(std::string input);
  /// Sends bytes, waits for credit and room. False when the stream is over: then next() tells why.
  bool send_input(std::string_view bytes, const Wait& wait);
  /// Sends as many bytes as credit and socket take now, and says how many. None, too, when the stream is
  /// over.
  std::size_t try_send_input(std::string_view bytes);
  /// True when no more input is taken: then next() or try_next() tells why.
  bool ended();
  /// Sends one item of a tree.
  bool send_entry(const std::string& payload, const Wait& wait);
  /// End of the input; behind what set_input() or a queue still holds.
  void end_input();
  void send_signal(int signal_number);
  void send_size(std::uint16_t rows, std::uint16_t columns);
  /// Ends the stream from our side: the guest kills the command or drops the transfer. Idempotent. A
  /// connection that ends without does the same, but leaves a command with a key to its repeat.
  void kill();

  /// Polls readable when next() may return and try_next() has something.
  int poll_fd();
  /// Polls readable when try_send_input() may take more.
  int room_fd();
  /// poll_fd() polls readable at this time, too. try_next() throws TIMEOUT from then on.
  void set_alarm(Deadline deadline);
  /// The guest's first frame but credit is due by then: behind that next() and try_next() throw TIMEOUT,
  /// whatever their own deadline. Set before the first frame is taken.
  void set_answer_deadline(Deadline deadline);
  /// In a forked child, where the parent's threads hold no lock any more: closes the descriptors and nothing
  /// else. The object is of no other use, not even to be destroyed.
  void abandon() noexcept;

 private:
  StreamConnection(Fd socket, MachineFolder folder, Effect effect, Sending sending);

  /// Waits until ready() holds, reading the socket meanwhile. `lock` is held whenever ready() runs.
  template <class Ready>
  void wait_until(std::unique_lock<std::mutex>& lock, const Wait& wait, Ready ready);
  void read_socket(std::unique_lock<std::mutex>& lock, const Wait& wait);
  /// Reads what has come and sends what can be, without waiting.
  enum class Reading { one_frame, all };
  void advance(std::unique_lock<std::mutex>& lock, Reading reading);
  bool receive(std::span<char> room);
  protocol::Frame take_front(std::unique_lock<std::mutex>& lock, const Wait& wait);
  void take_frame(protocol::Frame frame);
  void flush_queue();
  /// Tells a caller's will apart from a caller's death, where the socket takes it.
  void say_cancel();
  void fail(Error error);
  Error lost() const;
  /// What ended a connection without a last word, as far as the machine's folder tells.
  std::string why_lost() const;
  Error other_version(std::uint32_t version) const;
  /// The earlier of a call's deadline and that of the first answer, while there is none.
  Deadline due(Deadline deadline) const { return answered_ ? deadline : deadline.earlier(answer_deadline_); }
  bool over() const { return killed_ || final_seen_ || broken_.has_value(); }
  void pump_input(std::unique_lock<std::mutex>& lock, const Wait& wait);
  bool send_costing(std::unique_lock<std::mutex>& lock, protocol::FrameType type, std::string_view payload,
                    const Wait& wait);
  void send(std::unique_lock<std::mutex>& lock, protocol::FrameHeader header, std::string_view payload,
            const Wait& wait);
  /// Tells the descriptors what has changed.
  void mark();
  Watch& watch(std::optional<Watch>& watch);
  void set_alarms();

  const Fd socket_;
  const MachineFolder folder_;
  const std::string subject_;
  const Effect effect_;
  const Sending sending_policy_;

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
  bool end_wanted_ = false;  // an end of input waits for credit
  std::string outgoing_;     // frames that the socket has not taken, with Sending::queues
  std::size_t outgoing_sent_ = 0;
  bool greeted_ = false;
  bool final_seen_ = false;
  bool killed_ = false;
  std::optional<Error> broken_;
  std::optional<Watch> output_;  // of poll_fd()
  std::optional<Watch> room_;    // of room_fd()
  Deadline deadline_ = Deadline::never();
  Deadline answer_deadline_ = Deadline::never();
  bool answered_ = false;  // a frame but credit has come
};

}  // namespace holt::machine
