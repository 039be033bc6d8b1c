#include "harness/smol_sandbox/sandbox.hpp"
#include "harness/wording.hpp"
#include "holt/base/encoding.hpp"
#include "holt/harness/smol_sandbox.hpp"
#include "holt/workspace/rules.hpp"
#include "holt/workspace/workspace.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

namespace holt {

using namespace smol;

namespace {

constexpr std::size_t k_read_limit = std::size_t{1} << 30;
constexpr std::size_t k_name_limit = 255;   // NAME_MAX
constexpr std::size_t k_path_limit = 4095;  // PATH_MAX without its NUL

void check_path(const std::string& path) {
  check_backend_path(path);
  std::size_t longest = 0;
  for (std::size_t at = 0; at < path.size();) {
    std::size_t end = std::min(path.find('/', at), path.size());
    longest = std::max(longest, end - at);
    at = end + 1;
  }
  if (longest > k_name_limit || path.size() > k_path_limit) throw PathError(ENAMETOOLONG, path);
}

/// The engine's error at a guest path as the workspace's. Others pass as they are.
[[noreturn]] void throw_path_error(const Error& error, const std::string& path) {
  if (!error.subject().starts_with('/')) throw;
  switch (error.code()) {
    case ErrorCode::not_found:
      throw PathError(PathErrorKind::not_found, path);
    case ErrorCode::not_a_directory:
      throw PathError(PathErrorKind::not_a_directory, path);
    case ErrorCode::is_directory:
      throw PathError(PathErrorKind::is_a_directory, path);
    case ErrorCode::conflict:
      throw PathError(PathErrorKind::exists, path);
    case ErrorCode::permission_denied:
      throw PathError(PathErrorKind::permission, path);
    case ErrorCode::not_regular:
      throw PathError(PathErrorKind::not_regular, path);
    case ErrorCode::too_large:
      throw PathError(EFBIG, path);
    case ErrorCode::storage_full:
      throw PathError(ENOSPC, path);
    default:
      throw;
  }
}

/// One command while its output arrives.
class Running {
 public:
  Running(const Sandbox::Ready& ready, const WorkspaceCommand& command,
          const SmolSandboxBackendOptions& options, const CommandOptions& call,
          const CancellationToken& cancel)
      : timeout_(call.timeout) {
    ExecOptions exec;
    exec.env = options.env;
    for (const auto& [name, value] : call.env) exec.env[name] = value;
    exec.working_dir = ready.working_dir;
    exec.timeout = call.timeout;
    exec.cancel = cancel;
    wait_.cancel = cancel;
    // The guest's clock decides; the host's deadline is for a guest that does not answer.
    if (call.timeout) wait_.deadline = Deadline::after(*call.timeout + k_grace);
    stream_.emplace(command.is_shell() ? ready.machine.exec_shell_stream(command.script(), exec)
                                       : ready.machine.exec_stream(command.argv(), exec));
  }

  CommandResult to_the_end() {
    try {
      while (auto event = stream_->next(wait_)) {
        if (event->kind == ExecEvent::Kind::exit) return result_of(event->result);
        (event->kind == ExecEvent::Kind::out ? out_ : err_) += event->data;
        if (out_.size() + err_.size() > k_max_command_output) stop_for_output();
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::timeout || !timeout_) throw;
      stop_for_time();
    }
    throw WorkspaceError("the machine sent no exit status of the command");
  }

 private:
  static constexpr std::chrono::seconds k_grace{5};

  CommandResult result_of(const ExecResult& result) {
    if (result.timed_out) stop_for_time();
    return {.exit_code = result.shell_code(), .out = utf8_replace(out_), .err = utf8_replace(err_)};
  }
  [[noreturn]] void stop_for_time() {
    stream_->kill();
    throw WorkspaceTimeoutError(wording::smol_timeout(seconds_text(*timeout_)), utf8_replace(out_),
                                utf8_replace(err_));
  }
  [[noreturn]] void stop_for_output() {
    stream_->kill();
    throw WorkspaceOutputLimitError(k_max_command_output,
                                    utf8_replace(std::string_view(out_).substr(0, k_output_preview)),
                                    utf8_replace(std::string_view(err_).substr(0, k_output_preview)));
  }

  std::optional<Duration> timeout_;
  CallOptions wait_;
  std::optional<ExecStream> stream_;
  std::string out_;
  std::string err_;
};

FileEntry entry_of(const std::string& path, bool is_dir, std::optional<std::uint64_t> size) {
  return {.name = path.substr(path.rfind('/') + 1), .path = path, .is_dir = is_dir, .size = size};
}

}  // namespace

struct SmolSandboxBackend::Impl {
  explicit Impl(SmolSandboxBackendOptions options) : sandbox(std::move(options)) {}
  Sandbox sandbox;

