#include "models/curl_transfer.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include <fmt/format.h>

namespace holt {
namespace asio = boost::asio;
namespace {

constexpr std::size_t k_head_limit = std::size_t{256} << 10;

/// A header line that holds a line break would be two.
void check_header(const std::string& name, const std::string& value) {
  constexpr std::string_view k_breaks("\r\n\0", 3);
  if (name.empty() || name.find_first_of(": \t\r\n") != std::string::npos ||
      value.find_first_of(k_breaks) != std::string::npos) {
    throw UserError(fmt::format("The HTTP header '{}' cannot be sent", printable(name, 100)));
  }
}

CurlList make_header_list(const HttpRequest& request) {
  CurlList list;
  auto append = [&](const std::string& line) {
    auto* longer = curl_slist_append(list.get(), line.c_str());
    if (!longer) throw std::bad_alloc();
    list.release();
    list.reset(longer);
  };
  for (const auto& [name, value] : request.headers) {
    check_header(name, value);
    // libcurl sends a header without value only when it ends in a semicolon.
    append(value.empty() ? name + ";" : name + ": " + value);
  }
  append("Expect:");  // no waiting for "100 Continue"
  return list;
}

/// The loopback is reached directly whatever the environment says.
std::string no_proxy() {
  const char* lower = std::getenv("no_proxy");
  const char* upper = std::getenv("NO_PROXY");
  std::string hosts = lower ? lower : upper ? upper : "";
  if (hosts == "*") return hosts;
  if (!hosts.empty()) hosts += ',';
  return hosts + "localhost,127.0.0.1,::1";
}

long milliseconds(Duration duration) {
  return static_cast<long>(std::max<long long>(
      1, std::chrono::ceil<std::chrono::milliseconds>(std::min<Duration>(duration, std::chrono::hours(24)))
             .count()));
}

std::string_view trimmed(std::string_view text) {
  auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

}  // namespace

CurlTransfer::CurlTransfer(asio::any_io_executor executor, CurlMulti multi, HttpRequest request,
                           HttpHandlers handlers)
    : executor_(executor),
      curl_timer_(executor),
      idle_timer_(executor),
      deadline_timer_(executor),
      ended_(executor, asio::steady_timer::time_point::max()),
      request_(std::move(request)),
      handlers_(std::move(handlers)),
      multi_(std::move(multi)),
      easy_(curl_easy_init()) {
  if (!multi_ || !easy_) throw std::bad_alloc();
}

CurlTransfer::~CurlTransfer() {
  // Destroyed in the middle (its loop is gone): libcurl must not call into an object that is no more.
  silence();
}

void CurlTransfer::silence() {
  if (!multi_) return;
  curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETFUNCTION, nullptr);
  curl_multi_setopt(multi_.get(), CURLMOPT_TIMERFUNCTION, nullptr);
}

void CurlTransfer::set_up() {
  auto* easy = easy_.get();
  header_list_ = make_header_list(request_);
  curl_easy_setopt(easy, CURLOPT_URL, request_.url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, header_list_.get());
  curl_easy_setopt(easy, CURLOPT_NOPROXY, no_proxy().c_str());
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  // A name server that does not answer must not hold up a cancellation.
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(request_.connect_timeout));
  if (request_.method == "POST") {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request_.body.data());
  } else if (request_.method != "GET") {
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  }
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &CurlTransfer::on_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &CurlTransfer::on_write);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
  curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETFUNCTION, &CurlTransfer::on_socket);
  curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_.get(), CURLMOPT_TIMERFUNCTION, &CurlTransfer::on_timer);
  curl_multi_setopt(multi_.get(), CURLMOPT_TIMERDATA, this);
}

