#include "guest/guest_client.hpp"

#include "holt/base/error.hpp"
#include "holt/base/files.hpp"

#include <array>
#include <cerrno>
#include <fstream>
#include <poll.h>
#include <sstream>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

namespace holt::test {

using namespace std::chrono_literals;
using protocol::Frame;
using protocol::FrameType;

protocol::Failure StreamResult::failure() const {
  if (!failed()) return {.code = ""};
  return protocol::decode<protocol::Failure>(final_frame->payload).value();
}

void GuestClient::send_raw(std::string_view bytes) {
  outgoing_ += bytes;
  // Frames taken while this waits may want to send credit: that goes behind, never into the middle of a
  // frame.
  if (std::exchange(sending_, true)) return;
  while (!outgoing_.empty()) {
    auto count = ::send(socket_.get(), outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) outgoing_.erase(0, static_cast<std::size_t>(count));
    if (count < 0 && errno != EAGAIN) throw system_error(errno, "write to the guest");
    if (count > 0) continue;
    // The guest may be waiting for us to read.
    pollfd ready{.fd = socket_.get(), .events = POLLOUT | POLLIN, .revents = 0};
    ::poll(&ready, 1, 10'000);
    if ((ready.revents & POLLIN) != 0) take(Deadline::after(60s));
  }
  sending_ = false;
}

void GuestClient::send(protocol::FrameHeader header, std::string_view payload) {
  std::string wire;
  writer_.append(wire, header, payload);
  send_raw(wire);
}

void GuestClient::take(Deadline deadline) {
  if (auto frame = parser_.next()) {
    handle(std::move(*frame));
    return;
  }
  pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&ready, 1, deadline.poll_timeout()) == 0)
    throw Error(ErrorCode::timeout, "the guest does not answer");
  auto room = parser_.space();
  auto count = ::read(socket_.get(), room.data(), room.size());
  if (count <= 0) throw Error(ErrorCode::guest_lost, "the guest closed the connection");
  if (auto parsed = parser_.commit(static_cast<std::size_t>(count)); !parsed) {
    throw Error(ErrorCode::guest_protocol, parsed.error().text());
  }
}

void GuestClient::handle(Frame frame) {
  if (frame.header.stream == 0) {
    connection_frames_.push_back(std::move(frame));
    return;
  }
  auto found = streams_.find(frame.header.stream);
  if (found == streams_.end()) throw Error(ErrorCode::guest_protocol, "a frame of a stream that is not open");
  auto& stream = found->second;
  auto& result = stream.result;
  if (result.final_frame) throw Error(ErrorCode::guest_protocol, "a frame behind the final one");
  if (protocol::costs_credit(frame.header.type)) {
    if (!stream.window.receive(frame.payload.size())) throw Error(ErrorCode::guest_protocol, "overdraft");
    if (stream.stalled) {
      stream.withheld += protocol::frame_cost(frame.payload.size());
    } else if (auto grant = stream.window.release(frame.payload.size()); grant != 0) {
      send({.type = FrameType::credit, .stream = frame.header.stream}, protocol::encode_credit(grant));
    }
  }
  result.order.push_back(frame.header.type);
  switch (frame.header.type) {
    case FrameType::started:
      result.started = std::move(frame.payload);
      break;
    case FrameType::output:
      result.output += frame.payload;
      break;
    case FrameType::error_output:
      result.error_output += frame.payload;
      break;
    case FrameType::entry:
      result.entries.push_back(std::move(frame.payload));
      break;
    case FrameType::credit:
      stream.credit.grant(protocol::decode_credit(frame.payload).value()).value();
      break;
    default:
      result.final_frame = std::move(frame);
      break;
  }
}

void GuestClient::unstall(std::uint32_t id) {
  auto& stream = streams_[id];
  stream.stalled = false;
  if (stream.withheld == 0) return;
  auto grant = static_cast<std::uint32_t>(stream.withheld);
  stream.withheld = 0;
  stream.window.grant(grant).value();
  send({.type = FrameType::credit, .stream = id}, protocol::encode_credit(grant));
}

Frame GuestClient::connection_frame(FrameType type) {
  auto deadline = Deadline::after(60s);
  while (true) {
    for (auto at = connection_frames_.begin(); at != connection_frames_.end(); ++at) {
      if (at->header.type != type) continue;
      auto frame = std::move(*at);
      connection_frames_.erase(at);
      return frame;
    }
    take(deadline);
  }
}

void GuestClient::shake_hands() {
  connection_frame(FrameType::hello);
  send({.type = FrameType::hello}, protocol::encode(protocol::Hello{.program = "test"}));
  connection_frame(FrameType::hello);
}

protocol::IdentityRequest GuestClient::default_identity() {
  return {.generation = "test", .entropy = std::string(64, 'e'), .wall_clock_ns = 1, .hostname = "test"};
}

