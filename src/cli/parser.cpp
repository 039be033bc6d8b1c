#include "cli/parser.hpp"

#include "cli/command_app.hpp"
#include "cli/errors.hpp"
#include "cli/help_format.hpp"
#include "cli/near_names.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace holt::cli {
namespace {

using Words = std::vector<std::string>;

/// The option that a word such as --name=x, -n or -nx begins with.
const CLI::Option* option_of(const CLI::App& app, const std::string& word) {
  if (word.starts_with("--")) return app.get_option_no_throw(word.substr(0, word.find('=')));
  return app.get_option_no_throw(word.substr(0, 2));
}

bool takes_value(const CLI::Option* option) {
  return option != nullptr && option->get_expected_max() > 0;
}

/// True when the option's value is the next word: "--name x", "-n x", "-in x" but not "--name=x", "-nx".
bool value_follows(const CLI::App& app, const std::string& word) {
  if (word.starts_with("--")) return word.find('=') == std::string::npos && takes_value(option_of(app, word));
  for (std::size_t i = 1; i < word.size(); ++i) {
    const auto* option = app.get_option_no_throw(std::string{'-', word[i]});
    if (takes_value(option)) return i + 1 == word.size();
  }
  return false;
}

bool is_flag(const std::string& word) {
  return word.size() > 1 && word.front() == '-';
}

/// Index of the first word that is neither a flag nor a flag's value, or of "--".
std::size_t end_of_flags(const CLI::App& app, std::span<const std::string> words) {
  std::size_t i = 0;
  while (i < words.size() && is_flag(words[i]) && words[i] != "--") i += value_follows(app, words[i]) ? 2 : 1;
  return std::min(i, words.size());
}

/// CLI11 would take the next word as the value of "--timeout=".
void refuse_empty_values(const CLI::App& app, std::span<const std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto& word = words[i];
    if (word == "--") return;
    if (word.starts_with("--") && word.ends_with('=') && takes_value(option_of(app, word))) {
      throw usage_error(fmt::format("{} has no value", word.substr(0, word.size() - 1)));
    }
    if (is_flag(word) && value_follows(app, word)) ++i;
  }
}

/// Before anything that is missing: who writes --namee has not left the name out.
void refuse_unknown_flags(const CLI::App& app, std::span<const std::string> words, std::string_view verb) {
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    if (!is_flag(words[i])) continue;
    if (option_of(app, words[i]) != nullptr) {
      if (value_follows(app, words[i])) ++i;
      continue;
    }
    auto name = words[i].substr(0, words[i].find('='));
    std::vector<std::string> known;
    for (const auto* option : app.get_options()) {
      if (option->get_group() == k_refused_group) continue;
      for (const auto& long_name : option->get_lnames()) known.push_back("--" + long_name);
    }
    bool is_long = name.starts_with("--");
    throw usage_error(fmt::format("unknown flag '{}'", printable(name, 80)),
                      (is_long ? did_you_mean(name, known) : "") + help_hint(verb));
  }
}

/// "--name has no value" of "--name: 1 required NAME missing".
std::string in_our_words(const CLI::ArgumentMismatch& error) {
  std::string text = error.what();
  auto colon = text.find(": ");
  if (colon == std::string::npos) return printable(text, 400);
  auto name = printable(text.substr(0, colon), 80);
  if (text.ends_with(" missing")) return name + " has no value";
  if (text.find("At Most 1 ", colon) != std::string::npos) return name + " stands there more than once";
  return printable(text, 400);
}

enum class Asked { nothing, help };
/// Runs CLI11 over words that hold no verb.
Asked run_app(CLI::App& app, std::span<const std::string> words, std::string_view verb) {
  refuse_unknown_flags(app, words, verb);
  refuse_empty_values(app, words);
  Words reversed(words.rbegin(), words.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    return Asked::help;
  } catch (const CLI::ExtrasError&) {
    auto extra = app.remaining();
    std::string word = extra.empty() ? "" : printable(extra.front(), 80);
    throw usage_error(fmt::format("{} '{}'", is_flag(word) ? "unknown flag" : "unexpected argument", word),
                      help_hint(verb));
  } catch (const CLI::ArgumentMismatch& error) {
    throw usage_error(in_our_words(error), help_hint(verb));
  } catch (const CLI::ParseError& error) {
    throw usage_error(printable(error.what(), 400), help_hint(verb));
  }
  return Asked::nothing;
}

