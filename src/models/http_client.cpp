#include "models/http_client.hpp"

#include "models/curl_transfer.hpp"

#include <mutex>

namespace holt {
namespace {

/// libcurl counts its users and is thread-safe in this.
class CurlLibrary {
 public:
  CurlLibrary() {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
      throw Error(ErrorCode::internal, "Set up libcurl: it refused");
    }
  }
  ~CurlLibrary() { curl_global_cleanup(); }
  CurlLibrary(const CurlLibrary&) = delete;
  CurlLibrary& operator=(const CurlLibrary&) = delete;
};

}  // namespace

/// Idle multi handles; each holds the connections of earlier exchanges open.
class HttpClient::Pool {
 public:
  CurlMulti take() {
    std::lock_guard lock(mutex_);
    if (idle_.empty()) return CurlMulti(curl_multi_init());
    auto multi = std::move(idle_.back());
    idle_.pop_back();
    return multi;
  }
  void give_back(CurlMulti multi) {
    if (!multi) return;
    std::lock_guard lock(mutex_);
    if (idle_.size() < k_idle_limit) idle_.push_back(std::move(multi));
  }

 private:
  static constexpr std::size_t k_idle_limit = 100;
  CurlLibrary library_;
  std::mutex mutex_;
  std::vector<CurlMulti> idle_;
};

HttpClient::HttpClient() : pool_(std::make_shared<Pool>()) {}
HttpClient::~HttpClient() = default;

Task<HttpHead> HttpClient::send(HttpRequest request, HttpHandlers handlers) {
  auto pool = pool_;
  auto executor = co_await boost::asio::this_coro::executor;
  auto cancellation = co_await boost::asio::this_coro::cancellation_state;
  if (cancellation.cancelled() != boost::asio::cancellation_type::none) {
    throw Error(ErrorCode::cancelled, "The operation was cancelled");
  }
  auto transfer =
      std::make_shared<CurlTransfer>(executor, pool->take(), std::move(request), std::move(handlers));
  auto head = co_await transfer->run();
  pool->give_back(transfer->take_multi());
  co_return head;
}

}  // namespace holt
