// A guest that is a function: the real relay and the real client around it, no VMM.
#pragma once

#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "holt/protocol/messages.hpp"
#include "machine/guest_link.hpp"
#include "machine/record.hpp"
#include "monitor/listener.hpp"
#include "monitor/relay.hpp"
#include "support/asking.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

namespace holt::test {

using namespace std::chrono_literals;

/// What a fake guest says. Used on the guest's thread.
class GuestVoice {
 public:
  explicit GuestVoice(int fd) : fd_(fd) {}
  void raw(const std::string& bytes) {
    [[maybe_unused]] auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void say(protocol::FrameType type, std::uint32_t stream, const std::string& payload = {},
           std::uint8_t flags = 0) {
    std::string wire;
    writer_.append(wire, {.type = type, .stream = stream, .flags = flags}, payload);
    raw(wire);
  }
  /// A frame that no writer would make.
  void forge(std::uint8_t type, std::uint32_t stream, std::uint32_t length, const std::string& payload = {}) {
    std::string wire;
    auto put = [&](std::uint32_t value) {
      for (int shift = 0; shift < 32; shift += 8) wire.push_back(static_cast<char>(value >> shift));
    };
    put(length);
    put(stream);
    put(type);
    put(writer_.next_sequence());
    writer_.set_next_sequence(writer_.next_sequence() + 1);
    raw(wire + payload);
  }
  void hang_up() { ::shutdown(fd_, SHUT_RDWR); }

 private:
  int fd_;
  protocol::FrameWriter writer_;
};

/// Relay and listening socket of a machine whose guest is anything that speaks on a socket.
class RelayedMachine {
 public:
  explicit RelayedMachine(machine::GuestLink::Parts guest) : folder_(dir_.path() / "fake") {
    make_private_directory(folder_.path());
    lock_.emplace(FileLock::acquire(folder_.lock_file(), Deadline::after(1s)));
    folder_.write_status({.state = MachineState::running, .host_boot_id = {}});
    listener_ =
        std::make_unique<boost::asio::posix::stream_descriptor>(loop_, monitor::listen_in(folder_).release());
    relay_ = std::make_unique<monitor::Relay>(
        loop_, std::move(guest), monitor::RelayState{.generation = "generation"},
        monitor::RelayEvents{
            .on_stop = [](std::uint32_t, const monitor::StopAnswer& answer) { answer(std::nullopt); },
            .on_guest_gone =
                [this](const Error& reason) {
                  gone_ = reason.code();
                  relay_->end_streams(reason);
                }});
    accept();
    loop_thread_ = std::thread([this] {
      auto work = boost::asio::make_work_guard(loop_);
      loop_.run();
    });
  }

  ~RelayedMachine() {
    boost::asio::post(loop_, [this] {
      relay_.reset();
      listener_.reset();
      loop_.stop();
    });
    loop_thread_.join();
  }
  RelayedMachine(const RelayedMachine&) = delete;
  RelayedMachine& operator=(const RelayedMachine&) = delete;

  const machine::MachineFolder& folder() const { return folder_; }
  /// What the monitor does when the machine is to stop.
  void interrupt(const Error& reason) {
    boost::asio::post(loop_, [this, reason] { relay_->interrupt_streams(reason); });
  }
  /// Why the relay gave the guest up.
  std::optional<ErrorCode> gone() const { return gone_; }

 private:
  void accept() {
    listener_->async_wait(listener_->wait_read, [this](const boost::system::error_code& error) {
      if (error) return;
      Fd socket(::accept4(listener_->native_handle(), nullptr, nullptr, SOCK_CLOEXEC));
      if (socket) relay_->add_client(std::move(socket));
      accept();
    });
  }

  TempDir dir_;
  machine::MachineFolder folder_;
  std::optional<FileLock> lock_;
  boost::asio::io_context loop_;
  std::unique_ptr<boost::asio::posix::stream_descriptor> listener_;
  std::unique_ptr<monitor::Relay> relay_;
  std::atomic<std::optional<ErrorCode>> gone_ = std::optional<ErrorCode>();
  std::thread loop_thread_;
};

/// Relay, listening socket and guest, each on its thread.
class FakeMachine {
 public:
  using OnFrame = std::function<void(GuestVoice&, const protocol::Frame&)>;

  explicit FakeMachine(OnFrame on_frame) : FakeMachine(std::move(on_frame), socket_pair()) {}

  ~FakeMachine() {
    ::shutdown(guest_fd_.get(), SHUT_RDWR);
    guest_thread_.join();
  }
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;

  const machine::MachineFolder& folder() const { return relayed_.folder(); }
  void interrupt(const Error& reason) { relayed_.interrupt(reason); }
  std::optional<ErrorCode> gone() const { return relayed_.gone(); }
  /// Types of the frames that the guest got, in order.
  std::vector<protocol::FrameType> seen() const {
    std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  FakeMachine(OnFrame on_frame, std::pair<Fd, Fd> sockets)
      : guest_fd_(std::move(sockets.second)),
        relayed_(machine::GuestLink(std::move(sockets.first)).release()) {
    guest_thread_ = std::thread([this, on_frame = std::move(on_frame)] { serve(on_frame); });
  }

  void serve(const OnFrame& on_frame) {
    GuestVoice voice(guest_fd_.get());
    protocol::FrameParser parser(protocol::Side::opener);
    for (;;) {
      char bytes[65536];
      ssize_t n = ::recv(guest_fd_.get(), bytes, sizeof bytes, 0);
      if (n <= 0) return;
      ASSERT_TRUE(parser.feed({bytes, static_cast<std::size_t>(n)}));
      while (auto frame = parser.next()) {
        {
          std::lock_guard lock(mutex_);
          seen_.push_back(frame->header.type);
        }
        on_frame(voice, *frame);
      }
    }
  }

  Fd guest_fd_;
  RelayedMachine relayed_;
  mutable std::mutex mutex_;
  std::vector<protocol::FrameType> seen_;
  std::thread guest_thread_;
};

}  // namespace holt::test
