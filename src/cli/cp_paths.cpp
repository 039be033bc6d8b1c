#include "cli/cp_paths.hpp"

#include "cli/errors.hpp"

#include <fmt/format.h>

namespace holt::cli {

CpSide parse_cp_side(const std::string& text) {
  if (text.empty()) throw usage_error("cp: a path is empty");
  if (text == "-") return Stream{};
  auto colon = text.find(':');
  if (colon == std::string::npos || text.find('/') < colon) return HostPath{text};
  GuestPath side{.machine = text.substr(0, colon), .path = text.substr(colon + 1)};
  if (side.machine.empty() || !side.path.starts_with('/')) {
    throw usage_error(fmt::format("cp: '{}' is not of the form NAME:/path", printable(text, 200)),
                      "Paths in a machine are absolute; write ./a:b for a host file with a colon.");
  }
  return side;
}

}  // namespace holt::cli
