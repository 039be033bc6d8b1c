#include "cli/confirm.hpp"

#include "cli/errors.hpp"
#include "cli/stdin_reader.hpp"
#include "cli/units.hpp"

#include <cctype>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::cli {

void confirm_deletion(Session& session, std::string_view verb, std::string_view what,
                      std::string_view instead) {
  if (session.globals.no_input || ::isatty(STDIN_FILENO) == 0) {
    throw usage_error(fmt::format("'{}' would ask, and nobody can answer here", verb), std::string(instead));
  }
  session.output.err(fmt::format("holt: delete {}? [y/N] ", what));
  std::string buffer;
  // A terminal gives a line at a time.
  std::string answer(read_input(session.interrupts, buffer));
  while (answer.ends_with('\n') || answer.ends_with('\r')) answer.pop_back();
  for (auto& c : answer) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (answer != "y" && answer != "yes") throw Error(ErrorCode::cancelled, "Nothing was deleted");
}

}  // namespace holt::cli
