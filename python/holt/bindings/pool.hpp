// A few threads for calls that have no descriptor of their own: starts, stops, removals and copies.
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/base/deadline.hpp"
#include "holt/base/fd.hpp"

#include <functional>

namespace holt::python {

/// Runs `work` on a thread of the pool; `cancel` ends it at the interpreter's end.
void run_on_pool(std::function<void()> work, const CancellationToken& cancel);

/// Cancels all work and waits for its end. Without the interpreter's lock: work may want it.
void end_pool(Deadline deadline);

/// An eventfd that does not block. Throws Error.
Fd make_event();
/// Makes it readable.
void set_event(int fd);

}  // namespace holt::python
