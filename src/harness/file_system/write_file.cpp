#include "harness/file_system/toolbox.hpp"
#include "harness/text.hpp"
#include "harness/wording.hpp"
#include "holt/base/encoding.hpp"

namespace holt::file_tools {
namespace {

/// What stands at a path before it is written.
Task<std::optional<FileEntry>> entry_at(Workspace workspace, std::string path) {
  try {
    co_return co_await workspace.stat(path);
  } catch (const PathError& error) {
    if (error.kind() != PathErrorKind::not_found && error.kind() != PathErrorKind::not_a_directory) throw;
  }
  co_return std::nullopt;
}

std::string parent_of(const std::string& path) {
  std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

/// Parents are not made: a wrong path should be heard of, not become a folder.
Task<void> require_parent(Workspace workspace, const Target& target) {
  std::string parent = parent_of(target.real);
  bool missing = false;
  try {
    FileEntry entry = co_await workspace.stat(parent);
    if (!entry.is_dir) throw ModelRetry(wording::write_parent_not_directory(target.given));
  } catch (const PathError& error) {
    if (error.kind() == PathErrorKind::not_a_directory) {
      throw ModelRetry(wording::write_parent_not_directory(target.given));
    }
    if (error.kind() != PathErrorKind::not_found) throw;
    missing = true;
  }
  if (!missing) co_return;
  std::size_t slash = target.relative.rfind('/');
  throw ModelRetry(
      wording::write_no_parent(slash == std::string::npos ? "." : target.relative.substr(0, slash)));
}

}  // namespace

Task<ToolReturn> write_file(const Toolbox& box, Workspace workspace, WriteFile arguments) {
  Target target = co_await find_target(box, workspace, arguments.path);
  refuse_protected(box, target);
  auto turn = co_await box.locks.lock(target.real);
  auto entry = co_await entry_at(workspace, target.path);
  if (entry && entry->is_dir) throw ModelRetry(wording::write_not_regular(arguments.path));
  if (!entry) co_await require_parent(workspace, target);
  co_await workspace.write_bytes(target.path, arguments.content);
  co_return text_answer(
      wording::write_done(arguments.path, utf8_length(arguments.content), count_lines(arguments.content)));
}

}  // namespace holt::file_tools
