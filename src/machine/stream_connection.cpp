#include "machine/stream_connection.hpp"

#include "holt/base/log.hpp"
#include "machine/event_log.hpp"
#include "machine/guest_link.hpp"
#include "machine/socket_address.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::machine {

using namespace protocol;

namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t k_stream = 1;
constexpr auto k_end = static_cast<std::uint8_t>(FrameFlag::end_of_data);

[[noreturn]] void throw_timeout(const std::string& subject) {
  throw Error(ErrorCode::timeout, fmt::format("The machine {} did not answer in time", subject),
              {.subject = subject});
}

void check(const Wait& wait, const std::string& subject) {
  if (wait.cancel) wait.cancel->throw_if_cancelled();
  if (wait.deadline.passed()) throw_timeout(subject);
}

/// Why there is nobody to talk to.
Error not_running(const MachineFolder& folder, const std::string& name) {
  auto observed = observe(folder);
  if (observed.monitored && observed.status.state != MachineState::stopping) {
    return {ErrorCode::invalid_state,
            fmt::format("The machine {} is {}", name, to_string(observed.status.state)),
            {.subject = name, .hint = "Try again in a moment.", .retryable = true}};
  }
  std::vector<std::string> causes;
  if (observed.status.failure) causes.push_back(observed.status.failure->message);
  return {ErrorCode::invalid_state,
          fmt::format("The machine {} is {}", name, to_string(observed.status.state)),
          {.subject = name, .hint = "Start it.", .retryable = true, .causes = causes}};
}

Fd connect_to(const MachineFolder& folder, const std::string& name, const Wait& wait) {
  SocketAddress address(folder);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throw system_error(errno, "make a socket");
  while (::connect(socket.get(), address.get(), address.size()) != 0) {
    if (errno == EINTR) continue;
    if (errno == ENOENT || errno == ECONNREFUSED) throw not_running(folder, name);
    if (errno != EAGAIN) throw system_error(errno, fmt::format("reach the monitor of {}", name), name);
    // The monitor's queue of connections is full.
    check(wait, name);
    std::this_thread::sleep_for(2ms);
  }
  int bytes = 1 << 20;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  return socket;
}

}  // namespace

std::unique_ptr<StreamConnection> StreamConnection::open(const MachineFolder& folder, const Request& request,
                                                         Effect effect, const Wait& wait, Sending sending) {
  auto name = folder.path().filename().string();
  check(wait, name);
  auto payload = encode_request(request);
  if (payload.size() > k_max_request) {
    throw Error(ErrorCode::too_large,
                fmt::format("The request has {} bytes, more than {}", payload.size(), k_max_request),
                {.subject = name});
  }
  std::unique_ptr<StreamConnection> connection(
      new StreamConnection(connect_to(folder, name, wait), folder, effect, sending));
  std::unique_lock lock(connection->mutex_);
  // Together: the greeting costs no round trip.
  connection->send(lock, {.type = FrameType::hello}, encode(Hello{.program = "holt"}), wait);
  connection->send(lock, {.type = FrameType::request, .stream = k_stream}, payload, wait);
  lock.unlock();
  return connection;
}

StreamConnection::StreamConnection(Fd socket, MachineFolder folder, Effect effect, Sending sending)
    : socket_(std::move(socket)),
      folder_(std::move(folder)),
      subject_(folder_.path().filename().string()),
      effect_(effect),
      sending_policy_(sending),
      parser_(Side::server) {}

StreamConnection::~StreamConnection() = default;

std::optional<Frame> StreamConnection::next(const Wait& wait) {
  std::unique_lock lock(mutex_);
  for (;;) {
    pump_input(lock, wait);
    wait_until(lock, wait, [&] {
      bool can_pump = input_open_ && !sending_ && !over() && credit_.payload_room() > 0;
      return !frames_.empty() || over() || can_pump;
    });
    if (killed_) return std::nullopt;
    if (!frames_.empty()) break;
    if (broken_) throw *broken_;
    if (final_seen_) return std::nullopt;
  }
  return take_front(lock, wait);
}

