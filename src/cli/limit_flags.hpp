// --ulimit of the verbs that run a command.
#pragma once

#include "cli/options.hpp"
#include "holt/machine/exec.hpp"

#include <string>
#include <vector>

namespace holt::cli {

class LimitFlags {
 public:
  void declare(Options& options);
  /// Throws Error USAGE for what is no limit.
  ResourceLimits limits() const;

 private:
  std::vector<std::string> texts_;
};

}  // namespace holt::cli
