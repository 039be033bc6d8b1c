#include "monitor/starter.hpp"

#include "holt/base/error.hpp"
#include "holt/base/ids.hpp"
#include "holt/base/log.hpp"
#include "holt/machine/names.hpp"
#include "holt/protocol/messages.hpp"
#include "monitor/start_slots.hpp"

#include <cerrno>
#include <chrono>
#include <fcntl.h>

#include <fmt/format.h>

namespace holt::monitor {

using namespace machine;

namespace {

using namespace std::chrono_literals;

constexpr auto k_restore_deadline = 5s;
constexpr auto k_cold_deadline = 15s;
constexpr auto k_all_deadline = 30s;
constexpr auto k_resume_deadline = 14s;

std::vector<protocol::Variable> environment_of(const MachineRecord& record,
                                               const std::map<std::string, std::string>& env) {
  std::map<std::string, std::string> variables;
  for (const auto& text : record.image_env) {
    auto at = text.find('=');
    if (at != std::string::npos && at > 0) variables[text.substr(0, at)] = text.substr(at + 1);
  }
  for (const auto& [name, value] : env) variables[name] = value;
  std::vector<protocol::Variable> out;
  for (const auto& [name, value] : variables) out.push_back({.name = name, .value = value});
  return out;
}

std::int64_t wall_clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Emulation is no boundary in any case; there a fixed layout saves the translation of each program anew.
protocol::IdentityRequest identity_of(const MachineRecord& record,
                                      const std::map<std::string, std::string>& env,
                                      Accelerator accelerator) {
  return {.generation = random_hex(32),
          .entropy = random_bytes(64),
          .wall_clock_ns = wall_clock_ns(),
          .hostname = host_name_of(record.config.name),
          .machine_id = record.machine_id,
          .root_size = record.disk_bytes,
          .env = environment_of(record, env),
          .working_dir = record.working_dir,
          .user = record.user,
          .make_dirs = record.config.make_dirs,
          .address_layout = accelerator == Accelerator::tcg ? protocol::AddressLayout::fixed
                                                            : protocol::AddressLayout::random};
}

/// One attempt at a start.
class Attempt {
 public:
  Attempt(const Launch& launch, const MachineRecord& record, const MachineFolder& folder,
          const std::function<void(pid_t)>& on_vmm)
      : launch_(launch), record_(record), folder_(folder), on_vmm_(on_vmm) {}

  StartedMachine restore(Deadline deadline) const {
    const auto& from = *launch_.start_from;
    auto command = base_command();
    command.memory = {.kind = GuestMemory::Kind::template_reader, .file = from.memory()};
    command.kernel = from.kernel();
    command.initramfs = from.initramfs();
    command.start = QemuCommand::Start::wait_for_state;
    return run(command, BootKind::restore, deadline, [&](Vmm& vmm, GuestLink&) {
      Fd state(::open(from.state().c_str(), O_RDONLY | O_CLOEXEC));
      if (!state) throw system_error(errno, "open the template's state", from.state());
      vmm.load_state(state.get(), record_.disk_bytes, deadline);
    });
  }

  StartedMachine boot(Deadline deadline) const {
    return run(base_command(), BootKind::cold, deadline, [&](Vmm& vmm, GuestLink& link) {
      vmm.qmp().greet(deadline);
      // The disk may have been given a new size since its file was made.
      vmm.resize_disk(record_.disk_bytes, deadline);
      link.await_hello(deadline);
    });
  }

