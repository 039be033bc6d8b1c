#include "cli/confirm.hpp"

#include "cli/errors.hpp"
#include "cli/units.hpp"

#include <iostream>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::cli {

void confirm_deletion(Session& session, std::string_view verb, std::uint64_t bytes) {
  if (session.globals.no_input || ::isatty(STDIN_FILENO) == 0) {
    throw usage_error(fmt::format("'{}' would ask, and nobody can answer here", verb),
                      "Give --force, or --dry-run to look.");
  }
  session.output.err(fmt::format("holt: delete these, {}? [y/N] ", show_size(bytes)));
  std::string answer;
  std::getline(std::cin, answer);
  if (answer != "y" && answer != "yes") throw Error(ErrorCode::cancelled, "Nothing was deleted");
}

}  // namespace holt::cli
