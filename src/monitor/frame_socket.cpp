#include "monitor/frame_socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <utility>

namespace holt::monitor {

using namespace protocol;

namespace {

constexpr std::size_t k_low_mark = std::size_t{1} << 20;
constexpr int k_most_pieces = 32;

}  // namespace

FrameSocket::FrameSocket(boost::asio::io_context& loop, Fd fd, FrameParser parser, FrameWriter writer)
    : descriptor_(loop), parser_(std::move(parser)), writer_(writer) {
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
  descriptor_.assign(fd.release());
}

void FrameSocket::start(OnFrame on_frame, OnEnd on_end, OnDrained on_drained) {
  on_frame_ = std::move(on_frame);
  on_end_ = std::move(on_end);
  on_drained_ = std::move(on_drained);
  // Frames may have come with the last bytes that somebody else read.
  boost::asio::post(descriptor_.get_executor(), [self = shared_from_this()] { self->deliver(); });
  wait_readable();
}

void FrameSocket::send(FrameHeader header, std::string payload) {
  if (closed() || closing_) return;
  std::string head;
  writer_.append_header(head, header, payload.size());
  waiting_ += head.size() + payload.size();
  outgoing_.push_back({std::move(head), std::move(payload)});
  if (!writing_ && !held_) write_some();
}

void FrameSocket::let_go() {
  held_ = false;
  if (!writing_ && !outgoing_.empty()) write_some();
}

std::string FrameSocket::unsent() const {
  std::string bytes;
  for (const auto& frame : outgoing_) bytes.append(frame.header).append(frame.payload);
  return bytes.substr(std::min(sent_of_first_, bytes.size()));
}

void FrameSocket::pause() {
  paused_ = true;
}

void FrameSocket::resume() {
  if (!std::exchange(paused_, false) || closed()) return;
  boost::asio::post(descriptor_.get_executor(), [self = shared_from_this()] { self->deliver(); });
  wait_readable();
}

void FrameSocket::close() {
  on_frame_ = {};
  on_end_ = {};
  on_drained_ = {};
  boost::system::error_code ignored;
  descriptor_.close(ignored);
}

void FrameSocket::close_when_sent() {
  closing_ = true;
  if (outgoing_.empty()) close();
}

bool FrameSocket::drain() {
  for (;;) {
    if (closed()) return true;
    auto room = parser_.space();
    ssize_t n = ::recv(fd(), room.data(), room.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return false;
    if (n <= 0) return true;
    auto fed = parser_.commit(static_cast<std::size_t>(n));
    deliver();
    if (!fed) {
      finish(fed.error());
      return true;
    }
  }
}

std::size_t FrameSocket::untaken() {
  int bytes = 0;
  return ::ioctl(fd(), SIOCOUTQ, &bytes) == 0 && bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

void FrameSocket::wait_readable() {
  if (reading_ || paused_ || closed()) return;
  reading_ = true;
  descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                         [self = shared_from_this()](const boost::system::error_code& error) {
                           self->reading_ = false;
                           if (!error) self->read_some();
                         });
}

void FrameSocket::read_some() {
  if (closed() || paused_) return;
  auto room = parser_.space();
  ssize_t n = ::recv(fd(), room.data(), room.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return wait_readable();
  if (n <= 0) return finish(std::nullopt);
  if (auto fed = parser_.commit(static_cast<std::size_t>(n)); !fed) {
    // What came whole before it is still good.
    deliver();
    return finish(fed.error());
  }
  deliver();
  wait_readable();
}

void FrameSocket::deliver() {
  auto self = shared_from_this();
  while (on_frame_ && !paused_ && !closing_) {
    auto frame = parser_.next();
    if (!frame) return;
    // A copy: the callback may close this socket, which drops the stored one.
    auto on_frame = on_frame_;
    on_frame(std::move(*frame));
  }
}

void FrameSocket::wait_writable() {
  if (writing_ || closed()) return;
  writing_ = true;
  descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_write,
                         [self = shared_from_this()](const boost::system::error_code& error) {
                           self->writing_ = false;
                           if (!error) self->write_some();
                         });
}

void FrameSocket::write_some() {
  const bool above = waiting_ > k_low_mark;
  while (!outgoing_.empty() && !closed()) {
    std::array<iovec, k_most_pieces> pieces;
    int count = 0;
    std::size_t skip = sent_of_first_;
    for (auto& frame : outgoing_) {
      for (auto* part : {&frame.header, &frame.payload}) {
        if (skip >= part->size()) {
          skip -= part->size();
          continue;
        }
        pieces[static_cast<std::size_t>(count++)] = {part->data() + skip, part->size() - skip};
        skip = 0;
      }
      if (count + 2 > k_most_pieces) break;
    }
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = static_cast<std::size_t>(count);
    ssize_t n = ::sendmsg(fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0) {
      // The reading side learns of the end; until then nothing more can be sent.
      outgoing_.clear();
      waiting_ = sent_of_first_ = 0;
      if (closing_) close();
      return;
    }
    waiting_ -= static_cast<std::size_t>(n);
    sent_of_first_ += static_cast<std::size_t>(n);
    while (!outgoing_.empty()) {
      std::size_t size = outgoing_.front().header.size() + outgoing_.front().payload.size();
      if (sent_of_first_ < size) break;
      sent_of_first_ -= size;
      outgoing_.pop_front();
    }
  }
  if (closed()) return;
  if (!outgoing_.empty()) {
    wait_writable();
  } else if (closing_) {
    return close();
  }
  if (above && waiting_ <= k_low_mark && on_drained_) {
    boost::asio::post(descriptor_.get_executor(), [self = shared_from_this()] {
      if (self->on_drained_) self->on_drained_();
    });
  }
}

void FrameSocket::finish(std::optional<ProtocolError> broken) {
  auto self = shared_from_this();
  auto on_end = std::exchange(on_end_, {});
  close();
  if (on_end) on_end(std::move(broken));
}

}  // namespace holt::monitor
