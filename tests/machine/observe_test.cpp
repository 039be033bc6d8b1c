// What callers see of a machine while it ends or goes under their eyes.
#include "holt/base/error.hpp"
#include "machine/host_facts.hpp"
#include "machine/info.hpp"
#include "machine/lifecycle.hpp"

#include <optional>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

namespace holt::machine {
namespace {

using namespace std::chrono_literals;

class Observing : public ::testing::Test {
 protected:
  /// A machine; its lock is held as a monitor holds it.
  FileLock make() {
    auto staged = folders.stage();
    MachineRecord record;
    record.config.name = "dev";
    record.machine_id = "0123456789abcdef0123456789abcdef";
    write_file_atomically(staged.folder.path() / "machine.json", encode_record(record));
    write_file_atomically(staged.folder.path() / "disk.qcow2", "disk");
    return folders.publish(std::move(staged), "dev");
  }

  /// What a monitor does at its end. Never returns.
  [[noreturn]] static void live_and_end(const MachineFolder& folder, int told) {
    try {
      [[maybe_unused]] auto lock = FileLock::acquire(folder.lock_file(), Deadline::after(60s));
      folder.write_status({.state = MachineState::stopped, .monitor = identify_process(::getpid())});
      write_all(told, "x");
      ::_exit(0);
    } catch (const Error&) {
      ::_exit(1);
    }
  }

  TempDir dir;
  MachineFolders folders{dir.path() / "machines"};
  MachineFolder folder = folders.of("dev");
};

TEST_F(Observing, AnEndUnderTheEyesOfACallerIsNoFailure) {
  auto lock = make();
  auto status = MachineStatus{.state = MachineState::running, .host_boot_id = host_boot_id()};
  folder.write_status(status);
  std::jthread monitors([&, held = std::optional(std::move(lock))]() mutable {
    for (std::uint64_t life = 1; life <= 500; life++) {
      if (!held) held = FileLock::acquire(folder.lock_file(), Deadline::after(60s));
      status.monitor = ProcessIdentity{.pid = ::getpid(), .start_ticks = life};
      status.state = MachineState::running;
      folder.write_status(status);
      status.state = MachineState::stopped;
      folder.write_status(status);
      held.reset();
    }
  });
  for (;;) {
    auto observed = observe(folder);
    ASSERT_NE(observed.status.state, MachineState::failed) << observed.status.failure->message;
    if (!observed.monitored && observed.status.monitor && observed.status.monitor->start_ticks == 500) break;
  }
}

TEST_F(Observing, AMonitorThatHasJustGoneIsNoneThatStarts) {
  {
    auto lock = make();
  }
  for (int life = 0; life < 100; life++) {
    auto [here, there] = socket_pair();
    pid_t monitor = ::fork();
    ASSERT_GE(monitor, 0);
    if (monitor == 0) live_and_end(folder, there.get());
    there.reset();
    char written = 0;
    ASSERT_EQ(::read(here.get(), &written, 1), 1);
    std::set<MachineState> seen;
    while (FileLock::holder(folder.lock_file())) seen.insert(machine_state(folder));
    seen.insert(machine_state(folder));
    EXPECT_EQ(seen, std::set{MachineState::stopped});
    ASSERT_EQ(::waitpid(monitor, nullptr, 0), monitor);
  }
}

TEST_F(Observing, WhatIsKilledForARemovalDoesNotRun) {
  auto lock = make();
  pid_t monitor = ::fork();
  ASSERT_GE(monitor, 0);
  if (monitor == 0) ::pause();
  folder.write_status({.state = MachineState::running, .monitor = identify_process(monitor)});
  EXPECT_EQ(machine_state(folder), MachineState::running);
  ASSERT_EQ(::kill(monitor, SIGKILL), 0);
  ASSERT_EQ(::waitpid(monitor, nullptr, 0), monitor);
  EXPECT_EQ(machine_state(folder), MachineState::stopping);
}

TEST_F(Observing, WaitingForTheEndOutlivesARemoval) {
  for (int i = 0; i < 100; i++) {
    {
      auto lock = make();
    }
    folder.write_status({.state = MachineState::stopped});
    std::jthread remover([&] { folders.erase(folder); });
    EXPECT_EQ(wait_for_machine(folder, WaitFor::ended, {}).state, MachineState::stopped);
  }
}

}  // namespace
}  // namespace holt::machine
