#include "guest/channel.hpp"

#include "holt/protocol/messages.hpp"

#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace holt::guest {
namespace {

using namespace std::chrono_literals;
/// Payloads up to this size are copied behind their neighbours, so that many small frames are one write.
constexpr std::size_t k_join = std::size_t{16} << 10;
/// A virtio port takes 32 KiB a write.
constexpr std::size_t k_chunk = std::size_t{32} << 10;
/// Reads between two looks at the other descriptors.
constexpr int k_reads_a_round = 64;

}  // namespace

Channel::Channel(Loop& loop, Fd fd, Kind kind) : loop_(loop), fd_(std::move(fd)), kind_(kind) {
  ::fcntl(fd_.get(), F_SETFL, ::fcntl(fd_.get(), F_GETFL) | O_NONBLOCK);
}

void Channel::start(Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  watch_ = loop_.watch(fd_.get(), EPOLLIN, [this](std::uint32_t events) { on_ready(events); });
  loop_.defer([this] { handle_frames(); });
}

void Channel::send(protocol::FrameHeader header, std::string payload) {
  backlog_ += protocol::frame_cost(payload.size());
  if (queue_.empty() || queue_.back().size() >= k_chunk) queue_.emplace_back();
  writer_.append_header(queue_.back(), header, payload.size());
  if (payload.size() <= k_join) {
    queue_.back().append(payload);
  } else {
    queue_.push_back(std::move(payload));
  }
  if (backlog_ > k_high_water) was_high_ = true;
  if (!flush_pending_) {
    flush_pending_ = true;
    loop_.defer([this] { flush(); });
  }
}

void Channel::flush() {
  flush_pending_ = false;
  while (!queue_.empty()) {
    auto& front = queue_.front();
    auto count = ::write(fd_.get(), front.data() + written_, front.size() - written_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) {
      lost();
      return;
    }
    written_ += static_cast<std::size_t>(count);
    backlog_ -= static_cast<std::size_t>(count);
    if (written_ == front.size()) {
      queue_.pop_front();
      written_ = 0;
    }
  }
  loop_.change(watch_, queue_.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
  if (was_high_ && backlog_ <= k_low_water) {
    was_high_ = false;
    callbacks_.on_drained();
  }
}

void Channel::flush_blocking() {
  flush();
  while (!queue_.empty()) {
    pollfd ready{.fd = fd_.get(), .events = POLLOUT, .revents = 0};
    ::poll(&ready, 1, 1000);
    flush();
  }
}

void Channel::on_ready(std::uint32_t events) {
  if ((events & EPOLLIN) != 0) read_some();
  if ((events & EPOLLOUT) != 0) flush();
  if ((events & EPOLLIN) == 0 && (events & (EPOLLHUP | EPOLLERR)) != 0) lost();
}

void Channel::read_some() {
  for (int i = 0; i < k_reads_a_round; ++i) {
    auto room = parser_.space();
    auto count = ::read(fd_.get(), room.data(), room.size());
    int error_number = errno;
    auto parsed = parser_.commit(count > 0 && !broken_ ? static_cast<std::size_t>(count) : 0);
    handle_frames();
    if (!parsed && !broken_) drop(parsed.error());
    if (count > 0) continue;
    if (count < 0 && (error_number == EAGAIN || error_number == EINTR)) return;
    lost();
    return;
  }
}

void Channel::handle_frames() {
  while (auto frame = parser_.next()) callbacks_.on_frame(std::move(*frame));
}

void Channel::drop(const protocol::ProtocolError& error) {
  protocol::Failure failure{.code = std::string(to_string(ErrorCode::guest_protocol)),
                            .message = error.text()};
  callbacks_.on_reset();
  send({.type = protocol::FrameType::goodbye}, protocol::encode(failure));
  parser_ = protocol::FrameParser(protocol::Side::opener);
  broken_ = true;
}

void Channel::lost() {
  callbacks_.on_reset();
  broken_ = false;
  parser_ = protocol::FrameParser(protocol::Side::opener);
  queue_.clear();
  written_ = 0;
  backlog_ = 0;
  loop_.change(watch_, 0);
  if (kind_ == Kind::socket) {
    loop_.stop();
  } else {
    wait_for_host();
  }
}

void Channel::wait_for_host() {
  pollfd ready{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&ready, 1, 0) >= 0 && (ready.revents & POLLHUP) == 0) {
    loop_.change(watch_, EPOLLIN);
    return;
  }
  loop_.after(20ms, [this] { wait_for_host(); });
}

std::string Channel::take_unhandled() {
  std::string bytes;
  protocol::FrameWriter copy;
  while (auto frame = parser_.next()) {
    copy.set_next_sequence(frame->header.sequence);
    copy.append(bytes, frame->header, frame->payload);
  }
  return bytes + parser_.unparsed();
}

void Channel::restore(std::uint32_t next_sequence, std::string_view unhandled) {
  writer_.set_next_sequence(next_sequence);
  // Numbers were checked when these bytes arrived; the first header sets the count again.
  if (auto fed = parser_.feed(unhandled); !fed) parser_ = protocol::FrameParser(protocol::Side::opener);
}

}  // namespace holt::guest
