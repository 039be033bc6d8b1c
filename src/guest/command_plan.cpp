#include "guest/command.hpp"
#include "guest/paths.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace holt::guest {
namespace {

constexpr std::string_view k_default_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr std::string_view k_shell = "/bin/sh";
constexpr std::uint32_t k_last_signal = 64;

bool has_nul(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

Outcome<> set_variable(std::vector<protocol::Variable>& env, const protocol::Variable& variable) {
  if (variable.name.empty() || variable.name.find('=') != std::string::npos || has_nul(variable.name)) {
    return refuse(ErrorCode::invalid_config,
                  "the name of an environment variable is empty or holds '=' or NUL", variable.name);
  }
  if (has_nul(variable.value)) {
    return refuse(ErrorCode::invalid_config,
                  "the value of environment variable " + variable.name + " holds NUL", variable.name);
  }
  auto found = std::ranges::find(env, variable.name, &protocol::Variable::name);
  if (found == env.end()) {
    env.push_back(variable);
  } else {
    found->value = variable.value;
  }
  return {};
}

const std::string* find_variable(const std::vector<protocol::Variable>& env, std::string_view name) {
  auto found = std::ranges::find(env, name, &protocol::Variable::name);
  return found == env.end() ? nullptr : &found->value;
}

Outcome<std::vector<protocol::Variable>> make_environment(const protocol::ExecRequest& request,
                                                          const CommandDefaults& defaults,
                                                          const Identity& user) {
  std::vector<protocol::Variable> env = {{"PATH", std::string(k_default_path)}, {"HOME", user.home}};
  if (request.terminal) env.push_back({"TERM", "xterm-256color"});
  for (const auto* layer : {&defaults.env, &request.env}) {
    for (const auto& variable : *layer) {
      if (auto set = set_variable(env, variable); !set) return std::unexpected(set.error());
    }
  }
  return env;
}

/// In setrlimit's terms.
std::vector<std::pair<int, rlimit>> find_limits(const protocol::CommandLimits& limits) {
  std::vector<std::pair<int, rlimit>> list;
  auto add = [&](int resource, const std::optional<std::uint64_t>& value, rlim_t margin = 0) {
    if (!value) return;
    rlim_t soft = std::min<rlim_t>(*value, RLIM_INFINITY - 1 - margin);
    list.emplace_back(resource, rlimit{.rlim_cur = soft, .rlim_max = soft + margin});
  };
  // The soft limit's signal says why, the hard one's would be a bare SIGKILL.
  add(RLIMIT_CPU, limits.cpu_seconds, 1);
  add(RLIMIT_FSIZE, limits.file_bytes);
  add(RLIMIT_NOFILE, limits.open_files);
  add(RLIMIT_CORE, limits.core_bytes);
  return list;
}

/// As execvp: each folder of PATH in turn, an empty one is the working folder.
std::vector<std::string> find_candidates(const std::string& program, const std::string* path) {
  if (program.find('/') != std::string::npos) return {program};
  std::vector<std::string> candidates;
  std::string_view rest = path == nullptr ? k_default_path : std::string_view(*path);
  while (true) {
    auto end = rest.find(':');
    auto folder = rest.substr(0, end);
    candidates.push_back(folder.empty() ? program : std::string(folder) + "/" + program);
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return candidates;
}

}  // namespace

Outcome<SpawnPlan> plan_command(const protocol::ExecRequest& request, const CommandDefaults& defaults) {
  bool has_script = request.script.has_value();
  if (has_script == !request.argv.empty()) {
    return refuse(ErrorCode::invalid_config, "a command is either a list of arguments or a script");
  }
  if (request.timeout_ms && *request.timeout_ms <= 0) {
    return refuse(ErrorCode::invalid_config, "the timeout of a command is not above 0");
  }
  if (request.stop_signal > k_last_signal) {
    return refuse(ErrorCode::invalid_config, "the stop signal of a command is not 1 to 64");
  }
  SpawnPlan plan;
  plan.argv =
      has_script ? std::vector<std::string>{std::string(k_shell), "-c", *request.script} : request.argv;
  if (std::ranges::any_of(plan.argv, has_nul)) {
    return refuse(ErrorCode::invalid_config, "an argument of the command holds NUL");
  }
  if (plan.argv[0].empty()) return refuse(ErrorCode::invalid_config, "the name of the program is empty");
  auto user = find_user(request.user.empty() ? defaults.user : request.user);
  if (!user) return std::unexpected(user.error());
  plan.user = std::move(*user);
  auto env = make_environment(request, defaults, plan.user);
  if (!env) return std::unexpected(env.error());
  if (request.limits) plan.limits = find_limits(*request.limits);
  plan.candidates = find_candidates(plan.argv[0], find_variable(*env, "PATH"));
  for (const auto& variable : *env) plan.env.push_back(variable.name + "=" + variable.value);
  auto cwd = request.cwd.empty() ? Outcome<std::string>(defaults.working_dir)
                                 : absolute_path(request.cwd, defaults.working_dir);
  if (!cwd) return std::unexpected(cwd.error());
  plan.cwd = std::move(*cwd);
  return plan;
}

}  // namespace holt::guest
