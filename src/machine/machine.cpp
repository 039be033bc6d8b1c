#include "holt/machine/machine.hpp"

#include "holt/base/log.hpp"
#include "holt/machine/machine_image.hpp"
#include "holt/machine/names.hpp"
#include "machine/background.hpp"
#include "machine/event_log.hpp"
#include "machine/exec_stream.hpp"
#include "machine/file_streams.hpp"
#include "machine/host.hpp"
#include "machine/info.hpp"
#include "machine/lifecycle.hpp"
#include "machine/machine_access.hpp"
#include "machine/tree_copy.hpp"
#include "machine/tree_walk.hpp"

#include <chrono>
#include <mutex>
#include <unistd.h>

#include <fmt/format.h>

namespace holt {

using namespace machine;

namespace {

MachineConfig named(MachineConfig config) {
  check_machine_config(config);
  if (config.name.empty()) config.name = new_machine_name();
  return config;
}

/// The name of a new machine's image, which then is in the store.
std::string image_for(const MachineConfig& config, const StartOptions& options, const HostConfig& host) {
  std::string name = config.image.empty() ? std::string(image::k_default_image) : config.image;
  if (config.pull == image::PullPolicy::missing && !image::is_local_image(name)) {
    if (auto found = image::Store(host.directories).find(name)) return found->reference;
  }
  if (options.on_progress) {
    options.on_progress({.step = StartProgress::Step::fetching_image,
                         .text = fmt::format("Fetching the image {}", printable(name, 300))});
  }
  return obtain_image(name, {.pull = config.pull, .call = options.call}, host).reference;
}

}  // namespace

namespace {

/// The control socket of a machine that ends when the last handle closes it.
class Owned {
 public:
  Owned() = default;
  explicit Owned(Fd control) : control_(std::move(control)) {}
  Owned(Owned&& other) noexcept : control_(std::move(other.control_)) {}

  /// Of a new life; the one before has ended.
  void replace(Fd control) {
    if (!control) return;
    std::lock_guard lock(mutex_);
    control_ = std::move(control);
  }
  /// In a forked child, where another thread's lock is never given back.
  void abandon() noexcept {
    if (control_) ::close(control_.release());
  }

