#include "cli/completion.hpp"

#include "cli/errors.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace holt::cli {
namespace {

using Word = Completion::Word;
using Words = std::span<const std::string>;

bool is_flag(std::string_view word) {
  return word.size() > 1 && word.front() == '-';
}

const FlagFacts* flag_named(const std::vector<FlagFacts>& flags, std::string_view name) {
  auto found = std::ranges::find_if(
      flags, [&](const auto& flag) { return std::ranges::find(flag.names, name) != flag.names.end(); });
  return found == flags.end() ? nullptr : &*found;
}

/// Offers what may stand in place of one word.
class Offer {
 public:
  Offer(const CommandTree& tree, const KnownNames& names, std::string_view begun)
      : tree_(&tree), names_(&names), begun_(begun) {}

  void word(const std::string& text, std::string_view help = {}) {
    if (text.starts_with(begun_)) result_.words.push_back({.text = text, .help = std::string(help)});
  }

  void flags(const std::vector<FlagFacts>& flags) {
    for (const auto& flag : flags) word(flag.names.back(), flag.help);
  }

  /// Verbs behind the words of a group, or all where there are none.
  void verbs(Words group) {
    for (const auto& verb : tree_->verbs) {
      if (verb.is_hidden()) continue;
      std::vector<std::string_view> all{verb.info.name};
      all.insert(all.end(), verb.info.aliases.begin(), verb.info.aliases.end());
      for (std::string_view name : all) {
        auto space = std::min(name.find(' '), name.size());
        auto first = std::string(name.substr(0, space));
        if (group.empty()) {
          bool in_group = space < name.size();
          if (!in_group) word(first, verb.info.summary);
          if (in_group && !offers(first)) word(first, fmt::format("Verbs of holt {}", first));
        } else if (group.size() == 1 && first == group.front() && space < name.size()) {
          word(std::string(name.substr(space + 1)), verb.info.summary);
        }
      }
    }
  }

  /// What the name of an argument or the placeholder of a flag stands for; `before` are the arguments in
  /// front.
  void value(std::string_view placeholder, Words before = {}) {
    if (placeholder.find('|') != std::string_view::npos) return alternatives(placeholder);
    if (placeholder == "NAME") return all(names_->machines());
    if (placeholder == "IMAGE" || placeholder == "REFERENCE") return all(names_->images());
    if (placeholder == "VERB") return verbs(before);
    if (placeholder == "SHELL") return all({"bash", "zsh", "fish"});
    if (placeholder == "SIGNAL") return all({"TERM", "INT", "HUP", "KILL", "QUIT", "USR1", "USR2"});
    if (placeholder == "DIR") result_.paths = Completion::Paths::folders;
    if (placeholder == "FILE") result_.paths = Completion::Paths::files;
    if (placeholder == "SOURCE" || placeholder == "DESTINATION") {
      for (const auto& machine : names_->machines()) word(machine + ":");
      result_.paths = Completion::Paths::files;
    }
  }

  /// In "--flag=VALUE" the value.
  void value_of(const FlagFacts& flag, std::string_view begun) {
    auto whole = begun_;
    auto start = std::string(whole.substr(0, whole.size() - begun.size()));
    begun_ = begun;
    value_of(flag);
    begun_ = whole;
    for (auto& word : result_.words) word.text.insert(0, start);
    result_.paths = Completion::Paths::none;  // the shell would look for a file of the whole word
  }

  void value_of(const FlagFacts& flag) {
    // The name in --name is one that nothing has yet.
    if (flag.placeholder != "NAME") value(flag.placeholder);
  }

  Completion take() { return std::move(result_); }

 private:
  void all(const std::vector<std::string>& texts) {
    for (const auto& text : texts) word(text);
  }

  /// Of "ID|NAME|new" the words that mean themselves, which are written small.
  void alternatives(std::string_view placeholder) {
    while (!placeholder.empty()) {
      auto bar = std::min(placeholder.find('|'), placeholder.size());
      auto piece = placeholder.substr(0, bar);
      if (std::ranges::none_of(piece, [](unsigned char c) { return std::isupper(c) != 0; }))
        word(std::string(piece));
      placeholder.remove_prefix(std::min(bar + 1, placeholder.size()));
    }
  }

