#include "holt/workspace/local.hpp"

#include "holt/workspace/rules.hpp"
#include "workspace/local_command.hpp"
#include "workspace/local_files.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <sys/stat.h>

namespace holt {
namespace {

/// All that a command gets of this process's environment.
constexpr std::array k_inherited{"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE"};
constexpr std::size_t k_file_locks = 64;

std::string absolute_directory(std::string directory) {
  if (directory.find('\0') != std::string::npos) throw InvalidArgument("embedded null byte");
  if (directory == "~" || directory.starts_with("~/")) {
    const char* home = std::getenv("HOME");
    if (home == nullptr) throw InvalidArgument("A directory with ~ needs HOME");
    directory = std::string(home) + directory.substr(1);
  }
  return normalize_path(join_path(std::filesystem::current_path().string(), directory));
}

bool is_directory(const std::string& path) {
  struct stat facts{};
  return ::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

}  // namespace

struct LocalWorkspaceBackend::Impl {
  std::string directory;
  std::map<std::string, std::string> env;

  std::mutex mutex;
  std::string real;  // directory with its links resolved, empty before the first operation
  // Reads and writes of one file take turns. Files share these locks by hash.
  std::array<std::mutex, k_file_locks> file_locks;

  /// The real directory. Throws when it is not there.
  std::string enter() {
    std::lock_guard lock(mutex);
    if (!is_directory(real.empty() ? directory : real)) {
      throw WorkspaceUnavailableError("no workspace directory " + directory);
    }
    if (real.empty()) real = local::realpath(directory);
    return real;
  }

  std::unique_lock<std::mutex> lock_file(const std::string& path) {
    std::size_t slot = std::hash<std::string>()(local::realpath(path)) % k_file_locks;
    return std::unique_lock(file_locks[slot]);
  }

  std::map<std::string, std::string> command_env(const std::map<std::string, std::string>& call) const {
    std::map<std::string, std::string> all;
    for (const char* name : k_inherited) {
      if (const char* value = std::getenv(name)) all[name] = value;
    }
    for (const auto& [name, value] : env) all[name] = value;
    for (const auto& [name, value] : call) all[name] = value;
    return all;
  }
};

LocalWorkspaceBackend::LocalWorkspaceBackend(const std::string& working_dir, LocalWorkspaceOptions options)
    : impl_(std::make_shared<Impl>()) {
  check_environment(options.env);
  impl_->directory = absolute_directory(working_dir);
  impl_->env = std::move(options.env);
}

LocalWorkspaceBackend::~LocalWorkspaceBackend() = default;

std::optional<WorkspaceRef> LocalWorkspaceBackend::ref() const {
  return WorkspaceRef{"local", impl_->directory};
}

Task<std::string> LocalWorkspaceBackend::working_dir() {
  auto impl = impl_;
  co_return co_await blocking([&](const CancellationToken&) { return impl->enter(); });
}

Task<CommandResult> LocalWorkspaceBackend::run(WorkspaceCommand command, CommandOptions options) {
  auto impl = impl_;
  check_timeout(options);
  check_environment(options.env);
  co_return co_await blocking([&](const CancellationToken& cancel) {
    LocalCommand spec{.command = std::move(command),
                      .env = impl->command_env(options.env),
                      .directory = impl->enter(),
                      .timeout = options.timeout};
    CommandResult result = run_local_command(spec, cancel);
    // A command that removed its own workspace has no result worth telling.
    impl->enter();
    return result;
  });
}

Task<std::string> LocalWorkspaceBackend::read_bytes(std::string path) {
  auto impl = impl_;
  check_backend_path(path);
  co_return co_await blocking([&](const CancellationToken&) {
    impl->enter();
    auto turn = impl->lock_file(path);
    return local::read_bytes(path);
  });
}

Task<void> LocalWorkspaceBackend::write_bytes(std::string path, std::string data) {
  auto impl = impl_;
  check_backend_path(path);
  co_await blocking([&](const CancellationToken&) {
    impl->enter();
    auto turn = impl->lock_file(path);
    local::write_bytes(path, data);
  });
}

Task<FileEntry> LocalWorkspaceBackend::stat(std::string path) {
  auto impl = impl_;
  check_backend_path(path);
  co_return co_await blocking([&](const CancellationToken&) {
    impl->enter();
    return local::stat(path);
  });
}

Task<std::vector<FileEntry>> LocalWorkspaceBackend::list_dir(std::string path) {
  auto impl = impl_;
  check_backend_path(path);
  co_return co_await blocking([&](const CancellationToken&) {
    impl->enter();
    return local::list_dir(path);
  });
}

Task<void> LocalWorkspaceBackend::make_dir(std::string path) {
  auto impl = impl_;
  check_backend_path(path);
  co_await blocking([&](const CancellationToken&) {
    impl->enter();
    local::make_dir(path);
  });
}

Task<void> LocalWorkspaceBackend::remove(std::string path) {
  auto impl = impl_;
  check_backend_path(path);
  co_await blocking([&](const CancellationToken&) {
    std::string real = impl->enter();
    if (is_below(impl->directory, normalize_path(path))) {
      throw InvalidArgument("The working directory and what is above it cannot be removed");
    }
    local::remove(path, real);
  });
}

Task<bool> LocalWorkspaceBackend::exists(std::string path) {
  auto impl = impl_;
  check_backend_path(path);
  co_return co_await blocking([&](const CancellationToken&) {
    impl->enter();
    return local::exists(path);
  });
}

Task<std::string> LocalWorkspaceBackend::realpath(std::string path) {
  auto impl = impl_;
  check_backend_path(path);
  co_return co_await blocking([&](const CancellationToken&) {
    impl->enter();
    return local::realpath(path);
  });
}

Workspace make_local_workspace(const std::string& working_dir, LocalWorkspaceOptions options) {
  return Workspace(std::make_shared<LocalWorkspaceBackend>(working_dir, std::move(options)));
}

}  // namespace holt
