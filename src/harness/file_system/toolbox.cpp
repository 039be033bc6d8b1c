#include "harness/file_system/toolbox.hpp"

#include "harness/wording.hpp"

#include <algorithm>
#include <cerrno>

namespace holt::file_tools {
namespace {

// NAME_MAX and PATH_MAX of Linux: a path over them names no file anywhere.
constexpr std::size_t k_name_limit = 255;
constexpr std::size_t k_path_limit = 4095;

void refuse_too_long(const std::string& path) {
  std::size_t longest = 0;
  for (std::size_t at = 0; at < path.size();) {
    std::size_t end = std::min(path.find('/', at), path.size());
    longest = std::max(longest, end - at);
    at = end + 1;
  }
  if (longest > k_name_limit || path.size() > k_path_limit) throw PathError(ENAMETOOLONG, path);
}

std::string below(const std::string& path, const std::string& directory) {
  if (path == directory) return ".";
  return path.substr(directory == "/" ? 1 : directory.size() + 1);
}

struct RootWords {
  std::string name;
  std::string inside;
};
RootWords root_words(const Toolbox& box, const std::string& root) {
  if (!box.root_dir) return {"the project root", "the project"};
  return {"root_dir", "`" + root + "`"};
}

/// A path error as a model may see it: no path outside the root is shown.
[[noreturn]] void throw_for_model(const PathError& error, const std::string& root) {
  switch (error.kind()) {
    case PathErrorKind::not_regular:
      throw ModelRetry(wording::k_path_not_regular);
    case PathErrorKind::other:
      break;
    default: {
      bool inside = !root.empty() && is_below(error.path(), root);
      std::string shown = inside ? below(error.path(), root) : "<outside-workspace>";
      throw ModelRetry(wording::path_error(error.error_number(), error.reason(), shown));
    }
  }
  switch (error.error_number()) {
    case ENAMETOOLONG:
      throw ModelRetry(wording::k_path_name_too_long);
    case ELOOP:
      throw ModelRetry(wording::k_path_link_loop);
    case EILSEQ:
      throw ModelRetry(wording::k_path_bad_name);
    default:
      throw error;
  }
}

std::string class_name(const WorkspaceError& error) {
  if (dynamic_cast<const WorkspaceTimeoutError*>(&error) != nullptr) return "WorkspaceTimeoutError";
  if (dynamic_cast<const WorkspaceOutputLimitError*>(&error) != nullptr) return "WorkspaceOutputLimitError";
  return "WorkspaceError";
}

}  // namespace

Task<Target> find_target(const Toolbox& box, Workspace workspace, std::string given) {
  if (given.find('\0') != std::string::npos) throw InvalidArgument(wording::k_path_nul);
  std::string directory = co_await workspace.working_dir();
  Target target;
  target.given = given;
  target.root = directory;
  if (box.root_dir) target.root = co_await workspace.realpath(*box.root_dir);
  target.path = normalize_path(join_path(directory, given));
  RootWords words = root_words(box, target.root);
  if (!is_below(target.path, target.root)) {
    throw ModelRetry(wording::path_outside(target.path, words.name, target.root, words.inside));
  }
  refuse_too_long(target.path);
  target.real = co_await workspace.realpath(target.path);
  if (!is_below(target.real, target.root)) {
    throw ModelRetry(wording::path_link_outside(given, words.name, target.root, words.inside));
  }
  target.relative = below(target.path, target.root);
  target.real_relative = below(target.real, target.root);
  target.display = is_below(target.path, directory) ? below(target.path, directory) : target.path;
  co_return target;
}

void refuse_protected(const Toolbox& box, const Target& target) {
  for (const std::string* path : {&target.relative, &target.real_relative}) {
    if (const std::string* pattern = box.protection.protects(*path)) {
      throw ModelRetry(wording::path_protected(*path, *pattern));
    }
  }
}

Task<ToolReturn> guard(const Toolbox& box, Workspace workspace, Task<ToolReturn> work) {
  std::optional<PathError> path_error;
  try {
    co_return co_await std::move(work);
  } catch (const PathError& error) {
    path_error = error;
  } catch (const InvalidArgument& error) {
    if (std::string_view(error.what()) != wording::k_path_nul) throw;
    throw ModelRetry(error.what());
  } catch (const WorkspaceUnavailableError&) {
    throw;
  } catch (const WorkspaceReadOnlyError&) {
    throw ToolFailed(wording::k_read_only);
  } catch (const WorkspaceError& error) {
    std::string text = error.what();
    throw ToolFailed(text.empty() ? wording::workspace_failed(class_name(error)) : text);
  }
  std::string root = co_await workspace.working_dir();
  if (box.root_dir) root = *box.root_dir;
  throw_for_model(*path_error, root);
}

}  // namespace holt::file_tools
