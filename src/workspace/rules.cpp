#include "holt/workspace/rules.hpp"

#include <cerrno>

#include <fmt/format.h>

namespace holt {
namespace {

constexpr std::size_t k_argument_limit = 131072;

bool holds_nul(const std::string& text) {
  return text.find('\0') != std::string::npos;
}

}  // namespace

void check_command(const WorkspaceCommand& command) {
  std::vector<std::string> argv = command.argv();
  if (argv.empty()) throw InvalidArgument("A command needs a program");
  for (const auto& argument : argv) {
    if (holds_nul(argument)) throw InvalidArgument("embedded null byte");
    if (argument.size() >= k_argument_limit) throw PathError(E2BIG, argv[0]);
  }
}

void check_timeout(const CommandOptions& options) {
  if (options.timeout && *options.timeout <= Duration::zero()) {
    throw InvalidArgument("The timeout of a command must be above zero");
  }
}

void check_environment(const std::map<std::string, std::string>& env) {
  for (const auto& [name, value] : env) {
    if (name.empty() || name.find('=') != std::string::npos || holds_nul(name)) {
      throw InvalidArgument(fmt::format("'{}' cannot name an environment variable", printable(name)));
    }
    if (holds_nul(value)) {
      throw InvalidArgument(fmt::format("The environment variable {} holds a NUL", printable(name)));
    }
  }
}

void check_backend_path(const std::string& path) {
  if (!path.starts_with('/')) throw InvalidArgument("A backend's path must be absolute: " + printable(path));
  if (holds_nul(path)) throw InvalidArgument("embedded null byte");
}

std::string seconds_text(Duration duration) {
  std::string text = fmt::format("{:.9f}", std::chrono::duration<double>(duration).count());
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace holt
