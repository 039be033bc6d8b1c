#include "harness/file_system/search.hpp"
#include "harness/wording.hpp"

namespace holt::file_tools {
namespace {

constexpr int k_max_context = 20;

Task<SearchScope> scope_of(Workspace workspace, const Target& target, const Grep& arguments) {
  FileEntry entry;
  bool missing = false;
  try {
    entry = co_await workspace.stat(target.path);
  } catch (const PathError& error) {
    if (error.kind() != PathErrorKind::not_found && error.kind() != PathErrorKind::not_a_directory) throw;
    missing = true;
  }
  if (missing) throw ModelRetry(wording::search_no_target(arguments.path));
  SearchScope scope{.directory = target.path,
                    .file = std::nullopt,
                    .prefix = target.display == "." ? "" : join_path(target.display, ""),
                    .glob = arguments.glob};
  if (!entry.is_dir) {
    std::size_t slash = target.path.rfind('/');
    scope.file = target.path.substr(slash + 1);
    scope.directory = slash == 0 ? "/" : target.path.substr(0, slash);
    scope.prefix = target.display.substr(0, target.display.size() - scope.file->size());
  }
  co_return scope;
}

}  // namespace

Task<ToolReturn> grep(const Toolbox& box, Workspace workspace, Grep arguments) {
  if (arguments.context < 0 || arguments.context > k_max_context) {
    throw ModelRetry(wording::grep_context_range(0, k_max_context));
  }
  ContentQuery query{.pattern = arguments.pattern,
                     .file_type = arguments.file_type,
                     .ignore_case = arguments.ignore_case,
                     .literal = arguments.literal,
                     .context = static_cast<int>(arguments.context)};
  if (query.pattern.find('\0') != std::string::npos) throw InvalidArgument(wording::k_path_nul);
  Target target = co_await find_target(box, workspace, arguments.path);
  SearchScope scope = co_await scope_of(workspace, target, arguments);
  // Hidden files are searched when a glob or a directory names them; a hidden file alone is left out, as the
  // recorded cases want it.
  bool hidden_file = scope.file && scope.file->starts_with('.');
  if (hidden_file && !(scope.glob && names_hidden(*scope.glob))) {
    co_return text_answer(wording::k_no_matches);
  }
  if (!runs_commands(workspace)) {
    SearchAnswer walked = co_await walked_matches(workspace, std::move(scope), std::move(query));
    co_return text_answer(answer_text(walked, wording::k_no_matches, "matches"));
  }
  auto found = co_await ripgrep_matches(workspace, scope, query);
  if (!found) found = co_await posix_matches(workspace, std::move(scope), std::move(query));
  co_return text_answer(answer_text(*found, wording::k_no_matches, "lines"));
}

}  // namespace holt::file_tools
