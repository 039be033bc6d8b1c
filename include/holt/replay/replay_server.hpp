// A small HTTP server on the loopback that answers as a model provider does, from a script, and fails loudly
// when a request does not fit it. For tests, demos and work without a network.
//
//   holt::ReplayServer server(holt::ReplayScript::parse(R"({"expect": {"user": "Hi"}, "reply": {"text":
//   "Hello!"}})")); auto model = holt::make_anthropic_model("claude-sonnet-4-5", {.api_key = "any", .base_url
//   = server.url()});
//   ...
//   EXPECT_TRUE(server.stop().ok());
//
// Script: JSON lines, one object a request, in order for each conversation (docs/reference.md, "Replay
// scripts"). A conversation is told by the text of its first user message. A request gets the first unused
// entry behind the newest one of its conversation that it fits. `expect`, every key optional:
//   path, model, stream   equal to the request's
//   user                  text that the newest user message with a text holds
//   results               texts that the newest tool results hold, the first in the first and so on
//   tools                 names that must all be on offer
// `reply`: text, tool_calls [{name, arguments, id?}], finish (stop, length, tool_call, content_filter, or the
// API's own word), usage (the API's own fields); or raw: status, headers, body (text, or JSON), chunks (byte
// offsets at which the body is split into writes), delay_ms (before the first byte), cut (true: the
// connection breaks behind the body; a number: behind so many bytes of it).
//
// Depends on base/.
#pragma once

#include "holt/base/json.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holt {

/// One line of a script, checked.
struct ReplayEntry {
  std::size_t line = 0;  ///< from 1
  Json expect = Json::object();
  Json reply = Json::object();
};

struct ReplayScript {
  std::vector<ReplayEntry> entries = {};

  /// Throws Error INVALID_CONFIG naming the line: no JSON object, unknown or ill-typed keys. Empty lines are
  /// skipped.
  static ReplayScript parse(std::string_view text);
  /// A file of at most 64 MiB. Throws as read_file() and parse().
  static ReplayScript load(const std::filesystem::path& path);
};

/// How a replay went.
struct ReplayReport {
  std::vector<std::string> misfits = {};  ///< a sentence for each request that did not fit
  std::vector<std::size_t> unused = {};   ///< lines of entries that no request used
  bool ok() const { return misfits.empty() && unused.empty(); }
};

struct ReplayOptions {
  std::string host = "127.0.0.1";  ///< an address of the loopback
  unsigned short port = 0;         ///< 0: any free one
  /// Called on the server's thread for each misfit, with its sentence.
  std::function<void(const std::string&)> on_misfit = {};
  /// Called on the server's thread when the reply of the last unused entry has been written.
  std::function<void()> on_all_used = {};
};

/// Serves on a thread of its own from construction until stop() or the end of its life.
class ReplayServer {
 public:
  /// Throws Error: the address is taken or none of the loopback.
  explicit ReplayServer(ReplayScript script, ReplayOptions options = {});
  ~ReplayServer();
  ReplayServer(const ReplayServer&) = delete;
  ReplayServer& operator=(const ReplayServer&) = delete;

  unsigned short port() const;
  /// "http://127.0.0.1:PORT", what the base URL of a provider is set to.
  std::string url() const;
  /// Ends it, open connections included. The second call answers the same.
  ReplayReport stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace holt
