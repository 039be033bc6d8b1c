#include "holt/agent/local_workspace.hpp"

#include "holt/workspace/local.hpp"
#include "holt/workspace/wrappers.hpp"

namespace holt {

LocalWorkspace::LocalWorkspace(const std::string& working_dir, LocalWorkspaceSettings settings)
    : settings_(std::move(settings)) {
  // Made absolute now: the process may change its directory before the run.
  working_dir_ = LocalWorkspaceBackend(working_dir, {.env = settings_.env}).ref()->id;
}

WorkspaceBackendPtr LocalWorkspace::get_workspace(const RunContext&,
                                                  const std::optional<WorkspaceRef>& ref) const {
  WorkspaceBackendPtr backend =
      std::make_shared<LocalWorkspaceBackend>(working_dir_, LocalWorkspaceOptions{.env = settings_.env});
  if (ref && backend->ref() != ref) return nullptr;
  if (settings_.read_only) return std::make_shared<ReadOnlyWorkspace>(Workspace(std::move(backend)));
  return backend;
}

}  // namespace holt
