#include "holt/machine/machine.hpp"

#include "holt/base/log.hpp"
#include "holt/machine/names.hpp"
#include "machine/exec_stream.hpp"
#include "machine/file_streams.hpp"
#include "machine/info.hpp"
#include "machine/lifecycle.hpp"
#include "machine/tree_copy.hpp"

#include <chrono>

#include <fmt/format.h>

namespace holt {

using namespace machine;

namespace {

MachineConfig named(MachineConfig config) {
  check_machine_config(config);
  if (config.name.empty()) config.name = new_machine_name();
  return config;
}

[[noreturn]] void throw_later(const std::string& name, const char* what) {
  throw Error(ErrorCode::not_supported, fmt::format("Machines cannot be {} in this version", what),
              {.subject = name});
}

}  // namespace

struct Machine::Handle {
  std::string name;
  HostConfig host;
  MachineFolders folders;
  MachineFolder folder;
  Fd owner = {};  ///< of an ephemeral machine: it ends when the last handle closes this
};

Machine::Machine(std::shared_ptr<Handle> handle) : handle_(std::move(handle)) {}

Machine Machine::create(const MachineConfig& wanted, const StartOptions& options, const HostConfig& host) {
  auto config = named(wanted);
  MachineFolders folders(host.directories);
  sweep_machines(folders);
  if (folders.of(config.name).exists()) {
    throw Error(ErrorCode::conflict, fmt::format("There is already a machine {}", config.name),
                {.subject = config.name, .hint = "Choose another name, or remove that machine."});
  }
  auto launch = prepare_launch(config.resources, options, host);
  launch.env = config.env;
  bool ephemeral = config.lifetime == Lifetime::ephemeral;
  launch.ownership = ephemeral ? Ownership::owned : Ownership::independent;
  auto defined = define_machine(config, host);
  Fd control;
  try {
    control = launch_machine(defined.folder, std::move(defined.lock), launch, options, host);
  } catch (...) {
    try {
      remove_machine(folders, defined.folder, {.mode = RemoveMode::force});
    } catch (const Error& e) {
      // An ephemeral one removes itself.
      logger("machine")->debug("{}", e.what());
    }
    throw;
  }
  if (!ephemeral) control.reset();
  return Machine(std::make_shared<Handle>(Handle{.name = config.name,
                                                 .host = host,
                                                 .folders = folders,
                                                 .folder = defined.folder,
                                                 .owner = std::move(control)}));
}

Machine Machine::create(const MachineConfig& config, const StartOptions& options) {
  return create(config, options, HostConfig::from_environment());
}

Machine Machine::define(const MachineConfig& wanted, const HostConfig& host) {
  auto config = named(wanted);
  if (config.lifetime == Lifetime::ephemeral)
    throw InvalidArgument("An ephemeral machine cannot be made without starting it");
  sweep_machines(MachineFolders(host.directories));
  define_machine(config, host);
  return open(config.name, host);
}

Machine Machine::define(const MachineConfig& config) {
  return define(config, HostConfig::from_environment());
}

Machine Machine::connect(const std::string& name, const StartOptions& options, const HostConfig& host) {
  auto machine = open(name, host);
  machine.start(options);
  return machine;
}

Machine Machine::connect(const std::string& name, const StartOptions& options) {
  return connect(name, options, HostConfig::from_environment());
}

Machine Machine::open(const std::string& name, const HostConfig& host) {
  MachineFolders folders(host.directories);
  auto folder = folders.of(name);
  machine_state(folder);  // throws NOT_FOUND
  return Machine(
      std::make_shared<Handle>(Handle{.name = name, .host = host, .folders = folders, .folder = folder}));
}

Machine Machine::open(const std::string& name) {
  return open(name, HostConfig::from_environment());
}

std::vector<MachineInfo> Machine::list_all(const HostConfig& host) {
  MachineFolders folders(host.directories);
  sweep_machines(folders);
  return all_machine_infos(folders);
}

std::vector<MachineInfo> Machine::list_all() {
  return list_all(HostConfig::from_environment());
}

const std::string& Machine::name() const {
  return handle_->name;
}
MachineState Machine::state() const {
  return machine_state(handle_->folder);
}
MachineInfo Machine::info() const {
  return machine_info(handle_->folder);
}
std::string Machine::info_json() const {
  return machine_json(info());
}
std::filesystem::path Machine::console_log() const {
  return handle_->folder.console_log();
}

void Machine::start(const StartOptions& options) {
  start_machine(handle_->folder, options, handle_->host);
}
void Machine::stop(const StopOptions& options) {
  stop_machine(handle_->folder, options);
}
void Machine::remove(const RemoveOptions& options) {
  remove_machine(handle_->folders, handle_->folder, options);
}
void Machine::pause() {
  throw_later(name(), "paused");
}
void Machine::suspend() {
  throw_later(name(), "suspended");
}
void Machine::resume() {
  throw_later(name(), "resumed");
}

ExecResult Machine::exec(const std::vector<std::string>& argv, const ExecOptions& options) const {
  return run_command(handle_->folder, {.argv = argv}, options);
}
ExecResult Machine::exec_shell(const std::string& script, const ExecOptions& options) const {
  return run_command(handle_->folder, {.script = script}, options);
}
ExecStream Machine::exec_stream(const std::vector<std::string>& argv, const ExecOptions& options) const {
  return start_command(handle_->folder, {.argv = argv}, options, 0);
}
ExecStream Machine::exec_shell_stream(const std::string& script, const ExecOptions& options) const {
  return start_command(handle_->folder, {.script = script}, options, 0);
}

std::string Machine::read_file(const std::string& path, const ReadOptions& options) const {
  auto reader = open_reader(handle_->folder, path, options);
  std::string content;
  auto too_large = [&] {
    return Error(ErrorCode::too_large,
                 fmt::format("{} has more than {} bytes", printable(path), options.limit),
                 {.subject = printable(path), .hint = "Read it as a stream."});
  };
  auto size = reader.stat().size;
  auto wanted = std::min(size - std::min(size, options.offset), options.length.value_or(size));
  if (wanted > options.limit) throw too_large();
  // Reserved by what the guest says, within the limit that the caller set.
  content.reserve(wanted);
  while (auto piece = reader.next()) {
    if (content.size() + piece->size() > options.limit) throw too_large();
    content += *piece;
  }
  return content;
}

FileReader Machine::open_read(const std::string& path, const ReadOptions& options) const {
  return open_reader(handle_->folder, path, options);
}

void Machine::write_file(const std::string& path, std::string_view bytes,
                         const FileWriteOptions& options) const {
  auto sized = options;
  sized.size = bytes.size();
  auto writer = open_writer(handle_->folder, path, sized);
  writer.write(bytes);
  writer.finish();
}

FileWriter Machine::open_write(const std::string& path, const FileWriteOptions& options) const {
  return open_writer(handle_->folder, path, options);
}

FileStat Machine::stat(const std::string& path, const CallOptions& options) const {
  return file_stat(ask_for<protocol::FileStatus>(handle_->folder, protocol::StatRequest{.path = path},
                                                 Effect::none, options));
}

FileStat Machine::lstat(const std::string& path, const CallOptions& options) const {
  protocol::StatRequest request{.path = path, .links = protocol::Links::keep};
  return file_stat(ask_for<protocol::FileStatus>(handle_->folder, request, Effect::none, options));
}

bool Machine::exists(const std::string& path, const CallOptions& options) const {
  return ask_for<protocol::ExistsReply>(handle_->folder, protocol::ExistsRequest{.path = path}, Effect::none,
                                        options)
      .exists;
}

std::string Machine::realpath(const std::string& path, const CallOptions& options) const {
  return ask_for<protocol::RealPathReply>(handle_->folder, protocol::RealPathRequest{.path = path},
                                          Effect::none, options)
      .path;
}

std::vector<DirEntry> Machine::list(const std::string& path, const CallOptions& options) const {
  return list_directory(handle_->folder, path, options);
}

void Machine::make_dir(const std::string& path, const CallOptions& options) const {
  ask(handle_->folder, protocol::MakeDirRequest{.path = path}, Effect::possible, options);
}

void Machine::remove_path(const std::string& path, RemoveKind kind, const CallOptions& options) const {
  protocol::RemoveRequest request{.path = path, .recursive = kind == RemoveKind::tree};
  ask(handle_->folder, request, Effect::possible, options);
}

void Machine::rename(const std::string& from, const std::string& to, const CallOptions& options) const {
  ask(handle_->folder, protocol::RenameRequest{.from = from, .to = to}, Effect::possible, options);
}

CopyResult Machine::copy_in(const std::filesystem::path& source, const std::string& target,
                            const CopyOptions& options) const {
  return copy_tree_in(handle_->folder, source, target, options);
}

CopyResult Machine::copy_out(const std::string& source, const std::filesystem::path& target,
                             const CopyOptions& options) const {
  return copy_tree_out(handle_->folder, source, target, options);
}

void Machine::ping(const CallOptions& options) const {
  auto call = options;
  if (!call.deadline) call.deadline = Deadline::after(std::chrono::seconds(5));
  ask(handle_->folder, protocol::StatusRequest{}, Effect::none, call);
}

}  // namespace holt
