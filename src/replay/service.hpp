// The replay server without its sockets: a request in, what to write back out.
#pragma once

#include "replay/script.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace holt::replay {

/// A reply with the wait before it.
struct TimedReply {
  Reply reply;
  std::chrono::milliseconds delay{0};
};

/// Not thread-safe.
class Service {
 public:
  Service(ReplayScript script, std::function<void(const std::string&)> on_misfit);

  TimedReply handle(const HttpCall& call);
  bool all_used() const { return player_.all_used(); }
  ReplayReport report() const;

 private:
  TimedReply misfit(const HttpCall& call, const Api& api, const std::string& why);

  std::vector<std::unique_ptr<Api>> apis_;
  Player player_;
  std::function<void(const std::string&)> on_misfit_;
  std::vector<std::string> misfits_;
  std::size_t requests_ = 0;
};

}  // namespace holt::replay
