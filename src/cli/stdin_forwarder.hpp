// Our standard input, handed to a command in a machine.
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/machine/exec.hpp"

#include <thread>

namespace holt::cli {

/// Copies standard input on a thread of its own until it ends, then closes the command's. Ends with the
/// object.
class StdinForwarder {
 public:
  explicit StdinForwarder(ExecStream& stream);
  ~StdinForwarder();
  StdinForwarder(const StdinForwarder&) = delete;

 private:
  void copy(ExecStream& stream);

  CancellationToken end_;
  std::jthread thread_;
};

}  // namespace holt::cli
