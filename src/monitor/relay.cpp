#include "monitor/relay.hpp"

#include "holt/base/log.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

namespace holt::monitor {

using namespace protocol;
using machine::error_of;

namespace {

constexpr std::size_t k_most_clients = 512;
constexpr std::size_t k_most_streams = 512;
// Requests carry no credit: clients wait while so much of theirs has not reached the guest.
constexpr std::size_t k_guest_backlog = std::size_t{4} << 20;
// Credit that the guest grants costs it nothing, so a client that stalls could be made to hold any number of
// grants. An honest guest grants half a window at a time.
constexpr std::size_t k_most_free_bytes = std::size_t{2} * k_initial_window;

Failure failure_of(const Error& error) {
  return {.code = std::string(to_string(error.code())), .message = error.what(), .path = error.subject()};
}

/// Requests that belong to the monitor alone.
bool is_reserved(const Request& request) {
  return std::holds_alternative<IdentityRequest>(request) || std::holds_alternative<ClockRequest>(request) ||
         std::holds_alternative<RenewRequest>(request) || std::holds_alternative<GrowRequest>(request) ||
         (std::holds_alternative<SyncRequest>(request) &&
          std::get<SyncRequest>(request).freeze != Freeze::no);
}

/// Requests that the monitor answers.
bool is_for_monitor(const Request& request) {
  return std::holds_alternative<LifeRequest>(request) || std::holds_alternative<StatsRequest>(request) ||
         std::holds_alternative<ResizeDiskRequest>(request);
}

}  // namespace

Relay::Relay(boost::asio::io_context& loop, machine::GuestLink::Parts guest, RelayState state,
             RelayEvents events)
    : loop_(loop),
      guest_(std::make_shared<FrameSocket>(loop, std::move(guest.fd), std::move(guest.parser), guest.writer)),
      generation_(std::move(state.generation)),
      events_(std::move(events)),
      next_guest_stream_(guest.next_stream) {
  for (const auto& stream : state.streams) {
    auto& route = routes_[stream.number];
    route.started = stream.started;
    route.from_guest = ReceiveWindow(stream.window);
    abandon(stream.number, route);
  }
  boost::asio::post(loop_, [this, alive = std::weak_ptr(guest_), early = std::move(guest.early)]() mutable {
    if (alive.expired()) return;
    for (auto& frame : early) on_guest_frame(std::move(frame));
  });
  guest_->start([this](Frame frame) { on_guest_frame(std::move(frame)); },
                [this](std::optional<ProtocolError> broken) {
                  if (broken) return break_guest(broken->text());
                  guest_gone(Error(ErrorCode::guest_lost, "The channel to the guest program ended"));
                },
                [this] { set_clients_paused(); });
}

Relay::~Relay() {
  guest_->close();
  for (auto& [id, client] : clients_) client.socket->close();
}

void Relay::add_client(Fd socket) {
  if (clients_.size() >= k_most_clients) return;  // closes it
  auto id = next_client_++;
  auto& client = clients_[id];
  client.socket =
      std::make_shared<FrameSocket>(loop_, std::move(socket), FrameParser(Side::opener), FrameWriter());
  client.socket->start([this, id](Frame frame) { on_client_frame(id, std::move(frame)); },
                       [this, id](const std::optional<ProtocolError>& broken) {
                         if (broken)
                           logger("monitor")->debug("a client broke the protocol: {}", broken->text());
                         drop_client(id);
                       });
  if (paused_) client.socket->pause();
}

std::size_t Relay::clients() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(clients_, [](const auto& entry) { return entry.second.uses; }));
}

void Relay::ask(const Request& request, Answer answer) {
  if (guest_->closed()) {
    return boost::asio::post(loop_, [answer = std::move(answer)] {
      answer(std::unexpected(Error(ErrorCode::guest_lost, "The channel to the guest program ended")));
    });
  }
  auto stream = next_guest_stream_++;
  routes_[stream].answer = std::move(answer);
  guest_->send({.type = FrameType::request, .stream = stream}, encode_request(request));
}

