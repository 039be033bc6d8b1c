#include "monitor/suspender.hpp"

#include "holt/base/disk_space.hpp"
#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/base/log.hpp"
#include "machine/console.hpp"
#include "machine/info.hpp"
#include "machine/sparse_file.hpp"
#include "machine/stub_kernel.hpp"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::monitor {

using namespace machine;

namespace {

using namespace std::chrono_literals;

constexpr std::size_t k_state_limit = std::size_t{16} << 20;
// Rounds of asking QEMU for its status between two looks at what it has passed on.
constexpr int k_drain_rounds = 3;
constexpr std::uint64_t k_full = std::uint64_t{1} << 20;

Fd make_file(const std::filesystem::path& path, off_t size) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd || ::ftruncate(fd.get(), size) != 0)
    throw system_error(errno, fmt::format("make {}", path.string()), path);
  return fd;
}

/// False also where it cannot be asked.
bool lacks_room(int fd, std::uint64_t bytes) {
  auto free = free_disk_bytes(fd);
  return free && *free < bytes;
}

[[noreturn]] void throw_no_room(const std::filesystem::path& folder) {
  throw Error(ErrorCode::storage_full, "The host's disk has no room for the machine's memory",
              {.subject = folder, .hint = "Make space and suspend it again."});
}

/// The two QEMUs take turns at it: a socket, which holds a fifth of this, would make five times as many of
/// them, and on a busy host each waits for a processor.
std::pair<Fd, Fd> wide_pipe() {
  constexpr int k_bytes = 1 << 20;  // pipe-max-size for everybody, pipe(7)
  auto ends = make_pipe();
  ::fcntl(ends.second.get(), F_SETPIPE_SZ, k_bytes);
  return ends;
}

/// Behind a crash of the host the files are whole, or suspend.json is not there.
void make_durable(const std::filesystem::path& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) throw system_error(errno, fmt::format("write {}", path.string()), path);
}

}  // namespace

void check_room(const MachineFolder& folder, Vmm& vmm) {
  // A mapped file that cannot get its blocks kills who writes to it: the space is made sure of beforehand.
  Fd opened(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lacks_room(opened.get(), resident_memory(vmm.process().pid()))) throw_no_room(folder.path());
}

Suspension Suspender::write_files(Deadline deadline) {
  Template files{folder_.suspended()};
  remove_tree(files.folder);
  make_private_directory(files.folder);
  auto begin = std::chrono::steady_clock::now();
  auto elapsed = [begin] {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  };
  try {
    write_file_atomically(files.kernel(), stub_kernel(), {.mode = 0444});
    write_file_atomically(files.initramfs(), std::string(1, '\0'), {.mode = 0444});
    stop_guest(deadline);
    copy_through_relay(files, deadline);
    auto copied = elapsed();
    ::chmod(files.memory().c_str(), 0444);
    ::chmod(files.state().c_str(), 0400);
    make_durable(files.memory());
    make_durable(files.state());
    make_durable(folder_.path());
    logger("monitor")->debug("suspension: memory copied {:.0f} ms, durable {:.0f} ms", copied, elapsed());
    return {.vmm_version = launch_.shape.vmm.version,
            .accelerator = launch_.shape.accelerator,
            .cpus = launch_.shape.cpus,
            .memory_mb = launch_.shape.memory_mb,
            .tsc_khz = launch_.shape.tsc_khz,
            .processor = launch_.shape.processor,
            .memory_digest = sampled_digest(files.memory()),
            .state_digest = sha256_hex(read_file(files.state(), k_state_limit)),
            .at = wall_now()};
  } catch (...) {
    delete_suspended_files(folder_);
    throw;
  }
}

void Suspender::stop_guest(Deadline deadline) {
  vmm_.qmp().execute("stop", nullptr, deadline);
  // What QEMU still holds of the guest's it passes on while it is asked: then nothing is left that could be
  // both in the saved state and on the channel.
  for (int i = 0; i < k_drain_rounds; i++) {
    drain_();
    vmm_.qmp().execute("query-status", nullptr, deadline);
  }
  drain_();
}

void Suspender::copy_through_relay(const Template& files, Deadline deadline) {
  auto memory = make_file(files.memory(), static_cast<off_t>(launch_.shape.memory_mb) << 20);
  check_room(folder_, vmm_);
  auto relay = start_relay(files);
  ConsoleReader console(std::move(relay.console()), files.folder / "console.log");
  auto [there, here] = wide_pipe();
  try {
    relay.begin_receiving(there.get(), deadline);
    there.reset();
    vmm_.send_whole_state(here.get(), deadline);
    here.reset();
    relay.await_loaded(deadline);
    Fd state = make_file(files.state(), 0);
    relay.save_state(state.get(), deadline);
    if (!relay.quit(2s)) throw Error(ErrorCode::timeout, "The relay of the memory did not end");
  } catch (const Error& e) {
    relay.process().signal(SIGKILL);
    relay.process().wait(Deadline::after(5s));
    if (lacks_room(memory.get(), k_full)) throw_no_room(files.folder);
    throw Error(e.code(), fmt::format("The machine's memory could not be written: {}", e.what()),
                {.subject = e.subject(), .hint = e.hint(), .causes = {console.last_lines()}});
  }
}

Vmm Suspender::start_relay(const Template& files) const {
  auto command = launch_.shape.command();
  command.memory = {.kind = GuestMemory::Kind::template_writer, .file = files.memory()};
  command.kernel = files.kernel();
  command.initramfs = files.initramfs();
  command.start = QemuCommand::Start::wait_for_state;
  return Vmm::start(command);
}

}  // namespace holt::monitor