  StartedMachine resume(const Suspension& suspension, Deadline deadline) const {
    auto begin = std::chrono::steady_clock::now();
    Template files{folder_.suspended()};
    auto command = base_command();
    command.memory = {.kind = GuestMemory::Kind::template_reader, .file = files.memory()};
    command.kernel = files.kernel();
    command.initramfs = files.initramfs();
    command.start = QemuCommand::Start::wait_for_state;
    auto vmm = Vmm::start(command);
    on_vmm_(vmm.process().pid());
    auto console = std::make_unique<ConsoleReader>(std::move(vmm.console()), folder_.console_log());
    try {
      Fd state(::open(files.state().c_str(), O_RDONLY | O_CLOEXEC));
      if (!state) throw system_error(errno, "open the machine's state", files.state());
      vmm.load_stopped(state.get(), record_.disk_bytes, deadline);
      auto link = link_to(suspension.channel, std::move(vmm.agent()));
      protocol::RenewRequest renew{
          .generation = random_hex(32), .entropy = random_bytes(64), .wall_clock_ns = wall_clock_ns()};
      link.send_bytes(suspension.channel.unsent, deadline);
      auto stream = link.send_request(renew, deadline);
      // Once the guest runs its disk changes, and the memory in the files fits it no longer.
      end_suspension(folder_);
      vmm.cont(deadline);
      auto reply = protocol::decode<protocol::RenewReply>(link.await_reply_among_others(stream, deadline));
      if (!reply) throw guest_protocol_error(reply.error());
      if (reply->generation != renew.generation) {
        throw Error(ErrorCode::guest_protocol, "The guest program acknowledged another resume");
      }
      delete_suspended_files(folder_);
      auto channel = suspension.channel;
      channel.generation = renew.generation;
      channel.unsent.clear();
      return {.vmm = std::move(vmm),
              .link = std::move(link),
              .console = std::move(console),
              .boot_kind = BootKind::resume,
              .boot_time = std::chrono::steady_clock::now() - begin,
              .generation = renew.generation,
              .channel = std::move(channel)};
    } catch (...) {
      vmm.process().signal(SIGKILL);
      vmm.process().wait(Deadline::after(5s));
      delete_suspended_files(folder_);
      throw;
    }
  }

 private:
  static GuestLink link_to(const SuspendedChannel& channel, Fd agent) {
    protocol::FrameParser parser(protocol::Side::server);
    parser.set_expected_sequence(channel.expected_sequence);
    if (auto fed = parser.feed(channel.unparsed); !fed) throw guest_protocol_error(fed.error());
    protocol::FrameWriter writer;
    writer.set_next_sequence(channel.next_sequence);
    return {std::move(agent), std::move(parser), writer, channel.next_stream};
  }

  QemuCommand base_command() const {
    auto command = launch_.shape.command();
    bool keeps = record_.config.lifetime == Lifetime::persistent;
    command.disk = {.kind = GuestDisk::Kind::overlay,
                    .file = folder_.disk(),
                    .backing = record_.image_file,
                    .flush = keeps ? GuestDisk::Flush::reaches_host : GuestDisk::Flush::never};
    return command;
  }

  template <class BringUp>
  StartedMachine run(const QemuCommand& command, BootKind kind, Deadline deadline, BringUp bring_up) const {
    auto begin = std::chrono::steady_clock::now();
    auto elapsed = [begin] {
      return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    };
    auto vmm = Vmm::start(command);
    on_vmm_(vmm.process().pid());
    auto console = std::make_unique<ConsoleReader>(std::move(vmm.console()), folder_.console_log());
    try {
      GuestLink link(std::move(vmm.agent()));
      bring_up(vmm, link);
      auto guest_runs = elapsed();
      // Greeting and identity travel together; nothing of the user's runs before the reply.
      link.send_hello(deadline);
      auto identity = identity_of(record_, launch_.env, launch_.shape.accelerator);
      auto stream = link.send_request(identity, deadline);
      link.await_hello(deadline);
      auto greeted = elapsed();
      auto reply = protocol::decode<protocol::IdentityReply>(link.await_reply(stream, deadline));
      if (!reply) throw guest_protocol_error(reply.error());
      if (reply->generation != identity.generation) {
        throw Error(ErrorCode::guest_protocol, "The guest program acknowledged another identity");
      }
      logger("monitor")->debug(
          "{}: guest runs {:.0f} ms, greets {:.0f} ms, has its identity {:.0f} ms (guest: {} ms)",
          to_string(kind), guest_runs, greeted, elapsed(), reply->duration_us / 1000);
      return {.vmm = std::move(vmm),
              .link = std::move(link),
              .console = std::move(console),
              .boot_kind = kind,
              .boot_time = std::chrono::steady_clock::now() - begin,
              .generation = identity.generation,
              .channel = {.generation = identity.generation}};
    } catch (...) {
      vmm.process().signal(SIGKILL);
      vmm.process().wait(Deadline::after(5s));
      throw;
    }
  }