 private:
  std::mutex mutex_;
  Fd control_;
};

}  // namespace

struct Machine::Handle {
  std::string name;
  HostConfig host;
  MachineFolders folders;
  MachineFolder folder;
  Owned owner = {};
};

Machine::Machine(std::shared_ptr<Handle> handle) : handle_(std::move(handle)) {}

const MachineFolder& machine::folder_of(const Machine& machine) {
  return MachineAccess::folder(machine);
}
const MachineFolder& MachineAccess::folder(const Machine& machine) {
  return machine.handle_->folder;
}

Machine Machine::create(const MachineConfig& wanted, const StartOptions& options, const HostConfig& host) {
  auto config = named(wanted);
  MachineFolders folders(host.directories);
  sweep_machines(folders);
  if (folders.of(config.name).exists()) {
    throw Error(ErrorCode::conflict, fmt::format("There is already a machine {}", config.name),
                {.subject = config.name, .hint = "Choose another name, or remove that machine."});
  }
  // Told before an image is waited for.
  find_boot_files(host);
  find_monitor(host);
  config.image = image_for(config, options, host);
  auto launch = prepare_launch(config.resources, options, host);
  launch.env = config.env;
  bool ephemeral = config.lifetime == Lifetime::ephemeral;
  own(launch, ephemeral ? Ownership::killed : ownership_of(options.owner_end));
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
  if (launch.ownership == Ownership::independent) control.reset();
  return Machine(std::make_shared<Handle>(Handle{.name = config.name,
                                                 .host = host,
                                                 .folders = folders,
                                                 .folder = defined.folder,
                                                 .owner = Owned(std::move(control))}));
}

Machine Machine::create(const MachineConfig& config, const StartOptions& options) {
  return create(config, options, HostConfig::from_environment());
}

Machine Machine::define(const MachineConfig& wanted, const HostConfig& host) {
  auto config = named(wanted);
  if (config.lifetime == Lifetime::ephemeral)
    throw InvalidArgument("An ephemeral machine cannot be made without starting it");
  sweep_machines(MachineFolders(host.directories));
  config.image = image_for(config, {}, host);
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
  handle_->owner.replace(start_machine(handle_->folder, options, handle_->host));
}
void Machine::stop(const StopOptions& options) {
  stop_machine(handle_->folder, options, handle_->host);
}
void Machine::remove(const RemoveOptions& options) {
  remove_machine(handle_->folders, handle_->folder, options);
}
void Machine::pause(const CallOptions& options) {
  pause_machine(handle_->folder, options);
}
void Machine::suspend(const CallOptions& options) {
  suspend_machine(handle_->folder, options);
}
void Machine::resume(const StartOptions& options) {
  handle_->owner.replace(resume_machine(handle_->folder, options, handle_->host));
}
Resources Machine::resize(const ResizeOptions& options) {
  return resize_machine(handle_->folder, options);
}
void Machine::update(const UpdateOptions& changes) {
  update_machine(handle_->folder, changes);
}
std::vector<MachineEvent> Machine::events() const {
  state();  // throws NOT_FOUND
  return EventLog(handle_->folder.event_log()).read();
}
std::filesystem::path Machine::event_log() const {
  return handle_->folder.event_log();
}
MachineStats Machine::stats(const CallOptions& options) const {
  return machine_stats(handle_->folder, options);
}
MachineInfo Machine::wait(WaitFor what, const CallOptions& options) const {
  return wait_for_machine(handle_->folder, what, options);
}

void Machine::abandon() noexcept {
  handle_->owner.abandon();
}

ExecResult Machine::exec(const std::vector<std::string>& argv, const ExecOptions& options) const {
  return run_command(handle_->folder, {.argv = argv}, options);
}
ExecResult Machine::exec_shell(const std::string& script, const ExecOptions& options) const {
  return run_command(handle_->folder, {.script = script}, options);
}
ExecStream Machine::exec_stream(const std::vector<std::string>& argv, const ExecOptions& options) const {
  return open_command(handle_->folder, {.argv = argv}, options, 0);
}
ExecStream Machine::exec_shell_stream(const std::string& script, const ExecOptions& options) const {
  return open_command(handle_->folder, {.script = script}, options, 0);
}

CommandInfo Machine::start_command(const std::vector<std::string>& argv, const ExecOptions& options) const {
  return start_in_background(handle_->folder, {.argv = argv}, options);
}
CommandInfo Machine::start_shell_command(const std::string& script, const ExecOptions& options) const {
  return start_in_background(handle_->folder, {.script = script}, options);
}
std::vector<CommandInfo> Machine::commands(const CallOptions& options) const {
  return background_commands(handle_->folder, options);
}
ExecStream Machine::attach_command(const std::string& id, const AttachOptions& options) const {
  return attach_to(handle_->folder, id, options);
}
CommandInfo Machine::wait_command(const std::string& id, const CallOptions& options) const {
  return wait_for(handle_->folder, id, options);
}
void Machine::signal_command(const std::string& id, int signal_number, const CallOptions& options) const {
  send_signal(handle_->folder, id, signal_number, options);
}
CommandInfo Machine::kill_command(const std::string& id, const CallOptions& options) const {
  return kill_in_background(handle_->folder, id, options);
}

std::string Machine::read_file(const std::string& path, const ReadOptions& options) const {
  auto reader = open_reader(handle_->folder, path, options);
  FileCollector collector(path, options);
  collector.announce(reader.stat());
  while (auto piece = reader.next()) collector.add(*piece);
  return collector.content();
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

TreeWalk Machine::walk(const std::string& path, const WalkOptions& options) const {
  return walk_tree(handle_->folder, path, options);
}

void Machine::set_attributes(const std::string& path, const FileAttributes& attributes,
                             const AttributeOptions& options) const {
  change_attributes(handle_->folder, path, attributes, options);
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

CopyResult Machine::copy_tar_in(const TarInput& tar, const std::string& target,
                                const CopyOptions& options) const {
  return machine::copy_tar_in(handle_->folder, tar, target, options);
}

CopyResult Machine::copy_tar_out(const std::string& source, const TarOutput& tar,
                                 const CopyOptions& options) const {
  return machine::copy_tar_out(handle_->folder, source, tar, options);
}

void Machine::ping(const CallOptions& options) const {
  auto call = options;
  if (!call.deadline) call.deadline = Deadline::after(std::chrono::seconds(5));
  ask(handle_->folder, protocol::StatusRequest{}, Effect::none, call);
}

}  // namespace holt
