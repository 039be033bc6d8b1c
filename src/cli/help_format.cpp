#include "cli/help_format.hpp"

namespace holt::cli {
namespace {

constexpr std::size_t k_width = 100;

/// Words in lines of at most k_width, each indented by two.
std::string wrap(const std::vector<std::string>& words) {
  std::string text;
  std::string line = " ";
  for (const auto& word : words) {
    if (line.size() + word.size() + 1 > k_width) {
      text += line + "\n";
      line = " ";
    }
    line += " " + word;
  }
  return text + line + "\n";
}

}  // namespace

std::string HelpFormat::make_option_opts(const CLI::Option* option) const {
  auto placeholder = option->get_type_name();
  return placeholder.empty() ? "" : " " + placeholder;
}

std::string HelpFormat::make_group(std::string group, bool is_positional,
                                   std::vector<const CLI::Option*> options) const {
  if (group != k_refused_group) return CLI::Formatter::make_group(group, is_positional, std::move(options));
  std::vector<std::string> names;
  for (const auto* option : options) names.push_back(option->get_name(false, true));
  return "\n" + group + ":\n" + wrap(names);
}

}  // namespace holt::cli
