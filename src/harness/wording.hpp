// Every sentence of the harness's tools and workspaces that a model, a history or an error shows. The words
// are fixed: histories and recorded cases hold them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace holt::wording {

// Paths of the file tools.

/// `root_name` and `inside`: "the project root" and "the project", or words for a root of the program's own.
inline std::string path_outside(std::string_view path, std::string_view root_name, std::string_view root,
                                std::string_view inside) {
  return fmt::format(
      "`{}` lies outside {} `{}`, and the file tools do not leave it. Bring it into {}, or reach it with a "
      "shell tool.",
      path, root_name, root, inside);
}
inline std::string path_link_outside(std::string_view path, std::string_view root_name, std::string_view root,
                                     std::string_view inside) {
  return fmt::format(
      "`{}` goes through a symlink out of {} `{}`, and the file tools do not leave it. Take a path in {}, or "
      "a "
      "shell tool.",
      path, root_name, root, inside);
}
inline std::string path_protected(std::string_view path, std::string_view pattern) {
  return fmt::format("'{}' is write-protected by the pattern '{}'.", path, pattern);
}
inline constexpr const char* k_path_name_too_long = "Path name too long.";
inline constexpr const char* k_path_link_loop = "This path runs into a symlink loop.";
inline constexpr const char* k_path_not_regular = "This is a FIFO, socket or device; name a regular file.";
inline constexpr const char* k_path_bad_name = "This name holds bytes that the file system cannot store.";
inline constexpr const char* k_path_nul = "embedded null byte";
inline std::string path_error(int error_number, std::string_view reason, std::string_view path) {
  return fmt::format("[Errno {}] {}: '{}'", error_number, reason, path);
}

// read_file.

inline constexpr const char* k_read_offset_negative = "offset must be 0 or more.";
inline constexpr const char* k_read_limit_low = "limit must be 1 or more.";
inline std::string path_not_found(std::string_view path) {
  return fmt::format("Path not found: {}", path);
}
inline std::string read_more_lines(std::size_t rest, std::size_t next) {
  return fmt::format("... ({} more lines; read on with offset={})", rest, next);
}
inline std::string read_offset_past_end(std::int64_t offset, std::size_t lines) {
  return fmt::format("offset {} is past the end of the file ({} lines).", offset, lines);
}
/// `chars` with thousands commas.
inline std::string read_line_too_wide(std::size_t line, std::string_view chars, std::size_t next) {
  return fmt::format(
      "... (line {} has {} characters, too many to show; skip it with offset={}, or look at a part of it "
      "with "
      "a shell tool)",
      line, chars, next);
}
inline constexpr const char* k_read_binary = "Binary; it starts with these bytes:";
inline std::string read_more_bytes(std::size_t rest) {
  return fmt::format("... ({} more bytes)", rest);
}
inline std::string read_too_large(std::size_t max) {
  return fmt::format("Too large to read (at most {} bytes); take a part of it with grep or a shell tool.",
                     max);
}
inline std::string read_media_too_large(std::size_t max) {
  return fmt::format("Too large to show (at most {} bytes).", max);
}
inline constexpr const char* k_empty_file = "(empty file)";

// write_file and edit_file.

inline std::string write_not_regular(std::string_view path) {
  return fmt::format("'{}' is there already and is no regular file.", path);
}
inline std::string write_no_parent(std::string_view parent) {
  return fmt::format("The parent directory '{}' is missing; make it first.", parent);
}
inline std::string write_parent_not_directory(std::string_view path) {
  return fmt::format("A parent of '{}' is no directory.", path);
}
inline std::string write_done(std::string_view path, std::size_t chars, std::size_t lines) {
  return fmt::format("Wrote {} ({} chars, {} lines).", path, chars, lines);
}
inline constexpr const char* k_edit_no_form =
    "Give old_text with new_text, or replacements with at least one item.";
inline constexpr const char* k_edit_two_forms =
    "Give either old_text with new_text, or replacements with at least one item, but only one of the two.";
inline std::string file_not_found(std::string_view path) {
  return fmt::format("File not found: {}", path);
}
inline std::string edit_binary(std::string_view path) {
  return fmt::format("{} is binary; edit_file changes text only.", path);
}
inline std::string not_utf8(unsigned byte, std::size_t position) {
  return fmt::format("not UTF-8: byte 0x{:02x} at position {}", byte, position);
}
inline std::string edit_empty(std::string_view label) {
  return fmt::format("{} is empty; give the exact text to replace.", label);
}
inline std::string edit_not_found(std::string_view label, std::string_view path) {
  return fmt::format("{} does not occur in {}; the file is unchanged.", label, path);
}
inline std::string edit_several(std::string_view label, std::size_t count, std::string_view path) {
  return fmt::format(
      "{} occurs {} times in {}; add neighbouring lines until it is unique. The file is unchanged.", label,
      count, path);
}
inline std::string edit_done(std::string_view path) {
  return fmt::format("Edited {}.", path);
}

// list_files and grep.