  const Launch& launch_;
  const MachineRecord& record_;
  const MachineFolder& folder_;
  const std::function<void(pid_t)>& on_vmm_;
};

/// True for errors that another attempt may not meet again: the channel, the time, the VMM. What the guest
/// program itself refuses (a root file system that cannot be mounted) it refuses again.
bool may_pass(const Error& e) {
  switch (e.code()) {
    case ErrorCode::timeout:
    case ErrorCode::not_found:  // another process threw the template away
    case ErrorCode::guest_lost:
    case ErrorCode::guest_protocol:
    case ErrorCode::hypervisor_unavailable:
      return true;
    default:
      return false;
  }
}

}  // namespace

StartedMachine start_machine(const Launch& launch, const MachineRecord& record, const MachineFolder& folder,
                             const std::function<void(pid_t)>& on_vmm) {
  auto slot = take_start_slot(launch.machines.parent_path() / "start-slots");
  Attempt attempt(launch, record, folder, on_vmm);
  const auto all = Deadline::after(k_all_deadline);
  std::vector<std::string> failures;
  std::optional<Error> last;
  bool template_refused = false;
  auto note = [&](const char* what, const Error& e) {
    logger("monitor")->warn("{} of {} failed: {}", what, record.config.name, e.what());
    failures.push_back(fmt::format("{}: {}", what, e.what()));
    if (!may_pass(e)) throw e;
    last = e;
  };
  for (int i = 0; launch.start_from && i < 2; i++) {
    try {
      return attempt.restore(Deadline::after(k_restore_deadline).earlier(all));
    } catch (const Error& e) {
      // Slowness is the host's and says nothing about the template.
      template_refused = e.code() != ErrorCode::timeout;
      note("A restore", e);
    }
  }
  for (int i = 0; i < 2 && !all.passed(); i++) {
    try {
      auto started = attempt.boot(Deadline::after(k_cold_deadline).earlier(all));
      started.template_bad = template_refused;
      return started;
    } catch (const Error& e) {
      note("A cold boot", e);
    }
  }
  const char* hint = "See the console log for the guest's last words, and holt doctor for the host.";
  throw Error(last ? last->code() : ErrorCode::timeout, fmt::format("{} did not start", record.config.name),
              {.subject = record.config.name,
               .hint = last && !last->hint().empty() ? last->hint() : hint,
               .causes = failures});
}

StartedMachine resume_machine(const Launch& launch, const MachineRecord& record, const MachineFolder& folder,
                              const std::function<void(pid_t)>& on_vmm) {
  auto slot = take_start_slot(launch.machines.parent_path() / "start-slots");
  auto suspension = read_suspension(folder);
  check_suspension(folder, suspension);
  Attempt attempt(launch, record, folder, on_vmm);
  const auto all = Deadline::after(k_all_deadline);
  for (int i = 0;; i++) {
    try {
      return attempt.resume(suspension, Deadline::after(k_resume_deadline).earlier(all));
    } catch (const Error& e) {
      logger("monitor")->warn("A resume of {} failed: {}", record.config.name, e.what());
      if (i > 0 || !may_pass(e) || !folder.is_suspended()) throw;
    }
  }
}

}  // namespace holt::monitor
