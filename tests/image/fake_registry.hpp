// A registry on the loopback that does as told: well, slowly, by halves, or not at all.
//
//   FakeRegistry registry;
//   auto digest = registry.add_blob("bytes");
//   registry.script([&](const FakeRequest& request) -> std::optional<FakeReply> { ... });
#pragma once

#include "holt/base/fd.hpp"

#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

struct ssl_ctx_st;

namespace holt::image::test {

struct FakeRequest {
  std::string method;
  std::string target;                          ///< path and query
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;

  std::string header(const std::string& name) const;
  bool asks_for(const std::string& part) const { return target.find(part) != std::string::npos; }
};

struct FakeReply {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  enum class End {
    whole,        ///< with a Content-Length
    undelimited,  ///< no Content-Length, closed behind `sent` bytes
    cut,          ///< with the Content-Length of all, closed behind `sent` bytes
    silent,       ///< with the Content-Length of all, then silence behind `sent` bytes until the client goes
    nothing,      ///< not a byte until the client goes
    trickle,      ///< with the Content-Length of all, a byte every 20 ms behind `sent` bytes
    endless,      ///< the body again and again, chunked, until the client goes
  } end = End::whole;
  std::size_t sent = 0;
};

/// A key and a self-signed certificate for 127.0.0.1, 127.0.0.2 and localhost, made by openssl(1).
struct FakeCertificate {
  std::filesystem::path certificate;
  std::filesystem::path key;
  /// Nothing when there is no openssl program.
  static std::optional<FakeCertificate> make(const std::filesystem::path& folder);
};

/// HOST:PORT that refuses connections for as long as it lives: bound, but nobody listens.
class ClosedPort {
 public:
  ClosedPort();
  const std::string& host() const { return host_; }

 private:
  Fd socket_;
  std::string host_;
};

/// Thread-safe. Each connection has a thread; keeps connections open as HTTP/1.1 says.
class FakeRegistry {
 public:
  struct Options {
    std::string address = "127.0.0.1";  ///< IPv6 in brackets
    std::optional<FakeCertificate> tls = std::nullopt;
  };
  using Script = std::function<std::optional<FakeReply>(const FakeRequest&)>;

  FakeRegistry() : FakeRegistry(Options()) {}
  explicit FakeRegistry(const Options& options);
  ~FakeRegistry();
  FakeRegistry(const FakeRegistry&) = delete;
  FakeRegistry& operator=(const FakeRegistry&) = delete;

  /// HOST:PORT.
  std::string host() const;
  std::string url() const;

  /// The digest of what was added. Blobs are in every repository.
  std::string add_blob(std::string bytes);
  std::string add_manifest(const std::string& tag, std::string bytes, const std::string& media_type);
  /// Asked first; nothing: answered as a good registry would.
  void script(Script script);
  /// The answer of a good registry; with Range.
  FakeReply good_reply(const FakeRequest& request);
  std::vector<FakeRequest> requests() const;
  /// Those whose target has `part` in it.
  std::vector<FakeRequest> requests_for(const std::string& part) const;

 private:
  class Channel;
  void accept_all();
  void serve(int connection);
  bool read_request(Channel& channel, std::string& buffer, FakeRequest& request);
  bool answer(Channel& channel, const FakeReply& reply);
  FakeReply reply_to(const FakeRequest& request);
  static FakeReply part_of(const FakeRequest& request, const std::string& bytes, const std::string& etag);

  Options options_;
  std::shared_ptr<ssl_ctx_st> tls_;
  Fd listener_;
  std::pair<Fd, Fd> stop_;
  unsigned port_ = 0;
  mutable std::mutex mutex_;
  Script script_;
  std::map<std::string, std::string> blobs_;                              // by digest
  std::map<std::string, std::pair<std::string, std::string>> manifests_;  // by tag and digest: bytes, type
  std::vector<FakeRequest> requests_;
  std::set<int> open_;
  std::list<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace holt::image::test