Tried<Frame> StreamConnection::try_next() {
  std::unique_lock lock(mutex_);
  advance(lock, Reading::one_frame);
  if (killed_) return Tried<Frame>::end();
  if (!frames_.empty()) return {.value = take_front(lock, {.deadline = deadline_})};
  if (broken_) throw *broken_;
  if (final_seen_) return Tried<Frame>::end();
  if (due(deadline_).passed()) throw_timeout(subject_);
  return Tried<Frame>::not_yet();
}

void StreamConnection::advance(std::unique_lock<std::mutex>& lock, Reading reading) {
  flush_queue();
  // Another thread that reads the socket tells what comes by the queue. What is not fetched stays within the
  // window that was granted.
  while (!reading_ && !over() && (reading == Reading::all || frames_.empty()) && receive(parser_.space())) {
  }
  if (!over()) pump_input(lock, {.deadline = deadline_});
  flush_queue();
  mark();
}

Frame StreamConnection::take_front(std::unique_lock<std::mutex>& lock, const Wait& wait) {
  auto frame = std::move(frames_.front());
  frames_.pop_front();
  mark();
  if (costs_credit(frame.header.type)) {
    if (auto bytes = window_.release(frame.payload.size()); bytes > 0 && !over()) {
      send(lock, {.type = FrameType::credit, .stream = k_stream}, encode_credit(bytes), wait);
    }
  }
  if (frame.header.type != FrameType::failure) return frame;
  auto failure = decode<Failure>(frame.payload);
  if (!failure) throw guest_protocol_error(failure.error());
  Error error = error_of(*failure);
  if (error.code() == ErrorCode::guest_lost && effect_ == Effect::possible) {
    throw Error(ErrorCode::outcome_unknown,
                fmt::format("It is not known whether this was done: {}", error.what()),
                {.subject = subject_, .causes = {fmt::format("GUEST_LOST: {}", error.what())}});
  }
  // Nothing was done, and in another state of the machine the same may work.
  bool retryable = error.code() == ErrorCode::invalid_state || error.code() == ErrorCode::limit_exceeded;
  throw Error(error.code(), error.what(),
              {.subject = error.subject().empty() ? subject_ : error.subject(), .retryable = retryable});
}

std::string StreamConnection::reply(const Wait& wait) {
  while (auto frame = next(wait)) {
    if (frame->header.type == FrameType::reply) return std::move(frame->payload);
  }
  throw Error(ErrorCode::guest_protocol, "The guest program sent no reply", {.subject = subject_});
}

void StreamConnection::set_input(std::string input) {
  std::unique_lock lock(mutex_);
  input_ = std::move(input);
  input_open_ = true;
}

void StreamConnection::pump_input(std::unique_lock<std::mutex>& lock, const Wait& wait) {
  while (input_open_ && !sending_ && !over()) {
    std::size_t size = std::min(input_.size() - input_sent_, credit_.payload_room());
    if (size == 0 && input_sent_ < input_.size()) return;
    std::string piece = input_.substr(input_sent_, size);
    input_sent_ += size;
    bool last = input_sent_ == input_.size();
    if (last) input_open_ = false;
    credit_.spend(piece.size());
    std::uint8_t flags = last ? k_end : std::uint8_t{0};
    send(lock, {.type = FrameType::input, .stream = k_stream, .flags = flags}, piece, wait);
  }
  if (!end_wanted_ || sending_ || over() || !credit_.can_send(0)) return;
  end_wanted_ = false;
  credit_.spend(0);
  send(lock, {.type = FrameType::input, .stream = k_stream, .flags = k_end}, {}, wait);
}

std::size_t StreamConnection::try_send_input(std::string_view bytes) {
  std::unique_lock lock(mutex_);
  advance(lock, Reading::all);
  std::size_t taken = 0;
  while (taken < bytes.size() && !over() && !sending_ && outgoing_.empty()) {
    auto piece = bytes.substr(taken, credit_.payload_room());
    if (piece.empty()) break;
    credit_.spend(piece.size());
    send(lock, {.type = FrameType::input, .stream = k_stream}, piece, {.deadline = deadline_});
    taken += piece.size();
  }
  mark();
  if (taken == 0 && !over() && deadline_.passed()) throw_timeout(subject_);
  return taken;
}

bool StreamConnection::ended() {
  std::lock_guard lock(mutex_);
  return over();
}

