#include "cli/manual.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace holt::cli {
namespace {

/// Text that roff takes for nothing else: no escapes, no requests, dashes that can be copied.
std::string plain(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'') {
      out += "\\(aq";
    } else {
      out += c;
    }
  }
  return out.starts_with('.') ? "\\&" + out : out;
}

std::string bold(std::string_view text) {
  return "\\fB" + plain(text) + "\\fR";
}

std::string italic(std::string_view text) {
  return text.empty() ? "" : "\\fI" + plain(text) + "\\fR";
}

std::string page_name(std::string_view verb) {
  std::string name = verb.empty() ? "holt" : fmt::format("holt-{}", verb);
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string heading(const std::string& page, const std::string& version) {
  std::string title = page;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  return fmt::format(".TH {} 1 \"\" \"holt {}\" \"holt manual\"\n", plain(title), plain(version));
}

std::string section(std::string_view title) {
  return fmt::format(".SH {}\n", title);
}

std::string entry(const std::string& term, std::string_view help) {
  return fmt::format(".TP\n{}\n{}\n", term, plain(help));
}

std::string flags(std::string_view title, const std::vector<FlagFacts>& all) {
  if (all.empty()) return {};
  std::string text = section(title);
  for (const auto& flag : all) {
    std::string term;
    for (const auto& name : flag.names) term += (term.empty() ? "" : ", ") + bold(name);
    if (!flag.placeholder.empty()) term += " " + italic(flag.placeholder);
    text += entry(term, flag.help);
  }
  return text;
}

std::string examples(const std::vector<std::string_view>& all) {
  std::string text = section("EXAMPLES") + ".nf\n";
  for (auto example : all) text += plain(example) + "\n";
  return text + ".fi\n";
}

std::string page_of(const VerbFacts& verb, const std::string& version) {
  const auto& info = verb.info;
  auto name = page_name(info.name);
  std::string text = heading(name, version) + section("NAME") +
                     fmt::format("{} \\- {}\n", plain(name), plain(info.summary)) + section("SYNOPSIS") +
                     fmt::format("{} {}\n", bold(fmt::format("holt {}", info.name)), plain(info.usage));
  for (auto alias : info.aliases)
    text += fmt::format(".br\n{} {}\n", bold(fmt::format("holt {}", alias)), plain(info.usage));
  if (!verb.arguments.empty()) text += section("ARGUMENTS");
  for (const auto& argument : verb.arguments) text += entry(italic(argument.name), argument.help);
  text += flags("FLAGS", verb.flags) + flags("GLOBAL FLAGS", verb.globals);
  if (!verb.refused.empty()) {
    std::string names;
    for (const auto& flag : verb.refused) names += (names.empty() ? "" : ", ") + bold(flag.names.back());
    text += section("REFUSED BY THIS VERSION") + names + "\n";
  }
  return text + examples(info.examples) + section("SEE ALSO") + ".BR holt (1)\n";
}

std::string first_page(const CommandTree& tree, const std::string& version) {
  std::string text = heading("holt", version) + section("NAME") +
                     "holt \\- microVM workspaces for AI agents\n" + section("SYNOPSIS") + bold("holt") +
                     plain(" [global flags] VERB [flags] [arguments]") + "\n" + section("DESCRIPTION") +
                     "holt gives an AI agent a computer of its own: a microVM on this machine.\n"
                     "Standard output has the result and nothing else; progress, warnings and errors go to "
                     "standard error.\n" +
                     section("VERBS");
  for (const auto& verb : tree.verbs) {
    if (!verb.is_hidden())
      text += entry(fmt::format("{}(1)", bold(page_name(verb.info.name))), verb.info.summary);
  }
  text += flags("GLOBAL FLAGS", tree.globals);
  text += section("ENVIRONMENT") +
          entry(bold("HOLT_HOME"), "Keep everything below this folder instead of the XDG folders") +
          entry(bold("HOLT_") + italic("FLAG"),
                "Each flag has an environment form: its long name in capitals, with _ for -. A flag wins.") +
          section("EXIT STATUS") + entry("0", "Done") +
          entry("1", "Failed for an ordinary reason: not found, conflict, time") +
          entry("2", "A bad flag, argument or file, named in the message") +
          entry("124", "The timeout of run, exec or agent run ended it") +
          entry("125", "run, exec: holt failed and the command has no result") +
          entry("126, 127", "run, exec: the program cannot be invoked, was not found") +
          entry("128+\\fIN\\fR", "Ended by signal N") +
          ".PP\nOther codes of run, exec and shell are the command's own.\n" +
          examples({"holt doctor", "holt run -- python3 -c 'print(2**10)'"});
  return text;
}

}  // namespace

std::vector<ManualPage> manual_pages(const CommandTree& tree, const std::string& version) {
  std::vector<ManualPage> pages{{.file = "holt.1", .text = first_page(tree, version)}};
  for (const auto& verb : tree.verbs) {
    if (!verb.is_hidden())
      pages.push_back({.file = page_name(verb.info.name) + ".1", .text = page_of(verb, version)});
  }
  return pages;
}

}  // namespace holt::cli