void Relay::refuse_requests(const Error& reason) {
  refusal_ = reason;
}

void Relay::interrupt_streams(const Error& reason) {
  auto failure = encode(failure_of(reason));
  for (auto& [id, client] : clients_) {
    for (auto [client_stream, guest_stream] : client.streams) {
      client.socket->send({.type = FrameType::failure, .stream = client_stream}, failure);
      auto& route = routes_.at(guest_stream);
      route.client = 0;
      // One that waits for credit would wait for ever: nobody grants it any more.
      if (!route.is_command) cancel(guest_stream, route);
    }
    client.streams.clear();
  }
}

void Relay::abandon_streams(const Error& reason) {
  interrupt_streams(reason);
  for (auto& [stream, route] : routes_) {
    if (!route.answer && !route.abandoned) abandon(stream, route);
  }
}

void Relay::abandon(std::uint32_t guest_stream, Route& route) {
  route.abandoned = true;
  // What the client had still to give back: without it the command would wait for ever.
  auto missing = k_initial_window - std::min(k_initial_window, route.from_guest.outstanding());
  if (missing == 0 || !route.from_guest.grant(missing)) return;
  guest_->send({.type = FrameType::credit, .stream = guest_stream}, encode_credit(missing));
}

void Relay::cancel(std::uint32_t guest_stream, Route& route) {
  if (std::exchange(route.cancelled, true)) return;
  guest_->send({.type = FrameType::cancel, .stream = guest_stream}, {});
}

RelayState Relay::state() const {
  RelayState state{.generation = generation_,
                   .next_stream = next_guest_stream_,
                   .next_sequence = guest_->writer().next_sequence(),
                   .expected_sequence = guest_->parser().expected_sequence(),
                   .unparsed = guest_->parser().unparsed(),
                   .unsent = guest_->unsent()};
  for (const auto& [stream, route] : routes_) {
    state.streams.push_back(
        {.number = stream, .started = route.started, .window = route.from_guest.outstanding()});
  }
  return state;
}

void Relay::end_streams(const Error& reason) {
  refuse_requests(reason);
  interrupt_streams(reason);
  for (auto& [id, client] : clients_) client.socket->close_when_sent();
  auto routes = std::exchange(routes_, {});
  for (auto& [stream, route] : routes) {
    if (route.answer) route.answer(std::unexpected(reason));
  }
}

std::size_t Relay::waiting() const {
  std::size_t bytes = 0;
  for (const auto& [id, client] : clients_) {
    if (!client.socket->closed()) bytes += client.socket->waiting();
  }
  return bytes;
}

void Relay::on_client_frame(std::uint64_t id, Frame frame) {
  auto found = clients_.find(id);
  if (found == clients_.end()) return;
  auto& client = found->second;
  auto type = frame.header.type;
  if (!client.greeted && type != FrameType::hello) return drop_client(id);
  if (frame.header.stream == 0) return on_connection_frame(id, client, frame);
  if (type == FrameType::request) return on_request(id, client, std::move(frame));
  auto stream = client.streams.find(frame.header.stream);
  if (stream != client.streams.end()) {
    return forward_to_guest(id, routes_.at(stream->second), stream->second, std::move(frame));
  }
  // What was on its way when the stream ended is nobody's fault.
  if (frame.header.stream > client.highest_stream) drop_client(id);
}

void Relay::on_connection_frame(std::uint64_t id, Client& client, const Frame& frame) {
  switch (frame.header.type) {
    case FrameType::hello: {
      auto hello = decode<Hello>(frame.payload);
      if (client.greeted || !hello) return drop_client(id);
      client.greeted = true;
      client.socket->send({.type = FrameType::hello},
                          encode(Hello{.program = "holt-monitor", .generation = generation_}));
      // A client of another version learns by it which one is spoken here.
      if (hello->version != k_version) drop_client(id);
      return;
    }
    case FrameType::ping:
      client.socket->send({.type = FrameType::pong}, frame.payload);
      return;
    case FrameType::pong:
      return;
    default:
      return drop_client(id);
  }
}

