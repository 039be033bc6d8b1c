// Joins many clients with the one channel to the guest: streams of clients become streams of the guest.
//
// Credit passes through from end to end, so what waits here is bounded by what the receivers granted. A frame
// that breaks a rule of docs/protocol.md ends the machine when the guest sent it, and that client when a
// client did.
#pragma once

#include "holt/base/error.hpp"
#include "holt/protocol/flow.hpp"
#include "holt/protocol/messages.hpp"
#include "machine/guest_link.hpp"
#include "machine/suspension.hpp"
#include "monitor/frame_socket.hpp"

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

namespace holt::monitor {

/// A client's wish that its machine stop. Called with how that went; answers the client.
using StopAnswer = std::function<void(std::optional<Error>)>;

/// Answers a request with a reply's payload or the failure. Called once.
using Answer = std::function<void(std::expected<std::string, Error>)>;

/// What of the channel lives on through a suspension: streams that the guest has open, numbers of frames.
using RelayState = machine::SuspendedChannel;

struct RelayEvents {
  std::function<void(std::uint32_t grace_ms, StopAnswer answer)> on_stop = {};
  /// A request to the monitor itself: LifeRequest, StatsRequest, ResizeDiskRequest.
  std::function<void(const protocol::Request&, Answer)> on_own_request = {};
  /// Once: the channel ended (GUEST_LOST) or the guest broke the protocol (GUEST_PROTOCOL).
  std::function<void(const Error&)> on_guest_gone = {};
  /// When one of clients() came or went.
  std::function<void()> on_clients_changed = {};
};

/// Belongs to the event loop's thread.
class Relay {
 public:
  /// `state`: of a guest that was resumed; its streams belong to no client any more.
  Relay(boost::asio::io_context& loop, machine::GuestLink::Parts guest, RelayState state, RelayEvents events);
  ~Relay();

  void add_client(Fd socket);
  /// Those that use the machine; whoever asks how it is does not.
  std::size_t clients() const;

  /// A request of the monitor's own.
  void ask(const protocol::Request& request, Answer answer);

  /// From now on requests of clients are refused with this error; running ones go on. Requests to the monitor
  /// are taken all the same.
  void refuse_requests(const Error& reason);
  void accept_requests() { refusal_.reset(); }
  /// Ends the streams of all clients with this failure; what the guest still says on them is dropped. Tells
  /// the guest to give their file operations up; commands get the grace of a shutdown.
  void interrupt_streams(const Error& reason);
  /// Ends every stream with this failure and lets the clients go once they have it.
  void end_streams(const Error& reason);
  /// Bytes that clients have still to take.
  std::size_t waiting() const;

  /// Ends what clients have open like interrupt_streams(), but lets commands of the guest go on: what they
  /// write from now on is taken and dropped.
  void abandon_streams(const Error& reason);
  /// Bytes on their way to the guest.
  std::size_t untaken() { return guest_->waiting() + guest_->untaken(); }
  /// Takes what the guest has sent. True when its end of the channel is closed.
  bool drain_guest() { return guest_->drain(); }
  /// Keeps back what is sent to the guest from now on, for its next life; or sends it after all.
  void hold_guest() { guest_->hold(); }
  void let_guest_go() { guest_->let_go(); }
  RelayState state() const;

 private:
  struct Client {
    std::shared_ptr<FrameSocket> socket;
    bool greeted = false;
    bool uses = false;  ///< has asked for more than how the machine is
    std::uint32_t highest_stream = 0;
    std::map<std::uint32_t, std::uint32_t> streams;  ///< the client's number: the guest's
    std::size_t free_bytes = 0;  ///< of frames without credit since it last took everything
  };
  struct Route {
    std::uint64_t client = 0;  ///< 0: the monitor's own, or a client that has gone
    std::uint32_t client_stream = 0;
    bool started = false;
    bool is_command = false;
    bool has_key = false;     ///< a caller that is lost may come back for it
    bool cancelled = false;   ///< the guest has been told
    bool input_open = false;  ///< the client has more to say to it
    bool abandoned = false;   ///< the guest goes on with it, and nobody wants what it says
    protocol::ReceiveWindow from_guest;
    protocol::ReceiveWindow from_client;
    Answer answer = {};
  };

  void on_client_frame(std::uint64_t id, protocol::Frame frame);
  void on_connection_frame(std::uint64_t id, Client& client, const protocol::Frame& frame);
  void on_request(std::uint64_t id, Client& client, protocol::Frame frame);
  void forward_to_guest(std::uint64_t id, Route& route, std::uint32_t guest_stream, protocol::Frame frame);
  /// A client that is gone without a word: its commands end, but for those that it may come back for.
  void drop_client(std::uint64_t id);
  void refuse(Client& client, std::uint32_t stream, const Error& error);

  void on_guest_frame(protocol::Frame frame);
  void on_stream_frame(std::uint32_t guest_stream, Route& route, protocol::Frame frame);
  /// Counts one more grant for this client; false when it has left too many untaken.
  bool has_room_for_grant(std::uint64_t id);
  void abandon(std::uint32_t guest_stream, Route& route);
  void cancel(std::uint32_t guest_stream, Route& route);
  void finish_route(std::uint32_t guest_stream);
  void guest_gone(const Error& reason);
  void break_guest(const std::string& rule);
  void set_clients_paused();

  boost::asio::io_context& loop_;
  std::shared_ptr<FrameSocket> guest_;
  std::string generation_;
  RelayEvents events_;
  std::uint32_t next_guest_stream_;
  std::uint64_t next_client_ = 1;
  std::map<std::uint64_t, Client> clients_;
  std::map<std::uint32_t, Route> routes_;
  std::optional<Error> refusal_;
  bool paused_ = false;
};

}  // namespace holt::monitor
