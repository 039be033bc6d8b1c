// The look of a verb's help text.
#pragma once

#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

namespace holt::cli {

/// Group of flags that this version refuses: named in help, not explained.
inline constexpr std::string_view k_refused_group = "Refused by this version";

class HelpFormat : public CLI::Formatter {
 public:
  HelpFormat() { column_width(30); }
  /// The placeholder alone: each flag has an environment form, so help says that once.
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override;
};

}  // namespace holt::cli
