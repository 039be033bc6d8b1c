// What a server wants to see before it answers: WWW-Authenticate.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace holt::image {

/// Names in lower case.
struct Challenge {
  std::string scheme;
  std::map<std::string, std::string> parameters;

  /// Empty when it is not there.
  std::string parameter(const std::string& name) const;
};

/// The challenges of a header's value, several of them perhaps. Never fails: what cannot be read ends the
/// list. At most 16 challenges of 16 parameters of 4 KiB. Source: RFC 9110, 11.6.1.
std::vector<Challenge> parse_challenges(std::string_view text);

}  // namespace holt::image
