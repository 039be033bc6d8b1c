#include "cli/outcome.hpp"

namespace holt::cli {

int exit_code(const GuestExit& exit) {
  if (exit.interrupted_by) return 128 + *exit.interrupted_by;
  return exit.result.shell_code();
}

int exit_code(const Outcome& outcome) {
  if (const auto* tool = std::get_if<ToolExit>(&outcome)) return tool->code;
  return exit_code(std::get<GuestExit>(outcome));
}

std::string_view origin_of(const GuestExit& exit) {
  if (exit.interrupted_by) return "signal";
  if (exit.result.timed_out) return "timeout";
  return exit.result.signal ? "signal" : "guest";
}

CodedError::CodedError(const Error& cause, int exit_code)
    : Error(cause.code(), cause.what(),
            {.subject = cause.subject(),
             .hint = cause.hint(),
             .retryable = cause.retryable(),
             .causes = cause.causes()}),
      exit_code_(exit_code) {}

}  // namespace holt::cli