  bool offers(std::string_view text) const {
    return std::ranges::any_of(result_.words, [&](const Word& word) { return word.text == text; });
  }

  const CommandTree* tree_;
  const KnownNames* names_;
  std::string_view begun_;
  Completion result_;
};

/// The words before the one that is begun: a verb, where there is one yet, and what stands around it.
struct Line {
  const VerbFacts* verb = nullptr;
  std::vector<std::string> group;      ///< without a verb: the word of a group that it may become
  std::vector<std::string> arguments;  ///< of the verb
  const FlagFacts* waits = nullptr;    ///< a flag whose value is the word that is begun
  bool flags_over = false;             ///< "--" stands before
};

const VerbFacts* verb_named(const CommandTree& tree, const std::string& name) {
  auto found = std::ranges::find_if(tree.verbs, [&](const VerbFacts& verb) {
    return verb.info.name == name || std::ranges::find(verb.info.aliases, name) != verb.info.aliases.end();
  });
  return found == tree.verbs.end() ? nullptr : &*found;
}

const FlagFacts* flag_of(const CommandTree& tree, const VerbFacts* verb, std::string_view name) {
  if (verb == nullptr) return flag_named(tree.globals, name);
  const auto* own = flag_named(verb->flags, name);
  return own != nullptr ? own : flag_named(verb->globals, name);
}

/// The flag whose value is the next word: "--name", "-n", "-in".
const FlagFacts* waiting_flag(const CommandTree& tree, const VerbFacts* verb, std::string_view word) {
  if (word.starts_with("--")) {
    const auto* flag = flag_of(tree, verb, word);
    return flag != nullptr && !flag->placeholder.empty() ? flag : nullptr;
  }
  for (std::size_t i = 1; i < word.size(); ++i) {
    const auto* flag = flag_of(tree, verb, std::string{'-', word[i]});
    if (flag == nullptr || flag->placeholder.empty()) continue;
    return i + 1 == word.size() ? flag : nullptr;
  }
  return nullptr;
}

Line read_line(const CommandTree& tree, Words words) {
  Line line;
  for (const auto& word : words) {
    if (std::exchange(line.waits, nullptr) != nullptr) continue;
    bool guest = line.verb != nullptr && line.verb->info.tail == Tail::guest_argv;
    if (!line.flags_over && !(guest && !line.arguments.empty()) && is_flag(word)) {
      if (word == "--") {
        line.flags_over = true;
        // Behind `run --` no image follows, behind `exec --` a machine does.
        if (guest && line.verb->info.tail_argument == "IMAGE") line.arguments.emplace_back();
      } else {
        line.waits = waiting_flag(tree, line.verb, word);
      }
    } else if (line.verb != nullptr) {
      line.arguments.push_back(word);
    } else {
      line.group.push_back(word);
      line.verb = verb_named(tree, fmt::format("{}", fmt::join(line.group, " ")));
    }
  }
  return line;
}

std::string_view argument_at(const VerbFacts& verb, std::size_t index) {
  if (verb.info.tail == Tail::guest_argv) return index == 0 ? verb.info.tail_argument : "";
  if (index < verb.arguments.size()) return verb.arguments[index].name;
  if (verb.arguments.empty() || !verb.arguments.back().repeats) return "";
  return verb.arguments.back().name;
}

constexpr std::string_view k_bash = R"(# bash completion of holt; to load it: source <(holt completion bash)
_holt() {
  local holt=${COMP_WORDS[0]/#\~/$HOME} rest=${COMP_LINE:0:COMP_POINT} words=() paths=() trimmed line i
  # bash cuts words also at ':' and '='; what no space stands before goes on with the word in front.
  for ((i = 0; i < COMP_CWORD; i++)); do
    trimmed=${rest#"${rest%%[![:space:]]*}"}
    if ((i == 0)) || [[ $trimmed != "$rest" ]]; then
      words+=("${COMP_WORDS[i]}")
    else
      words[-1]+=${COMP_WORDS[i]}
    fi
    rest=${trimmed#"${COMP_WORDS[i]}"}
  done
  trimmed=${rest#"${rest%%[![:space:]]*}"}
  if [[ $trimmed != "$rest" ]]; then words+=("$trimmed"); else words[-1]+=$trimmed; fi
  local current=${words[-1]}
  # What bash takes for the word begins behind the last of these, and so must the replies.
  local cuts=${COMP_WORDBREAKS//[!:=]/} kept=
  if [[ -n $cuts && $current == *["$cuts"]* ]]; then kept=${current%"${current##*["$cuts"]}"}; fi
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :files) mapfile -t paths < <(compgen -f -- "$current") ;;
      :folders) mapfile -t paths < <(compgen -d -- "$current") ;;
      *)
        line=${line%%$'\t'*}
        if [[ $line == *: ]]; then compopt -o nospace; fi
        COMPREPLY+=("${line#"$kept"}")
        ;;
    esac
  done < <("$holt" __complete "${words[@]:1}" 2> /dev/null)
  # Not in vain: it would put a backslash before the colon of a machine.
  if ((${#paths[@]} > 0)); then
    compopt -o filenames
    COMPREPLY+=("${paths[@]}")
  fi
}
complete -F _holt holt
)";

constexpr std::string_view k_zsh = R"(#compdef holt
# zsh completion of holt; to load it: source <(holt completion zsh), or save it as _holt in a folder of $fpath
_holt() {
  local line word
  local -a found shown open
  for line in "${(@f)$("${(Q)words[1]/#\~/$HOME}" __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2> /dev/null)}"; do
    word=${line%%$'\t'*}
    case $line in
      '') ;;
      :files) _files ;;
      :folders) _files -/ ;;
      *:) open+=("$word") ;;
      *)
        found+=("$word")
        if [[ $line == *$'\t'* ]]; then shown+=("$word  -- ${line#*$'\t'}"); else shown+=("$word"); fi
        ;;
    esac
  done
  if (( $#found )); then compadd -l -d shown -a found; fi
  if (( $#open )); then compadd -S '' -a open; fi
}
if [[ $funcstack[1] == _holt ]]; then _holt "$@"; else compdef _holt holt; fi
)";

constexpr std::string_view k_fish = R"(# fish completion of holt; to load it: holt completion fish | source
function __holt_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path "$current"
            case ':folders'
                __fish_complete_directories "$current"
            case '*'
                printf '%s\n' $line
        end
    end
end
complete -c holt -f -a '(__holt_complete)'
)";

}  // namespace

Completion complete(const CommandTree& tree, Words words, const KnownNames& names) {
  static const std::string k_nothing;
  const auto& begun = words.empty() ? k_nothing : words.back();
  auto line = read_line(tree, words.empty() ? words : words.first(words.size() - 1));
  Offer offer(tree, names, begun);
  bool guests = line.verb != nullptr && line.verb->info.tail == Tail::guest_argv && !line.arguments.empty();
  auto equals = begun.find('=');
  if (line.waits != nullptr) {
    offer.value_of(*line.waits);
  } else if (begun.starts_with('-') && !line.flags_over && !guests) {
    const auto* flag =
        equals == std::string::npos ? nullptr : flag_of(tree, line.verb, begun.substr(0, equals));
    if (flag != nullptr) {
      offer.value_of(*flag, std::string_view(begun).substr(equals + 1));
    } else if (line.verb != nullptr) {
      offer.flags(line.verb->flags);
      offer.flags(line.verb->globals);
    } else {
      offer.flags(tree.globals);
    }
  } else if (line.verb == nullptr) {
    offer.verbs(line.group);
  } else if (!line.verb->is_hidden()) {
    offer.value(argument_at(*line.verb, line.arguments.size()), line.arguments);
  }
  return offer.take();
}

std::string to_text(const Completion& completion) {
  std::string text;
  for (const auto& word : completion.words)
    text += word.help.empty() ? word.text + "\n" : fmt::format("{}\t{}\n", word.text, word.help);
  if (completion.paths == Completion::Paths::files) text += ":files\n";
  if (completion.paths == Completion::Paths::folders) text += ":folders\n";
  return text;
}

std::string_view completion_script(std::string_view shell) {
  if (shell == "bash") return k_bash;
  if (shell == "zsh") return k_zsh;
  if (shell == "fish") return k_fish;
  throw usage_error(fmt::format("'{}' is none of bash, zsh and fish", printable(shell, 40)));
}

}  // namespace holt::cli
