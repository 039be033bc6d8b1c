#include "holt/replay/replay_server.hpp"

#include "holt/base/error.hpp"
#include "replay/service.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <mutex>
#include <thread>

#include <boost/asio.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>

namespace holt {
namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using replay::HttpCall;
using replay::Reply;

namespace {

constexpr std::size_t k_body_limit = std::size_t{64} << 20;
constexpr std::uint32_t k_header_limit = 64U << 10;

HttpCall to_call(const http::request<http::string_body>& request) {
  HttpCall call{.method = std::string(request.method_string()),
                .path = std::string(request.target()),
                .headers = {},
                .body = request.body()};
  call.path = call.path.substr(0, call.path.find('?'));
  for (const auto& field : request) {
    std::string name(field.name_string());
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    call.headers[name] = std::string(field.value());
  }
  return call;
}

/// A reply in pieces is sent chunked, so that the client sees the pieces and a missing end.
bool is_chunked(const Reply& reply) {
  return !reply.splits.empty() || reply.cut_at.has_value();
}

std::string head_of(const Reply& reply) {
  auto head = fmt::format("HTTP/1.1 {} Replay\r\n", reply.status);
  for (const auto& [name, value] : reply.headers) head += fmt::format("{}: {}\r\n", name, value);
  return head + (is_chunked(reply) ? std::string("transfer-encoding: chunked\r\n\r\n")
                                   : fmt::format("content-length: {}\r\n\r\n", reply.body.size()));
}

/// The pieces up to where the connection breaks.
std::vector<std::string_view> pieces_of(const Reply& reply) {
  std::string_view body(reply.body);
  if (reply.cut_at) body = body.substr(0, *reply.cut_at);
  std::vector<std::string_view> pieces;
  std::size_t begin = 0;
  for (auto split : reply.splits) {
    if (split <= begin || split >= body.size()) continue;
    pieces.push_back(body.substr(begin, split - begin));
    begin = split;
  }
  if (begin < body.size()) pieces.push_back(body.substr(begin));
  return pieces;
}

asio::awaitable<void> write(tcp::socket& socket, std::string_view bytes) {
  co_await asio::async_write(socket, asio::buffer(bytes), asio::use_awaitable);
}

asio::awaitable<void> write_reply(tcp::socket& socket, const Reply& reply) {
  co_await write(socket, head_of(reply));
  if (!is_chunked(reply)) {
    co_await write(socket, reply.body);
    co_return;
  }
  for (auto piece : pieces_of(reply)) {
    auto chunk = fmt::format("{:x}\r\n{}\r\n", piece.size(), piece);
    co_await write(socket, chunk);
  }
  if (!reply.cut_at) co_await write(socket, "0\r\n\r\n");
}

}  // namespace

class ReplayServer::Impl {
 public:
  Impl(ReplayScript script, ReplayOptions options)
      : service_(std::move(script), options.on_misfit),
        on_all_used_(std::move(options.on_all_used)),
        loop_(std::make_unique<asio::io_context>(1)),
        acceptor_(std::make_unique<tcp::acceptor>(*loop_)),
        host_(options.host) {
    listen(options);
    asio::co_spawn(*loop_, accept(), asio::detached);
    thread_ = std::thread([loop = loop_.get()] { loop->run(); });
  }

  ~Impl() { stop(); }

  unsigned short port() const { return port_; }
  std::string url() const {
    return host_.find(':') == std::string::npos ? fmt::format("http://{}:{}", host_, port_)
                                                : fmt::format("http://[{}]:{}", host_, port_);
  }

  ReplayReport stop() {
    if (loop_) loop_->stop();
    if (thread_.joinable()) thread_.join();
    acceptor_.reset();
    loop_.reset();  // and with it every coroutine and its connection
    return service_.report();
  }

 private:
  void listen(const ReplayOptions& options) {
    boost::system::error_code error;
    auto address = asio::ip::make_address(options.host, error);
    if (error || !address.is_loopback()) {
      throw Error(ErrorCode::invalid_config,
                  fmt::format("The replay server listens on the loopback only, not on '{}'",
                              printable(options.host, 100)));
    }
    tcp::endpoint endpoint(address, options.port);
    try {
      acceptor_->open(endpoint.protocol());
      acceptor_->set_option(tcp::acceptor::reuse_address(true));
      acceptor_->bind(endpoint);
      acceptor_->listen();
      port_ = acceptor_->local_endpoint().port();
    } catch (const boost::system::system_error& failure) {
      throw Error(ErrorCode::network_error,
                  fmt::format("Listen on {}:{}: {}", options.host, options.port, failure.code().message()));
    }
  }

  asio::awaitable<void> accept() {
    for (;;) {
      boost::system::error_code error;
      auto socket = co_await acceptor_->async_accept(asio::redirect_error(asio::use_awaitable, error));
      if (!error) {
        asio::co_spawn(*loop_, serve(std::move(socket)), asio::detached);
        continue;
      }
      // The client is gone already, or there is no descriptor left; the next may fare better.
      asio::steady_timer pause(*loop_, std::chrono::milliseconds(10));
      co_await pause.async_wait(asio::use_awaitable);
    }
  }

  asio::awaitable<void> serve(tcp::socket socket) {
    try {
      socket.set_option(tcp::no_delay(true));
      boost::beast::flat_buffer buffer;
      while (co_await serve_one(socket, buffer)) {
      }
    } catch (const boost::system::system_error&) {
      // The client went away, or spoke no HTTP; the script knows nothing of either.
    }
  }

  /// False when the connection is done with.
  asio::awaitable<bool> serve_one(tcp::socket& socket, boost::beast::flat_buffer& buffer) {
    http::request_parser<http::string_body> parser;
    parser.body_limit(k_body_limit);
    parser.header_limit(k_header_limit);
    co_await http::async_read(socket, buffer, parser, asio::use_awaitable);
    auto timed = service_.handle(to_call(parser.get()));
    if (timed.delay.count() > 0) {
      asio::steady_timer timer(*loop_, timed.delay);
      co_await timer.async_wait(asio::use_awaitable);
    }
    std::exception_ptr gone;
    try {
      co_await write_reply(socket, timed.reply);
    } catch (const boost::system::system_error&) {
      gone = std::current_exception();
    }
    tell_when_all_used();
    if (gone) std::rethrow_exception(gone);
    co_return parser.get().keep_alive() && !timed.reply.cut_at;
  }

  void tell_when_all_used() {
    if (!service_.all_used() || told_) return;
    told_ = true;
    if (on_all_used_) on_all_used_();
  }

  replay::Service service_;
  std::function<void()> on_all_used_;
  bool told_ = false;
  std::unique_ptr<asio::io_context> loop_;
  std::unique_ptr<tcp::acceptor> acceptor_;
  std::string host_;
  unsigned short port_ = 0;
  std::thread thread_;
};

ReplayServer::ReplayServer(ReplayScript script, ReplayOptions options)
    : impl_(std::make_unique<Impl>(std::move(script), std::move(options))) {}
ReplayServer::~ReplayServer() = default;

unsigned short ReplayServer::port() const {
  return impl_->port();
}

std::string ReplayServer::url() const {
  return impl_->url();
}

ReplayReport ReplayServer::stop() {
  return impl_->stop();
}

}  // namespace holt