bool StreamConnection::send_input(std::string_view bytes, const Wait& wait) {
  std::unique_lock lock(mutex_);
  while (!bytes.empty()) {
    wait_until(lock, wait, [&] { return over() || credit_.payload_room() > 0; });
    if (over()) return false;
    auto piece = bytes.substr(0, credit_.payload_room());
    if (!send_costing(lock, FrameType::input, piece, wait)) return false;
    bytes.remove_prefix(piece.size());
  }
  return !over();
}

bool StreamConnection::send_entry(const std::string& payload, const Wait& wait) {
  std::unique_lock lock(mutex_);
  return send_costing(lock, FrameType::entry, payload, wait);
}

bool StreamConnection::send_costing(std::unique_lock<std::mutex>& lock, FrameType type,
                                    std::string_view payload, const Wait& wait) {
  wait_until(lock, wait, [&] { return over() || credit_.can_send(payload.size()); });
  if (over()) return false;
  credit_.spend(payload.size());
  send(lock, {.type = type, .stream = k_stream}, payload, wait);
  return !over();
}

void StreamConnection::end_input() {
  std::unique_lock lock(mutex_);
  if (over()) return;
  if (sending_policy_ == Sending::queues) {
    end_wanted_ = true;
    pump_input(lock, {});
    return;
  }
  // An end without bytes costs a header; a window that is full grants soon, and this need not wait for it.
  Wait wait{.deadline = Deadline::after(30s)};
  wait_until(lock, wait, [&] { return over() || credit_.can_send(0); });
  if (over()) return;
  credit_.spend(0);
  send(lock, {.type = FrameType::input, .stream = k_stream, .flags = k_end}, {}, wait);
}

void StreamConnection::send_signal(int signal_number) {
  std::unique_lock lock(mutex_);
  if (over()) return;
  std::string payload(1, static_cast<char>(signal_number));
  send(lock, {.type = FrameType::signal, .stream = k_stream}, payload, {.deadline = Deadline::after(5s)});
}

void StreamConnection::send_size(std::uint16_t rows, std::uint16_t columns) {
  std::unique_lock lock(mutex_);
  if (over()) return;
  std::string payload;
  for (auto number : {rows, columns}) {
    payload += static_cast<char>(number & 0xff);
    payload += static_cast<char>(number >> 8);
  }
  send(lock, {.type = FrameType::resize, .stream = k_stream}, payload, {.deadline = Deadline::after(5s)});
}

void StreamConnection::kill() {
  std::lock_guard lock(mutex_);
  if (!over() && !sending_) say_cancel();
  killed_ = true;
  // The end of the connection cancels, too, and a thread that polls the socket wakes up.
  ::shutdown(socket_.get(), SHUT_RDWR);
  mark();
  changed_.notify_all();
}

