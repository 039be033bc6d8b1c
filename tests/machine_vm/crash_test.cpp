// Kills with SIGKILL, at moments that are events: afterwards everything works and nothing is left.
#include "machine_vm/vm_fixture.hpp"

#include <csignal>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/wait.h>

namespace holt::test {
namespace {

class Crash : public MachineTest {
 protected:
  machine::MachineFolder folder(const std::string& name) {
    return machine::MachineFolders(host.directories).of(name);
  }

  /// Runs `body` in a process of its own.
  static pid_t in_child(const std::function<void()>& body) {
    pid_t pid = ::fork();
    if (pid != 0) return pid;
    try {
      body();
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }

  static void kill_child(pid_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }

  /// The promise behind every crash: the name works again, and the machine with it.
  void expect_usable(const std::string& name) {
    auto infos = Machine::list_all(host);
    bool there = std::ranges::any_of(infos, [&](const MachineInfo& info) { return info.name == name; });
    if (there) {
      auto m = Machine::connect(name, {}, host);
      EXPECT_EQ(m.exec({"true"}).shell_code(), 0);
      m.remove({.mode = RemoveMode::force});
    }
    auto m = create({.name = name});
    EXPECT_EQ(m.exec({"true"}).shell_code(), 0);
    m.remove({.mode = RemoveMode::force});
  }

  using Moment = std::pair<const char*, std::function<bool()>>;
  std::vector<Moment> moments_of_start(const std::string& name) {
    auto status = [this, name] {
      return folder(name).exists() ? folder(name).read_status() : machine::MachineStatus{};
    };
    return {
        {"something is staged",
         [this] {
           std::error_code error;
           auto root = machine::MachineFolders(host.directories).root();
           return std::filesystem::directory_iterator(root, error) != std::filesystem::directory_iterator();
         }},
        {"the folder has its name", [this, name] { return folder(name).exists(); }},
        {"the monitor is known", [=] { return status().monitor.has_value(); }},
        {"the VMM is known", [=] { return status().vmm.has_value(); }},
        {"it runs", [=] { return status().state == MachineState::running; }},
    };
  }
};

TEST_F(Crash, LIFE_01_TheClientIsKilledWhileItCreatesAPersistentMachine) {
  {
    auto warm = create({.lifetime = Lifetime::ephemeral});
  }
  for (const auto& [what, moment] : moments_of_start("victim")) {
    SCOPED_TRACE(what);
    pid_t child = in_child([&] {
      create({.name = "victim"});
      ::pause();
    });
    EXPECT_TRUE(eventually(moment));
    kill_child(child);
    // The monitor finishes what the client began.
    EXPECT_TRUE(eventually([&] {
      auto infos = Machine::list_all(host);
      return std::ranges::none_of(
          infos, [](const MachineInfo& info) { return info.state == MachineState::starting; });
    }));
    expect_usable("victim");
  }
}

TEST_F(Crash, LIFE_04_TheOwnerIsKilledAndItsEphemeralMachineGoes) {
  {
    auto warm = create({.lifetime = Lifetime::ephemeral});
  }
  for (const auto& [what, moment] : moments_of_start("victim")) {
    SCOPED_TRACE(what);
    pid_t child = in_child([&] {
      auto m = create({.name = "victim", .lifetime = Lifetime::ephemeral});
      ::pause();
    });
    EXPECT_TRUE(eventually(moment));
    kill_child(child);
    EXPECT_TRUE(eventually([&] { return all_gone(); }));
    expect_usable("victim");
  }
}

TEST_F(Crash, LIFE_01_TheMonitorIsKilledWhileAMachineStarts) {
  for (const auto* what : {"monitor", "vmm", "running"}) {
    SCOPED_TRACE(what);
    Removed m(Machine::define({.name = "victim"}, host));
    std::jthread starter([&] { code_of([&] { m->start(); }); });
    machine::MachineStatus status;
    EXPECT_TRUE(eventually([&] {
      status = status_of("victim");
      if (std::string_view(what) == "monitor") return status.monitor.has_value();
      if (std::string_view(what) == "vmm") return status.vmm.has_value();
      return status.state == MachineState::running;
    }));
    ASSERT_TRUE(status.monitor);
    EXPECT_TRUE(kill_and_wait(*status.monitor, patient()));
    starter.join();
    EXPECT_TRUE(eventually([&] { return all_quiet(); })) << "a VMM outlived its monitor";
    auto now = m->state();
    EXPECT_TRUE(now == MachineState::failed || now == MachineState::created) << to_string(now);
    m->start();
    EXPECT_EQ(m->exec({"true"}).shell_code(), 0);
  }
}

TEST_F(Crash, LIFE_16_AProcessIsKilledUnderACommandAndWhatWasSyncedStays) {
  for (bool monitor : {true, false}) {
    SCOPED_TRACE(monitor ? "monitor" : "VMM");
    Removed m(create({.name = "victim"}));
    EXPECT_EQ(m->exec_shell("echo kept > /root/kept; sync").shell_code(), 0);
    auto stream = m->exec_shell_stream("echo up; sleep 100");
    ASSERT_EQ(stream.next()->data, "up\n");
    auto status = status_of("victim");
    auto begin = std::chrono::steady_clock::now();
    kill_and_wait(monitor ? *status.monitor : *status.vmm, patient());
    EXPECT_EQ(code_of([&] {
                while (stream.next()) {
                }
              }),
              ErrorCode::outcome_unknown);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s) << "it waited for the command";
    EXPECT_TRUE(eventually([&] { return m->state() == MachineState::failed; }));
    auto reason = m->info().reason;
    ASSERT_TRUE(reason);
    EXPECT_EQ(reason->code, ErrorCode::guest_lost);
    if (!monitor) {
      EXPECT_EQ(reason->signal, SIGKILL);
    }
    m->start();
    EXPECT_EQ(m->read_file("/root/kept"), "kept\n");
  }
}

TEST_F(Crash, FILES_02_TheVmmIsKilledWhileAFileIsWritten) {
  Removed m(create({.name = "victim"}));
  m->write_file("/root/file", "old");
  m->exec({"sync"});
  auto writer = m->open_write("/root/file");
  writer.write(std::string(1 << 20, 'x'));
  kill_and_wait(*status_of("victim").vmm, patient());
  auto code = code_of([&] {
    writer.write(std::string(8 << 20, 'x'));
    writer.finish();
  });
  EXPECT_EQ(code, ErrorCode::outcome_unknown);
  EXPECT_TRUE(eventually([&] { return m->state() == MachineState::failed; }));
  m->start();
  EXPECT_EQ(m->read_file("/root/file"), "old");
}

TEST_F(Crash, AProcessIsKilledWhileAMachineStops) {
  for (bool monitor : {true, false}) {
    SCOPED_TRACE(monitor ? "monitor" : "VMM");
    Removed m(create({.name = "victim"}));
    std::jthread stopper([&] { code_of([&] { m->stop(); }); });
    machine::MachineStatus status;
    eventually([&] { return (status = status_of("victim")).state != MachineState::running; });
    if (monitor && status.monitor) kill_and_wait(*status.monitor, patient());
    if (!monitor && status.vmm) kill_and_wait(*status.vmm, patient());
    stopper.join();
    EXPECT_TRUE(eventually([&] { return all_quiet(); }));
    m->start();
    EXPECT_EQ(m->exec({"true"}).shell_code(), 0);
  }
}

TEST_F(Crash, LIFE_17_AStopWhoseMonitorIsKilledDoesNotPassForOneThatFlushed) {
  Removed m(create({.name = "victim"}));
  auto stream = m->exec_shell_stream("trap '' TERM; echo up; while :; do sleep 1; done");
  ASSERT_EQ(stream.next()->data, "up\n");
  std::optional<ErrorCode> lost;
  std::jthread stopper([&] { lost = code_of([&] { m->stop({.grace = 60s}); }); });
  machine::MachineStatus status;
  ASSERT_TRUE(eventually([&] { return (status = status_of("victim")).state == MachineState::stopping; }));
  EXPECT_TRUE(kill_and_wait(*status.monitor, patient()));
  stopper.join();
  EXPECT_EQ(lost, ErrorCode::guest_lost);
  EXPECT_EQ(m->state(), MachineState::failed);
}

TEST_F(Crash, LIFE_16_CHAN_12_CHAN_25_AGuestThatEndsItselfIsFailedWithTheReason) {
  Removed m(create());
  auto code =
      code_of([&] { m->exec_shell("echo b > /proc/sysrq-trigger; sleep 100", {.deadline = patient()}); });
  EXPECT_EQ(code, ErrorCode::outcome_unknown);
  EXPECT_NE(m->state(), MachineState::running) << "the command's caller was told of the end already";
  EXPECT_TRUE(eventually([&] { return m->state() == MachineState::failed; }));
  EXPECT_NE(m->info().reason->message.find("guest"), std::string::npos) << m->info().reason->message;
  m->start();
  EXPECT_EQ(m->exec({"true"}).shell_code(), 0);
}

TEST_F(Crash, LIFE_16_CHAN_12_APanicIsNamedByItsLineAndAPowerOffAsTheGuestsOwn) {
  Removed m(create());
  auto reason_of = [&](const std::string& sysrq) {
    code_of([&] {
      m->exec_shell("echo " + sysrq + " > /proc/sysrq-trigger; sleep 100", {.deadline = patient()});
    });
    EXPECT_TRUE(eventually([&] { return m->state() == MachineState::failed; })) << to_string(m->state());
    auto reason = m->info().reason;
    return reason ? reason->message : "no reason";
  };
  EXPECT_TRUE(reason_of("c").ends_with(": Kernel panic - not syncing: sysrq triggered crash"))
      << m->info().reason->message;
  m->start();
  auto off = reason_of("o");
  EXPECT_NE(off.find("the guest ended itself (guest-shutdown)"), std::string::npos) << off;
  EXPECT_EQ(off.find("panic"), std::string::npos) << "the panic was that of another life: " << off;
}

TEST_F(Crash, LIFE_07_CHAN_10_AFrozenVmmIsShownRemovedAndHoldsNobodyUp) {
  std::vector<Machine> machines;
  machines.reserve(3);
  for (int i = 0; i < 3; i++) machines.push_back(create({.name = "frozen-" + std::to_string(i)}));
  for (const auto& m : machines) ::kill(status_of(m.name()).vmm->pid, SIGSTOP);
  std::filesystem::create_directory(machine::MachineFolders(host.directories).root() / "damaged");
  auto begin = std::chrono::steady_clock::now();
  auto infos = Machine::list_all(host);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s) << "a list waited for a machine";
  EXPECT_EQ(infos.size(), 4u);
  for (const auto& info : infos) {
    bool damaged = info.name == "damaged";
    EXPECT_EQ(info.state, damaged ? MachineState::failed : MachineState::running) << info.name;
    EXPECT_EQ(info.reason.has_value(), damaged) << info.name;
    if (!damaged) {
      EXPECT_FALSE(info.responsive) << info.name;
    }
  }
  Machine::open("damaged", host).remove({.mode = RemoveMode::force});
  EXPECT_EQ(code_of([&] { machines[0].exec({"true"}, {.deadline = Deadline::after(500ms)}); }),
            ErrorCode::timeout);
  for (auto& m : machines) m.remove({.mode = RemoveMode::force});
}

TEST_F(Crash, ACallersEarlyDeadlineOnStopKillsNobody) {
  Removed m(create({.name = "victim"}));
  m->write_file("/root/file", "kept");
  auto monitor = *status_of("victim").monitor;
  ::kill(monitor.pid, SIGSTOP);
  EXPECT_EQ(code_of([&] { m->stop({.call = {.deadline = Deadline::after(200ms)}}); }), ErrorCode::timeout);
  EXPECT_TRUE(is_alive(monitor));
  ::kill(monitor.pid, SIGCONT);
  m->stop();
  EXPECT_EQ(m->state(), MachineState::stopped);
  m->start();
  EXPECT_EQ(m->read_file("/root/file"), "kept");
}

/// A file system of a few MiB at the place of the state directory.
class FullDisk : public Crash {
 protected:
  void SetUp() override {
    Crash::SetUp();
    if (IsSkipped()) return;
    small_ = state.path() / "small";
    std::filesystem::create_directory(small_);
    if (::mount("tmpfs", small_.c_str(), "tmpfs", 0, "size=24m,mode=0700") != 0) {
      GTEST_SKIP() << "this user cannot mount a file system";
    }
    mounted_ = true;
    host.directories.state = small_;
  }
  void TearDown() override {
    Crash::TearDown();
    if (mounted_) ::umount2(small_.c_str(), MNT_DETACH);
  }
  /// Leaves `free` bytes.
  void fill(off_t free = 0) {
    Fd fd(::open((small_ / "filler").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    for (std::string piece(4096, 'x'); ::write(fd.get(), piece.data(), piece.size()) > 0;) {
    }
    ASSERT_EQ(::ftruncate(fd.get(), ::lseek(fd.get(), 0, SEEK_END) - free), 0);
  }
  /// A creation is refused with the full folder's name.
  void expect_named() {
    try {
      create({.name = "other"});
      ADD_FAILURE() << "it was made";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::storage_full) << e.what();
      EXPECT_NE((e.what() + e.subject()).find(small_.string()), std::string::npos)
          << e.what() << " " << e.subject();
    }
  }
  void grow() { ASSERT_EQ(::mount("tmpfs", small_.c_str(), "tmpfs", MS_REMOUNT, "size=512m"), 0); }

  std::filesystem::path small_;

 private:
  bool mounted_ = false;
};

TEST_F(FullDisk, LIFE_09_AMachineWaitsForSpaceAndGoesOnByItself) {
  Removed m(create({.name = "victim"}));
  auto stream = m->exec_shell_stream("dd if=/dev/urandom of=/root/big bs=1M count=48 oflag=direct && sync");
  ASSERT_TRUE(eventually([&] { return m->state() == MachineState::paused; }));
  EXPECT_EQ(m->info().reason->code, ErrorCode::storage_full);
  grow();
  std::optional<int> code;
  while (auto event = stream.next({.deadline = patient()})) {
    if (event->kind == ExecEvent::Kind::exit) code = event->result.exit_code;
  }
  EXPECT_EQ(code, 0);
  EXPECT_EQ(m->state(), MachineState::running);
}

TEST_F(FullDisk, AMachineThatWaitsForSpaceIsNotIdleAndAStopFlushesItOnceThereIsSome) {
  Removed m(create({.name = "victim", .idle_stop = 2s}));
  auto fill_guest = "dd if=/dev/urandom of=/root/big bs=1M count=48; echo kept > /root/note; sync &";
  m->exec_shell(std::string("(") + fill_guest + ") >/dev/null 2>&1");
  ASSERT_TRUE(eventually([&] { return m->state() == MachineState::paused; }));
  auto ends = [&] {
    auto state = status_of("victim").state;
    return state != MachineState::paused && state != MachineState::running;
  };
  EXPECT_FALSE(eventually(ends, 5s)) << "more than twice its idle time has passed";
  std::jthread stopper([&] { m->stop({.grace = 1s}); });
  ASSERT_TRUE(eventually([&] { return status_of("victim").state == MachineState::stopping; }));
  grow();
  stopper.join();
  EXPECT_EQ(m->state(), MachineState::stopped);
  EXPECT_FALSE(m->info().reason) << m->info().reason->message;
  m->start();
  EXPECT_EQ(m->exec_shell("cat /root/note; stat -c %s /root/big").out, "kept\n50331648\n");
}

TEST_F(FullDisk, AStopThatCannotFlushSaysWhy) {
  Removed m(create({.name = "victim"}));
  auto stream = m->exec_shell_stream("dd if=/dev/urandom of=/root/big bs=1M count=48 oflag=direct");
  ASSERT_TRUE(eventually([&] { return m->state() == MachineState::paused; }));
  EXPECT_EQ(code_of([&] { m->stop({.grace = 0s}); }), ErrorCode::storage_full);
  EXPECT_EQ(m->state(), MachineState::stopped);
  ASSERT_TRUE(m->info().reason);
  EXPECT_EQ(m->info().reason->code, ErrorCode::storage_full);
}

TEST_F(FullDisk, LIFE_08_ASuspensionThatFindsNoRoomSaysSoAndTheMachineRunsOn) {
  Removed m(create({.name = "victim"}));
  EXPECT_EQ(code_of([&] { m->suspend(); }), ErrorCode::storage_full);
  EXPECT_EQ(m->state(), MachineState::running);
  EXPECT_EQ(m->exec({"true"}).shell_code(), 0);
  EXPECT_FALSE(std::filesystem::exists(folder("victim").suspended()));
}

TEST_F(FullDisk, LIFE_08_CreateSaysSoAndListStopAndRemoveWork) {
  Removed m(create({.name = "victim"}));
  for (off_t free : {0, 1, 4096}) {
    SCOPED_TRACE(free);
    fill(free);
    expect_named();
    EXPECT_EQ(Machine::list_all(host).size(), 1u);
  }
  fill();
  auto lost = code_of([&] { m->stop({.grace = 1s}); });
  EXPECT_NE(m->state(), MachineState::running);
  EXPECT_EQ(lost, ErrorCode::storage_full);
  m->remove({.mode = RemoveMode::force});
}

TEST_F(FullDisk, LIFE_08_AFullCacheIsNamedAndWhenItHasRoomMachinesWork) {
  host.directories.state = state.path() / "state";
  host.directories.cache = small_;
  for (off_t free : {0, 4096, 8 << 20}) {
    SCOPED_TRACE(free);
    fill(free);
    expect_named();
    EXPECT_TRUE(Machine::list_all(host).empty());
  }
  std::filesystem::remove(small_ / "filler");
  grow();
  Removed m(create({.resources = {.cpus = 1, .memory_mb = 192}}));
  EXPECT_EQ(m->exec({"true"}).shell_code(), 0);
}

TEST_F(Crash, LIFE_05_ARecycledPidIsNeverSignalled) {
  Removed m(Machine::define({.name = "victim"}, host));
  auto self = *identify_process(::getpid());
  auto status = status_of("victim");
  status.state = MachineState::running;
  status.vmm = ProcessIdentity{.pid = self.pid, .start_ticks = self.start_ticks + 1};
  status.monitor = ProcessIdentity{.pid = 1, .start_ticks = 1};
  folder("victim").write_status(status);
  EXPECT_EQ(m->state(), MachineState::failed);
  m->remove({.mode = RemoveMode::force});  // alive after it: nobody was signalled
}

TEST_F(Crash, LIFE_20_DamagedMachinesAreNamedAndRemovableAndTheOthersWork) {
  Removed good(Machine::define({.name = "good"}, host));
  auto root = machine::MachineFolders(host.directories).root();
  auto record = read_file(folder("good").record_file(), std::size_t{1} << 20);
  auto damage = [&](const std::string& name, const std::string& text) {
    std::filesystem::copy(root / "good", root / name, std::filesystem::copy_options::recursive);
    write_file_atomically(folder(name).record_file(), text);
  };
  damage("empty", "");
  damage("cut", record.substr(0, record.size() / 2));
  damage("binary", std::string("\0\xff", 2));
  damage("types", R"({"format":"one","config":[],"disk_bytes":{}})");
  damage("same-name", record);
  damage("huge", record);
  std::filesystem::resize_file(folder("huge").record_file(), std::uintmax_t{1} << 30);
  damage("folder", record);
  std::filesystem::remove(folder("folder").record_file());
  std::filesystem::create_directory(folder("folder").record_file());
  damage("no-record", record);
  std::filesystem::remove(folder("no-record").record_file());
  std::filesystem::create_directory(root / "nothing");
  auto no_disk = Machine::define({.name = "no-disk"}, host);
  std::filesystem::remove(folder("no-disk").disk());

  auto infos = Machine::list_all(host);
  ASSERT_EQ(infos.size(), 11u);
  for (const auto& info : infos) {
    SCOPED_TRACE(info.name);
    if (info.name == "good") {
      EXPECT_EQ(info.state, MachineState::created);
      continue;
    }
    EXPECT_EQ(info.state, MachineState::failed);
    EXPECT_TRUE(info.reason);
    EXPECT_NE(code_of([&] { Machine::open(info.name, host).start(); }), std::nullopt);
  }
  EXPECT_NE(no_disk.info().reason.value_or(MachineFailure{}).message.find("disk of no-disk is gone"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder("no-disk").disk())) << "a disk was made behind the user's back";
  for (const auto& info : infos) {
    if (info.name != "good") Machine::open(info.name, host).remove({.mode = RemoveMode::force});
  }
  good->start();
  EXPECT_EQ(good->exec({"true"}).shell_code(), 0);
}

}  // namespace
}  // namespace holt::test
