#include "image/registry/http.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <exception>
#include <fcntl.h>
#include <unistd.h>

#include <curl/curl.h>
#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::size_t k_head_bytes = std::size_t{64} << 10;
constexpr Duration k_longest_wait = std::chrono::seconds(1);

struct CurlListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using CurlList = std::unique_ptr<curl_slist, CurlListDeleter>;
struct CurlEasyDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct CurlMultiDeleter {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};

/// libcurl counts its users and is thread-safe in this.
class CurlLibrary {
 public:
  CurlLibrary() {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
      throw Error(ErrorCode::internal, "set up libcurl: it refused");
    }
  }
  ~CurlLibrary() { curl_global_cleanup(); }
  CurlLibrary(const CurlLibrary&) = delete;
  CurlLibrary& operator=(const CurlLibrary&) = delete;
};

std::string_view trimmed(std::string_view text) {
  auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

/// A value with a line break in it would be two headers.
void check_header(const std::string& name, const std::string& value) {
  if (std::ranges::any_of(value, [](unsigned char c) { return c < ' ' || c == 0x7f; })) {
    throw Error(ErrorCode::network_error,
                fmt::format("send the HTTP header {}: its value holds a control character", name));
  }
}

CurlList header_list(const HttpRequest& request) {
  CurlList list;
  auto append = [&](const std::string& line) {
    auto* longer = curl_slist_append(list.get(), line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    if (!list) list.reset(longer);  // a longer list has the same head
  };
  for (const auto& [name, value] : request.headers) {
    check_header(name, value);
    append(fmt::format("{}: {}", name, value));
  }
  append("Expect:");  // no waiting for "100 Continue"
  return list;
}

long milliseconds(Duration duration) {
  auto bounded = std::clamp<Duration>(duration, std::chrono::milliseconds(1), std::chrono::hours(24));
  return static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(bounded).count());
}

/// What one exchange has seen so far; libcurl's callbacks write it.
class Exchange {
 public:
  using Clock = Deadline::Clock;

  explicit Exchange(const HttpHandlers& handlers) : handlers_(handlers) {}

  HttpHead head;
  bool enough = false;
  std::exception_ptr failure;
  std::string refused;  ///< why no address was good enough

  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self) {
    return static_cast<Exchange*>(self)->guarded(
        size * count, [&](Exchange& exchange) { return exchange.take_header({data, size * count}); });
  }
  static std::size_t on_write(char* data, std::size_t size, std::size_t count, void* self) {
    return static_cast<Exchange*>(self)->guarded(
        size * count, [&](Exchange& exchange) { return exchange.take_body({data, size * count}); });
  }
  static curl_socket_t on_open_socket(void* self, curlsocktype, curl_sockaddr* address) {
    auto& exchange = *static_cast<Exchange*>(self);
    try {
      if (exchange.handlers_.refuse_address) {
        if (auto why = exchange.handlers_.refuse_address(address->addr)) {
          exchange.refused = *why;
          return CURL_SOCKET_BAD;
        }
      }
      return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    } catch (...) {
      exchange.failure = std::current_exception();
      return CURL_SOCKET_BAD;
    }
  }

  /// The moment at which it will have been silent for too long.
  Clock::time_point silent_at(Duration idle_timeout) const {
    return window_ + std::chrono::duration_cast<Clock::duration>(
                         std::min<Duration>(idle_timeout, std::chrono::hours(24)));
  }
  void restart_window() {
    window_ = Clock::now();
    window_bytes_ = 0;
  }

 private:
  template <class F>
  std::size_t guarded(std::size_t bytes, F take) {
    auto began = Clock::now();
    try {
      bool go_on = take(*this);
      window_ += Clock::now() - began;
      return go_on ? bytes : 0;
    } catch (...) {
      failure = std::current_exception();
      return 0;
    }
  }

  bool take_header(std::string_view line) {
    if (head_done_) return true;  // trailers say nothing that counts
    head_bytes_ += line.size();
    if (head_bytes_ > k_head_bytes) {
      throw TransferError(TransferError::Kind::broken, "the reply's headers are longer than 64 KiB");
    }
    restart_window();
    if (line.starts_with("HTTP/")) {
      head = {};  // an interim reply (1xx) came before
      auto digits = line.substr(std::min(line.find(' '), line.size() - 1) + 1, 3);
      std::from_chars(digits.data(), digits.data() + digits.size(), head.status);
      return true;
    }
    auto colon = line.find(':');
    if (colon != std::string_view::npos) {
      add_header(trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
      return true;
    }
    return !trimmed(line).empty() || head.status < 200 || hand_out_head();
  }

  void add_header(std::string_view raw_name, std::string_view value) {
    std::string name(raw_name);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    auto [it, is_new] = head.headers.try_emplace(name, value);
    if (!is_new) it->second += ", " + std::string(value);
  }

  bool hand_out_head() {
    head_done_ = true;
    if (handlers_.on_head) enough = handlers_.on_head(head) == HttpHandlers::Next::enough;
    return !enough;
  }

  bool take_body(std::string_view piece) {
    window_bytes_ += piece.size();
    if (window_bytes_ >= k_progress_bytes) restart_window();
    if (handlers_.on_body) enough = handlers_.on_body(piece) == HttpHandlers::Next::enough;
    return !enough;
  }

  const HttpHandlers& handlers_;
  std::size_t head_bytes_ = 0;
  bool head_done_ = false;
  Clock::time_point window_ = Clock::now();
  std::size_t window_bytes_ = 0;
};

TransferError::Kind kind_of(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
      return TransferError::Kind::unreachable;
    case CURLE_SSL_CONNECT_ERROR:
      return TransferError::Kind::not_tls;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return TransferError::Kind::untrusted;
    default:
      return TransferError::Kind::broken;
  }
}

