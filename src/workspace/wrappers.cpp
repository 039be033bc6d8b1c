#include "holt/workspace/wrappers.hpp"

namespace holt {

std::optional<WorkspaceRef> WrapperWorkspace::ref() const {
  return wrapped_.ref();
}
Task<std::string> WrapperWorkspace::working_dir() {
  return wrapped_.working_dir();
}
SupportsCommands* WrapperWorkspace::commands() {
  return wrapped_.has_commands() ? this : nullptr;
}
Task<CommandResult> WrapperWorkspace::run(WorkspaceCommand command, CommandOptions options) {
  return wrapped_.run(std::move(command), std::move(options));
}
Task<std::string> WrapperWorkspace::read_bytes(std::string path) {
  return wrapped_.read_bytes(std::move(path));
}
Task<void> WrapperWorkspace::write_bytes(std::string path, std::string data) {
  return wrapped_.write_bytes(std::move(path), std::move(data));
}
Task<FileEntry> WrapperWorkspace::stat(std::string path) {
  return wrapped_.stat(std::move(path));
}
Task<std::vector<FileEntry>> WrapperWorkspace::list_dir(std::string path) {
  return wrapped_.list_dir(std::move(path));
}
Task<void> WrapperWorkspace::make_dir(std::string path) {
  return wrapped_.make_dir(std::move(path));
}
Task<void> WrapperWorkspace::remove(std::string path) {
  return wrapped_.remove(std::move(path));
}
Task<bool> WrapperWorkspace::exists(std::string path) {
  return wrapped_.exists(std::move(path));
}
Task<std::string> WrapperWorkspace::realpath(std::string path) {
  return wrapped_.realpath(std::move(path));
}

namespace {

[[noreturn]] void refuse(const char* what) {
  throw WorkspaceReadOnlyError(std::string("this workspace is read-only: ") + what);
}

}  // namespace

Task<CommandResult> ReadOnlyWorkspace::run(WorkspaceCommand, CommandOptions) {
  refuse("it runs no commands");
  co_return CommandResult{};
}
Task<void> ReadOnlyWorkspace::write_bytes(std::string, std::string) {
  refuse("nothing was written");
  co_return;
}
Task<void> ReadOnlyWorkspace::make_dir(std::string) {
  refuse("no directory was made");
  co_return;
}
Task<void> ReadOnlyWorkspace::remove(std::string) {
  refuse("nothing was removed");
  co_return;
}

Task<std::string> UnavailableWorkspace::working_dir() {
  throw WorkspaceUnavailableError(reason_);
  co_return std::string();
}
Task<CommandResult> UnavailableWorkspace::run(WorkspaceCommand, CommandOptions) {
  throw WorkspaceUnavailableError(reason_);
  co_return CommandResult{};
}

}  // namespace holt
