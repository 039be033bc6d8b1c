#include "image/ext4_reader.hpp"

#include "holt/base/process.hpp"

#include <algorithm>
#include <sstream>

namespace holt::image::test {
namespace {

ProcessResult run(std::vector<std::string> argv) {
  return run_process(
      {.argv = std::move(argv), .env = {{"PATH", "/usr/sbin:/usr/bin:/sbin:/bin"}, {"TZ", "UTC"}}},
      {.deadline = Deadline::after(std::chrono::seconds(60)), .output_limit = std::size_t{64} << 20});
}

}  // namespace

std::string debugfs(const std::filesystem::path& ext4, const std::string& command) {
  return run({"/sbin/debugfs", "-R", command, ext4.string()}).out;
}

std::string content_of(const std::filesystem::path& ext4, const std::string& path) {
  return debugfs(ext4, "cat \"" + path + "\"");
}

std::string stat_field(const std::filesystem::path& ext4, const std::string& path, const std::string& field) {
  std::string text = debugfs(ext4, "stat \"" + path + "\"");
  std::size_t at = text.find(field + ":");
  if (at == std::string::npos) return "no field " + field + " in: " + text;
  std::istringstream words(text.substr(at + field.size() + 1));
  std::string word;
  words >> word;
  return word;
}

std::vector<std::string> names_in(const std::filesystem::path& ext4, const std::string& path) {
  // ls -p prints /inode/mode/uid/gid/name/size/
  std::istringstream lines(debugfs(ext4, "ls -p \"" + path + "\""));
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream parts(line);
    std::string part;
    for (int i = 0; i <= 5; ++i) std::getline(parts, part, '/');
    if (!part.empty() && part != "." && part != "..") names.push_back(part);
  }
  std::ranges::sort(names);
  return names;
}

CheckResult check(const std::filesystem::path& ext4) {
  auto result = run({"/sbin/e2fsck", "-fn", ext4.string()});
  return {result.status.shell_code(), result.out + result.err};
}

}  // namespace holt::image::test
