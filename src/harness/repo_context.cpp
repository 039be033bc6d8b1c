#include "holt/harness/repo_context.hpp"

#include "holt/agent/run_context.hpp"
#include "holt/base/encoding.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace holt {
namespace {

constexpr std::size_t k_max_bytes = std::size_t{1} << 20;

struct ContextFile {
  std::string name;
  std::string real;
  std::string content;
};

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/// Length of a closing tag of the block at `at`, in any case and spacing, without its '<'; 0 for other text.
bool closes_block(std::string_view text, std::size_t at) {
  auto skip_spaces = [&] {
    while (at < text.size() && is_space(text[at])) ++at;
  };
  ++at;
  skip_spaces();
  if (at >= text.size() || text[at] != '/') return false;
  ++at;
  skip_spaces();
  constexpr std::string_view name = "context-file";
  std::string_view found = text.substr(at, name.size());
  bool same = std::ranges::equal(
      found, name, {}, [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (!same) return false;
  at += name.size();
  return at == text.size() || text[at] == '>' || text[at] == '/' || is_space(text[at]);
}

/// The content cannot end its own block.
std::string escaped(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '<' && closes_block(text, at)) {
      out += "&lt;";
    } else {
      out += text[at];
    }
  }
  return out;
}

std::string escaped_attribute(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// A file of the working directory; nothing for what is missing, a directory, elsewhere or unreadable.
Task<std::optional<ContextFile>> context_file(Workspace workspace, std::string directory, std::string name) {
  try {
    std::string real = co_await workspace.realpath(join_path(directory, name));
    if (real.substr(0, real.rfind('/')) != (directory == "/" ? "" : directory)) co_return std::nullopt;
    FileEntry entry = co_await workspace.stat(real);
    if (entry.is_dir || entry.size.value_or(0) > k_max_bytes) co_return std::nullopt;
    std::string content = utf8_replace(co_await workspace.read_bytes(real));
    while (content.ends_with('\n') || content.ends_with('\r')) content.pop_back();
    co_return ContextFile{real.substr(real.rfind('/') + 1), real, std::move(content)};
  } catch (const PathError&) {
  }
  co_return std::nullopt;
}

}  // namespace

Task<std::optional<std::string>> repo_context_text(Workspace workspace) {
  std::string directory = co_await workspace.working_dir();
  std::vector<ContextFile> files;
  for (const char* name : {"CLAUDE.md", "AGENTS.md"}) {
    auto file = co_await context_file(workspace, directory, name);
    if (!file) continue;
    bool known = std::ranges::any_of(files, [&](const ContextFile& other) {
      return other.real == file->real || other.content == file->content;
    });
    if (!known) files.push_back(std::move(*file));
  }
  if (files.empty()) co_return std::nullopt;
  std::string text;
  for (const auto& file : files) {
    text += fmt::format("{}<context-file path=\"{}\">\n{}\n</context-file>", text.empty() ? "" : "\n\n",
                        escaped_attribute(file.name), escaped(file.content));
  }
  co_return text;
}

Instructions RepoContext::instructions() const {
  auto text = [](const RunContext& context) { return repo_context_text(context.workspace()); };
  return Instructions(Instruction(text, "capability:repo_context"));
}

}  // namespace holt