/// argv cut where the parsers change.
struct Cut {
  std::span<const std::string> before;  ///< global flags
  std::span<const std::string> verb;    ///< the rest, from the verb on
};

Cut cut(std::span<const std::string> words, const CLI::App& app) {
  auto end = end_of_flags(app, words);
  if (end < words.size() && words[end] == "--")
    throw usage_error("'--' stands before the verb", help_hint(""));
  return {words.subspan(0, end), words.subspan(end)};
}

void parse_command(CLI::App& app, Command& command, std::span<const std::string> words, Parsed& parsed) {
  auto info = command.info();
  if (info.tail == Tail::anything) {
    command.take_tail(Words(words.begin(), words.end()));
    return;
  }
  auto end = info.tail == Tail::guest_argv ? end_of_flags(app, words) : words.size();
  if (run_app(app, words.subspan(0, end), info.name) == Asked::help) {
    parsed.kind = Parsed::Kind::help;
    return;
  }
  if (info.tail == Tail::guest_argv)
    command.take_tail(Words(words.begin() + static_cast<long>(end), words.end()));
}

bool has_help_flag(const CLI::App& app, std::span<const std::string> words) {
  auto flags = words.subspan(0, end_of_flags(app, words));
  return std::ranges::any_of(flags, [](const auto& word) { return word == "-h" || word == "--help"; });
}

void check_globals(const GlobalOptions& globals, const CommandInfo& info) {
  static constexpr std::array<std::string_view, 3> k_colors{"auto", "always", "never"};
  if (globals.color && std::ranges::find(k_colors, *globals.color) == k_colors.end()) {
    throw usage_error(
        fmt::format("--color: '{}' is none of auto, always, never", printable(*globals.color, 40)));
  }
  if (globals.home && globals.home->empty()) throw usage_error("--home has no value");
  if (globals.format && !info.takes_format) {
    throw usage_error(fmt::format("--format means nothing to 'holt {}'", info.name), "Use --json.");
  }
  // Now, so that a mistake shows also where nothing is listed.
  if (globals.format) format_template(*globals.format, Json::object(), UnknownKey::empty);
}

constexpr std::array<std::pair<Group, std::string_view>, 4> k_groups{{{Group::machines, "Machines"},
                                                                      {Group::images, "Images"},
                                                                      {Group::agents, "Agents"},
                                                                      {Group::host, "This host"}}};

std::string verb_line(std::string_view name, std::string_view summary) {
  return fmt::format("  {:<20} {}\n", name, summary);
}

std::string overview(const Commands& commands) {
  std::string text =
      "Example:\n  holt run -- python3 -c 'print(2**10)'\n\n"
      "holt gives an AI agent a computer of its own: a microVM on this machine.\n\n"
      "Usage: holt [global flags] VERB [flags] [arguments]\n";
  for (auto [group, title] : k_groups) {
    text += fmt::format("\n{}:\n", title);
    for (const auto& command : commands) {
      auto info = command->info();
      if (info.group != group || info.tail == Tail::anything) continue;
      text += verb_line(info.name, info.summary);
    }
  }
  text +=
      "\nGlobal flags, before or behind the verb: --json, --format TEMPLATE, -q/--quiet, -v/--verbose, "
      "--no-input,\n"
      "--color auto|always|never, --home DIR, -h/--help, --version. Each flag has an environment form "
      "HOLT_<FLAG>.\n"
      "\n'holt help VERB' has the rest.\n";
  return text;
}

std::string help_of_group(const std::string& group, const Commands& commands) {
  auto members = members_of(group, commands);
  std::erase_if(members,
                [](const GroupMember& member) { return member.command->info().tail == Tail::anything; });
  std::string text = fmt::format("Example:\n  {}\n\nUsage: holt {} VERB [flags] [arguments]\n\nVerbs:\n",
                                 members.front().command->info().examples.front(), group);
  for (const auto& member : members) text += verb_line(member.verb, member.command->info().summary);
  text += fmt::format("\n'holt help {} VERB' has the rest.\n", group);
  return text;
}

