#include "harness/file_system/toolbox.hpp"
#include "harness/text.hpp"
#include "harness/wording.hpp"

#include <fmt/format.h>

namespace holt::file_tools {
namespace {

constexpr std::size_t k_sniffed = 8192;

std::vector<Replacement> wanted_replacements(const EditFile& arguments) {
  bool pair = arguments.old_text && arguments.new_text;
  bool half = arguments.old_text || arguments.new_text;
  if (arguments.replacements) {
    if (half || arguments.replacements->empty()) throw ModelRetry(wording::k_edit_two_forms);
    return *arguments.replacements;
  }
  if (!pair) throw ModelRetry(wording::k_edit_no_form);
  return {{*arguments.old_text, *arguments.new_text}};
}

std::size_t count_matches(std::string_view text, std::string_view wanted) {
  std::size_t count = 0;
  for (std::size_t at = text.find(wanted); at != std::string_view::npos;
       at = text.find(wanted, at + wanted.size())) {
    ++count;
  }
  return count;
}

std::string replaced(std::string text, const std::vector<Replacement>& replacements,
                     const std::string& path) {
  for (std::size_t i = 0; i < replacements.size(); ++i) {
    const auto& [old_text, new_text] = replacements[i];
    std::string label = replacements.size() == 1 ? "old_text" : fmt::format("replacement {}", i + 1);
    if (old_text.empty()) throw ModelRetry(wording::edit_empty(label));
    std::size_t matches = count_matches(text, old_text);
    if (matches == 0) throw ModelRetry(wording::edit_not_found(label, path));
    if (matches > 1) throw ModelRetry(wording::edit_several(label, matches, path));
    text.replace(text.find(old_text), old_text.size(), new_text);
  }
  return text;
}

/// The file as text. A missing one, a directory and one that is too large are retries here.
Task<std::string> text_to_edit(Workspace workspace, const Target& target) {
  std::string bytes;
  try {
    FileEntry entry = co_await workspace.stat(target.path);
    if (entry.size > k_max_file_bytes) throw ModelRetry(wording::read_too_large(k_max_file_bytes));
    bytes = co_await workspace.read_bytes(target.path);
  } catch (const PathError& error) {
    bool no_file = error.kind() == PathErrorKind::not_found ||
                   error.kind() == PathErrorKind::not_a_directory ||
                   error.kind() == PathErrorKind::is_a_directory;
    if (no_file) throw ModelRetry(wording::file_not_found(target.given));
    throw;
  }
  if (std::string_view(bytes).substr(0, k_sniffed).find('\0') != std::string_view::npos) {
    throw ModelRetry(wording::edit_binary(target.given));
  }
  if (auto at = first_invalid_utf8(bytes)) {
    throw ModelRetry(wording::not_utf8(static_cast<unsigned char>(bytes[*at]), *at));
  }
  co_return bytes;
}

}  // namespace

Task<ToolReturn> edit_file(const Toolbox& box, Workspace workspace, EditFile arguments) {
  std::vector<Replacement> replacements = wanted_replacements(arguments);
  Target target = co_await find_target(box, workspace, arguments.path);
  refuse_protected(box, target);
  // Two edits of one file in one response both count.
  auto turn = co_await box.locks.lock(target.real);
  std::string text = co_await text_to_edit(workspace, target);
  co_await workspace.write_bytes(target.path, replaced(std::move(text), replacements, arguments.path));
  co_return text_answer(wording::edit_done(arguments.path));
}

}  // namespace holt::file_tools
