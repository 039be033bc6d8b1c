// Which entry of a script a request gets.
#pragma once

#include "holt/replay/replay_server.hpp"
#include "replay/api.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holt::replay {

/// Why a request does not fit `expect`; nothing when it does.
std::optional<std::string> mismatch(const Json& expect, const Request& request);

/// The state of a script that is being played. Not thread-safe.
class Player {
 public:
  explicit Player(ReplayScript script);

  /// The entry for a request, marked as used. Throws Misfit with the reason for which the nearest entry does
  /// not fit.
  const ReplayEntry& take(const Request& request);
  bool all_used() const { return used_count_ == script_.entries.size(); }
  std::vector<std::size_t> unused_lines() const;

 private:
  ReplayScript script_;
  std::vector<bool> used_;
  std::size_t used_count_ = 0;
  std::map<std::string, std::size_t> next_of_;  ///< conversation -> first entry behind its newest
};

}  // namespace holt::replay
