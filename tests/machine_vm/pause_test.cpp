#include "holt/base/json.hpp"
#include "machine/event_log.hpp"
#include "machine/info.hpp"
#include "machine/suspension.hpp"
#include "machine_vm/vm_fixture.hpp"

#include <csignal>
#include <fcntl.h>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

namespace holt::test {
namespace {

std::set<std::string> kinds_of(const std::vector<MachineEvent>& events) {
  std::set<std::string> kinds;
  for (const auto& event : events) kinds.insert(event.kind);
  return kinds;
}

class Pause : public MachineTest {};

TEST_F(Pause, LIFE_25_APausedMachineStandsStillRefusesRequestsAndGoesOn) {
  Removed m(create());
  auto stream = m->exec_shell_stream("i=0; while true; do i=$((i+1)); echo $i; sleep 0.02; done");
  ASSERT_TRUE(stream.next());
  m->pause();
  m->pause();
  EXPECT_EQ(m->state(), MachineState::paused);
  EXPECT_EQ(code_of([&] { m->exec({"true"}); }), ErrorCode::invalid_state);
  EXPECT_EQ(code_of([&] { m->write_file("/x", "x"); }), ErrorCode::invalid_state);
  EXPECT_EQ(code_of([&] { m->remove(); }), ErrorCode::conflict);
  EXPECT_EQ(Machine::list_all(host).at(0).state, MachineState::paused);
  EXPECT_FALSE(m->stats().guest_answered);
  // Looked at from outside: each question to QEMU takes time of its own.
  auto vmm = m->info().pid;
  ASSERT_TRUE(vmm);
  auto before = machine::processor_time(*vmm);
  EXPECT_FALSE(eventually([&] { return machine::processor_time(*vmm) - before > 100ms; }, 1s))
      << "a paused machine uses a processor";
  m->resume();
  m->resume();
  EXPECT_EQ(m->state(), MachineState::running);
  std::string seen;
  while (seen.size() < 200) {
    auto event = stream.next({.deadline = patient()});
    ASSERT_TRUE(event);
    seen += event->data;
  }
}

TEST_F(Pause, LIFE_25_ChangesBetweenPausesStayAndStartAndStopWorkOnAPausedMachine) {
  Removed m(create());
  for (int i = 0; i < 5; i++) {
    m->exec_shell("echo " + std::to_string(i) + " >> /root/log");
    m->pause();
    m->resume();
  }
  EXPECT_EQ(m->read_file("/root/log"), "0\n1\n2\n3\n4\n");
  m->pause();
  m->start();
  EXPECT_EQ(m->state(), MachineState::running) << "a start lets a paused machine go on";
  m->pause();
  m->stop();
  EXPECT_EQ(m->state(), MachineState::stopped);
  EXPECT_FALSE(m->info().reason) << "the stop of a paused machine lost its flush";
  EXPECT_EQ(code_of([&] { m->pause(); }), ErrorCode::invalid_state);
  EXPECT_EQ(code_of([&] { m->resume(); }), ErrorCode::invalid_state);
  m->start();
  EXPECT_EQ(m->read_file("/root/log"), "0\n1\n2\n3\n4\n");
}

TEST_F(Pause, LIFE_25_AMonitorKilledWhileItsMachineIsPausedLeavesNothing) {
  Removed m(create({.name = "victim"}));
  m->pause();
  auto monitor = status_of("victim").monitor;
  ASSERT_TRUE(monitor);
  kill_and_wait(*monitor, patient());
  EXPECT_TRUE(eventually([&] { return all_quiet(); }));
  EXPECT_EQ(m->state(), MachineState::failed);
  m->start();
  EXPECT_EQ(m->exec({"true"}).shell_code(), 0);
}

TEST_F(Pause, CLONE_08_TheClockIsRightBehindAPauseAndGuestTimeStoodStill) {
  Removed m(create());
  auto uptime = [&] { return std::chrono::duration<double>(std::stod(m->read_file("/proc/uptime"))); };
  auto before = std::chrono::steady_clock::now();
  auto guest_before = uptime();
  m->pause();
  auto paused = std::chrono::steady_clock::now();
  ASSERT_FALSE(eventually([] { return false; }, 3s));  // real time has to pass
  auto stood = std::chrono::steady_clock::now() - paused;
  m->resume();
  auto guest_passed = uptime() - guest_before;
  auto passed = std::chrono::steady_clock::now() - before;
  EXPECT_LT(guest_passed, passed - stood + 200ms) << "the guest counted the time in which it stood still";
  expect_right_clock(*m, 1s);
}

class Suspend : public MachineTest {
 protected:
  static bool runs(Machine& m, const std::string& program) {
    return m.exec_shell("cat /proc/[0-9]*/comm").out.find("\n" + program + "\n") != std::string::npos;
  }
  void expect_resumes(Machine& m) {
    m.start();
    EXPECT_EQ(m.state(), MachineState::running);
    EXPECT_EQ(m.info().boot_kind, BootKind::resume);
    EXPECT_FALSE(std::filesystem::exists(folder_of(m).suspended()));
  }
};

TEST_F(Suspend, ProcessesMemoryAndUnsyncedFilesAreThereAgain) {
  Removed m(create({.name = "dev"}));
  m->exec_shell(
      "(i=0; while true; do i=$((i+1)); echo $i > /run/count; sleep 0.02; done) >/dev/null 2>&1 &\n"
      "head -c 20000000 /dev/urandom > /dev/shm/data; sha256sum /dev/shm/data > /dev/shm/sum; echo open > "
      "/root/f");
  auto identity = [&] {
    return m->exec_shell("hostname; cat /etc/machine-id /proc/sys/kernel/random/boot_id").out;
  };
  auto before = identity();
  m->suspend();
  EXPECT_EQ(m->state(), MachineState::suspended);
  m->suspend();
  EXPECT_TRUE(eventually([&] { return all_quiet(); })) << "a suspended machine has no process";
  auto info = m->info();
  EXPECT_GT(info.suspended_bytes, 20'000'000u);
  EXPECT_LT(info.suspended_bytes, std::uint64_t{500} << 20) << "zero pages were written";
  EXPECT_EQ(info.memory_bytes, 0u);
  EXPECT_EQ(code_of([&] { m->exec({"true"}); }), ErrorCode::invalid_state);
  expect_resumes(*m);
  EXPECT_EQ(m->exec_shell("cd / && sha256sum -c --quiet /dev/shm/sum && cat /root/f").out, "open\n");
  EXPECT_EQ(identity(), before) << "host name, machine id and boot id stay";
  auto count = [&] { return std::stoi("0" + m->read_file("/run/count")); };
  auto first = count();
  EXPECT_TRUE(eventually([&] { return count() > first + 3; })) << "the background process does not go on";
  expect_right_clock(*m, 1s);
}

TEST_F(Suspend, CLONE_18_TenGenerationsOfOneMachineAreEachToldThatTheyAreAnother) {
  Removed m(create({.resources = {.memory_mb = 256}}));
  m->exec_shell("(while true; do sleep 0.01; done) >/dev/null 2>&1 &");
  std::set<std::string> random;
  for (int i = 0; i < 10; i++) {
    m->suspend();
    m->resume();
    random.insert(m->exec_shell("head -c 16 /dev/urandom | od -An -tx1").out);
    m->exec_shell("echo " + std::to_string(i) + " >> /root/log");
  }
  EXPECT_EQ(random.size(), 10u);
  EXPECT_EQ(m->exec_shell("wc -l < /root/log").out, "10\n");
  m->stop();
  m->start();
  EXPECT_EQ(m->exec_shell("wc -l < /root/log").out, "10\n");
}

TEST_F(Suspend, ACommandUnderWayGoesOnAndItsCallerLearnsOfTheSuspension) {
  Removed m(create());
  // Far more output than a window holds: behind the resume nobody reads it, and it must not block.
  auto script = "echo up; sleep 0.5; head -c 8000000 /dev/zero; echo end > /root/end; sleep 1000";
  ExecOptions once{.idempotency_key = "once"};
  auto stream = m->exec_shell_stream(script, once);
  auto first = stream.next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->data, "up\n");
  std::jthread suspender([&] { m->suspend(); });
  EXPECT_EQ(code_of([&] {
              while (stream.next({.deadline = patient()})) {
              }
            }),
            ErrorCode::outcome_unknown);
  suspender.join();
  m->resume();
  EXPECT_TRUE(eventually([&] { return m->exists("/root/end"); })) << "the command waits for its reader";
  EXPECT_TRUE(runs(*m, "sleep"));
  auto again = m->exec_shell_stream(script, once);
  auto repeated = again.next({.deadline = patient()});
  ASSERT_TRUE(repeated) << "who asks again with the same key finds the command";
  EXPECT_EQ(repeated->data.substr(0, 3), "up\n");
  m->stop();
}

TEST_F(Suspend, DataOnItsWayIntoTheGuestIsNotLost) {
  Removed m(create());
  auto stream = m->exec_shell_stream("cat > /root/in", {.stdin_mode = StdinMode::pipe});
  std::atomic<std::uint64_t> sent = 0;
  std::jthread feeder([&](const std::stop_token& stop) {
    std::string piece(100'000, 'x');
    code_of([&] {
      while (!stop.stop_requested()) {
        stream.write_stdin(piece);
        sent += piece.size();
      }
    });
  });
  ASSERT_TRUE(eventually([&] { return sent > 5'000'000; }));
  m->suspend();
  feeder.request_stop();
  feeder.join();
  m->resume();
  EXPECT_EQ(m->exec({"true"}).shell_code(), 0) << "the numbers of frames do not go on";
  auto size = std::stoull(m->exec({"stat", "-c", "%s", "/root/in"}).out);
  EXPECT_GT(size, 3'000'000u);
}

TEST_F(Suspend, AStopOfASuspendedMachineWritesOutWhatWasInItsMemory) {
  Removed m(create());
  m->exec_shell("echo kept > /root/f");
  m->suspend();
  m->stop();
  EXPECT_EQ(m->state(), MachineState::stopped);
  m->start();
  EXPECT_EQ(m->read_file("/root/f"), "kept\n");
  m->exec({"sync"});
  m->suspend();
  m->stop({.grace = 0s});
  EXPECT_EQ(m->state(), MachineState::stopped);
  EXPECT_FALSE(std::filesystem::exists(folder_of(*m).suspended()));
  m->start();
  EXPECT_EQ(m->read_file("/root/f"), "kept\n");
  m->suspend();
  m->remove();
}

TEST_F(Suspend, CLONE_15_DamagedMemoryIsRefusedAndTheMachineStaysSuspended) {
  Removed m(create({.name = "dev"}));
  m->suspend();
  auto files = folder_of(*m).suspended();
  auto damage = [&](const char* name, off_t at) {
    ::chmod((files / name).c_str(), 0600);
    Fd fd(::open((files / name).c_str(), O_RDWR | O_CLOEXEC));
    char byte = 0;
    EXPECT_EQ(::pread(fd.get(), &byte, 1, at), 1);
    byte = static_cast<char>(byte ^ 1);
    EXPECT_EQ(::pwrite(fd.get(), &byte, 1, at), 1);
  };
  damage("state", 1000);
  EXPECT_EQ(code_of([&] { m->start(); }), ErrorCode::storage_error);
  EXPECT_EQ(m->state(), MachineState::suspended);
  damage("state", 1000);
  auto text = read_file(files / "suspend.json", std::size_t{1} << 20);
  write_file_atomically(files / "suspend.json", text.substr(0, text.size() / 2));
  EXPECT_EQ(code_of([&] { m->start(); }), ErrorCode::storage_error);
  auto other = text;
  other.replace(other.find("QEMU"), 4, "Qemu");
  write_file_atomically(files / "suspend.json", other);
  EXPECT_EQ(code_of([&] { m->start(); }), ErrorCode::invalid_state) << "of another QEMU";
  EXPECT_EQ(m->state(), MachineState::suspended);
  auto moved = *parse_json(text);
  moved["processor"] = "another";
  write_file_atomically(files / "suspend.json", dump_json(moved));
  EXPECT_EQ(code_of([&] { m->start(); }), ErrorCode::invalid_state) << "of another processor";
  EXPECT_EQ(m->state(), MachineState::suspended);
  write_file_atomically(files / "suspend.json", text);
  expect_resumes(*m);
}

TEST_F(Suspend, KillsAtAnyMomentLeaveASuspendedOrAnEndedMachine) {
  Removed m(create({.name = "victim"}));
  m->exec_shell("echo kept > /root/f; sync");
  for (int i = 0; i < 6; i++) {
    SCOPED_TRACE(i);
    // The monitor or QEMU is killed at another moment each time, of the suspension and of the resume.
    auto kill_later = [&](Duration after) {
      return std::jthread([&, after] {
        auto at = Deadline::after(after);
        eventually([&] { return at.passed(); });
        auto status = status_of("victim");
        auto victim = i % 2 == 0 ? status.monitor : status.vmm;
        if (victim && is_alive(*victim)) ::kill(victim->pid, SIGKILL);
      });
    };
    {
      auto killer = kill_later(100ms * i);
      code_of([&] { m->suspend(); });
    }
    EXPECT_TRUE(eventually([&] {
      auto state = m->state();
      return state == MachineState::suspended || state == MachineState::failed ||
             state == MachineState::running;
    })) << to_string(m->state());
    {
      auto killer = kill_later(60ms * i);
      code_of([&] { m->start(); });
    }
    // A VMM that was killed just now may still pass for running.
    std::string content;
    eventually([&] {
      auto code = code_of([&] {
        m->start();
        content = m->read_file("/root/f");
      });
      return code != ErrorCode::guest_lost && code != ErrorCode::invalid_state;
    });
    EXPECT_EQ(content, "kept\n");
  }
}

TEST_F(Suspend, OfManyAtOnceAndWithStopsAndStartsAllEndAsOneOfThem) {
  Removed m(create({.name = "dev"}));
  for (int round = 0; round < 3; round++) {
    std::vector<std::jthread> threads;
    threads.emplace_back([&] { code_of([&] { m->suspend(); }); });
    threads.emplace_back([&] { code_of([&] { m->suspend(); }); });
    threads.emplace_back([&] { code_of([&] { round % 2 == 0 ? m->stop() : m->start(); }); });
    threads.clear();
    auto state = m->state();
    EXPECT_TRUE(state == MachineState::suspended || state == MachineState::stopped ||
                state == MachineState::running)
        << to_string(state);
    m->start();
    EXPECT_EQ(m->exec({"true"}).shell_code(), 0);
  }
}

TEST_F(Suspend, LIFE_13_AStartThatWaitsForASuspensionLeavesTheMachineRunning) {
  Removed m(create({.name = "dev", .resources = {.memory_mb = 256}}));
  for (int round = 1; round <= 3; round++) {
    SCOPED_TRACE(round);
    std::optional<ErrorCode> suspended;
    std::jthread suspender([&] { suspended = code_of([&] { m->suspend(); }); });
    ASSERT_TRUE(eventually([&] { return status_of("dev").state != MachineState::running; }));
    m->start();
    suspender.join();
    EXPECT_EQ(suspended, std::nullopt);
    EXPECT_EQ(m->state(), MachineState::running) << "it was suspended once more";
    auto events = m->events();
    EXPECT_EQ(std::ranges::count(events, "suspended", &MachineEvent::kind), round);
    EXPECT_EQ(std::ranges::count(events, "resumed", &MachineEvent::kind), round);
  }
}

TEST_F(Suspend, AnEphemeralMachineCannotBeSuspended) {
  auto m = create({.lifetime = Lifetime::ephemeral});
  EXPECT_EQ(code_of([&] { m.suspend(); }), ErrorCode::not_supported);
  EXPECT_EQ(m.exec({"true"}).shell_code(), 0);
}

TEST_F(Suspend, LIFE_24_AnIdleMachineIsSuspendedWhateverRunsInIt) {
  Removed m(create({.idle_suspend = 3s}));
  m->exec_shell("sleep 100 >/dev/null 2>&1 &");
  ASSERT_TRUE(eventually([&] { return m->state() == MachineState::suspended; }));
  m->start();
  EXPECT_TRUE(runs(*m, "sleep"));
  EXPECT_TRUE(kinds_of(m->events()).contains("idle"));
}

class OwnerEndTest : public MachineTest {
 protected:
  /// Runs `body` in a process of its own, which then ends without any cleaning up.
  void in_a_child(const std::function<void()>& body, const std::function<void()>& end) {
    auto child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      body();
      end();
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
  }
};

TEST_F(OwnerEndTest, LIFE_04_AMachineOfAnOwnerThatDiesIsFlushedAndStopped) {
  for (int how : {0, SIGKILL, SIGSEGV}) {
    SCOPED_TRACE(how);
    in_a_child(
        [&] {
          auto m = Machine::create({.name = "owned"}, {.owner_end = OwnerEnd::stop}, host);
          m.exec_shell("echo written > /root/f");
        },
        [&] {
          if (how == SIGSEGV) ::signal(SIGSEGV, SIG_DFL);
          if (how != 0) ::kill(::getpid(), how);
        });
    auto m = Machine::open("owned", host);
    EXPECT_EQ(m.wait(WaitFor::ended, {.deadline = patient()}).state, MachineState::stopped);
    EXPECT_FALSE(m.info().reason);
    EXPECT_TRUE(kinds_of(m.events()).contains("owner-ended"));
    m.start();
    EXPECT_EQ(m.read_file("/root/f"), "written\n");
    m.remove({.mode = RemoveMode::force});
  }
}

TEST_F(OwnerEndTest, LIFE_04_AMachineGoesWithItsOwnerWhereThatIsWanted) {
  for (int how : {0, SIGKILL}) {
    SCOPED_TRACE(how);
    in_a_child(
        [&] {
          auto m = Machine::create({.name = "owned"}, {.owner_end = OwnerEnd::remove}, host);
          m.exec_shell("echo written > /root/f");
          m.stop();
          m.start({.owner_end = OwnerEnd::remove});
          if (m.read_file("/root/f") != "written\n") ::_exit(1);
        },
        [&] {
          if (how != 0) ::kill(::getpid(), how);
        });
    EXPECT_TRUE(eventually([&] { return all_gone(); }));
  }
}

TEST_F(OwnerEndTest, LIFE_04_AMachineThatWasStoppedBeforeItsOwnerEndedStays) {
  {
    auto owner = Machine::create({.name = "owned"}, {.owner_end = OwnerEnd::remove}, host);
    owner.stop();
  }
  Removed m(Machine::open("owned", host));
  EXPECT_EQ(m->state(), MachineState::stopped);
}

TEST_F(OwnerEndTest, LIFE_04_AChildOfTheOwnerThatLivesOnOrEndsChangesNothing) {
  Removed m(Machine::define({.name = "owned"}, host));
  {
    auto owner = Machine::connect("owned", {.owner_end = OwnerEnd::stop}, host);
    in_a_child([] {}, [] { ::exit(0); });
    EXPECT_EQ(owner.exec({"true"}).shell_code(), 0) << "the end of a forked child ended the machine";
  }
  EXPECT_EQ(m->wait(WaitFor::ended, {.deadline = patient()}).state, MachineState::stopped);
}

class Changes : public MachineTest {};

TEST_F(Changes, FILES_26_TheDiskGrowsAtOnceInARunningMachineAndWithTheNextStartInAStoppedOne) {
  Removed m(create({.name = "dev"}));
  auto size_of_root = [&] { return std::stoull(m->exec_shell("df --output=size -B1M / | tail -1").out); };
  EXPECT_LT(size_of_root(), 21000u);
  EXPECT_EQ(m->resize({.disk_gb = 24}).disk_gb, 24u);
  EXPECT_GT(size_of_root(), 22500u);
  EXPECT_EQ(m->exec_shell("head -c 100000 /dev/urandom > /root/f && sync").shell_code(), 0);
  EXPECT_EQ(code_of([&] { m->resize({.disk_gb = 20}); }), ErrorCode::not_supported);
  m->stop();
  m->resize({.cpus = 1, .memory_mb = 512, .disk_gb = 26});
  m->start();
  EXPECT_GT(size_of_root(), 24500u);
  EXPECT_EQ(m->exec({"nproc"}).out, "1\n");
  EXPECT_EQ(m->info().resources.memory_mb, 512u);
  EXPECT_EQ(m->exec_shell("stat -c %s /root/f").out, "100000\n");
}

TEST_F(Changes, NewProcessorsAndMemoryCountFromTheNextStartAndSaySo) {
  Removed m(create());
  EXPECT_EQ(m->resize({.cpus = 1, .memory_mb = 512}).cpus, 1u);
  EXPECT_EQ(m->info().resources.cpus, 2u);
  auto next = m->info().next_resources;
  ASSERT_TRUE(next);
  EXPECT_EQ(next->memory_mb, 512u);
  EXPECT_EQ(code_of([&] { m->resize({.cpus = 99}); }), ErrorCode::invalid_config);
  m->suspend();
  EXPECT_EQ(code_of([&] { m->resize({.disk_gb = 30}); }), ErrorCode::invalid_state);
  m->resume();
  EXPECT_EQ(m->exec({"nproc"}).out, "2\n") << "a resume goes on with what the machine had";
  m->stop();
  m->start();
  EXPECT_EQ(m->exec({"nproc"}).out, "1\n");
  EXPECT_FALSE(m->info().next_resources);
}

TEST_F(Changes, LabelsAreChangedWhileTheMachineRuns) {
  Removed m(create({.labels = {{"team", "red"}, {"old", "x"}}}));
  m->update({.labels = {{"team", "blue"}, {"old", std::nullopt}, {"new", ""}}});
  EXPECT_EQ(m->info().labels, (std::map<std::string, std::string>{{"team", "blue"}, {"new", ""}}));
  std::vector<std::jthread> threads;
  threads.reserve(8);
  for (int i = 0; i < 8; i++) {
    threads.emplace_back([&, i] { m->update({.labels = {{"n" + std::to_string(i), "1"}}}); });
  }
  threads.clear();
  EXPECT_EQ(m->info().labels.size(), 10u) << "changes at the same time were lost";
}

TEST_F(Changes, AnEnvironmentThatNoStartWouldReadIsRefused) {
  auto m = create({.lifetime = Lifetime::ephemeral});
  EXPECT_EQ(code_of([&] { m.update({.env = {{"NAME", "value"}}}); }), ErrorCode::invalid_config);
  Removed kept(Machine::define({.name = "kept", .env = {{"OLD", "x"}}}, host));
  EXPECT_EQ(code_of([&] { kept->update({.env = {{"BAD=NAME", "x"}}}); }), ErrorCode::invalid_config);
  EXPECT_EQ(kept->info().env_names, std::vector<std::string>{"OLD"});
}

TEST_F(Changes, EventsTellTheLifeAndOutliveIt) {
  Removed m(create({.name = "dev"}));
  m->pause();
  m->resume();
  m->stop();
  m->start();
  auto vmm = status_of("dev").vmm;
  ASSERT_TRUE(vmm);
  kill_and_wait(*vmm, patient());
  EXPECT_EQ(m->wait(WaitFor::ended, {.deadline = patient()}).state, MachineState::failed);
  auto kinds = kinds_of(m->events());
  for (const char* kind : {"started", "paused", "resumed", "stopped", "failed"}) {
    EXPECT_TRUE(kinds.contains(kind)) << kind;
  }
  EXPECT_EQ(m->events().back().code, ErrorCode::guest_lost);
}

TEST_F(Changes, StatsCountWhatTheMachineUses) {
  Removed m(create());
  m->exec_shell("head -c 30000000 /dev/zero > /root/f; sync; sleep 100 >/dev/null 2>&1 &");
  auto stats = m->stats();
  EXPECT_TRUE(stats.guest_answered);
  EXPECT_GT(stats.cpu_time, 10ms);
  EXPECT_GT(stats.host_memory, std::uint64_t{10} << 20);
  EXPECT_GT(stats.memory_limit, std::uint64_t{800} << 20);
  EXPECT_LT(stats.memory_used, stats.memory_limit);
  EXPECT_GT(stats.disk_written, 30'000'000u);
  EXPECT_GE(stats.processes, 1u);
  m->stop();
  EXPECT_EQ(code_of([&] { m->stats(); }), ErrorCode::invalid_state);
}

TEST_F(Changes, WaitEndsWithTheStateThatWasWaitedFor) {
  Removed m(Machine::define({.name = "dev"}, host));
  EXPECT_EQ(code_of([&] { m->wait(WaitFor::ready, {.deadline = Deadline::after(50ms)}); }),
            ErrorCode::timeout);
  std::jthread starter([&] { m->start(); });
  EXPECT_EQ(m->wait(WaitFor::ready, {.deadline = patient()}).state, MachineState::running);
  starter.join();
  std::jthread stopper([&] { m->stop(); });
  EXPECT_EQ(m->wait(WaitFor::ended, {.deadline = patient()}).state, MachineState::stopped);
  stopper.join();
  m->remove();
  EXPECT_EQ(m->wait(WaitFor::ended).state, MachineState::stopped);
}

}  // namespace
}  // namespace holt::test
