// One exchange of libcurl, driven by Asio.
#pragma once

#include "holt/base/fd.hpp"
#include "models/http_client.hpp"

#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio.hpp>
#include <curl/curl.h>

namespace holt {

struct CurlEasyDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct CurlMultiDeleter {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};
struct CurlListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using CurlEasy = std::unique_ptr<CURL, CurlEasyDeleter>;
using CurlMulti = std::unique_ptr<CURLM, CurlMultiDeleter>;
using CurlList = std::unique_ptr<curl_slist, CurlListDeleter>;

/// All its handlers run on one executor. Shared, since Asio may still hold a cancelled handler when the
/// awaiting coroutine has gone on.
class CurlTransfer : public std::enable_shared_from_this<CurlTransfer> {
 public:
  CurlTransfer(boost::asio::any_io_executor executor, CurlMulti multi, HttpRequest request,
               HttpHandlers handlers);
  ~CurlTransfer();
  CurlTransfer(const CurlTransfer&) = delete;
  CurlTransfer& operator=(const CurlTransfer&) = delete;

  /// Runs to the end. Throws as HttpClient::send() does.
  Task<HttpHead> run();
  /// The multi handle with its open connections, for the next exchange. Nothing when this one did not end
  /// well: its connection is not to be used again.
  CurlMulti take_multi();

 private:
  struct Watch {
    explicit Watch(boost::asio::posix::stream_descriptor d) : descriptor(std::move(d)) {}
    boost::asio::posix::stream_descriptor descriptor;
    int wanted = 0;
    bool reading = false;
    bool writing = false;
  };

  static int on_socket(CURL*, curl_socket_t socket, int what, void* self, void*);
  static int on_timer(CURLM*, long milliseconds, void* self);
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_write(char* data, std::size_t size, std::size_t count, void* self);

  void set_up();
  void watch(curl_socket_t socket, int what);
  void arm(curl_socket_t socket, const std::shared_ptr<Watch>& watch);
  void act(curl_socket_t socket, int events);
  void collect();
  void take_header(std::string_view line);
  void silence();
  bool take_body(std::string_view piece);
  void hand_out_head();
  void start_idle_timer();
  void end(std::exception_ptr failure);
  void tear_down();
  std::exception_ptr failure_of(CURLcode code);
  ConnectionPhase phase() const;

  boost::asio::any_io_executor executor_;
  boost::asio::steady_timer curl_timer_;
  boost::asio::steady_timer idle_timer_;
  boost::asio::steady_timer deadline_timer_;
  boost::asio::steady_timer ended_;
  HttpRequest request_;
  HttpHandlers handlers_;
  CurlMulti multi_;
  CurlEasy easy_;
  CurlList header_list_;
  std::map<curl_socket_t, std::shared_ptr<Watch>> watches_;
  HttpHead head_;
  std::size_t head_bytes_ = 0;
  bool head_done_ = false;
  bool enough_ = false;
  bool finished_ = false;
  bool reusable_ = false;
  Deadline::Clock::time_point last_byte_;
  std::exception_ptr handler_failure_;
  std::exception_ptr failure_;
};

}  // namespace holt