protocol::IdentityReply GuestClient::identify(protocol::IdentityRequest request) {
  return call(request).reply<protocol::IdentityReply>();
}

std::uint32_t GuestClient::open(const protocol::Request& request) {
  auto stream = next_stream_++;
  streams_[stream];
  send({.type = FrameType::request, .stream = stream}, protocol::encode_request(request));
  return stream;
}

void GuestClient::send_input(std::uint32_t id, std::string_view bytes) {
  auto deadline = Deadline::after(60s);
  while (!bytes.empty() && !streams_[id].result.final_frame) {
    auto room = streams_[id].credit.payload_room();
    if (room == 0) {
      take(deadline);
      continue;
    }
    auto piece = bytes.substr(0, room);
    streams_[id].credit.spend(piece.size());
    send({.type = FrameType::input, .stream = id}, piece);
    bytes.remove_prefix(piece.size());
  }
}

void GuestClient::end_input(std::uint32_t id) {
  auto deadline = Deadline::after(60s);
  while (!streams_[id].credit.can_send(0) && !streams_[id].result.final_frame) take(deadline);
  if (streams_[id].result.final_frame) return;
  streams_[id].credit.spend(0);
  send({.type = FrameType::input,
        .stream = id,
        .flags = static_cast<std::uint8_t>(protocol::FrameFlag::end_of_data)});
}

void GuestClient::send_entry(std::uint32_t id, const protocol::TreeEntry& entry) {
  auto payload = protocol::encode(entry);
  auto deadline = Deadline::after(60s);
  while (!streams_[id].credit.can_send(payload.size())) take(deadline);
  streams_[id].credit.spend(payload.size());
  send({.type = FrameType::entry, .stream = id}, payload);
}

StreamResult GuestClient::wait(std::uint32_t id, std::chrono::milliseconds limit) {
  auto deadline = Deadline::after(limit);
  while (!streams_[id].result.final_frame) take(deadline);
  auto result = std::move(streams_[id].result);
  streams_.erase(id);
  return result;
}

StreamResult GuestClient::call(const protocol::Request& request, std::string_view input) {
  auto stream = open(request);
  bool takes_input = std::holds_alternative<protocol::WriteFileRequest>(request) ||
                     std::holds_alternative<protocol::TreeInRequest>(request);
  if (const auto* exec = std::get_if<protocol::ExecRequest>(&request)) {
    takes_input = exec->stdin_mode == protocol::StdinMode::stream;
  }
  if (takes_input) {
    send_input(stream, input);
    end_input(stream);
  }
  return wait(stream);
}

bool GuestClient::falls_silent_for(std::chrono::milliseconds time) {
  auto deadline = Deadline::after(60s);
  while (!deadline.passed()) {
    pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, static_cast<int>(time.count())) == 0) return true;
    take(deadline);
  }
  return false;
}

bool GuestClient::wait_for_close(std::chrono::milliseconds limit) {
  try {
    auto deadline = Deadline::after(limit);
    while (true) take(deadline);
  } catch (const Error& error) {
    return error.code() == ErrorCode::guest_lost;
  }
}

TestCgroup::TestCgroup() {
  std::ifstream mounts("/proc/mounts");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string device;
    std::string target;
    std::string type;
    words >> device >> target >> type;
    if (type != "cgroup2") continue;
    static int count = 0;
    auto folder = target + "/holt-test-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
    std::error_code error;
    if (!std::filesystem::create_directory(folder, error)) continue;
    if (::access((folder + "/cgroup.kill").c_str(), W_OK) == 0) {
      folder_ = folder;
      return;
    }
    std::filesystem::remove(folder, error);
  }
}

TestCgroup::~TestCgroup() {
  if (folder_.empty()) return;
  std::ofstream(folder_ + "/cgroup.kill") << "1";
  // The killed leave their groups when they have been reaped.
  auto deadline = Deadline::after(60s);
  std::error_code error;
  while (!deadline.passed()) {
    for (const auto& group : std::filesystem::directory_iterator(folder_, error)) {
      if (group.is_directory()) ::rmdir(group.path().c_str());
    }
    if (::rmdir(folder_.c_str()) == 0) return;
    ::poll(nullptr, 0, 5);
  }
}

HostedGuest::HostedGuest(Start start) {
  auto [ours, theirs] = socket_pair();
  constexpr int k_child_fd = 3;
  ProcessSpec spec{.argv = {HOLT_GUEST_PROGRAM, "--serve", std::to_string(k_child_fd)},
                   .fds = {{theirs.get(), k_child_fd}, {2, 2}},
                   .die_with_parent = true};
  if (!cgroup_.folder().empty()) spec.argv.push_back(cgroup_.folder());
  process_ = Process::start(spec);
  client_.emplace(std::move(ours));
  if (start == Start::raw) return;
  client_->shake_hands();
  if (start == Start::identified) client_->identify();
}

}  // namespace holt::test
