// The one rule for machine names, for the command line, the library, HTTP, MCP and references in histories.
#pragma once

#include <string>
#include <string_view>

namespace holt {

/// 1 to 128 of [A-Za-z0-9_-]; begins with a letter or digit, does not end in '-', has no "--".
bool is_machine_name(std::string_view name);
/// Throws Error INVALID_CONFIG with a sentence that names the rule. Call it before a name becomes a path.
void check_machine_name(std::string_view name);
/// "holt-" and 8 random hexadecimal digits.
std::string new_machine_name();
/// The guest's host name: the machine name cut to 63 bytes (RFC 1123 label), '_' as '-', no '-' at the end.
std::string host_name_of(std::string_view machine_name);

}  // namespace holt
