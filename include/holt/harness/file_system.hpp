// The file tools of an agent: read_file, write_file, edit_file, list_files and grep, on the run's workspace.
//
//   holt::Agent agent("anthropic:claude-opus-5-5", {.capabilities = {LocalWorkspace("."), FileSystem()}});
//
// They stay inside one directory and do not change files that a pattern protects. These are guard rails for
// a model, no isolation: a shell tool is not bound by them. Depends on agent/ and workspace/.
#pragma once

#include "holt/agent/capability.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holt {

struct FileSystemOptions {
  /// Absolute; the tools reach nothing outside. None: the workspace's working directory.
  std::optional<std::string> root_dir = std::nullopt;
  /// Files that are not written or edited: shell patterns over the path below the root, where `*` crosses
  /// '/', a leading `**/` matches no directory too, case does not matter, and a directory protects all below
  /// it. None: repositories, environment files, keys, secrets and the harness's own folder.
  std::optional<std::vector<std::string>> read_only_patterns = std::nullopt;
  /// Of one answer of read_file.
  std::size_t max_read_chars = 50000;
  int max_retries = 5;
};

class FileSystem : public CapabilityBase {
 public:
  /// Throws UserError for a root_dir that is not absolute.
  explicit FileSystem(FileSystemOptions options = {});

  std::string id() const override { return "file_system"; }
  /// In a read-only workspace the tools that change files are left out.
  std::vector<Tool> tools(const RunContext& context) const override;

 private:
  std::vector<Tool> reading_;
  std::vector<Tool> changing_;
  std::vector<Tool> searching_;
};

}  // namespace holt
