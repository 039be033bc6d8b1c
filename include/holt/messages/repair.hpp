// Repair of a history so that providers take it: no call without result, no result without call, no
// neighbours of one kind. Rules: docs/reference.md, "History".
//
//   auto repaired = holt::repair_history(std::move(history), holt::RepairLastResponse::repair);
//
// Depends on messages/message.hpp only.
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

/// In this order: results without a call go; calls without a result get one with outcome `interrupted`;
/// requests that follow each other are joined unless their instructions differ, responses only when neither
/// says where it comes from; what stands between two tool results of a request moves behind the last. Time:
/// linear.
RepairedHistory repair_history(MessageHistory history, RepairLastResponse last_response);

}  // namespace holt
