#include "machine/vmm.hpp"

#include "holt/base/error.hpp"
#include "holt/base/log.hpp"

#include <chrono>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>

#include <fmt/format.h>

namespace holt::machine {
namespace {

using namespace std::chrono_literals;

// A question takes the lock that the migration needs too.
constexpr auto k_migration_step = 3ms;

// Files move through this socket in frames of 256 KiB; smaller buffers mean a wake-up for each piece of one.
void enlarge_buffers(int fd) {
  int bytes = 1 << 20;
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

void set_ignore_shared(QmpClient& qmp, bool ignore, Deadline deadline) {
  Json capability{{"capability", "x-ignore-shared"}, {"state", ignore}};
  qmp.execute("migrate-set-capabilities", {{"capabilities", Json::array({capability})}}, deadline);
}

void ignore_shared_memory(QmpClient& qmp, Deadline deadline) {
  set_ignore_shared(qmp, true, deadline);
}

[[noreturn]] void throw_timeout(const char* what) {
  throw Error(ErrorCode::timeout, fmt::format("QEMU did not {} in time", what));
}

}  // namespace

Vmm Vmm::start(const QemuCommand& command) {
  auto [qmp_here, qmp_there] = socket_pair();
  auto [agent_here, agent_there] = socket_pair();
  auto [console_here, console_there] = socket_pair();
  enlarge_buffers(agent_here.get());
  enlarge_buffers(agent_there.get());
  ProcessSpec spec{.argv = command.argv(),
                   .env = command.env(),
                   .working_dir = "/",
                   .fds = {{qmp_there.get(), k_qmp_fd},
                           {agent_there.get(), k_agent_fd},
                           {console_there.get(), k_console_fd},
                           {console_there.get(), 2}},
                   .new_session = true,
                   .die_with_parent = true};
  try {
    auto jailed = start_in_jail(spec, jail_plan(command), command.jail);
    return {std::move(jailed), QmpClient(std::move(qmp_here)), std::move(agent_here),
            std::move(console_here)};
  } catch (const Error& e) {
    // Neither is mended by another QEMU.
    if (e.code() == ErrorCode::not_supported || e.code() == ErrorCode::limit_exceeded) throw;
    throw Error(ErrorCode::hypervisor_unavailable, fmt::format("Could not start QEMU: {}", e.what()),
                {.subject = command.qemu.string(), .hint = "Install qemu-system-x86, or set HOLT_QEMU."});
  }
}

void Vmm::load_state(int state_fd, std::uint64_t disk_bytes, Deadline deadline) {
  load_stopped(state_fd, disk_bytes, deadline);
  cont(deadline);
}

void Vmm::load_stopped(int state_fd, std::uint64_t disk_bytes, Deadline deadline) {
  qmp_.greet(deadline);
  ignore_shared_memory(qmp_, deadline);
  qmp_.give_fd("state", state_fd, deadline);
  qmp_.execute("migrate-incoming", {{"uri", "fd:state"}}, deadline);
  await_loaded(deadline);
  // Before the guest runs: it learns the size from the interrupt that this raises.
  if (disk_bytes > 0) resize_disk(disk_bytes, deadline);
}

void Vmm::await_loaded(Deadline deadline) {
  for (;;) {
    auto status = qmp_.execute("query-status", nullptr, deadline);
    if (status.value("status", Json()) != Json("inmigrate")) return;
    if (deadline.passed()) throw_timeout("load its state");
    std::this_thread::sleep_for(500us);
  }
}

void Vmm::resize_disk(std::uint64_t disk_bytes, Deadline deadline) {
  qmp_.execute("block_resize", {{"node-name", "d0"}, {"size", disk_bytes}}, deadline);
}

void Vmm::cont(Deadline deadline) {
  qmp_.execute("cont", nullptr, deadline);
}

void Vmm::begin_receiving(int stream_fd, Deadline deadline) {
  qmp_.greet(deadline);
  qmp_.give_fd("stream", stream_fd, deadline);
  qmp_.execute("migrate-incoming", {{"uri", "fd:stream"}}, deadline);
}

void Vmm::send_whole_state(int stream_fd, Deadline deadline) {
  set_ignore_shared(qmp_, false, deadline);
  // Its default of 128 MiB/s is for networks.
  qmp_.execute("migrate-set-parameters", {{"max-bandwidth", std::int64_t{1} << 40}}, deadline);
  qmp_.give_fd("stream", stream_fd, deadline);
  qmp_.execute("migrate", {{"uri", "fd:stream"}}, deadline);
  await_migrated(deadline);
}

void Vmm::save_state(int state_fd, Deadline deadline) {
  // Every machine starts with its link down; one with a network raises it.
  qmp_.execute("set_link", {{"name", "nic0"}, {"up", false}}, deadline);
  qmp_.execute("stop", nullptr, deadline);
  ignore_shared_memory(qmp_, deadline);
  qmp_.give_fd("state", state_fd, deadline);
  qmp_.execute("migrate", {{"uri", "fd:state"}}, deadline);
  await_migrated(deadline);
}

void Vmm::await_migrated(Deadline deadline) {
  for (;;) {
    auto status = qmp_.execute("query-migrate", nullptr, deadline).value("status", Json());
    if (status == Json("completed")) return;
    if (status == Json("failed"))
      throw Error(ErrorCode::hypervisor_unavailable, "QEMU could not write the state");
    if (deadline.passed()) throw_timeout("write the state");
    std::this_thread::sleep_for(k_migration_step);
  }
}

std::optional<ExitStatus> Vmm::quit(Duration grace) {
  try {
    qmp_.execute("quit", nullptr, Deadline::after(grace));
  } catch (const Error& e) {
    // It may have ended before it answered; the wait tells.
    logger("machine")->debug("{}", e.what());
  }
  if (auto status = jailed_.process.wait(Deadline::after(grace))) return status;
  jailed_.process.signal(SIGKILL);
  return jailed_.process.wait(Deadline::after(grace));
}

}  // namespace holt::machine
