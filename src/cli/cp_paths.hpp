// The two sides of `holt cp`.
#pragma once

#include <string>
#include <variant>

namespace holt::cli {

struct HostPath {
  std::string path;
};
struct GuestPath {
  std::string machine;
  std::string path;  ///< absolute
};
struct Stream {};  ///< "-"
using CpSide = std::variant<HostPath, GuestPath, Stream>;

/// "NAME:/path" is a machine's, "-" a stream, all else the host's. A ':' before the first '/' makes it a
/// machine's, so that a typo in a machine's name never becomes a host file; write ./a:b for such a host file.
/// Throws Error USAGE.
CpSide parse_cp_side(const std::string& text);

}  // namespace holt::cli
