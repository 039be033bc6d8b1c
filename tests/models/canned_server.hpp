// A server on the loopback that answers with given bytes, request by request, and remembers what it was
// asked.
#pragma once

#include "holt/base/fd.hpp"

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holt::test {

struct CannedReply {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  enum class End {
    whole,    ///< with a Content-Length
    chunked,  ///< chunked, with its last chunk
    cut,      ///< chunked, closed before its last chunk
    reset,    ///< chunked, then a TCP reset
    silent,   ///< headers and body, then nothing until the client goes
    nothing,  ///< not a byte until the client goes
  } end = End::whole;
  std::size_t piece = 0;  ///< bytes a write; 0: all at once
};

struct SeenRequest {
  std::string method;
  std::string path;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
};

/// Answers the replies in order; further requests get an empty 500. One connection at a time.
class CannedServer {
 public:
  explicit CannedServer(std::vector<CannedReply> replies);
  ~CannedServer();
  CannedServer(const CannedServer&) = delete;
  CannedServer& operator=(const CannedServer&) = delete;

  std::string url() const;
  std::vector<SeenRequest> requests() const;

 private:
  void serve();
  void serve_connection(int connection);
  bool read_request(int connection, std::string& buffer, SeenRequest& request);
  bool answer(int connection, const CannedReply& reply);
  bool wait_readable(int fd);
  void wait_for_end(int connection);

  std::vector<CannedReply> replies_;
  std::size_t next_ = 0;
  Fd listener_;
  std::pair<Fd, Fd> stop_;
  unsigned short port_ = 0;
  mutable std::mutex mutex_;
  std::vector<SeenRequest> requests_;
  std::thread thread_;
};

}  // namespace holt::test
