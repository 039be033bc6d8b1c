// Repair of a history so that providers take it: no call without result, no result without call, no
// neighbours of one kind. Rules: spec of the message history § 9.
#pragma once

#include "holt/messages/message.hpp"

namespace holt {

enum class RepairLastResponse {
  repair,  ///< before a model request: open calls of the last response get results too
  keep,    ///< at the start of a run: they may still be executed
};

struct RepairedHistory {
  MessageHistory messages;
  bool changed = false;
};

RepairedHistory repair_history(MessageHistory history, RepairLastResponse last_response);

}  // namespace holt
