#include "image/registry/credential_helper.hpp"

#include "holt/base/error.hpp"
#include "holt/base/json.hpp"
#include "holt/base/process.hpp"

#include <algorithm>
#include <map>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr Duration k_helper_time = std::chrono::seconds(30);
constexpr std::size_t k_helper_output = std::size_t{64} << 10;
constexpr std::size_t k_helper_name = 64;
constexpr std::string_view k_not_found = "credentials not found";

[[noreturn]] void fail(const std::string& name, const std::string& registry, const std::string& reason) {
  throw Error(
      ErrorCode::unauthorized,
      fmt::format("ask the credential helper {} for {}: {}", printable(name, k_helper_name), registry,
                  reason),
      {.subject = registry, .hint = "Run docker-credential-NAME get yourself to see what is wrong with it."});
}

bool is_helper_name(const std::string& name) {
  return !name.empty() && name.size() <= k_helper_name && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

/// Only in absolute folders: the working folder is nobody's choice.
std::string find_on_path(const std::string& program, const std::string& path) {
  for (std::size_t at = 0; at <= path.size();) {
    std::size_t end = std::min(path.find(':', at), path.size());
    std::string candidate = path.substr(at, end - at) + "/" + program;
    if (candidate.front() == '/' && end > at && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    at = end + 1;
  }
  return {};
}

std::map<std::string, std::string> whole_environment() {
  std::map<std::string, std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view text(*entry);
    if (auto equals = text.find('='); equals != std::string_view::npos) {
      out.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return out;
}

std::string text_of(const Json& object, const char* key) {
  auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

}  // namespace

std::optional<Credentials> ask_credential_helper(const std::string& name, const std::string& registry,
                                                 const Surroundings& surroundings,
                                                 const std::optional<CancellationToken>& cancel) {
  if (!is_helper_name(name)) fail(name, registry, "this is no name of a helper");
  std::string program = find_on_path("docker-credential-" + name,
                                     surroundings.environment("PATH").value_or("/usr/local/bin:/usr/bin"));
  if (program.empty()) fail(name, registry, "there is no such program on the PATH");
  ProcessResult result;
  try {
    result = run_process({.argv = {program, "get"}, .env = whole_environment()},
                         {.deadline = Deadline::after(k_helper_time),
                          .output_limit = k_helper_output,
                          .input = registry,
                          .cancel = cancel});
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    fail(name, registry, fmt::format("it could not be run to its end ({})", to_string(error.code())));
  }
  if (result.status.shell_code() != 0) {
    // What it printed may be a secret: only the one sentence of the protocol is looked for.
    if (result.out.find(k_not_found) != std::string::npos) return std::nullopt;
    fail(name, registry, fmt::format("it ended with {}", result.status.shell_code()));
  }
  auto answer = parse_json(result.out);
  if (!answer || !answer->is_object()) fail(name, registry, "its answer is no JSON object");
  std::string user = text_of(*answer, "Username");
  std::string secret = text_of(*answer, "Secret");
  if (secret.empty()) return std::nullopt;
  if (user == "<token>") return Credentials{.user = {}, .password = {}, .identity_token = secret};
  return Credentials{.user = user, .password = secret, .identity_token = {}};
}

}  // namespace holt::image
