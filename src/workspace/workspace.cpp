#include "holt/workspace/workspace.hpp"

#include "holt/base/encoding.hpp"
#include "holt/workspace/rules.hpp"
#include "holt/workspace/wrappers.hpp"
#include "workspace/derived_files.hpp"

#include <fmt/format.h>

namespace holt {

std::vector<std::string> WorkspaceCommand::argv() const {
  if (is_shell()) return {"/bin/sh", "-c", script()};
  return std::get<std::vector<std::string>>(form_);
}

SupportsCommands* WorkspaceBackend::commands() {
  return dynamic_cast<SupportsCommands*>(this);
}
SupportsFilesystem* WorkspaceBackend::filesystem() {
  return dynamic_cast<SupportsFilesystem*>(this);
}
SupportsRealpath* WorkspaceBackend::realpaths() {
  return dynamic_cast<SupportsRealpath*>(this);
}

namespace {

/// The stand-in of Workspace's default constructor, told apart from one that a caller made.
class Placeholder final : public UnavailableWorkspace {
 public:
  Placeholder()
      : UnavailableWorkspace(
            "This run has no workspace. Give the agent a capability that supplies one, such as "
            "LocalWorkspace or SmolSandbox, or pass one as the run's workspace") {}
};

const Workspace* next_layer(const WorkspaceBackend& backend) {
  const auto* wrapper = dynamic_cast<const WrapperWorkspace*>(&backend);
  return wrapper == nullptr ? nullptr : &wrapper->wrapped();
}

[[noreturn]] void throw_unsupported(const char* what) {
  throw UserError(fmt::format("This workspace's backend offers {}", what));
}

SupportsCommands& commands_of(WorkspaceBackend& backend) {
  SupportsCommands* commands = backend.commands();
  if (commands == nullptr) throw_unsupported("no commands");
  return *commands;
}

SupportsCommands& commands_for_files(WorkspaceBackend& backend) {
  SupportsCommands* commands = backend.commands();
  if (commands == nullptr) throw_unsupported("neither files nor commands");
  return *commands;
}

// Each operation is a function of the backend, so that a coroutine keeps the backend alive and needs no
// Workspace.

Task<CommandResult> run_in(WorkspaceBackendPtr backend, WorkspaceCommand command, CommandOptions options) {
  check_timeout(options);
  if (!command.is_shell() && command.argv().empty()) throw InvalidArgument("A command needs a program");
  co_return co_await commands_of(*backend).run(std::move(command), std::move(options));
}

Task<std::string> resolve_in(WorkspaceBackendPtr backend, std::string path, std::optional<std::string> base) {
  if (base && !base->starts_with('/')) throw InvalidArgument("The base of a path must be absolute");
  if (path.starts_with('/')) co_return normalize_path(path);
  std::string start = base ? *base : co_await backend->working_dir();
  co_return normalize_path(join_path(start, path));
}

Task<std::string> realpath_in(WorkspaceBackendPtr backend, std::string path) {
  if (!path.starts_with('/')) path = join_path(co_await backend->working_dir(), path);
  if (auto* native = backend->realpaths()) co_return co_await native->realpath(std::move(path));
  if (auto* commands = backend->commands()) co_return co_await derived::realpath(*commands, path);
  co_return normalize_path(path);
}

Task<std::string> read_in(WorkspaceBackendPtr backend, std::string path) {
  path = co_await resolve_in(backend, std::move(path), std::nullopt);
  if (auto* files = backend->filesystem()) co_return co_await files->read_bytes(std::move(path));
  co_return co_await derived::read_bytes(commands_for_files(*backend), path);
}

Task<void> write_in(WorkspaceBackendPtr backend, std::string path, std::string data) {
  path = co_await resolve_in(backend, std::move(path), std::nullopt);
  if (auto* files = backend->filesystem()) {
    co_await files->write_bytes(std::move(path), std::move(data));
  } else {
    co_await derived::write_bytes(commands_for_files(*backend), path, data);
  }
}

Task<FileEntry> stat_in(WorkspaceBackendPtr backend, std::string path) {
  path = co_await resolve_in(backend, std::move(path), std::nullopt);
  if (auto* files = backend->filesystem()) co_return co_await files->stat(std::move(path));
  co_return co_await derived::stat(commands_for_files(*backend), path);
}

Task<std::vector<FileEntry>> list_in(WorkspaceBackendPtr backend, std::string path) {
  path = co_await resolve_in(backend, std::move(path), std::nullopt);
  if (auto* files = backend->filesystem()) co_return co_await files->list_dir(std::move(path));
  co_return co_await derived::list_dir(commands_for_files(*backend), path);
}

Task<void> make_dir_in(WorkspaceBackendPtr backend, std::string path) {
  path = co_await resolve_in(backend, std::move(path), std::nullopt);
  if (auto* files = backend->filesystem()) {
    co_await files->make_dir(std::move(path));
  } else {
    co_await derived::make_dir(commands_for_files(*backend), path);
  }
}

Task<void> remove_in(WorkspaceBackendPtr backend, std::string path) {
  path = co_await resolve_in(backend, std::move(path), std::nullopt);
  if (auto* files = backend->filesystem()) {
    co_await files->remove(std::move(path));
  } else {
    SupportsCommands& commands = commands_for_files(*backend);
    co_await derived::remove(commands, path, co_await backend->working_dir());
  }
}

Task<bool> exists_in(WorkspaceBackendPtr backend, std::string path) {
  path = co_await resolve_in(backend, std::move(path), std::nullopt);
  if (auto* files = backend->filesystem()) co_return co_await files->exists(std::move(path));
  co_return co_await derived::exists(commands_for_files(*backend), path);
}

Task<std::string> read_text_in(WorkspaceBackendPtr backend, std::string path) {
  std::string bytes = co_await read_in(std::move(backend), path);
  if (!is_utf8(bytes)) throw WorkspaceError(fmt::format("{} is not UTF-8", printable(path)));
  co_return bytes;
}

}  // namespace

Workspace::Workspace() : top_(std::make_shared<Placeholder>()) {}

Workspace::Workspace(WorkspaceBackendPtr backend) : top_(std::move(backend)) {
  if (!top_) throw InvalidArgument("A workspace needs a backend");
}

WorkspaceBackendPtr Workspace::backend() const {
  const Workspace* layer = this;
  while (const Workspace* next = next_layer(*layer->top_)) layer = next;
  return layer->top_;
}

bool Workspace::attached() const {
  return dynamic_cast<const UnavailableWorkspace*>(backend().get()) == nullptr;
}

bool Workspace::is_placeholder() const {
  return dynamic_cast<const Placeholder*>(top_.get()) != nullptr;
}

bool Workspace::read_only() const {
  for (const Workspace* layer = this; layer != nullptr; layer = next_layer(*layer->top_)) {
    if (dynamic_cast<const ReadOnlyWorkspace*>(layer->top_.get()) != nullptr) return true;
  }
  return false;
}

Task<CommandResult> Workspace::run(WorkspaceCommand command) const {
  return run_in(top_, std::move(command), CommandOptions());
}
Task<CommandResult> Workspace::run(WorkspaceCommand command, CommandOptions options) const {
  return run_in(top_, std::move(command), std::move(options));
}
Task<std::string> Workspace::resolve(std::string path, std::optional<std::string> base) const {
  return resolve_in(top_, std::move(path), std::move(base));
}
Task<std::string> Workspace::realpath(std::string path) const {
  return realpath_in(top_, std::move(path));
}
Task<std::string> Workspace::read_bytes(std::string path) const {
  return read_in(top_, std::move(path));
}
Task<void> Workspace::write_bytes(std::string path, std::string data) const {
  return write_in(top_, std::move(path), std::move(data));
}
Task<FileEntry> Workspace::stat(std::string path) const {
  return stat_in(top_, std::move(path));
}
Task<std::vector<FileEntry>> Workspace::list_dir(std::string path) const {
  return list_in(top_, std::move(path));
}
Task<void> Workspace::make_dir(std::string path) const {
  return make_dir_in(top_, std::move(path));
}
Task<void> Workspace::remove(std::string path) const {
  return remove_in(top_, std::move(path));
}
Task<bool> Workspace::exists(std::string path) const {
  return exists_in(top_, std::move(path));
}
Task<std::string> Workspace::read_text(std::string path) const {
  return read_text_in(top_, std::move(path));
}
Task<void> Workspace::write_text(std::string path, std::string text) const {
  return write_in(top_, std::move(path), std::move(text));
}

CommandResult Workspace::run_sync(WorkspaceCommand command, CommandOptions options) const {
  return sync_wait(run(std::move(command), std::move(options)));
}
std::string Workspace::working_dir_sync() const {
  return sync_wait(working_dir());
}
std::string Workspace::realpath_sync(std::string path) const {
  return sync_wait(realpath(std::move(path)));
}
std::string Workspace::read_bytes_sync(std::string path) const {
  return sync_wait(read_bytes(std::move(path)));
}
void Workspace::write_bytes_sync(std::string path, std::string data) const {
  sync_wait(write_bytes(std::move(path), std::move(data)));
}
FileEntry Workspace::stat_sync(std::string path) const {
  return sync_wait(stat(std::move(path)));
}
std::vector<FileEntry> Workspace::list_dir_sync(std::string path) const {
  return sync_wait(list_dir(std::move(path)));
}
void Workspace::make_dir_sync(std::string path) const {
  sync_wait(make_dir(std::move(path)));
}
void Workspace::remove_sync(std::string path) const {
  sync_wait(remove(std::move(path)));
}
bool Workspace::exists_sync(std::string path) const {
  return sync_wait(exists(std::move(path)));
}
std::string Workspace::read_text_sync(std::string path) const {
  return sync_wait(read_text(std::move(path)));
}
void Workspace::write_text_sync(std::string path, std::string text) const {
  sync_wait(write_text(std::move(path), std::move(text)));
}

}  // namespace holt
