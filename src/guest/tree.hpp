// What sending and receiving a tree share.
#pragma once

#include "holt/protocol/messages.hpp"

#include <string>

namespace holt::guest {

/// Counts an item that failed, and keeps the first ones by name.
void add_problem(protocol::TreeReply& reply, const std::string& path, int error_number, std::string message);

}  // namespace holt::guest
