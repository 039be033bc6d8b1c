#include "harness/file_system/search.hpp"
#include "harness/wording.hpp"

namespace holt::file_tools {
namespace {

Task<bool> is_directory(Workspace workspace, const Target& target) {
  try {
    FileEntry entry = co_await workspace.stat(target.path);
    co_return entry.is_dir;
  } catch (const PathError& error) {
    if (error.kind() != PathErrorKind::not_found && error.kind() != PathErrorKind::not_a_directory) throw;
  }
  co_return false;
}

}  // namespace

Task<ToolReturn> list_files(const Toolbox& box, Workspace workspace, ListFiles arguments) {
  Target target = co_await find_target(box, workspace, arguments.path);
  if (!co_await is_directory(workspace, target)) {
    throw ModelRetry(wording::search_not_directory(arguments.path));
  }
  SearchScope scope{.directory = target.path,
                    .file = std::nullopt,
                    .prefix = target.display == "." ? "" : join_path(target.display, ""),
                    .glob = arguments.glob};
  if (!runs_commands(workspace)) {
    SearchAnswer walked = co_await walked_files(workspace, std::move(scope));
    co_return text_answer(answer_text(walked, wording::k_no_matches, "matches"));
  }
  auto found = co_await ripgrep_files(workspace, scope);
  if (!found) found = co_await posix_files(workspace, std::move(scope));
  co_return text_answer(answer_text(*found, wording::k_no_files, "files"));
}

}  // namespace holt::file_tools