/// What the placeholders of the flags stand for.
std::string legend_of(std::string_view help) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> k_legend{
      {{" DURATION ", "DURATION: 500ms, 30s, 1h30m, or seconds"},
       {" SIZE ", "SIZE: 512K, 64M, 2G, in powers of 1024"},
       {" NAME[=VALUE] ", "NAME[=VALUE]: LANG=C.UTF-8, or HOME to copy it from here"}}};
  std::string text;
  for (auto [placeholder, meaning] : k_legend) {
    if (help.find(placeholder) != std::string_view::npos)
      text += fmt::format("{}{}\n", text.empty() ? "\n" : "", meaning);
  }
  return text;
}

std::string aliases_of(const CommandInfo& info) {
  if (info.aliases.empty()) return {};
  return fmt::format("Also: holt {}\n", fmt::join(info.aliases, ", holt "));
}

std::string help_of_verb(Command& command) {
  GlobalOptions globals;
  auto info = command.info();
  auto app = command_app(command, globals);
  app->formatter(std::make_shared<HelpFormat>());
  std::string help = app->help();
  // CLI11 begins with a usage line of its own; ours shows the shape of the guest's part.
  auto groups = help.find("\nPositionals:");
  if (groups == std::string::npos) groups = help.find("\nFlags:");
  if (groups == std::string::npos) groups = help.find("\nGlobal flags:");
  std::string text =
      fmt::format("Example{}:\n  {}\n\n{}.\n\nUsage: holt {} {}\n", info.examples.size() > 1 ? "s" : "",
                  fmt::join(info.examples, "\n  "), info.summary, info.name, info.usage);
  text += aliases_of(info);
  if (groups != std::string::npos) text += help.substr(groups);
  while (text.ends_with("\n\n")) text.pop_back();
  for (auto gap = text.find("\n\n\n"); gap != std::string::npos; gap = text.find("\n\n\n"))
    text.erase(gap, 1);
  return text + legend_of(text);
}

}  // namespace

Parsed parse(const Words& argv, const Commands& commands, GlobalOptions& globals) {
  auto globals_app = global_app(globals);
  auto [before, rest] = cut(argv, *globals_app);
  if (run_app(*globals_app, before, "") == Asked::help) return {.kind = Parsed::Kind::help};
  if (globals_app->count("--version") > 0) return {.kind = Parsed::Kind::version};
  if (rest.empty()) throw usage_error("no verb", "See 'holt help'; start with 'holt doctor'.");

  auto found = find_verb(rest, commands);
  if (found.command == nullptr) {
    bool is_group = !members_of(rest[0], commands).empty();
    if (is_group && has_help_flag(*globals_app, rest.subspan(1)))
      return {.kind = Parsed::Kind::help, .group = rest[0]};
    throw unknown_verb(rest, commands);
  }
  Parsed parsed{.command = found.command};
  auto app = command_app(*found.command, globals);
  parse_command(*app, *found.command, rest.subspan(found.words), parsed);
  if (parsed.kind == Parsed::Kind::run) check_globals(globals, found.command->info());
  return parsed;
}

Error with_help_hint(const Error& error, const Command* command) {
  if (error.code() != ErrorCode::usage || !error.hint().empty() || command == nullptr) return error;
  return usage_error(error.what(), help_hint(command->info().name));
}

const Command* named_command(const Words& argv, const Commands& commands) {
  GlobalOptions globals;
  auto app = global_app(globals);
  auto end = end_of_flags(*app, argv);
  return find_verb(std::span(argv).subspan(end), commands).command;
}

bool asks_for_json(const Words& argv, const Commands& commands) {
  const char* variable = std::getenv("HOLT_JSON");
  if (variable != nullptr && (std::string_view(variable) == "1" || std::string_view(variable) == "true"))
    return true;
  GlobalOptions globals;
  std::span<const std::string> words(argv);
  auto outer = global_app(globals);
  auto end = end_of_flags(*outer, words);
  auto found = find_verb(words.subspan(end), commands);
  if (found.command != nullptr && found.command->info().tail != Tail::none) {
    auto app = command_app(*found.command, globals);
    end += found.words;
    end += end_of_flags(*app, words.subspan(end));
    words = words.subspan(0, end);
  }
  auto stop = std::ranges::find(words, "--");
  return std::find(words.begin(), stop, "--json") != stop;
}

std::string help_of(const Parsed& parsed, const Commands& commands) {
  if (parsed.command != nullptr) return help_of_verb(*parsed.command);
  return parsed.group.empty() ? overview(commands) : help_of_group(parsed.group, commands);
}

}  // namespace holt::cli
