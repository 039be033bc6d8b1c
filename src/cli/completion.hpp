// What a shell offers while a command line is typed. The scripts of the shells only ask `holt __complete`.
#pragma once

#include "cli/command_tree.hpp"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holt::cli {

/// Names of this host, asked for only where they are offered.
struct KnownNames {
  std::function<std::vector<std::string>()> machines;
  std::function<std::vector<std::string>()> images;
};

struct Completion {
  struct Word {
    std::string text;  ///< the whole word; more is to follow behind one that ends in ':'
    std::string help;
  };
  enum class Paths { none, files, folders };
  std::vector<Word> words;
  Paths paths = Paths::none;  ///< those that the shell shall offer too
};

/// What may stand in place of the last word, which is empty or begun. `words` begins behind the program's
/// name.
Completion complete(const CommandTree& tree, std::span<const std::string> words, const KnownNames& names);

/// As the scripts read it: WORD, or WORD, a tab and its help, one a line; ":files" or ":folders" for paths.
std::string to_text(const Completion& completion);

/// The script that a shell is to source. Throws Error USAGE for another shell than bash, zsh and fish.
std::string_view completion_script(std::string_view shell);

}  // namespace holt::cli
