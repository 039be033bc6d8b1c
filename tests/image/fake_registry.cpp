#include "image/fake_registry.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/base/process.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>
#include <openssl/ssl.h>

namespace holt::image::test {
namespace {

constexpr char k_tls_handshake = 0x16;

std::shared_ptr<SSL_CTX> make_tls(const FakeCertificate& certificate) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (SSL_CTX_use_certificate_file(context.get(), certificate.certificate.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_use_PrivateKey_file(context.get(), certificate.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    throw Error(ErrorCode::internal, "Load the test's certificate");
  }
  // A peer that has gone must not end the test by SIGPIPE, and OpenSSL writes with write(2).
  std::signal(SIGPIPE, SIG_IGN);
  return context;
}

int family_of(const std::string& host) {
  return host.starts_with('[') ? AF_INET6 : AF_INET;
}

/// The port that the kernel chose.
unsigned bind_to(int socket, const std::string& host) {
  sockaddr_in6 six{};
  sockaddr_in four{};
  bool is_six = family_of(host) == AF_INET6;
  six.sin6_family = AF_INET6;
  four.sin_family = AF_INET;
  if (is_six) {
    ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &six.sin6_addr);
  } else {
    ::inet_pton(AF_INET, host.c_str(), &four.sin_addr);
  }
  auto* address = is_six ? reinterpret_cast<sockaddr*>(&six) : reinterpret_cast<sockaddr*>(&four);
  socklen_t length = is_six ? sizeof six : sizeof four;
  if (::bind(socket, address, length) != 0 || ::getsockname(socket, address, &length) != 0) {
    throw system_error(errno, "bind to the loopback");
  }
  return ntohs(is_six ? six.sin6_port : four.sin_port);
}

}  // namespace

std::string FakeRequest::header(const std::string& name) const {
  auto it = headers.find(name);
  return it == headers.end() ? std::string() : it->second;
}

std::optional<FakeCertificate> FakeCertificate::make(const std::filesystem::path& folder) {
  FakeCertificate made{.certificate = folder / "cert.pem", .key = folder / "key.pem"};
  try {
    auto result = run_process(
        {.argv = {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                  "-nodes", "-keyout", made.key, "-out", made.certificate, "-days", "2", "-subj",
                  "/CN=holt-test", "-addext", "subjectAltName=IP:127.0.0.1,IP:127.0.0.2,DNS:localhost"}},
        {.deadline = Deadline::after(std::chrono::seconds(60))});
    if (result.status.shell_code() != 0) throw Error(ErrorCode::internal, "openssl req: " + result.err);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::not_found) return std::nullopt;
    throw;
  }
  return made;
}

/// A connection, with or without TLS.
class FakeRegistry::Channel {
 public:
  Channel(int fd, int stop, SSL_CTX* tls) : fd_(fd), stop_(stop) {
    if (tls == nullptr) return;
    tls_.reset(SSL_new(tls), SSL_free);
    SSL_set_fd(tls_.get(), fd);
    good_ = wait_readable() && SSL_accept(tls_.get()) == 1;
  }