Task<HttpHead> CurlTransfer::run() {
  auto self = shared_from_this();  // what Asio calls back refers to it weakly
  set_up();
  last_byte_ = Deadline::Clock::now();
  start_idle_timer();
  if (auto at = request_.deadline.at()) {
    deadline_timer_.expires_at(*at);
    deadline_timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
      auto transfer = weak.lock();
      if (error || !transfer) return;
      transfer->end(std::make_exception_ptr(HttpTransportError(
          "The request did not end in time", HttpTransportError::Kind::deadline, transfer->phase())));
    });
  }
  if (curl_multi_add_handle(multi_.get(), easy_.get()) != CURLM_OK) {
    throw Error(ErrorCode::internal, "Start an HTTP request: libcurl refused it");
  }
  boost::system::error_code waited;
  if (!finished_) co_await ended_.async_wait(asio::redirect_error(asio::use_awaitable, waited));
  bool cancelled = !finished_;
  tear_down();
  if (cancelled) throw Error(ErrorCode::cancelled, "The operation was cancelled");
  if (failure_) std::rethrow_exception(failure_);
  reusable_ = !enough_;
  co_return head_;
}

CurlMulti CurlTransfer::take_multi() {
  return reusable_ ? std::move(multi_) : nullptr;
}

int CurlTransfer::on_socket(CURL*, curl_socket_t socket, int what, void* self, void*) {
  auto* transfer = static_cast<CurlTransfer*>(self);
  try {
    transfer->watch(socket, what);
    return 0;
  } catch (...) {
    transfer->handler_failure_ = std::current_exception();
    return -1;
  }
}

void CurlTransfer::watch(curl_socket_t socket, int what) {
  if (what == CURL_POLL_REMOVE) {
    if (auto it = watches_.find(socket); it != watches_.end()) {
      boost::system::error_code ignored;
      it->second->descriptor.close(ignored);
      watches_.erase(it);
    }
    return;
  }
  auto& slot = watches_[socket];
  if (!slot) {
    // A duplicate: libcurl closes its socket itself, at moments of its own.
    slot = std::make_shared<Watch>(asio::posix::stream_descriptor(executor_, duplicate(socket).release()));
  }
  slot->wanted = what;
  arm(socket, slot);
}

void CurlTransfer::arm(curl_socket_t socket, const std::shared_ptr<Watch>& watch) {
  auto wait = [&](asio::posix::stream_descriptor::wait_type type, bool Watch::* pending, int event) {
    if (watch.get()->*pending) return;
    watch.get()->*pending = true;
    watch->descriptor.async_wait(
        type, [weak = weak_from_this(), watch, socket, pending, event](boost::system::error_code error) {
          watch.get()->*pending = false;
          auto self = weak.lock();
          if (error || !self || self->finished_) return;
          if (watch->wanted & event)
            self->act(socket, event == CURL_POLL_IN ? CURL_CSELECT_IN : CURL_CSELECT_OUT);
          auto it = self->watches_.find(socket);
          if (!self->finished_ && it != self->watches_.end() && it->second == watch) self->arm(socket, watch);
        });
  };
  if (watch->wanted & CURL_POLL_IN)
    wait(asio::posix::stream_descriptor::wait_read, &Watch::reading, CURL_POLL_IN);
  if (watch->wanted & CURL_POLL_OUT) {
    wait(asio::posix::stream_descriptor::wait_write, &Watch::writing, CURL_POLL_OUT);
  }
}

int CurlTransfer::on_timer(CURLM*, long milliseconds, void* raw) {
  auto* self = static_cast<CurlTransfer*>(raw);
  self->curl_timer_.cancel();
  if (milliseconds < 0) return 0;
  // libcurl forbids a call back into it from here, also for "at once".
  self->curl_timer_.expires_after(std::chrono::milliseconds(milliseconds));
  self->curl_timer_.async_wait([weak = self->weak_from_this()](boost::system::error_code error) {
    auto transfer = weak.lock();
    if (error || !transfer || transfer->finished_) return;
    transfer->act(CURL_SOCKET_TIMEOUT, 0);
  });
  return 0;
}

void CurlTransfer::act(curl_socket_t socket, int events) {
  int running = 0;
  curl_multi_socket_action(multi_.get(), socket, events, &running);
  if (!finished_) collect();
}

