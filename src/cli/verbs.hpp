// Verbs by the words that name them: "ls", "ps", "image ls".
#pragma once

#include "cli/command.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holt::cli {

struct FoundVerb {
  Command* command = nullptr;  ///< null: these words name none
  std::size_t words = 0;       ///< how many words its name took
};
FoundVerb find_verb(std::span<const std::string> words, const Commands& commands);

struct GroupMember {
  Command* command = nullptr;
  std::string verb;  ///< "ls" of "image ls"
};
/// The verbs of a group such as "image", by whatever name they are in it; none where there is no such group.
std::vector<GroupMember> members_of(const std::string& group, const Commands& commands);

/// For words that name no verb: names the group's verbs, or one that is near.
Error unknown_verb(std::span<const std::string> words, const Commands& commands);

/// "See 'holt VERB --help'."; of all verbs for an empty one.
std::string help_hint(std::string_view verb);

}  // namespace holt::cli
