// A few threads for calls that have no descriptor of their own: starts, stops, removals, waits and copies.
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/base/deadline.hpp"
#include "holt/base/fd.hpp"

#include <functional>

namespace holt::python {

/// Threads of their own for calls of one kind, so that those that take long hold up no others.
enum class Lane {
  looks,      ///< states, figures, lists
  changes,    ///< stops, removals, settings
  starts,     ///< boots
  transfers,  ///< pulls, with the boots behind them, imports, copies of trees
  waits,      ///< for a state of a machine, however long that takes
};

enum class Turn {
  done,
  again,  ///< shortly, with no thread for it until then
};

/// Runs `work` on a thread of the lane until it is done; `cancel` ends it at the interpreter's end.
void run_on_pool(Lane lane, std::function<Turn()> work, const CancellationToken& cancel);

/// Cancels all work of all lanes and waits for its end. Without the interpreter's lock: work may want it.
void end_pool(Deadline deadline);

/// An eventfd that does not block. Throws Error.
Fd make_event();
/// Makes it readable.
void set_event(int fd);

}  // namespace holt::python
