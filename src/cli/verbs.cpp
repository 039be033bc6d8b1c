#include "cli/verbs.hpp"

#include "cli/errors.hpp"
#include "cli/near_names.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace holt::cli {
namespace {

/// What other tools call by this name, and how it is done here.
constexpr std::array<std::pair<std::string_view, std::string_view>, 19> k_elsewhere{
    {{"attach", "'holt exec --attach ID' shows a detached command, 'holt logs -f NAME' the console."},
     {"delete", "Did you mean 'rm'?"},
     {"destroy", "Did you mean 'rm'?"},
     {"info", "Did you mean 'doctor'?"},
     {"import", "Did you mean 'image import'?"},
     {"export", "'holt image export' is for images; 'holt cp NAME:/ -' writes a machine's files as a tar."},
     {"kill", "'holt stop --kill NAME' ends a machine, 'holt exec --kill SIGNAL ID' signals a command."},
     {"list", "Did you mean 'ls'?"},
     {"load", "Did you mean 'image import'?"},
     {"login", "'docker login' and 'podman login' keep credentials where holt reads them."},
     {"push", "'holt image export' writes an archive that other tools push."},
     {"remove", "Did you mean 'rm'?"},
     {"restart", "'holt stop NAME', then 'holt start NAME'."},
     {"rmi", "Did you mean 'image rm'?"},
     {"save", "Did you mean 'image export'?"},
     {"ssh", "Did you mean 'shell'?"},
     {"tag", "'holt image import' names an image; so does a pull."},
     {"top", "Did you mean 'stats'?"},
     {"unpause", "Did you mean 'resume'?"}}};

std::vector<std::string> names_of(const CommandInfo& info) {
  std::vector<std::string> names{std::string(info.name)};
  names.insert(names.end(), info.aliases.begin(), info.aliases.end());
  return names;
}

/// The hint of a verb of other tools; empty for any other word.
std::string done_elsewhere(std::string_view word) {
  const auto* entry =
      std::ranges::find(k_elsewhere, word, [](const auto& candidate) { return candidate.first; });
  return entry == k_elsewhere.end() ? "" : std::string(entry->second);
}

bool is_hidden(const Command& command) {
  return command.info().tail == Tail::anything;
}

Error not_in_group(std::span<const std::string> words, const std::vector<GroupMember>& members) {
  std::vector<std::string> verbs;
  for (const auto& member : members) {
    if (!is_hidden(*member.command)) verbs.push_back(member.verb);
  }
  bool names_one = words.size() > 1 && !words[1].starts_with('-');
  auto what = names_one ? fmt::format("has no verb '{}'", printable(words[1], 60)) : "needs one of its verbs";
  auto meant = names_one ? did_you_mean(words[1], verbs) : "";
  if (names_one && meant.empty() && words[0] == "image") meant = done_elsewhere(words[1]);
  if (!meant.empty() && !meant.ends_with(' ')) meant += ' ';
  return usage_error(fmt::format("'{}' {}", words[0], what),
                     fmt::format("{}Usage: holt {} {}. See 'holt {} --help'.", meant, words[0],
                                 fmt::join(verbs, "|"), words[0]));
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
  auto unknown = fmt::format("unknown verb '{}'", printable(words[0], 60));
  if (auto hint = done_elsewhere(words[0]); !hint.empty()) return usage_error(unknown, hint);
  std::vector<std::string> all;
  for (const auto& command : commands) {
    if (is_hidden(*command)) continue;
    auto names = names_of(command->info());
    all.insert(all.end(), names.begin(), names.end());
  }
  return usage_error(unknown, did_you_mean(words[0], all) + help_hint(""));
}

}  // namespace holt::cli
