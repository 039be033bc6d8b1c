#include "machine/qmp.hpp"

#include "holt/base/error.hpp"

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>

namespace holt::machine {
namespace {

constexpr std::size_t k_longest_line = std::size_t{1} << 20;
constexpr std::size_t k_most_events = 256;

[[noreturn]] void throw_ended() {
  throw Error(ErrorCode::hypervisor_unavailable, "QEMU ended before it answered",
              {.hint = "Look at the machine's console log."});
}

[[noreturn]] void throw_broken(std::string_view why) {
  throw Error(ErrorCode::hypervisor_unavailable, fmt::format("QEMU broke its machine protocol: {}", why));
}

}  // namespace

void QmpClient::greet(Deadline deadline) {
  if (!next_message(deadline).contains("QMP")) throw_broken("no greeting");
  execute("qmp_capabilities", nullptr, deadline);
}

Json QmpClient::execute(const std::string& command, const Json& arguments, Deadline deadline) {
  return call(command, arguments, std::nullopt, deadline);
}

void QmpClient::give_fd(const std::string& name, int fd, Deadline deadline) {
  call("getfd", {{"fdname", name}}, fd, deadline);
}

std::optional<QmpEvent> QmpClient::poll_event() {
  pollfd ready{fd_.get(), POLLIN, 0};
  while (!ended_ && ::poll(&ready, 1, 0) > 0) {
    if (!read_more(Deadline::never())) break;
  }
  while (auto message = take_line()) keep_event(*message);
  if (events_.empty()) return std::nullopt;
  auto event = std::move(events_.front());
  events_.pop_front();
  return event;
}

Json QmpClient::call(const std::string& command, const Json& arguments, std::optional<int> passed_fd,
                     Deadline deadline) {
  // A late answer to a call that was given up must not be taken for that of the next.
  const auto id = ++last_id_;
  Json request{{"execute", command}, {"id", id}};
  if (arguments.is_object()) request["arguments"] = arguments;
  send(dump_json(request) + "\n", passed_fd, deadline);
  for (;;) {
    Json message = next_message(deadline);
    bool is_answer = !message.contains("id") || message["id"] == Json(id);
    if (is_answer && message.contains("return")) return message["return"];
    if (is_answer && message.contains("error")) {
      auto text = message["error"].is_object() ? message["error"].value("desc", Json("")) : Json("");
      throw Error(ErrorCode::hypervisor_unavailable,
                  fmt::format("QEMU refused \"{}\": {}", command,
                              printable(text.is_string() ? text.get<std::string>() : "", 400)));
    }
    keep_event(message);
  }
}

void QmpClient::send(const std::string& line, std::optional<int> passed_fd, Deadline deadline) {
  iovec data{const_cast<char*>(line.data()), line.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (passed_fd) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &*passed_fd, sizeof(int));
  }
  while (data.iov_len > 0) {
    ssize_t n = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      pollfd writable{fd_.get(), POLLOUT, 0};
      if (::poll(&writable, 1, deadline.poll_timeout()) == 0 && deadline.passed()) {
        throw Error(ErrorCode::timeout, "QEMU does not take commands");
      }
      continue;
    }
    if (n < 0) throw_ended();
    data.iov_base = static_cast<char*>(data.iov_base) + n;
    data.iov_len -= static_cast<std::size_t>(n);
    message.msg_control = nullptr;
    message.msg_controllen = 0;
  }
}

Json QmpClient::next_message(Deadline deadline) {
  for (;;) {
    if (auto message = take_line()) return *message;
    if (ended_ || !read_more(deadline)) throw_ended();
  }
}

bool QmpClient::read_more(Deadline deadline) {
  for (;;) {
    pollfd ready{fd_.get(), POLLIN, 0};
    int n = ::poll(&ready, 1, deadline.poll_timeout());
    if (n == 0 && deadline.passed()) throw Error(ErrorCode::timeout, "QEMU did not answer in time");
    if (n <= 0) continue;
    char bytes[16384];
    ssize_t got = ::recv(fd_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) {
      ended_ = true;
      return false;
    }
    buffer_.append(bytes, static_cast<std::size_t>(got));
    if (buffer_.size() > k_longest_line) throw_broken("a line over 1 MiB");
    return true;
  }
}

std::optional<Json> QmpClient::take_line() {
  auto end = buffer_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  auto message = parse_json(std::string_view(buffer_).substr(0, end));
  buffer_.erase(0, end + 1);
  if (!message || !message->is_object()) throw_broken("no JSON object");
  return std::move(*message);
}

void QmpClient::keep_event(const Json& message) {
  if (!message.contains("event") || !message["event"].is_string()) return;
  if (events_.size() >= k_most_events) events_.pop_front();
  events_.push_back({message["event"].get<std::string>(), message.value("data", Json::object())});
}

}  // namespace holt::machine