void CurlTransfer::collect() {
  int left = 0;
  while (auto* message = curl_multi_info_read(multi_.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    end(failure_of(message->data.result));
    return;
  }
}

std::size_t CurlTransfer::on_header(char* data, std::size_t size, std::size_t count, void* raw) {
  auto* self = static_cast<CurlTransfer*>(raw);
  try {
    self->last_byte_ = Deadline::Clock::now();
    self->take_header({data, size * count});
    return size * count;
  } catch (...) {
    self->handler_failure_ = std::current_exception();
    return 0;
  }
}

void CurlTransfer::take_header(std::string_view line) {
  if (head_done_) return;  // trailers say nothing that counts
  head_bytes_ += line.size();
  if (head_bytes_ > k_head_limit) {
    throw HttpTransportError("The reply's headers are too long", HttpTransportError::Kind::connection,
                             ConnectionPhase::read);
  }
  if (line.starts_with("HTTP/")) {
    head_ = {};  // an interim reply (1xx) came before
    auto space = line.find(' ');
    if (space != std::string_view::npos)
      head_.status = std::atoi(std::string(line.substr(space + 1, 3)).c_str());
    return;
  }
  auto colon = line.find(':');
  if (colon == std::string_view::npos) {
    if (trimmed(line).empty() && head_.status >= 200) hand_out_head();
    return;
  }
  std::string name(trimmed(line.substr(0, colon)));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  head_.headers[name] = std::string(trimmed(line.substr(colon + 1)));
}

void CurlTransfer::hand_out_head() {
  if (head_done_) return;
  head_done_ = true;
  if (handlers_.on_head) handlers_.on_head(head_);
}

std::size_t CurlTransfer::on_write(char* data, std::size_t size, std::size_t count, void* raw) {
  auto* self = static_cast<CurlTransfer*>(raw);
  try {
    self->last_byte_ = Deadline::Clock::now();
    return self->take_body({data, size * count}) ? size * count : 0;
  } catch (...) {
    self->handler_failure_ = std::current_exception();
    return 0;
  }
}

bool CurlTransfer::take_body(std::string_view piece) {
  if (!handlers_.on_body) return true;
  enough_ = handlers_.on_body(piece) == HttpHandlers::Next::enough;
  return !enough_;
}

void CurlTransfer::start_idle_timer() {
  idle_timer_.expires_at(last_byte_ + std::chrono::duration_cast<Deadline::Clock::duration>(
                                          std::min<Duration>(request_.idle_timeout, std::chrono::hours(24))));
  idle_timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    auto self = weak.lock();
    if (error || !self || self->finished_) return;
    if (Deadline::Clock::now() - self->last_byte_ < self->request_.idle_timeout)
      return self->start_idle_timer();
    self->end(std::make_exception_ptr(
        HttpTransportError("Request timed out.", HttpTransportError::Kind::timeout, self->phase())));
  });
}

ConnectionPhase CurlTransfer::phase() const {
  curl_off_t sent_after = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_PRETRANSFER_TIME_T, &sent_after);
  return sent_after > 0 || head_.status > 0 ? ConnectionPhase::read : ConnectionPhase::connect;
}

std::exception_ptr CurlTransfer::failure_of(CURLcode code) {
  if (handler_failure_) return handler_failure_;
  if (code == CURLE_OK || enough_) return nullptr;
  if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL) {
    return std::make_exception_ptr(UserError("The base URL of the model is not a valid http or https URL"));
  }
  if (code == CURLE_OPERATION_TIMEDOUT) {
    return std::make_exception_ptr(
        HttpTransportError("Request timed out.", HttpTransportError::Kind::timeout, phase()));
  }
  return std::make_exception_ptr(
      HttpTransportError(curl_easy_strerror(code), HttpTransportError::Kind::connection, phase()));
}

void CurlTransfer::end(std::exception_ptr failure) {
  if (finished_) return;
  finished_ = true;
  failure_ = std::move(failure);
  ended_.cancel();
}

void CurlTransfer::tear_down() {
  finished_ = true;
  curl_timer_.cancel();
  idle_timer_.cancel();
  deadline_timer_.cancel();
  curl_multi_remove_handle(multi_.get(), easy_.get());
  for (auto& [socket, watch] : watches_) {
    boost::system::error_code ignored;
    watch->descriptor.close(ignored);
  }
  watches_.clear();
  silence();  // the handle goes on to another transfer
  easy_.reset();
  if (failure_ || enough_) multi_.reset();
}

}  // namespace holt
