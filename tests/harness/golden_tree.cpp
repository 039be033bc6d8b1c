#include "harness/golden_tree.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/files.hpp"
#include "holt/base/process.hpp"

#include <fstream>
#include <set>
#include <sys/stat.h>

#include <fmt/format.h>

namespace holt::test {
namespace fs = std::filesystem;
namespace {

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string numbered(const std::string& text, std::size_t n) {
  return replace_all(replace_all(text, "{n}", std::to_string(n)), "{n:04}", fmt::format("{:04}", n));
}

std::string content_of(const Json& entry) {
  if (entry.contains("base64")) return *base64_decode(entry["base64"].get<std::string>());
  if (entry.contains("repeat")) {
    std::string text;
    for (std::size_t n = 1; n <= entry["count"].get<std::size_t>(); ++n) {
      text += numbered(entry["repeat"].get<std::string>(), n);
    }
    return text;
  }
  if (entry.contains("concat")) {
    std::string text;
    for (const auto& part : entry["concat"]) text += content_of(part);
    return text;
  }
  return entry["text"].get<std::string>();
}

void write(const fs::path& path, const std::string& content) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

void make_entry(const Json& entry, const fs::path& directory) {
  fs::path path = directory / entry["path"].get<std::string>();
  fs::create_directories(path.parent_path());
  if (entry.contains("dir")) {
    fs::create_directories(path);
  } else if (entry.contains("symlink")) {
    fs::create_symlink(entry["symlink"].get<std::string>(), path);
  } else if (entry.contains("fifo")) {
    ::mkfifo(path.c_str(), 0644);
  } else if (entry.contains("files")) {
    for (std::size_t n = 1; n <= entry["count"].get<std::size_t>(); ++n) {
      write(directory / numbered(entry["path"].get<std::string>(), n),
            numbered(entry["text"].get<std::string>(), n));
    }
  } else {
    write(path, content_of(entry));
  }
}

void describe_entry(const fs::path& path, const std::string& name, Snapshot& all) {
  auto status = fs::symlink_status(path);
  if (fs::is_symlink(status)) {
    all[name] = "link " + fs::read_symlink(path).string();
  } else if (fs::is_regular_file(status)) {
    std::ifstream file(path, std::ios::binary);
    all[name] = "file " + std::string(std::istreambuf_iterator<char>(file), {});
  } else {
    all[name] = "other";
  }
}

Json change_of(const std::string& state) {
  if (state.starts_with("link ")) return {{"symlink", state.substr(5)}};
  std::string content = state.substr(std::min<std::size_t>(5, state.size()));
  if (!is_utf8(content)) return {{"base64", base64_encode(content, Base64Alphabet::standard)}};
  return {{"text", content}};
}

}  // namespace

void make_tree(const Json& tree, const fs::path& directory) {
  for (const auto& entry : tree) {
    if (!entry.contains("git_init")) continue;
    run_process({.argv = {"git", "init", "-q", directory.string()}, .env = {{"HOME", "/"}}}, {});
  }
  for (const auto& entry : tree) {
    if (entry.contains("path")) make_entry(entry, directory);
  }
  for (const auto& entry : tree) {
    if (!entry.contains("mode")) continue;
    auto mode = static_cast<mode_t>(std::stoul(entry["mode"].get<std::string>(), nullptr, 8));
    ::chmod((directory / entry["path"].get<std::string>()).c_str(), mode);
  }
}

void unlock_tree(const fs::path& directory) {
  std::error_code ignored;
  for (auto entry = fs::recursive_directory_iterator(directory, ignored);
       entry != fs::recursive_directory_iterator(); entry.increment(ignored)) {
    if (entry->is_symlink(ignored) || !entry->is_directory(ignored)) continue;
    fs::permissions(entry->path(), fs::perms::owner_all, fs::perm_options::add, ignored);
  }
}

Snapshot snapshot(const fs::path& directory) {
  Snapshot all;
  std::error_code ignored;
  fs::path parent = directory.parent_path();
  for (auto entry =
           fs::recursive_directory_iterator(parent, fs::directory_options::skip_permission_denied, ignored);
       entry != fs::recursive_directory_iterator(); entry.increment(ignored)) {
    if (entry->path().filename() == ".pydantic-ai-harness" && !entry->is_regular_file(ignored)) {
      entry.disable_recursion_pending();
      continue;
    }
    std::string name = fs::relative(entry->path().parent_path(), directory) / entry->path().filename();
    if (name.starts_with("./")) name.erase(0, 2);
    if (entry->is_directory(ignored) && !entry->is_symlink(ignored)) continue;
    describe_entry(entry->path(), name, all);
  }
  return all;
}

Json changes_between(const Snapshot& before, const Snapshot& after) {
  Json changes = Json::object();
  std::set<std::string> names;
  for (const auto& [name, state] : before) names.insert(name);
  for (const auto& [name, state] : after) names.insert(name);
  for (const auto& name : names) {
    auto was = before.find(name);
    auto is = after.find(name);
    if (is == after.end()) {
      changes[name] = nullptr;
    } else if (was == before.end() || was->second != is->second) {
      changes[name] = change_of(is->second);
    }
  }
  return changes;
}

}  // namespace holt::test
