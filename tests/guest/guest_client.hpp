// The host's side for tests: starts holt-guest as an ordinary process on a socket, and speaks to it frame by
// frame.
#pragma once

#include "holt/base/deadline.hpp"
#include "holt/base/fd.hpp"
#include "holt/base/process.hpp"
#include "holt/protocol/flow.hpp"
#include "holt/protocol/frame.hpp"
#include "holt/protocol/messages.hpp"

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holt::test {

/// All that has come back on one stream.
struct StreamResult {
  std::optional<std::string> started;
  std::string output;
  std::string error_output;
  std::vector<std::string> entries;
  std::vector<protocol::FrameType> order;
  std::optional<protocol::Frame> final_frame;

  bool failed() const { return final_frame && final_frame->header.type == protocol::FrameType::failure; }
  /// The failure; an empty one when the operation went well.
  protocol::Failure failure() const;
  template <class Message>
  Message reply() const {
    if (!final_frame || failed())
      throw std::runtime_error("no reply: " + failure().code + " " + failure().message);
    return protocol::decode<Message>(final_frame->payload).value();
  }
};

/// Blocking, one thread.
class GuestClient {
 public:
  /// Speaks on a socket whose other end a guest serves.
  explicit GuestClient(Fd socket) : socket_(std::move(socket)) {}

  /// Waits for the guest's own hello, says hello, waits for the answer.
  void shake_hands();
  protocol::IdentityReply identify(protocol::IdentityRequest request = default_identity());
  static protocol::IdentityRequest default_identity();

  std::uint32_t open(const protocol::Request& request);
  /// Sends bytes of input within the credit, taking frames meanwhile.
  void send_input(std::uint32_t stream, std::string_view bytes);
  void end_input(std::uint32_t stream);
  void send_entry(std::uint32_t stream, const protocol::TreeEntry& entry);
  void send(protocol::FrameHeader header, std::string_view payload = {});
  void send_raw(std::string_view bytes);

  /// Everything of a stream once its final frame is there. Throws at the deadline.
  StreamResult wait(std::uint32_t stream, std::chrono::milliseconds limit = std::chrono::seconds(60));
  /// Waits until `done` holds of the stream.
  template <class Condition>
  StreamResult& wait_until(std::uint32_t stream, Condition done,
                           std::chrono::milliseconds limit = std::chrono::seconds(60)) {
    auto deadline = Deadline::after(limit);
    while (!done(streams_[stream].result)) take(deadline);
    return streams_[stream].result;
  }
  /// Opens, ends the input where there is one, and waits.
  StreamResult call(const protocol::Request& request, std::string_view input = {});
  /// The next frame of stream 0 of a type.
  protocol::Frame connection_frame(protocol::FrameType type);

  /// From now on this stream's data is taken and no credit given back.
  void stall(std::uint32_t stream) { streams_[stream].stalled = true; }
  void unstall(std::uint32_t stream);
  /// Takes frames until nothing arrives for so long; false when that does not happen.
  bool falls_silent_for(std::chrono::milliseconds time);
  /// The guest has closed the connection.
  bool wait_for_close(std::chrono::milliseconds limit);
  void close() { socket_.reset(); }

 private:
  struct Stream {
    StreamResult result;
    protocol::SendCredit credit;
    protocol::ReceiveWindow window;
    bool stalled = false;
    std::size_t withheld = 0;
  };
  void take(Deadline deadline);
  void handle(protocol::Frame frame);

  Fd socket_;
  protocol::FrameParser parser_{protocol::Side::server};
  protocol::FrameWriter writer_;
  std::string outgoing_;
  bool sending_ = false;
  std::uint32_t next_stream_ = 1;
  std::map<std::uint32_t, Stream> streams_;
  std::vector<protocol::Frame> connection_frames_;
};

/// A cgroup folder of this test where the host has a writable cgroup v2 hierarchy; empty otherwise.
class TestCgroup {
 public:
  TestCgroup();
  ~TestCgroup();
  TestCgroup(const TestCgroup&) = delete;
  TestCgroup& operator=(const TestCgroup&) = delete;
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

/// A running guest program with its identity, and its client.
class HostedGuest {
 public:
  enum class Start { identified, greeted, raw };
  explicit HostedGuest(Start start = Start::identified);
  GuestClient& client() { return *client_; }
  bool has_cgroups() const { return !cgroup_.folder().empty(); }
  Process& process() { return process_; }

 private:
  TestCgroup cgroup_;
  Process process_;
  std::optional<GuestClient> client_;
};

}  // namespace holt::test
