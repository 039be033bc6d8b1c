// How a verb ended: with an exit code of holt's own, or with that of a command in a machine. Kept apart so
// that a guest's 125 is never taken for ours.
#pragma once

#include "holt/machine/types.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace holt::cli {

/// Codes of holt itself (docs/reference.md, "Exit codes").
inline constexpr int k_exit_ok = 0;
inline constexpr int k_exit_failed = 1;
inline constexpr int k_exit_usage = 2;
inline constexpr int k_exit_timeout = 124;
inline constexpr int k_exit_engine = 125;
inline constexpr int k_exit_not_invoked = 126;
inline constexpr int k_exit_broken_pipe = 141;

/// A management verb has ended.
struct ToolExit {
  int code = k_exit_ok;
};

/// A command in a machine has ended.
struct GuestExit {
  ExecResult result = {};
  std::optional<int> interrupted_by = std::nullopt;  ///< the signal after which holt killed the command
};

using Outcome = std::variant<ToolExit, GuestExit>;

/// The process's exit code.
int exit_code(const Outcome& outcome);
int exit_code(const GuestExit& exit);
/// Who set that code: "guest", "timeout" or "signal".
std::string_view origin_of(const GuestExit& exit);

/// An error with an exit code of its own, where the verb's would say too little.
class CodedError : public Error {
 public:
  CodedError(const Error& cause, int exit_code);
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

/// Standard output's reader has gone: end quietly.
struct BrokenPipe {};

}  // namespace holt::cli
