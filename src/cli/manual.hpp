// Manual pages, man(7), of the whole command line and of each verb.
#pragma once

#include "cli/command_tree.hpp"

#include <string>
#include <vector>

namespace holt::cli {

struct ManualPage {
  std::string file;  ///< "holt-image-ls.1"
  std::string text;
};

/// One page for holt and one for each verb that help shows. The same tree and version give the same bytes.
std::vector<ManualPage> manual_pages(const CommandTree& tree, const std::string& version);

}  // namespace holt::cli
