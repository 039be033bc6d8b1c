// File operations: blocking code on threads of its own, one for each stream that is at work, so that a
// stalled reader or a slow disk holds up nobody else.
#pragma once

#include "guest/loop.hpp"
#include "guest/stream.hpp"
#include "holt/protocol/flow.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace holt::guest {

class JobHub;

/// One job's stream. The calls of the first group are for the job's own thread and block; they return false
/// or nothing once the job has been cancelled or the host is gone.
class JobStream : public StreamHandler, public std::enable_shared_from_this<JobStream> {
 public:
  JobStream(JobHub& hub, Outlet outlet) : hub_(hub), outlet_(outlet) {}

  bool send(protocol::FrameType type, std::string payload);
  /// The next input or entry frame; its end_of_data flag says that nothing follows.
  std::optional<protocol::Frame> receive();
  /// Lets the host send as much again.
  void release(std::size_t payload);
  bool cancelled();

  void on_frame(protocol::Frame frame) override;
  std::expected<void, protocol::ProtocolError> on_credit(std::uint32_t bytes) override;
  void on_disconnect() override;

 private:
  friend class JobHub;
  JobHub& hub_;
  Outlet outlet_;
  // Guarded by the hub's mutex.
  protocol::SendCredit credit_;
  std::deque<protocol::Frame> input_;
  bool cancelled_ = false;
  std::size_t unreleased_ = 0;  // job's thread only
};

/// Threads and the way back to the loop. run() and the on_ calls: loop thread.
class JobHub {
 public:
  using Job = std::function<Outcome<std::string>(JobStream&)>;
  enum class Urgency {
    normal,
    must_run,  ///< on a thread more than the limit when all are busy
  };

  JobHub(Loop& loop, std::size_t max_threads) : loop_(loop), max_threads_(max_threads) {}
  ~JobHub();
  JobHub(const JobHub&) = delete;
  JobHub& operator=(const JobHub&) = delete;

  /// Runs `job` on a thread; what it returns is the encoded reply, or the failure. Nothing when all threads
  /// are busy.
  std::shared_ptr<StreamHandler> run(Outlet outlet, Job job, Urgency urgency = Urgency::normal);
  /// The channel has written what was queued.
  void on_drained();

 private:
  friend class JobStream;
  struct Message {
    Outlet outlet;
    protocol::FrameType type;
    std::string payload;
    std::size_t released = 0;
  };
  void work();
  void post(std::unique_lock<std::mutex>& lock, Message message);
  void deliver();

  Loop& loop_;
  const std::size_t max_threads_;
  std::mutex mutex_;
  std::condition_variable changed_;  // of any stream
  std::condition_variable wanted_;   // a job is waiting
  std::deque<std::function<void()>> waiting_;
  std::size_t idle_ = 0;
  bool ending_ = false;
  bool congested_ = false;
  std::size_t outbox_bytes_ = 0;
  std::vector<Message> outbox_;
  std::vector<std::thread> threads_;
};

/// What a job returns: the reply as bytes.
template <class Message>
Outcome<std::string> encoded(const Outcome<Message>& outcome) {
  if (!outcome) return std::unexpected(outcome.error());
  return protocol::encode(*outcome);
}

}  // namespace holt::guest
