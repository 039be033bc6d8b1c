#include "cli/verbs.hpp"

#include "cli/errors.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace holt::cli {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::vector<std::string> names_of(const CommandInfo& info) {
  std::vector<std::string> names{std::string(info.name)};
  names.insert(names.end(), info.aliases.begin(), info.aliases.end());
  return names;
}

Error not_in_group(std::span<const std::string> words, const std::vector<GroupMember>& members) {
  std::vector<std::string> verbs;
  for (const auto& member : members) verbs.push_back(member.verb);
  bool names_one = words.size() > 1 && !words[1].starts_with('-');
  auto what = names_one ? fmt::format("has no verb '{}'", printable(words[1], 60)) : "needs one of its verbs";
  return usage_error(
      fmt::format("'{}' {}", words[0], what),
      fmt::format("Usage: holt {} {}. See 'holt {} --help'.", words[0], fmt::join(verbs, "|"), words[0]));
}

}  // namespace

std::string help_hint(std::string_view verb) {
  return verb.empty() ? "See 'holt help'." : fmt::format("See 'holt {} --help'.", verb);
}

FoundVerb find_verb(std::span<const std::string> words, const Commands& commands) {
  for (std::size_t length : {2, 1}) {
    if (words.size() < length) continue;
    std::string name = length == 2 ? words[0] + " " + words[1] : words[0];
    for (const auto& command : commands) {
      auto names = names_of(command->info());
      if (std::ranges::find(names, name) != names.end()) return {command.get(), length};
    }
  }
  return {};
}

std::vector<GroupMember> members_of(const std::string& group, const Commands& commands) {
  std::vector<GroupMember> members;
  for (const auto& command : commands) {
    for (const auto& name : names_of(command->info())) {
      if (name.starts_with(group + " ")) members.push_back({command.get(), name.substr(group.size() + 1)});
    }
  }
  return members;
}

Error unknown_verb(std::span<const std::string> words, const Commands& commands) {
  if (auto members = members_of(words[0], commands); !members.empty()) return not_in_group(words, members);
  std::string nearest;
  std::size_t best = 3;
  for (const auto& command : commands) {
    for (const auto& name : names_of(command->info())) {
      auto distance = edit_distance(words[0].substr(0, 40), name);
      if (distance < best) {
        best = distance;
        nearest = name;
      }
    }
  }
  return usage_error(fmt::format("unknown verb '{}'", printable(words[0], 60)),
                     nearest.empty() ? help_hint("") : fmt::format("Did you mean '{}'?", nearest));
}

}  // namespace holt::cli