inline constexpr const char* k_no_files = "No files found.";
inline constexpr const char* k_no_matches = "No matches found.";
inline std::string search_not_directory(std::string_view path) {
  return fmt::format("'{}' is no directory.", path);
}
inline std::string search_no_target(std::string_view path) {
  return fmt::format("'{}' names neither file nor directory.", path);
}
inline std::string search_truncated(std::size_t count, std::string_view what) {
  return fmt::format("[... truncated at {} {}]", count, what);
}
inline std::string grep_context_range(int min, int max) {
  return fmt::format("context may be {} to {}.", min, max);
}
inline std::string search_unreadable(std::size_t count, std::string_view reason, std::string_view names) {
  return fmt::format("[{} {} unreadable ({}): {}]", count, count == 1 ? "path" : "paths", reason, names);
}
inline std::string search_hidden(std::size_t count) {
  return fmt::format("[{} hidden entries left out; to see one, name its path]", count);
}
inline std::string search_walk_cut(std::size_t directories, std::size_t entries) {
  return fmt::format("[... stopped after {} directories or {} entries; search a smaller path]", directories,
                     entries);
}
inline std::string search_skipped(std::size_t count, std::string_view names) {
  return fmt::format("[{} files passed over, too large or unreadable: {}]", count, names);
}
inline std::string ripgrep_failed(std::string_view text) {
  return fmt::format("ripgrep failed: {}", text);
}
inline std::string posix_search_failed(std::string_view text) {
  return fmt::format("POSIX search failed: {}", text);
}
inline std::string grep_bad_regex(std::string_view error) {
  return fmt::format("Bad regex: {}", error);
}
inline constexpr const char* k_grep_needs_rg =
    "POSIX grep cannot run this regex, only ripgrep can. Search with literal=true, or install rg.";
inline constexpr const char* k_grep_type_needs_rg =
    "`file_type` works with ripgrep only, and this workspace has none; select files with `glob`.";
inline constexpr const char* k_grep_no_context =
    "This workspace runs no search command and so has no context lines. Search with `context=0`, then read "
    "around a match with `read_file` and `offset`.";
inline constexpr const char* k_grep_nested_repeat =
    "The regex repeats what is a repetition already, like `(a+)+`; a search with it might not end. Write it "
    "flat, like `a+`.";

// shell.

inline constexpr const char* k_shell_nul = "The command holds a NUL byte; no process can be given that.";
inline std::string shell_timeout_range(int max) {
  return fmt::format("timeout must be above 0 and no more than {} seconds.", max);
}
inline std::string shell_handles(std::string_view pid, std::string_view kill) {
  return fmt::format("PID: {} (`{}` stops the job and all its processes)", pid, kill);
}
inline std::string shell_log_cut(std::uint64_t count) {
  return fmt::format("[... {} earlier bytes left out]", count);
}
inline constexpr const char* k_shell_too_long =
    "Too long for a command line. Store it as a script, with a file tool or piece by piece, and run that.";
inline std::string shell_folder_is_link(std::string_view folder) {
  return fmt::format("Not using `{}`: it is a symlink.", folder);
}
inline std::string shell_folder_failed(std::string_view folder, std::string_view reason) {
  return fmt::format("Could not make `{}`: {}", folder, reason);
}
inline constexpr const char* k_shell_pending =
    "The background command is still starting; repeat the call under this tool call ID.";
inline std::string shell_launcher_failed(int code, std::string_view error) {
  return fmt::format("The job's supervisor ended with {}: {}", code, error);
}
inline constexpr const char* k_shell_no_background =
    "Background mode comes with a later version of this tool. Run the command in the foreground; one that "
    "should go on can be started with `nohup COMMAND > FILE 2>&1 &`.";

// Any tool.

inline constexpr const char* k_read_only = "Nothing changed: this workspace is read-only.";
inline std::string workspace_failed(std::string_view error_class) {
  return fmt::format("Workspace failure ({}).", error_class);
}
inline std::string tool_output_cut(std::string_view omitted, std::string_view total, std::string_view head,
                                   std::string_view tail) {
  return fmt::format("[{} of {} chars left out here, between the first {} and the last {}]", omitted, total,
                     head, tail);
}

// SmolSandbox.

inline std::string smol_number(std::string_view name, std::int64_t value) {
  return fmt::format("{} must be None or a whole number above 0, not {}.", name, value);
}
inline std::string smol_working_dir(std::string_view value) {
  return fmt::format("working_dir must be None or an absolute path, not {}.", value);
}
inline std::string smol_provider(std::string_view provider) {
  return fmt::format("workspace provider '{}' is not 'smol'", provider);
}
inline std::string smol_no_working_dir(std::string_view directory, std::string_view id,
                                       std::string_view reason) {
  return fmt::format("No working_dir '{}' in smol VM {}: {}", directory, id, reason);
}
inline std::string smol_gone(std::string_view id) {
  return fmt::format("smol VM '{}' is gone", id);
}
inline std::string smol_no_host(std::string_view code, std::string_view reason) {
  return fmt::format("No local smol VM on this host ({}): {}", code, reason);
}
inline std::string smol_not_running(std::string_view id, std::string_view state) {
  return fmt::format("smol VM '{}' does not run but is {}; someone stopped or deleted it.", id, state);
}
inline std::string smol_timeout(std::string_view seconds) {
  return fmt::format("Command stopped at its timeout of {} seconds", seconds);
}

}  // namespace holt::wording