void StreamConnection::say_cancel() {
  flush_queue();
  if (!outgoing_.empty()) return;
  std::array<char, k_header_size> head;
  writer_.write_header(head, {.type = FrameType::cancel, .stream = k_stream}, 0);
  [[maybe_unused]] auto sent = ::send(socket_.get(), head.data(), head.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

int StreamConnection::poll_fd() {
  std::lock_guard lock(mutex_);
  return watch(output_).fd();
}

int StreamConnection::room_fd() {
  std::lock_guard lock(mutex_);
  return watch(room_).fd();
}

void StreamConnection::set_alarm(Deadline deadline) {
  std::lock_guard lock(mutex_);
  deadline_ = deadline;
  watch(output_);
  set_alarms();
}

void StreamConnection::set_answer_deadline(Deadline deadline) {
  std::lock_guard lock(mutex_);
  answer_deadline_ = deadline;
  set_alarms();
}

void StreamConnection::set_alarms() {
  if (output_) output_->set_alarm(due(deadline_));
  if (room_) room_->set_alarm(due(deadline_));
}

Watch& StreamConnection::watch(std::optional<Watch>& watch) {
  if (!watch) {
    watch.emplace(socket_.get());
    watch->set_alarm(due(deadline_));
    mark();
  }
  return *watch;
}

void StreamConnection::mark() {
  bool room_wanted = !outgoing_.empty() && !over();
  if (output_) {
    output_->set(!frames_.empty() || over());
    output_->want_room(room_wanted);
  }
  if (room_) {
    room_->set(over() || (outgoing_.empty() && credit_.payload_room() > 0));
    room_->want_room(room_wanted);
  }
}

void StreamConnection::abandon() noexcept {
  ::close(socket_.get());
  for (auto* watch : {&output_, &room_}) {
    if (*watch) (*watch)->abandon();
  }
}

void StreamConnection::flush_queue() {
  while (outgoing_sent_ < outgoing_.size() && !over()) {
    ssize_t n = ::send(socket_.get(), outgoing_.data() + outgoing_sent_, outgoing_.size() - outgoing_sent_,
                       MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    // A broken connection is told by its reading side, with what the monitor said last.
    if (n < 0) outgoing_sent_ = outgoing_.size();
    if (n > 0) outgoing_sent_ += static_cast<std::size_t>(n);
  }
  if (outgoing_sent_ == outgoing_.size()) {
    outgoing_.clear();
    outgoing_sent_ = 0;
  }
}

template <class Ready>
void StreamConnection::wait_until(std::unique_lock<std::mutex>& lock, const Wait& wait, Ready ready) {
  if (ready()) return;
  while (!ready()) {
    if (wait.cancel && wait.cancel->cancelled()) {
      lock.unlock();
      kill();
      wait.cancel->throw_if_cancelled();
    }
    if (due(wait.deadline).passed()) {
      // An answer that nobody has fetched is one.
      while (!reading_ && !over() && !answered_ && receive(parser_.space())) {
      }
      mark();
      if (ready()) return;
      if (due(wait.deadline).passed()) throw_timeout(subject_);
    }
    if (!reading_) {
      read_socket(lock, {.deadline = due(wait.deadline), .cancel = wait.cancel});
      continue;
    }
    // Another thread reads; in slices, to see a cancellation.
    changed_.wait_for(lock, std::min<Duration>(due(wait.deadline).left(), 50ms));
  }
}

void StreamConnection::read_socket(std::unique_lock<std::mutex>& lock, const Wait& wait) {
  reading_ = true;
  auto room = parser_.space();
  lock.unlock();
  std::array<pollfd, 2> fds{{{socket_.get(), POLLIN, 0}, {wait.cancel ? wait.cancel->fd() : -1, POLLIN, 0}}};
  int ready = ::poll(fds.data(), fds.size(), wait.deadline.poll_timeout());
  lock.lock();
  reading_ = false;
  if (ready > 0 && fds[0].revents != 0) receive(room);
  mark();
  changed_.notify_all();
}

bool StreamConnection::receive(std::span<char> room) {
  // NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection): does not block
  ssize_t n = ::recv(socket_.get(), room.data(), room.size(), MSG_DONTWAIT);
  int error = errno;
  if (n > 0) {
    if (auto fed = parser_.commit(static_cast<std::size_t>(n)); !fed) fail(guest_protocol_error(fed.error()));
    while (!broken_) {
      auto frame = parser_.next();
      if (!frame) break;
      take_frame(std::move(*frame));
    }
  } else if (n == 0 || (error != EAGAIN && error != EINTR)) {
    if (!over()) fail(lost());
  }
  return n > 0;
}

void StreamConnection::take_frame(Frame frame) {
  auto broken = [&](const char* rule) {
    fail(Error(ErrorCode::guest_protocol, fmt::format("The monitor broke the protocol: {}", rule),
               {.subject = subject_}));
  };
  auto type = frame.header.type;
  if (frame.header.stream == 0) {
    if (type != FrameType::hello) return;
    auto hello = decode<Hello>(frame.payload);
    greeted_ = hello.has_value();
    if (!hello) return broken("a greeting that cannot be read");
    if (hello->version != k_version) fail(other_version(hello->version));
    return;
  }
  if (!greeted_ || frame.header.stream != k_stream || final_seen_) return broken("a frame out of turn");
  if (type == FrameType::credit) {
    auto bytes = decode_credit(frame.payload);
    if (!bytes || !credit_.grant(*bytes)) broken("bad credit");
    return;
  }
  if (costs_credit(type) && !window_.receive(frame.payload.size())) return broken("more than was granted");
  if (is_final(type)) final_seen_ = true;
  if (!std::exchange(answered_, true)) set_alarms();
  frames_.push_back(std::move(frame));
}

Error StreamConnection::other_version(std::uint32_t version) const {
  return {
      ErrorCode::not_supported,
      fmt::format("The monitor of {} speaks version {} of the protocol, this holt version {}", subject_,
                  version, k_version),
      {.subject = subject_,
       .hint = fmt::format("Another holt started the machine: use that one, or end it with 'holt stop --kill "
                           "{}' and start it again; what it has not written to its disk is lost then.",
                           subject_)}};
}

void StreamConnection::fail(Error error) {
  if (!broken_) broken_ = std::move(error);
}

std::string StreamConnection::why_lost() const {
  try {
    // Whoever kills a monitor says so before.
    auto events = EventLog(folder_.event_log()).read();
    auto last = events.empty() ? MachineEvent{} : events.back();
    if (last.kind == k_removing_event || !folder_.exists()) {
      return fmt::format("The machine {} was removed", subject_);
    }
    if (last.kind == k_killed_event) return fmt::format("The machine {} was stopped by force", subject_);
    // Its last word may not have reached a client that reads slowly.
    if (last.kind == "stopped" || last.kind == "suspended") {
      return fmt::format("The machine {} was {}", subject_, last.kind);
    }
    if (last.kind == "failed") return fmt::format("The machine {} failed: {}", subject_, last.message);
  } catch (const Error& e) {
    logger("machine")->debug("{}", e.what());
  }
  return fmt::format("The connection to the machine {} ended", subject_);
}

Error StreamConnection::lost() const {
  auto text = why_lost();
  // The monitor greets before it looks at the request.
  if (!greeted_) return {ErrorCode::guest_lost, text, {.subject = subject_, .retryable = true}};
  if (effect_ == Effect::none) return {ErrorCode::guest_lost, text, {.subject = subject_}};
  return {ErrorCode::outcome_unknown,
          "It is not known whether this was done: " + text,
          {.subject = subject_, .causes = {"GUEST_LOST: " + text}}};
}

void StreamConnection::send(std::unique_lock<std::mutex>& lock, FrameHeader header, std::string_view payload,
                            const Wait& wait) {
  if (sending_policy_ == Sending::queues) {
    std::array<char, k_header_size> head;
    writer_.write_header(head, header, payload.size());
    outgoing_.append(head.data(), head.size());
    outgoing_.append(payload);
    flush_queue();
    return;
  }
  // Frames are whole: a second sender waits for the first.
  changed_.wait(lock, [&] { return !sending_; });
  sending_ = true;
  std::array<char, k_header_size> head;
  writer_.write_header(head, header, payload.size());
  lock.unlock();
  std::array<iovec, 2> pieces{
      {{head.data(), head.size()}, {const_cast<char*>(payload.data()), payload.size()}}};
  std::size_t left = head.size() + payload.size();
  std::optional<Error> error;
  while (left > 0 && !error) {
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    ssize_t n = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      left -= static_cast<std::size_t>(n);
      auto gone = static_cast<std::size_t>(n);
      for (auto& piece : pieces) {
        auto part = std::min(gone, piece.iov_len);
        piece.iov_base = static_cast<char*>(piece.iov_base) + part;
        piece.iov_len -= part;
        gone -= part;
      }
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    // A broken connection is told by its reading side, with what the monitor said last.
    if (n < 0 && errno != EAGAIN) break;
    std::array<pollfd, 2> fds{
        {{socket_.get(), POLLOUT, 0}, {wait.cancel ? wait.cancel->fd() : -1, POLLIN, 0}}};
    int ready = ::poll(fds.data(), fds.size(), wait.deadline.poll_timeout());
    if (ready == 0 && wait.deadline.passed()) {
      error = Error(ErrorCode::timeout, fmt::format("The machine {} takes no data", subject_),
                    {.subject = subject_});
    } else if (fds[1].revents != 0) {
      error = Error(ErrorCode::cancelled, "The call was cancelled");
    }
  }
  lock.lock();
  sending_ = false;
  changed_.notify_all();
  if (!error) return;
  // Half a frame is on its way: the connection is of no use any more.
  killed_ = true;
  ::shutdown(socket_.get(), SHUT_RDWR);
  throw *error;
}

}  // namespace holt::machine
