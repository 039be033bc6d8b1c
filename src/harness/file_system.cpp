#include "holt/harness/file_system.hpp"

#include "harness/file_system/toolbox.hpp"
#include "holt/agent/run_context.hpp"

namespace holt {
namespace {

using namespace file_tools;

/// A tool of `run`, on the workspace of whatever run calls it.
template <class Arguments>
Tool file_tool(std::shared_ptr<const Toolbox> box, int max_retries, const std::string& name,
               std::string description, Task<ToolReturn> (*run)(const Toolbox&, Workspace, Arguments)) {
  ToolOptions options;
  options.max_retries = max_retries;
  options.tool_kind = "file_system." + name;
  auto call = [box = std::move(box), run](RunContext& context, Arguments arguments) {
    return guard(*box, context.workspace(), run(*box, context.workspace(), std::move(arguments)));
  };
  return tool(name, std::move(description), std::move(call), std::move(options));
}

}  // namespace

FileSystem::FileSystem(FileSystemOptions options) {
  if (options.root_dir && !options.root_dir->starts_with('/')) {
    throw UserError("root_dir must be an absolute path, not " + *options.root_dir);
  }
  auto box = std::make_shared<Toolbox>();
  box->root_dir = options.root_dir;
  box->protection = WriteProtection(options.read_only_patterns.value_or(WriteProtection::default_patterns()));
  box->max_read_chars = options.max_read_chars;
  int retries = options.max_retries;
  reading_ = {file_tool<ReadFile>(
      box, retries, "read_file",
      "Show a text file with numbered lines, or return an image or PDF as a file. The answer starts with a "
      "header naming the path and the line count; any other binary file is answered with its size, media "
      "type and first bytes in hex.",
      &read_file)};
  changing_ = {
      file_tool<WriteFile>(box, retries, "write_file",
                           "Write a text file: a new one, or the full replacement of an existing one.",
                           &write_file),
      file_tool<EditFile>(
          box, retries, "edit_file",
          "Change a file by replacing exact text. Give one old_text/new_text pair or a list of replacements; "
          "each old_text has to be found once, and only once, in the text left by the replacements before "
          "it, "
          "so add surrounding lines where needed. Nothing is written unless all of them match.",
          &edit_file)};
  searching_ = {file_tool<ListFiles>(box, retries, "list_files",
                                     "List the files below a directory, recursively and sorted by path; "
                                     "ignored and hidden files are left "
                                     "out. Each line is one path, seen from the working directory.",
                                     &list_files),
                file_tool<Grep>(box, retries, "grep",
                                "Search file contents; ignored and hidden files are left out. A match is "
                                "shown as file:line:text, a "
                                "context line as file-line-text; paths are seen from the working directory.",
                                &grep)};
}

std::vector<Tool> FileSystem::tools(const RunContext& context) const {
  std::vector<Tool> tools = reading_;
  if (!context.workspace().read_only()) tools.insert(tools.end(), changing_.begin(), changing_.end());
  tools.insert(tools.end(), searching_.begin(), searching_.end());
  return tools;
}

}  // namespace holt