[[noreturn]] void throw_transfer_error(CURLcode code, const char* detail) {
  auto kind = kind_of(code);
  // Of the library's longer words only those about certificates are known to hold nothing of the URL.
  std::string reason = kind == TransferError::Kind::untrusted && *detail != '\0' ? printable(detail, 200)
                                                                                 : curl_easy_strerror(code);
  ErrorDetails details;
  if (kind == TransferError::Kind::untrusted) {
    details.hint =
        "If the registry's certificate is of an authority of your own, name its file with --ca-file.";
  }
  throw TransferError(kind, reason, std::move(details));
}

}  // namespace

std::string_view HttpHead::header(const std::string& name) const {
  auto it = headers.find(name);
  return it == headers.end() ? std::string_view() : std::string_view(it->second);
}

bool HttpHead::is_delimited() const {
  return headers.contains("content-length") || headers.contains("transfer-encoding");
}

struct HttpSession::Handles {
  CurlLibrary library;
  std::unique_ptr<CURL, CurlEasyDeleter> easy{curl_easy_init()};
  std::unique_ptr<CURLM, CurlMultiDeleter> multi{curl_multi_init()};
  std::array<char, CURL_ERROR_SIZE> detail{};

  void set_up(const HttpRequest& request, const HttpOptions& options, Exchange& exchange,
              const CurlList& headers);
  void run(Exchange& exchange, const HttpOptions& options);
  std::optional<CURLcode> result();
};

HttpSession::HttpSession(const HttpOptions& options)
    : options_(options), handles_(std::make_unique<Handles>()) {
  if (!handles_->easy || !handles_->multi) throw std::bad_alloc();
}
HttpSession::~HttpSession() = default;

void HttpSession::Handles::set_up(const HttpRequest& request, const HttpOptions& options, Exchange& exchange,
                                  const CurlList& headers) {
  auto* handle = easy.get();
  curl_easy_reset(handle);
  detail.fill('\0');
  curl_easy_setopt(handle, CURLOPT_URL, request.url.text().c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "holt");
  curl_easy_setopt(handle, CURLOPT_PROXY, request.proxy.c_str());
  curl_easy_setopt(handle, CURLOPT_NOPROXY, "");  // who made the request has decided
  curl_easy_setopt(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  // A name server that does not answer must not hold up a cancellation.
  curl_easy_setopt(handle, CURLOPT_QUICK_EXIT, 1L);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(options.connect_timeout));
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, detail.data());
  if (!options.verify) {
    curl_easy_setopt(handle, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(handle, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  // The folder of the system's certificates stays trusted beside it.
  if (options.ca_file) curl_easy_setopt(handle, CURLOPT_CAINFO, options.ca_file->c_str());
  if (request.form) {
    curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.form->size()));
    curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request.form->data());
  }
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, &Exchange::on_header);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &Exchange::on_write);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, &Exchange::on_open_socket);
  curl_easy_setopt(handle, CURLOPT_OPENSOCKETDATA, &exchange);
}

std::optional<CURLcode> HttpSession::Handles::result() {
  int left = 0;
  while (auto* message = curl_multi_info_read(multi.get(), &left)) {
    if (message->msg == CURLMSG_DONE) return message->data.result;
  }
  return std::nullopt;
}

void HttpSession::Handles::run(Exchange& exchange, const HttpOptions& options) {
  curl_waitfd cancelled{
      .fd = options.cancel ? options.cancel->fd() : -1, .events = CURL_WAIT_POLLIN, .revents = 0};
  for (bool connected = false;;) {
    int running = 0;
    if (curl_multi_perform(multi.get(), &running) != CURLM_OK) {
      throw Error(ErrorCode::internal, "go on with an HTTP exchange: libcurl refused");
    }
    if (auto code = result()) {
      if (exchange.failure) std::rethrow_exception(exchange.failure);
      if (*code == CURLE_OK || exchange.enough) return;
      if (!exchange.refused.empty() && *code == CURLE_COULDNT_CONNECT) {
        throw TransferError(TransferError::Kind::refused, exchange.refused);
      }
      throw_transfer_error(*code, detail.data());
    }
    if (options.cancel) options.cancel->throw_if_cancelled();
    curl_off_t sent_after = 0;
    curl_easy_getinfo(easy.get(), CURLINFO_PRETRANSFER_TIME_T, &sent_after);
    if (!connected) {
      connected = sent_after > 0;
      exchange.restart_window();
    }
    auto left = exchange.silent_at(options.idle_timeout) - Deadline::Clock::now();
    if (left <= Deadline::Clock::duration::zero()) {
      throw TransferError(
          TransferError::Kind::silent,
          fmt::format("no progress for {} s", std::chrono::duration<double>(options.idle_timeout).count()));
    }
    auto wait = std::min<Duration>(left, k_longest_wait);
    curl_multi_poll(multi.get(), &cancelled, options.cancel ? 1 : 0, static_cast<int>(milliseconds(wait)),
                    nullptr);
  }
}

HttpHead HttpSession::send(const HttpRequest& request, const HttpHandlers& handlers) {
  if (options_.cancel) options_.cancel->throw_if_cancelled();
  auto headers = header_list(request);
  Exchange exchange(handlers);
  handles_->set_up(request, options_, exchange, headers);
  if (curl_multi_add_handle(handles_->multi.get(), handles_->easy.get()) != CURLM_OK) {
    throw Error(ErrorCode::internal, "start an HTTP exchange: libcurl refused");
  }
  struct Removal {
    Handles& handles;
    ~Removal() { curl_multi_remove_handle(handles.multi.get(), handles.easy.get()); }
  } removal{*handles_};
  handles_->run(exchange, options_);
  return std::move(exchange.head);
}

}  // namespace holt::image