void Relay::on_request(std::uint64_t id, Client& client, Frame frame) {
  auto stream = frame.header.stream;
  if (stream <= client.highest_stream) return drop_client(id);
  client.highest_stream = stream;
  auto request = decode_request(frame.payload);
  if (!request) return drop_client(id);
  bool asks_how_it_is = std::holds_alternative<StatusRequest>(*request) || is_for_monitor(*request);
  if (!asks_how_it_is && !std::exchange(client.uses, true) && events_.on_clients_changed) {
    events_.on_clients_changed();
  }
  if (auto* shutdown = std::get_if<ShutdownRequest>(&*request)) {
    return events_.on_stop(shutdown->grace_ms, [this, id, stream](const std::optional<Error>& error) {
      auto found = clients_.find(id);
      if (found == clients_.end()) return;
      if (error) return refuse(found->second, stream, *error);
      found->second.socket->send({.type = FrameType::reply, .stream = stream}, encode(Done{}));
    });
  }
  if (is_for_monitor(*request)) {
    return events_.on_own_request(
        *request, [this, id, stream](const std::expected<std::string, Error>& answer) {
          auto found = clients_.find(id);
          if (found == clients_.end()) return;
          if (!answer) return refuse(found->second, stream, answer.error());
          found->second.socket->send({.type = FrameType::reply, .stream = stream}, *answer);
        });
  }
  if (refusal_) return refuse(client, stream, *refusal_);
  if (is_reserved(*request)) {
    return refuse(client, stream, Error(ErrorCode::not_supported, "Only the machine's monitor may do that"));
  }
  if (routes_.size() >= k_most_streams) {
    return refuse(client, stream,
                  Error(ErrorCode::limit_exceeded,
                        fmt::format("The machine has {} operations under way already", k_most_streams),
                        {.retryable = true}));
  }
  auto guest_stream = next_guest_stream_++;
  auto& route = routes_[guest_stream];
  route.client = id;
  route.client_stream = stream;
  if (const auto* exec = std::get_if<ExecRequest>(&*request)) {
    route.is_command = true;
    route.has_key = !exec->key.empty();
    route.input_open = exec->stdin_mode == StdinMode::stream;
  }
  client.streams[stream] = guest_stream;
  guest_->send({.type = FrameType::request, .stream = guest_stream}, std::move(frame.payload));
  set_clients_paused();
}

void Relay::forward_to_guest(std::uint64_t id, Route& route, std::uint32_t guest_stream, Frame frame) {
  auto type = frame.header.type;
  if (type == FrameType::credit) {
    auto bytes = decode_credit(frame.payload);
    if (!bytes || !route.from_guest.grant(*bytes)) return drop_client(id);
  } else if (costs_credit(type)) {
    if (!route.from_client.receive(frame.payload.size())) return drop_client(id);
  }
  if (type == FrameType::input && frame.header.has(FrameFlag::end_of_data)) route.input_open = false;
  if (type == FrameType::cancel) return cancel(guest_stream, route);
  frame.header.stream = guest_stream;
  guest_->send(frame.header, std::move(frame.payload));
}

void Relay::drop_client(std::uint64_t id) {
  auto found = clients_.find(id);
  if (found == clients_.end()) return;
  found->second.socket->close();
  for (auto [client_stream, guest_stream] : found->second.streams) {
    // The route stays for the frames that are on their way, up to the final one.
    auto& route = routes_.at(guest_stream);
    route.client = 0;
    // Half an input must not pass for a whole one.
    bool outlives = route.has_key && !route.input_open && !route.cancelled;
    outlives ? abandon(guest_stream, route) : cancel(guest_stream, route);
  }
  bool used = found->second.uses;
  clients_.erase(found);
  if (used && events_.on_clients_changed) events_.on_clients_changed();
}

