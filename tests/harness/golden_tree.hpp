// The file trees of the recorded cases: made in a directory, and compared after a run.
#pragma once

#include "holt/base/json.hpp"

#include <filesystem>
#include <map>
#include <string>

namespace holt::test {

/// Makes a tree of trees.json in `directory`. Paths that start with ../ lie beside it.
void make_tree(const Json& tree, const std::filesystem::path& directory);
/// Opens up what the tree closed, so that the directory can be removed.
void unlock_tree(const std::filesystem::path& directory);

/// What stands in a directory and beside it: path -> "link TARGET", "file CONTENT" or "other".
using Snapshot = std::map<std::string, std::string>;
/// Without the harness's own folder.
Snapshot snapshot(const std::filesystem::path& directory);
/// The changes as golden.jsonl writes them.
Json changes_between(const Snapshot& before, const Snapshot& after);

}  // namespace holt::test
