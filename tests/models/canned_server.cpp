#include "models/canned_server.hpp"

#include "holt/base/error.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::test {
namespace {

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    auto sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool is_chunked(CannedReply::End end) {
  return end != CannedReply::End::whole;
}

}  // namespace

CannedServer::CannedServer(std::vector<CannedReply> replies)
    : replies_(std::move(replies)),
      listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      stop_(make_pipe()) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(listener_.get(), 16) != 0 ||
      ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw system_error(errno, "listen on the loopback");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

CannedServer::~CannedServer() {
  stop_.second.reset();
  thread_.join();
}

std::string CannedServer::url() const {
  return fmt::format("http://127.0.0.1:{}", port_);
}

std::vector<SeenRequest> CannedServer::requests() const {
  std::lock_guard lock(mutex_);
  return requests_;
}

/// False when the server is to stop.
bool CannedServer::wait_readable(int fd) {
  pollfd fds[] = {{fd, POLLIN, 0}, {stop_.first.get(), POLLIN, 0}};
  while (::poll(fds, 2, -1) < 0 && errno == EINTR) {
  }
  return fds[1].revents == 0;
}

void CannedServer::wait_for_end(int connection) {
  char byte = 0;
  while (wait_readable(connection) && ::recv(connection, &byte, 1, 0) > 0) {
  }
}

void CannedServer::serve() {
  while (wait_readable(listener_.get())) {
    Fd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    int no_delay = 1;
    ::setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof no_delay);
    if (connection) serve_connection(connection.get());
  }
}

void CannedServer::serve_connection(int connection) {
  std::string buffer;
  SeenRequest request;
  while (read_request(connection, buffer, request)) {
    CannedReply reply{.status = 500};
    {
      std::lock_guard lock(mutex_);
      requests_.push_back(std::move(request));
      if (next_ < replies_.size()) reply = replies_[next_++];
    }
    if (!answer(connection, reply)) return;
    request = {};
  }
}

bool CannedServer::read_request(int connection, std::string& buffer, SeenRequest& request) {
  auto more = [&] {
    char bytes[16384];
    if (!wait_readable(connection)) return false;
    auto count = ::recv(connection, bytes, sizeof bytes, 0);
    if (count <= 0) return false;
    buffer.append(bytes, static_cast<std::size_t>(count));
    return true;
  };
  while (buffer.find("\r\n\r\n") == std::string::npos) {
    if (!more()) return false;
  }
  auto end = buffer.find("\r\n\r\n");
  auto line_end = buffer.find("\r\n");
  auto line = buffer.substr(0, line_end);
  request.method = line.substr(0, line.find(' '));
  request.path = line.substr(request.method.size() + 1, line.rfind(' ') - request.method.size() - 1);
  for (auto at = line_end + 2; at < end;) {
    auto stop = buffer.find("\r\n", at);
    auto colon = buffer.find(':', at);
    auto name = buffer.substr(at, colon - at);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    auto value = buffer.find_first_not_of(' ', colon + 1);
    request.headers[name] = buffer.substr(value, stop - value);
    at = stop + 2;
  }
  buffer.erase(0, end + 4);
  auto length =
      std::stoul(request.headers.contains("content-length") ? request.headers["content-length"] : "0");
  while (buffer.size() < length) {
    if (!more()) return false;
  }
  request.body = buffer.substr(0, length);
  buffer.erase(0, length);
  return true;
}

/// False when the connection is done with.
bool CannedServer::answer(int connection, const CannedReply& reply) {
  if (reply.end == CannedReply::End::nothing) {
    wait_for_end(connection);
    return false;
  }
  auto head = fmt::format("HTTP/1.1 {} Canned\r\n", reply.status);
  for (const auto& [name, value] : reply.headers) head += fmt::format("{}: {}\r\n", name, value);
  bool chunked = is_chunked(reply.end);
  head += chunked ? "transfer-encoding: chunked\r\n\r\n"
                  : fmt::format("content-length: {}\r\n\r\n", reply.body.size());
  if (!send_all(connection, head)) return false;
  std::string_view rest = reply.body;
  while (!rest.empty()) {
    auto piece = rest.substr(0, reply.piece == 0 ? rest.size() : reply.piece);
    rest.remove_prefix(piece.size());
    auto bytes = chunked ? fmt::format("{:x}\r\n{}\r\n", piece.size(), piece) : std::string(piece);
    if (!send_all(connection, bytes)) return false;
  }
  switch (reply.end) {
    case CannedReply::End::whole:
      return true;
    case CannedReply::End::chunked:
      return send_all(connection, "0\r\n\r\n");
    case CannedReply::End::reset: {
      // Data that nobody read makes the kernel answer the close with a reset; so does lingering for 0 s.
      linger none{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(connection, SOL_SOCKET, SO_LINGER, &none, sizeof none);
      return false;
    }
    case CannedReply::End::silent:
      wait_for_end(connection);
      return false;
    default:
      return false;
  }
}

}  // namespace holt::test