void Relay::refuse(Client& client, std::uint32_t stream, const Error& error) {
  client.socket->send({.type = FrameType::failure, .stream = stream}, encode(failure_of(error)));
}

void Relay::on_guest_frame(Frame frame) {
  auto type = frame.header.type;
  if (frame.header.stream == 0) {
    if (type == FrameType::ping) {
      // Requests of many clients may wait as well; only pings go on when those are held up.
      if (guest_->waiting() > 2 * k_guest_backlog) return break_guest("pings whose answers it does not take");
      return guest_->send({.type = FrameType::pong}, std::move(frame.payload));
    }
    if (type == FrameType::pong) return;
    if (type == FrameType::hello)
      return break_guest("a second greeting: the guest program was started again");
    return break_guest(fmt::format("a frame of type {} for the connection", to_string(type)));
  }
  auto route = routes_.find(frame.header.stream);
  if (route == routes_.end()) return break_guest("a frame for a stream that is not open");
  on_stream_frame(route->first, route->second, std::move(frame));
}

void Relay::on_stream_frame(std::uint32_t guest_stream, Route& route, Frame frame) {
  auto type = frame.header.type;
  if (type == FrameType::started && std::exchange(route.started, true)) {
    return break_guest("a stream that started twice");
  }
  if (costs_credit(type)) {
    if (auto taken = route.from_guest.receive(frame.payload.size()); !taken)
      return break_guest(taken.error().text());
  }
  if (type == FrameType::credit) {
    auto bytes = decode_credit(frame.payload);
    if (!bytes) return break_guest(bytes.error().text());
    if (auto granted = route.from_client.grant(*bytes); !granted) return break_guest(granted.error().text());
    if (!has_room_for_grant(route.client)) return drop_client(route.client);
  }
  if (route.answer && is_final(type)) {
    auto answer = std::move(route.answer);
    finish_route(guest_stream);
    if (type == FrameType::reply) return answer(std::move(frame.payload));
    auto failure = decode<Failure>(frame.payload);
    return answer(
        std::unexpected(failure ? error_of(*failure) : machine::guest_protocol_error(failure.error())));
  }
  if (route.abandoned && costs_credit(type)) {
    if (auto bytes = route.from_guest.release(frame.payload.size()); bytes > 0) {
      guest_->send({.type = FrameType::credit, .stream = guest_stream}, encode_credit(bytes));
    }
  }
  if (auto client = clients_.find(route.client); client != clients_.end()) {
    frame.header.stream = route.client_stream;
    client->second.socket->send(frame.header, std::move(frame.payload));
  }
  if (is_final(type)) finish_route(guest_stream);
}

bool Relay::has_room_for_grant(std::uint64_t id) {
  auto found = clients_.find(id);
  if (found == clients_.end()) return true;
  auto& client = found->second;
  if (client.socket->waiting() == 0) client.free_bytes = 0;
  client.free_bytes += frame_cost(sizeof(std::uint32_t));
  return client.free_bytes <= k_most_free_bytes;
}

void Relay::finish_route(std::uint32_t guest_stream) {
  auto route = routes_.find(guest_stream);
  if (auto client = clients_.find(route->second.client); client != clients_.end()) {
    client->second.streams.erase(route->second.client_stream);
  }
  routes_.erase(route);
}

void Relay::guest_gone(const Error& reason) {
  guest_->close();
  if (auto tell = std::exchange(events_.on_guest_gone, {})) tell(reason);
}

void Relay::break_guest(const std::string& rule) {
  logger("monitor")->warn("the guest program broke the protocol: {}", rule);
  guest_gone(Error(ErrorCode::guest_protocol, fmt::format("The guest program broke the protocol: {}", rule)));
}

void Relay::set_clients_paused() {
  bool pause = guest_->waiting() > k_guest_backlog;
  if (pause == paused_) return;
  paused_ = pause;
  for (auto& [id, client] : clients_) {
    if (pause) {
      client.socket->pause();
    } else {
      client.socket->resume();
    }
  }
}

}  // namespace holt::monitor