  bool is_good() const { return good_; }
  /// False when the server is to stop.
  bool wait_readable() {
    if (tls_ && SSL_pending(tls_.get()) > 0) return true;
    pollfd fds[] = {{fd_, POLLIN, 0}, {stop_, POLLIN, 0}};
    while (::poll(fds, 2, -1) < 0 && errno == EINTR) {
    }
    return fds[1].revents == 0;
  }
  /// False when the server is to stop before the time is over.
  bool pause(int milliseconds) {
    pollfd stop{stop_, POLLIN, 0};
    return ::poll(&stop, 1, milliseconds) == 0;
  }
  bool read(std::string& buffer) {
    char bytes[16384];
    if (!wait_readable()) return false;
    auto count = tls_ ? SSL_read(tls_.get(), bytes, sizeof bytes) : ::recv(fd_, bytes, sizeof bytes, 0);
    if (count <= 0) return false;
    buffer.append(bytes, static_cast<std::size_t>(count));
    return true;
  }
  bool write(std::string_view bytes) {
    while (!bytes.empty()) {
      auto size = std::min<std::size_t>(bytes.size(), 1 << 20);
      auto sent = tls_ ? SSL_write(tls_.get(), bytes.data(), static_cast<int>(size))
                       : ::send(fd_, bytes.data(), size, MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void wait_for_end() {
    std::string ignored;
    while (read(ignored)) ignored.clear();
  }

 private:
  int fd_;
  int stop_;
  std::shared_ptr<SSL> tls_;
  bool good_ = true;
};

ClosedPort::ClosedPort()
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      host_(fmt::format("127.0.0.1:{}", bind_to(socket_.get(), "127.0.0.1"))) {}

FakeRegistry::FakeRegistry(const Options& options)
    : options_(options),
      tls_(options.tls ? make_tls(*options.tls) : nullptr),
      listener_(::socket(family_of(options.address), SOCK_STREAM | SOCK_CLOEXEC, 0)),
      stop_(make_pipe()),
      port_(bind_to(listener_.get(), options.address)) {
  if (::listen(listener_.get(), 64) != 0) throw system_error(errno, "listen on the loopback");
  acceptor_ = std::thread([this] { accept_all(); });
}

FakeRegistry::~FakeRegistry() {
  stop_.second.reset();
  acceptor_.join();
  {
    std::lock_guard lock(mutex_);
    for (int fd : open_) ::shutdown(fd, SHUT_RDWR);
  }
  for (auto& thread : threads_) thread.join();
}

std::string FakeRegistry::host() const {
  return fmt::format("{}:{}", options_.address, port_);
}

std::string FakeRegistry::url() const {
  return (options_.tls ? "https://" : "http://") + host();
}

std::string FakeRegistry::add_blob(std::string bytes) {
  std::lock_guard lock(mutex_);
  std::string digest = "sha256:" + sha256_hex(bytes);
  blobs_[digest] = std::move(bytes);
  return digest;
}

std::string FakeRegistry::add_manifest(const std::string& tag, std::string bytes,
                                       const std::string& media_type) {
  std::lock_guard lock(mutex_);
  std::string digest = "sha256:" + sha256_hex(bytes);
  manifests_[digest] = {bytes, media_type};
  manifests_[tag] = {std::move(bytes), media_type};
  return digest;
}

void FakeRegistry::script(Script script) {
  std::lock_guard lock(mutex_);
  script_ = std::move(script);
}

std::vector<FakeRequest> FakeRegistry::requests() const {
  return requests_for("");
}

std::vector<FakeRequest> FakeRegistry::requests_for(const std::string& part) const {
  std::lock_guard lock(mutex_);
  std::vector<FakeRequest> out;
  std::ranges::copy_if(requests_, std::back_inserter(out),
                       [&](const FakeRequest& request) { return request.asks_for(part); });
  return out;
}

void FakeRegistry::accept_all() {
  while (true) {
    pollfd fds[] = {{listener_.get(), POLLIN, 0}, {stop_.first.get(), POLLIN, 0}};
    while (::poll(fds, 2, -1) < 0 && errno == EINTR) {
    }
    if (fds[1].revents != 0) return;
    int connection = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    std::lock_guard lock(mutex_);
    open_.insert(connection);
    threads_.emplace_back([this, connection] {
      serve(connection);
      std::lock_guard closing(mutex_);
      open_.erase(connection);
      ::close(connection);
    });
  }
}

void FakeRegistry::serve(int connection) {
  Channel channel(connection, stop_.first.get(), tls_.get());
  if (!channel.is_good()) return;
  std::string buffer;
  FakeRequest request;
  while (read_request(channel, buffer, request)) {
    {
      std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    if (!answer(channel, reply_to(request))) return;
    request = {};
  }
}

bool FakeRegistry::read_request(Channel& channel, std::string& buffer, FakeRequest& request) {
  while (buffer.find("\r\n\r\n") == std::string::npos) {
    if (!channel.read(buffer)) return false;
    if (buffer.front() == k_tls_handshake) return false;  // a client that tries TLS first
  }
  auto end = buffer.find("\r\n\r\n");
  auto line_end = buffer.find("\r\n");
  auto line = buffer.substr(0, line_end);
  request.method = line.substr(0, line.find(' '));
  request.target = line.substr(request.method.size() + 1, line.rfind(' ') - request.method.size() - 1);
  for (auto at = line_end + 2; at < end;) {
    auto stop = buffer.find("\r\n", at);
    auto colon = buffer.find(':', at);
    auto name = buffer.substr(at, colon - at);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    auto value = std::min(buffer.find_first_not_of(' ', colon + 1), stop);
    request.headers[name] = buffer.substr(value, stop - value);
    at = stop + 2;
  }
  buffer.erase(0, end + 4);
  auto length_text = request.header("content-length");
  auto length = length_text.empty() ? 0UL : std::stoul(length_text);
  while (buffer.size() < length) {
    if (!channel.read(buffer)) return false;
  }
  request.body = buffer.substr(0, length);
  buffer.erase(0, length);
  return true;
}

FakeReply FakeRegistry::reply_to(const FakeRequest& request) {
  Script script;
  {
    std::lock_guard lock(mutex_);
    script = script_;
  }
  if (script) {
    if (auto reply = script(request)) return *reply;
  }
  return good_reply(request);
}

FakeReply FakeRegistry::part_of(const FakeRequest& request, const std::string& bytes,
                                const std::string& etag) {
  FakeReply reply{.headers = {{"Content-Type", "application/octet-stream"}, {"ETag", etag}}, .body = bytes};
  auto range = request.header("range");
  auto condition = request.header("if-range");
  if (range.starts_with("bytes=") && (condition.empty() || condition == etag)) {
    auto first = std::stoul(range.substr(6));
    if (first >= bytes.size()) return {.status = 416};
    reply.status = 206;
    reply.body = bytes.substr(first);
    reply.headers.emplace_back("Content-Range",
                               fmt::format("bytes {}-{}/{}", first, bytes.size() - 1, bytes.size()));
  }
  return reply;
}

FakeReply FakeRegistry::good_reply(const FakeRequest& request) {
  std::lock_guard lock(mutex_);
  if (request.target == "/v2/") return {.body = "{}"};
  auto name = request.target.substr(request.target.rfind('/') + 1);
  name = name.substr(0, name.find('?'));
  if (request.asks_for("/manifests/")) {
    if (auto it = manifests_.find(name); it != manifests_.end()) {
      return {.headers = {{"Content-Type", it->second.second},
                          {"Docker-Content-Digest", "sha256:" + sha256_hex(it->second.first)}},
              .body = it->second.first};
    }
    return {.status = 404,
            .body = R"({"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]})"};
  }
  if (auto it = blobs_.find(name); it != blobs_.end()) {
    return part_of(request, it->second, "\"" + name + "\"");
  }
  return {.status = 404, .body = R"({"errors":[{"code":"BLOB_UNKNOWN","message":"blob unknown"}]})"};
}

/// False when the connection is done with.
bool FakeRegistry::answer(Channel& channel, const FakeReply& reply) {
  using End = FakeReply::End;
  if (reply.end == End::nothing) {
    channel.wait_for_end();
    return false;
  }
  std::string head = fmt::format("HTTP/1.1 {} Fake\r\n", reply.status);
  for (const auto& [name, value] : reply.headers) head += fmt::format("{}: {}\r\n", name, value);
  if (reply.end == End::endless) {
    head += "Transfer-Encoding: chunked\r\n";
  } else if (reply.end != End::undelimited) {
    head += fmt::format("Content-Length: {}\r\n", reply.body.size());
  }
  if (!channel.write(head + "\r\n")) return false;
  switch (reply.end) {
    case End::whole:
      return channel.write(reply.body);
    case End::undelimited:
    case End::cut:
      channel.write(reply.body.substr(0, reply.sent));
      return false;
    case End::silent:
      channel.write(reply.body.substr(0, reply.sent));
      channel.wait_for_end();
      return false;
    case End::trickle:
      channel.write(reply.body.substr(0, reply.sent));
      for (auto at = reply.sent; at < reply.body.size(); ++at) {
        if (!channel.pause(20) || !channel.write(reply.body.substr(at, 1))) return false;
      }
      return true;
    case End::nothing:
      return false;
    case End::endless:
      while (channel.write(fmt::format("{:x}\r\n{}\r\n", reply.body.size(), reply.body))) {
      }
      return false;
  }
  return false;
}

}  // namespace holt::image::test