  /// A file operation: engine errors at `path` become path errors.
  template <class Fn>
  auto with_file(const CancellationToken& cancel, const std::string& path, Fn use) {
    return sandbox.with(cancel, [&](const Sandbox::Ready& ready) {
      try {
        return use(ready, CallOptions{.deadline = std::nullopt, .cancel = cancel});
      } catch (const Error& error) {
        throw_path_error(error, path);
      }
    });
  }
};

SmolSandboxBackend::SmolSandboxBackend(SmolSandboxBackendOptions options) {
  check_options(options);
  if (options.ref) check_provider(*options.ref);
  if (options.ref && options.sandbox) {
    throw InvalidArgument("Give a SmolSandboxBackend either `sandbox` or `ref`, not both");
  }
  impl_ = std::make_shared<Impl>(std::move(options));
}

SmolSandboxBackend::~SmolSandboxBackend() = default;

std::optional<WorkspaceRef> SmolSandboxBackend::ref() const {
  return impl_->sandbox.ref();
}

Task<std::string> SmolSandboxBackend::working_dir() {
  auto impl = impl_;
  co_return co_await blocking(
      [&](const CancellationToken& cancel) { return impl->sandbox.acquire(cancel).working_dir; });
}

Task<Machine> SmolSandboxBackend::get_sandbox() {
  auto impl = impl_;
  co_return co_await blocking(
      [&](const CancellationToken& cancel) { return impl->sandbox.acquire(cancel).machine; });
}

Task<CommandResult> SmolSandboxBackend::run(WorkspaceCommand command, CommandOptions options) {
  auto impl = impl_;
  check_timeout(options);
  check_command(command);
  co_return co_await blocking([&](const CancellationToken& cancel) {
    return impl->sandbox.with(cancel, [&](const Sandbox::Ready& ready) {
      try {
        return Running(ready, command, impl->sandbox.options(), options, cancel).to_the_end();
      } catch (const Error& error) {
        if (error.code() != ErrorCode::not_found || !error.subject().starts_with('/')) throw;
        throw WorkspaceError(fmt::format("The directory {} or /bin/sh is missing in smol VM {}: {}",
                                         ready.working_dir, ready.machine.name(), error.what()),
                             error.code());
      }
    });
  });
}

Task<std::string> SmolSandboxBackend::read_bytes(std::string path) {
  auto impl = impl_;
  check_path(path);
  co_return co_await blocking([&](const CancellationToken& cancel) {
    return impl->with_file(cancel, path, [&](const Sandbox::Ready& ready, const CallOptions& call) {
      return ready.machine.read_file(path, {.limit = k_read_limit, .call = call});
    });
  });
}

Task<void> SmolSandboxBackend::write_bytes(std::string path, std::string data) {
  auto impl = impl_;
  check_path(path);
  co_await blocking([&](const CancellationToken& cancel) {
    impl->with_file(cancel, path, [&](const Sandbox::Ready& ready, const CallOptions& call) {
      ready.machine.write_file(path, data, {.parents = Parents::make, .call = call});
    });
  });
}

Task<FileEntry> SmolSandboxBackend::stat(std::string path) {
  auto impl = impl_;
  check_path(path);
  co_return co_await blocking([&](const CancellationToken& cancel) {
    return impl->with_file(cancel, path, [&](const Sandbox::Ready& ready, const CallOptions& call) {
      FileStat facts = ready.machine.stat(path, call);
      bool is_dir = facts.type == FileType::directory;
      return entry_of(path, is_dir, is_dir ? std::nullopt : std::optional(facts.size));
    });
  });
}

Task<std::vector<FileEntry>> SmolSandboxBackend::list_dir(std::string path) {
  auto impl = impl_;
  check_path(path);
  co_return co_await blocking([&](const CancellationToken& cancel) {
    return impl->with_file(cancel, path, [&](const Sandbox::Ready& ready, const CallOptions& call) {
      std::vector<FileEntry> entries;
      for (const auto& found : ready.machine.list(path, call)) {
        bool is_dir = found.target == FileType::directory;
        entries.push_back(entry_of(join_path(path, found.name), is_dir, found.size));
      }
      std::ranges::sort(entries, {}, &FileEntry::path);
      return entries;
    });
  });
}

Task<void> SmolSandboxBackend::make_dir(std::string path) {
  auto impl = impl_;
  check_path(path);
  co_await blocking([&](const CancellationToken& cancel) {
    impl->with_file(cancel, path, [&](const Sandbox::Ready& ready, const CallOptions& call) {
      ready.machine.make_dir(path, call);
    });
  });
}

Task<void> SmolSandboxBackend::remove(std::string path) {
  auto impl = impl_;
  check_path(path);
  co_await blocking([&](const CancellationToken& cancel) {
    impl->with_file(cancel, path, [&](const Sandbox::Ready& ready, const CallOptions& call) {
      std::size_t slash = path.rfind('/');
      std::string parent = slash == 0 ? "/" : path.substr(0, slash);
      std::string real = join_path(ready.machine.realpath(parent, call), path.substr(slash + 1));
      const auto& configured = impl->sandbox.options().working_dir;
      bool holds_root = is_below(ready.working_dir, normalize_path(real)) ||
                        (configured && is_below(*configured, normalize_path(path)));
      if (holds_root) {
        throw InvalidArgument("The working directory and what is above it cannot be removed");
      }
      ready.machine.remove_path(path, RemoveKind::tree, call);
    });
  });
}

Task<bool> SmolSandboxBackend::exists(std::string path) {
  auto impl = impl_;
  check_path(path);
  co_return co_await blocking([&](const CancellationToken& cancel) {
    return impl->with_file(cancel, path, [&](const Sandbox::Ready& ready, const CallOptions& call) {
      return ready.machine.exists(path, call);
    });
  });
}

Task<std::string> SmolSandboxBackend::realpath(std::string path) {
  auto impl = impl_;
  check_path(path);
  co_return co_await blocking([&](const CancellationToken& cancel) {
    return impl->with_file(cancel, path, [&](const Sandbox::Ready& ready, const CallOptions& call) {
      try {
        return ready.machine.realpath(path, call);
      } catch (const Error& error) {
        // The guest's word for a loop of links.
        if (error.code() != ErrorCode::storage_error || !error.subject().starts_with('/')) throw;
        throw PathError(ELOOP, path);
      }
    });
  });
}

}  // namespace holt
