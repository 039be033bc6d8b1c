// Cases of the life of machines and of clones, one test each, named by the case's id.
#include "holt/machine/prune.hpp"
#include "holt/protocol/messages.hpp"
#include "machine/info.hpp"
#include "machine_vm/vm_fixture.hpp"
#include "support/sanitizers.hpp"

#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <set>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holt::test {
namespace {

std::size_t open_descriptors() {
  std::error_code error;
  auto all = std::filesystem::directory_iterator("/proc/self/fd", error);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::size_t entries_below(const std::filesystem::path& folder) {
  std::error_code error;
  auto all = std::filesystem::recursive_directory_iterator(folder, error);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// Of a script in QEMU's place.
constexpr const char* k_version =
    "case \"$*\" in *--version*) echo 'QEMU emulator version 7.2.1'; exit 0;; esac\n";

std::size_t tasks() {
  std::error_code error;
  auto all = std::filesystem::directory_iterator("/proc/self/task", error);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

class Cases : public MachineTest {
 protected:
  machine::MachineFolder folder(const std::string& name) {
    return machine::MachineFolders(host.directories).of(name);
  }

  /// The exit code of a process that runs `body`, 100 when it throws.
  static int in_child(const std::function<int()>& body) {
    pid_t pid = ::fork();
    if (pid == 0) {
      try {
        ::_exit(body());
      } catch (...) {
        ::_exit(100);
      }
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::filesystem::path script(const std::string& name, const std::string& text) {
    auto path = state.path() / name;
    write_file_atomically(path, "#!/bin/sh\n" + text, {.mode = 0755});
    return path;
  }
};

TEST_F(Cases, LIFE_02_ARemovalThatIsKilledIsFinishedByTheNext) {
  auto root = machine::MachineFolders(host.directories).root();
  auto doomed = [&] {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(root, error)) {
      if (entry.path().filename().string().starts_with(".removing-")) return entry.path();
    }
    return std::filesystem::path();
  };
  machine::MachineStatus status;
  const std::vector<std::pair<const char*, std::function<bool()>>> moments{
      {"its monitor is dead", [&] { return !is_alive(*status.monitor); }},
      {"its VMM is dead", [&] { return !is_alive(*status.vmm); }},
      {"its name is gone", [&] { return !folder("victim").exists(); }},
      {"its disk is gone",
       [&] {
         auto path = doomed();
         return !path.empty() && !std::filesystem::exists(path / "disk.qcow2");
       }},
  };
  for (const auto& [what, moment] : moments) {
    SCOPED_TRACE(what);
    create({.name = "victim", .resources = {.memory_mb = 256}}).exec_shell("echo x > /root/f; sync");
    status = status_of("victim");
    pid_t child = ::fork();
    if (child == 0) {
      code_of([&] { Machine::open("victim", host).remove({.mode = RemoveMode::force}); });
      ::_exit(0);
    }
    // A removal that is faster than this looks is whole.
    siginfo_t ended{};
    ASSERT_TRUE(eventually([&] {
      ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT);
      return ended.si_pid == child || moment();
    }));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    EXPECT_TRUE(eventually([&] {
      return std::ranges::all_of(Machine::list_all(host), [](const MachineInfo& info) {
        return info.state != MachineState::running || info.responsive;
      });
    })) << "half-removed and shown as usable";
    for (const auto& info : Machine::list_all(host)) {
      // It is whole or it is not there.
      EXPECT_EQ(Machine::connect(info.name, {}, host).read_file("/root/f"), "x\n");
      Machine::open(info.name, host).remove({.mode = RemoveMode::force});
    }
    EXPECT_TRUE(Machine::list_all(host).empty());
  }
  // A list sweeps what is left of them.
  EXPECT_TRUE(eventually([&] { return Machine::list_all(host).empty() && doomed().empty(); }));
}

TEST_F(Cases, LIFE_03_NothingIsRemovedBeforeItsVmmIsDead) {
  auto m = create({.name = "victim"});
  auto status = status_of("victim");
  ::kill(status.vmm->pid, SIGSTOP);
  ::kill(status.monitor->pid, SIGSTOP);
  std::atomic<bool> early = false;
  std::jthread watcher([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (!std::filesystem::exists(folder("victim").disk()) && is_alive(*status.vmm)) early = true;
    }
  });
  m.remove({.mode = RemoveMode::force});
  watcher.request_stop();
  watcher.join();
  EXPECT_FALSE(early);
  EXPECT_FALSE(is_alive(*status.vmm));
}

TEST_F(Cases, LIFE_06_AZombieIsDead) {
  Removed m(Machine::define({.name = "victim"}, host));
  pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  auto identity = *identify_process(child);
  ::kill(child, SIGKILL);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  auto status = status_of("victim");
  status.state = MachineState::running;
  status.vmm = status.monitor = identity;
  folder("victim").write_status(status);
  EXPECT_EQ(m->state(), MachineState::failed);
  auto begin = std::chrono::steady_clock::now();
  m->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 8s) << "it waited for a zombie to die";
  m->start();
  EXPECT_EQ(m->exec({"true"}).shell_code(), 0);
  ::waitpid(child, nullptr, 0);
}

TEST_F(Cases, LIFE_10_TooFewDescriptorsAreNamedWithTheirLimitAndLeaveNothing) {
  Removed m(create({.name = "there"}));
  for (rlim_t most : {8, 12, 16, 20, 24, 32}) {
    SCOPED_TRACE(most);
    int code = in_child([&] {
      rlimit limit{most, most};
      ::setrlimit(RLIMIT_NOFILE, &limit);
      auto [failed, text] = failure([&] {
        auto other = create({.name = "other"});
        other.exec({"true"});
      });
      if (text == "nothing was thrown") return 0;
      if (failed == ErrorCode::limit_exceeded && text.find("ulimit -n") != std::string::npos) return 0;
      std::fprintf(stderr, "%s\n", text.c_str());
      return 1;
    });
    EXPECT_EQ(code, 0);
    EXPECT_TRUE(eventually([&] {
      code_of([&] { Machine::open("other", host).remove({.mode = RemoveMode::force}); });
      return Machine::list_all(host).size() == 1;
    }));
    EXPECT_EQ(m->exec({"true"}).shell_code(), 0);
  }
}

TEST_F(Cases, LIFE_10_TooFewProcessesOrTooLittleAddressSpaceIsAnErrorAndLeavesNothing) {
  Removed m(create({.name = "there"}));
  auto try_with = [&](int resource, rlim_t most) {
    return in_child([&] {
      rlimit limit{most, most};
      ::setrlimit(resource, &limit);
      try {
        create({.name = "other"}).exec({"true"});
        return 0;
      } catch (const Error& e) {
        std::fprintf(stderr, "%s: %s %s\n", std::string(to_string(e.code())).c_str(), e.what(),
                     e.hint().c_str());
        return e.code() == ErrorCode::internal ? 1 : 2;
      }
    });
  };
  for (auto [resource, most] :
       std::vector<std::pair<int, rlim_t>>{{RLIMIT_AS, rlim_t{300} << 20}, {RLIMIT_NPROC, 1}}) {
    SCOPED_TRACE(resource);
    auto code = try_with(resource, most);
    // Root is bound by no limit of processes.
    if (resource == RLIMIT_NPROC && ::geteuid() == 0 && code == 0) continue;
    EXPECT_EQ(code, 2);
    code_of([&] { Machine::open("other", host).remove({.mode = RemoveMode::force}); });
    EXPECT_EQ(Machine::list_all(host).size(), 1u);
    EXPECT_EQ(m->exec({"true"}).shell_code(), 0);
  }
  code_of([&] { Machine::open("other", host).remove({.mode = RemoveMode::force}); });
}

TEST_F(Cases, LIFE_11_ALongPathWorksAndAHomeThatIsNoFolderIsNamed) {
  auto good = host.directories.state;
  host.directories.state = good / std::string(120, 'a') / std::string(120, 'b');
  {
    Removed m(create());
    EXPECT_EQ(m->exec({"true"}).shell_code(), 0);
  }
  write_file_atomically(good / "file", "");
  host.directories.state = good / "file" / "below";
  EXPECT_EQ(code_of([&] { create(); }), ErrorCode::not_a_directory);
  EXPECT_TRUE(Machine::list_all(host).empty());
  auto small = good / "readonly";
  std::filesystem::create_directory(small);
  if (::mount("tmpfs", small.c_str(), "tmpfs", MS_RDONLY, nullptr) == 0) {
    host.directories.state = small;
    EXPECT_NE(code_of([&] { create(); }), std::nullopt);
    ::umount2(small.c_str(), MNT_DETACH);
  }
  host.directories.state = good;
}

TEST_F(Cases, LIFE_17_CyclesOfStartWriteAndStopKeepWhatWasStoppedAndLeakNothing) {
  Removed m(Machine::define({.name = "cycled", .resources = {.memory_mb = 256}}, host));
  m->start();
  m->stop();
  auto descriptors = open_descriptors();
  auto files = entries_below(state.path());
  std::string kept;
  for (int i = 1; i <= 10; i++) {
    m->start();
    EXPECT_EQ(m->exec_shell("cat /root/log 2>/dev/null").out.substr(0, kept.size()), kept);
    m->exec_shell("echo " + std::to_string(i) + " >> /root/log");
    if (i % 5 == 0) {
      kill_and_wait(*status_of("cycled").vmm, patient());
      m->wait(WaitFor::ended, {.deadline = patient()});
    } else {
      kept = m->read_file("/root/log");
      m->stop();
    }
  }
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_LE(entries_below(state.path()), files + 1) << "a stop or a crash left a file";
}

TEST_F(Cases, LIFE_22_AMachineThatWasFrozenWithItsMonitorHasTheRightTimeAndItsCommands) {
  Removed m(create({.name = "frozen"}));
  auto stream = m->exec_shell_stream("echo up; sleep 1; echo done");
  ASSERT_EQ(stream.next()->data, "up\n");
  auto status = status_of("frozen");
  ::kill(status.vmm->pid, SIGSTOP);
  ::kill(status.monitor->pid, SIGSTOP);
  ASSERT_FALSE(eventually([] { return false; }, 3s));  // real time has to pass
  ::kill(status.monitor->pid, SIGCONT);
  ::kill(status.vmm->pid, SIGCONT);
  EXPECT_EQ(stream.next({.deadline = patient()})->data, "done\n");
  expect_right_clock(*m, 1s);
}

TEST_F(Cases, LIFE_23_TimesInTheFutureMakeNothingOldOrUnusable) {
  Removed m(create({.name = "later"}));
  m->stop();
  auto future = std::filesystem::file_time_type::clock::now() + std::chrono::hours(24 * 365);
  for (const auto& file : {folder("later").status_file(), folder("later").record_file()}) {
    std::filesystem::last_write_time(file, future);
  }
  auto found = prune({.kinds = {PruneKind::machines}, .older_than = 1s, .mode = PruneMode::remove}, host);
  EXPECT_TRUE(found.items.empty()) << "a machine of the future was taken for an old one";
  m->start();
  EXPECT_EQ(m->exec({"true"}).shell_code(), 0);
}

TEST_F(Cases, LIFE_29_AVmmThatEndsAtOnceIsMissingOrForeignIsRefusedAndLeavesNothing) {
  TempDir cache;
  host.directories.cache = cache.path();
  host.accelerator = AcceleratorChoice::tcg;
  // An ELF of a machine that is not this one (e_machine 0xf3, RISC-V).
  std::string foreign(64, '\0');
  foreign.replace(0, 20,
                  std::string("\x7f"
                              "ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\xf3\0",
                              20));
  write_file_atomically(state.path() / "foreign", foreign, {.mode = 0755});
  write_file_atomically(state.path() / "no-program", "text", {.mode = 0644});
  const std::vector<std::pair<std::filesystem::path, std::string>> broken{
      {script("ends", std::string(k_version) + "echo 'this board is unknown' >&2; exit 1\n"),
       "this board is unknown"},
      {state.path() / "missing", "missing"},
      {state.path() / "foreign", "foreign"},
      {state.path() / "no-program", "no-program"}};
  for (const auto& [program, named] : broken) {
    SCOPED_TRACE(program);
    host.qemu = program;
    try {
      create({.name = "never"});
      ADD_FAILURE() << "it started";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::hypervisor_unavailable) << e.what();
      auto text = std::string(e.what()) + e.hint();
      for (const auto& cause : e.causes()) text += cause;
      EXPECT_NE(text.find(named), std::string::npos) << text;
    }
    EXPECT_TRUE(Machine::list_all(host).empty());
    EXPECT_TRUE(eventually([&] { return processes_naming(program.string()).empty(); }));
  }
  // No template is made either, within the caller's time.
  host.qemu = script("hangs", std::string(k_version) + "exec sleep 1000\n");
  StartOptions soon{.call = {.deadline = Deadline::after(2s)}};
  EXPECT_EQ(code_of([&] { Machine::create({.name = "never"}, soon, host); }), ErrorCode::timeout);
  EXPECT_TRUE(Machine::list_all(host).empty());
}

TEST_F(Cases, LIFE_29_ABootThatNeverEndsIsGivenUpWithoutACallersDeadline) {
  // The template is made by a QEMU that works; the one in its place then hangs.
  TempDir cache;
  host.directories.cache = cache.path();
  host.accelerator = AcceleratorChoice::tcg;
  host.jail = JailChoice::off;
  auto real = host.qemu.empty() ? std::filesystem::path("qemu-system-x86_64") : host.qemu;
  auto works = "exec " + real.string() + " \"$@\"\n";
  host.qemu = script("vmm", works);
  MachineConfig config{.name = "stuck", .resources = {.cpus = 1, .memory_mb = 192}};
  Removed m(create(config));
  m->stop();
  script("vmm", "case \"$*\" in *-mon*) exec sleep 1000;; esac\n" + works);
  auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(code_of([&] { m->start(); }), ErrorCode::timeout);
  // 30 s for all attempts, wherever their parts go; the rest is a busy host's.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s + k_patience);
  EXPECT_EQ(m->state(), MachineState::failed);
  EXPECT_TRUE(m->info().reason);
  EXPECT_TRUE(eventually([&] { return all_quiet(); }));
}

TEST_F(Cases, LIFE_30_AnotherUserReachesNeitherSocketNorDiskNorList) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  // The folder itself is made passable, so that it is the machine's own folder that keeps others out.
  ::chmod(state.path().c_str(), 0755);
  Removed m(create({.name = "mine", .env = {{"KEY", "secret"}}}));
  auto path = folder("mine").path();
  EXPECT_EQ(
      in_child([&] {
        if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0) return 50;
        for (const char* file : {"machine.json", "env.json", "disk.qcow2", "monitor.sock", "console.log"}) {
          if (::access((path / file).c_str(), R_OK) == 0) return 1;
        }
        if (!Machine::list_all(host).empty()) return 2;
        if (!code_of([&] { Machine::open("mine", host).exec({"true"}); })) return 3;
        if (!code_of([&] { Machine::open("mine", host).remove({.mode = RemoveMode::force}); })) return 4;
        return 0;
      }),
      0);
  EXPECT_EQ(m->exec({"true"}).shell_code(), 0);
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms::owner_all);
}

TEST_F(Cases, CHAN_28_AnotherUserWhoReachesTheSocketIsNotServed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  Removed m(create({.name = "mine"}));
  auto socket_file = folder("mine").path() / "monitor.sock";
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  ASSERT_LT(socket_file.string().size(), sizeof address.sun_path);
  socket_file.string().copy(address.sun_path, sizeof address.sun_path - 1);
  // As if the folders kept nobody out.
  for (auto path = socket_file; path != state.path().parent_path(); path = path.parent_path()) {
    ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
  }
  std::string greeting;
  protocol::FrameWriter().append(greeting, {.type = protocol::FrameType::hello},
                                 protocol::encode(protocol::Hello{.program = "holt"}));
  /// 1 when the monitor greets, 0 when it ends the connection.
  auto answer_to = [&](uid_t user) {
    return in_child([&] {
      if (::setresgid(user, user, user) != 0 || ::setresuid(user, user, user) != 0) return 50;
      Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (!fd) return 53;
      if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return 51;
      [[maybe_unused]] auto sent = ::send(fd.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL);
      pollfd readable{fd.get(), POLLIN, 0};
      if (::poll(&readable, 1, patient().poll_timeout()) != 1) return 52;
      char byte = 0;
      return ::recv(fd.get(), &byte, 1, 0) == 1 ? 1 : 0;
    });
  };
  EXPECT_EQ(answer_to(0), 1);
  EXPECT_EQ(answer_to(65534), 0) << "1: it was greeted";
  EXPECT_EQ(m->exec({"true"}).shell_code(), 0);
}

TEST_F(Cases, LIFE_31_DescriptorsThreadsMemoryFilesAndMountsEndWhereTheyBegan) {
  auto round = [&] {
    auto m = create({.lifetime = Lifetime::ephemeral});
    for (int j = 0; j < 20; j++) m.exec({"true"});
    for (int j = 0; j < 20; j++) {
      EXPECT_NE(
          code_of([&] { create({.image = "nobody/has-this:latest", .pull = image::PullPolicy::never}); }),
          std::nullopt);
      EXPECT_NE(code_of([&] { m.exec({"true"}, {.working_dir = "/nowhere"}); }), std::nullopt);
    }
    m.remove({.mode = RemoveMode::force});
  };
  auto lines_of = [](const char* file) {
    auto text = read_file(file, std::size_t{16} << 20);
    return std::ranges::count(text, '\n');
  };
  round();
  EXPECT_TRUE(eventually([&] { return all_gone(); }));
  auto descriptors = open_descriptors();
  auto files = entries_below(state.path());
  auto threads = tasks();
  auto memory = machine::resident_memory(::getpid());
  auto mounts = lines_of("/proc/self/mounts");
  for (int i = 0; i < 5; i++) round();
  EXPECT_TRUE(eventually([&] { return all_gone(); }));
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_LE(entries_below(state.path()), files);
  EXPECT_TRUE(eventually([&] { return tasks() <= threads; })) << tasks() << " threads, once " << threads;
  EXPECT_EQ(lines_of("/proc/self/mounts"), mounts);
  // A sanitizer keeps what was freed.
  if (!k_address_sanitizer) {
    EXPECT_LT(machine::resident_memory(::getpid()), memory + (std::uint64_t{10} << 20));
  }
}

/// In QEMU's place: answers every command, says hello as the guest program, and answers the identity with
/// what stands for ANSWER.
constexpr const char* k_fake_vmm = R"(#!/usr/bin/python3
import json, os, selectors, socket, struct, sys
if '-mon' not in sys.argv: print('QEMU emulator version 7.2.1'); sys.exit(0)
qmp, agent = socket.socket(fileno=3), socket.socket(fileno=4)
def text(s): return bytes([0x58, len(s)]) + s.encode()
def cbor(m): return bytes([0xa0 + len(m)]) + b''.join(text(k) + (text(v) if isinstance(v, str) else bytes([v])) for k, v in m.items())
sequence = 0
def frame(type, stream, payload):
    global sequence
    agent.sendall(struct.pack('<IIBBHI', len(payload), stream, type, 0, 0, sequence) + payload)
    sequence += 1
def hello():
    global sequence
    sequence = 0
    frame(1, 0, cbor({'version': 1, 'program': 'fake'}))
qmp.sendall(b'{"QMP":{}}\n')
hello()
waiting = b''
events = selectors.DefaultSelector()
events.register(qmp, selectors.EVENT_READ, 'qmp')
events.register(agent, selectors.EVENT_READ, 'agent')
while True:
    for key, _ in events.select():
        if key.data == 'qmp':
            data, fds, _, _ = socket.recv_fds(qmp, 65536, 4)
            if not data: sys.exit(0)
            for fd in fds: os.close(fd)
            for line in data.splitlines():
                request = json.loads(line)
                answer = {'query-status': {'status': 'running'}, 'query-migrate': {'status': 'completed'}}
                reply = {'return': answer.get(request['execute'], {}), 'id': request.get('id')}
                qmp.sendall(json.dumps(reply).encode() + b'\n')
                if request['execute'] == 'quit': sys.exit(0)
        else:
            data = agent.recv(1 << 20)
            if not data: sys.exit(0)
            waiting += data
            while len(waiting) >= 16:
                size, stream, type = struct.unpack('<IIB', waiting[:9])
                if len(waiting) < 16 + size: break
                waiting = waiting[16 + size:]
                if type == 1: hello()
                if type == 16: ANSWER
)";

TEST_F(Cases, CLONE_02_AMachineThatDoesNotAcknowledgeItsIdentityIsDestroyed) {
  const std::vector<std::pair<const char*, ErrorCode>> answers{
      {"frame(36, stream, cbor({'code': 'INTERNAL', 'message': 'reseed /dev/urandom: failed'}))",
       ErrorCode::internal},
      {"frame(35, stream, cbor({'generation': 'of another start'}))", ErrorCode::guest_protocol},
      {"frame(35, stream, b'rubbish')", ErrorCode::guest_protocol},
      {"sys.exit(1)", ErrorCode::guest_lost}};
  host.accelerator = AcceleratorChoice::tcg;
  host.jail = JailChoice::off;
  for (const auto& [answer, expected] : answers) {
    SCOPED_TRACE(answer);
    TempDir cache;
    host.directories.cache = cache.path();
    std::string text = k_fake_vmm;
    text.replace(text.find("ANSWER"), 6, answer);
    host.qemu = state.path() / "fake-vmm";
    write_file_atomically(host.qemu, text, {.mode = 0755});
    EXPECT_EQ(code_of([&] { create({.name = "clone"}); }), expected);
    EXPECT_TRUE(Machine::list_all(host).empty());
  }
}

TEST_F(Cases, CLONE_03_NetworkSecretsOfTwoClonesDiffer) {
  // The source ports of one destination follow from a secret of the kernel, drawn at the first connection.
  auto ports = [&] {
    auto m = create({.lifetime = Lifetime::ephemeral});
    return m
        .exec({"python3", "-c",
               "import socket\n"
               "s = socket.socket(); s.bind(('127.0.0.1', 5000)); s.listen(16)\n"
               "for i in range(6):\n"
               "    c = socket.create_connection(('127.0.0.1', 5000)); print(c.getsockname()[1])\n"})
        .out;
  };
  std::set<std::string> seen;
  for (int i = 0; i < 3; i++) seen.insert(ports());
  EXPECT_EQ(seen.size(), 3u) << "two clones choose the same ports: " << *seen.begin();
  EXPECT_FALSE(seen.contains(""));
}

TEST_F(Cases, CLONE_04_NothingButTheGuestProgramRunsInAFreshMachine) {
  auto m = create({.lifetime = Lifetime::ephemeral});
  auto out = m.exec({"python3", "-c",
                     "import os\n"
                     "for p in sorted(int(x) for x in os.listdir('/proc') if x.isdigit()):\n"
                     "    try: f = open(f'/proc/{p}/stat').read()\n"
                     "    except OSError: continue\n"
                     "    ppid = int(f[f.rindex(')') + 2:].split()[1])\n"
                     "    if p == os.getpid() or p == 2 or ppid == 2: continue\n"
                     "    print(p, open(f'/proc/{p}/cmdline').read().split('\\0')[0])\n"})
                 .out;
  EXPECT_EQ(out, "1 holt-guest\n");
}

TEST_F(Cases, CLONE_06_NamesAreTheMachinesOwnAndNoHostKeyIsShared) {
  Removed a(create({.name = "first"}));
  Removed b(create({.name = "second"}));
  auto of = [](Machine& m, const char* script) { return m.exec_shell(script).out; };
  EXPECT_EQ(of(*a, "hostname"), "first\n");
  EXPECT_EQ(of(*b, "hostname"), "second\n");
  EXPECT_EQ(of(*a, "ls /etc/ssh/ssh_host_* 2>/dev/null"), "");
  auto id = of(*a, "cat /etc/machine-id");
  EXPECT_NE(id, of(*b, "cat /etc/machine-id"));
  a->exec_shell("echo 0123456789abcdef0123456789abcdef > /etc/machine-id");
  a->stop();
  a->start();
  EXPECT_EQ(of(*a, "cat /etc/machine-id"), "0123456789abcdef0123456789abcdef\n")
      << "an id of its own was replaced";
}

TEST_F(Cases, CLONE_16_OfManyFirstRunsOneBuildsTheTemplateAndADeadBuilderHoldsNobodyUp) {
  TempDir cache;
  host.directories.cache = cache.path();
  auto small = [&](const std::string& name) {
    return MachineConfig{.name = name, .resources = {.cpus = 1, .memory_mb = 192}};
  };
  pid_t builder = ::fork();
  if (builder == 0) {
    code_of([&] { create(small("killed")); });
    ::_exit(0);
  }
  auto staging = [&] {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(cache.path() / "templates", error)) {
      if (entry.path().filename().string().ends_with(".staging")) return true;
    }
    return false;
  };
  ASSERT_TRUE(eventually(staging));
  std::atomic<int> done = 0;
  std::atomic<int> built = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; i++) {
    threads.emplace_back([&, i] {
      try {
        StartOptions options{.on_progress = [&](const StartProgress& progress) {
          if (progress.step == StartProgress::Step::building_template) built++;
        }};
        auto m = Machine::create(small("first-" + std::to_string(i)), options, host);
        if (m.exec({"true"}).success()) done++;
        m.remove({.mode = RemoveMode::force});
      } catch (const Error& e) {
        ADD_FAILURE() << e.what();
      }
    });
  }
  ::kill(builder, SIGKILL);
  ::waitpid(builder, nullptr, 0);
  threads.clear();
  EXPECT_EQ(done, 4);
  EXPECT_EQ(built, 1);
  for (const auto& info : Machine::list_all(host))
    Machine::open(info.name, host).remove({.mode = RemoveMode::force});
}

TEST_F(Cases, CLONE_17_IdleClonesShareTheirTemplatesPages) {
  std::vector<Machine> machines;
  for (int i = 0; i < 4; i++) {
    machines.push_back(create({.resources = {.memory_mb = 256}, .lifetime = Lifetime::ephemeral}));
  }
  for (const auto& m : machines) {
    auto path = std::filesystem::path("/proc") / std::to_string(*m.info().pid) / "smaps_rollup";
    auto text = read_file_if_exists(path, 65536).value_or("");
    auto at = text.find("\nPss:");
    if (at == std::string::npos) GTEST_SKIP() << "the memory of QEMU cannot be looked at here";
    EXPECT_LT(std::atoi(text.c_str() + at + 5), 60 * 1024) << text;
  }
  // One that finds no room for its memory harms none of them.
  int code = in_child([&] {
    rlimit few{rlim_t{520} << 20, rlim_t{520} << 20};
    ::setrlimit(RLIMIT_AS, &few);
    auto failed = code_of([&] { create({.name = "more", .resources = {.memory_mb = 256}}); });
    return failed == ErrorCode::internal ? 1 : 0;
  });
  EXPECT_EQ(code, 0);
  for (const auto& m : machines) EXPECT_EQ(m.exec({"true"}).shell_code(), 0);
  code_of([&] { Machine::open("more", host).remove({.mode = RemoveMode::force}); });
}

TEST_F(Cases, CHAN_25_AMachineThatSpinsHoldsNoOtherUp) {
  Removed spinning(create({.resources = {.memory_mb = 256}}));
  for (int i = 0; i < 2; i++) spinning->start_shell_command("while :; do :; done");
  Removed other(create({.resources = {.memory_mb = 256}}));
  for (int i = 0; i < 10; i++) {
    EXPECT_EQ(other->exec({"true"}, {.deadline = patient()}).shell_code(), 0);
  }
  spinning->stop({.grace = 0s});
  EXPECT_EQ(spinning->state(), MachineState::stopped);
}

TEST_F(Cases, CLONE_24_FilesGivenToAMachineAreGoneWithIt) {
  auto m = create({.name = "secret"});
  m.write_file("/root/key", "k-27182818284590", {.durability = Durability::now});
  m.remove({.mode = RemoveMode::force});
  for (const auto& entry : std::filesystem::recursive_directory_iterator(state.path())) {
    if (!entry.is_regular_file()) continue;
    auto text = read_file(entry.path(), std::size_t{256} << 20);
    EXPECT_EQ(text.find("k-27182818284590"), std::string::npos) << entry.path();
  }
}

TEST_F(Cases, ADiskBelowTheDefaultIsBuiltOnceAndHoldsWhatItSays) {
  Removed a(create({.name = "small", .resources = {.memory_mb = 256, .disk_gb = 2}}));
  auto size = [](Machine& m) { return std::stoull(m.exec_shell("df --output=size -B1M / | tail -1").out); };
  EXPECT_LT(size(*a), 2048u);
  EXPECT_GT(size(*a), 1700u);
  a->exec_shell("head -c 50000000 /dev/urandom > /root/f");
  a->stop();
  a->resize({.disk_gb = 3});
  a->start();
  EXPECT_GT(size(*a), 2700u);
  EXPECT_EQ(a->exec_shell("stat -c %s /root/f").out, "50000000\n");
  EXPECT_EQ(code_of([&] { create({.resources = {.disk_gb = 4097}}); }), ErrorCode::invalid_config);
}

TEST_F(Cases, PruneTakesWhatHasEndedAndLeavesTheRest) {
  Removed up(create({.name = "up", .resources = {.memory_mb = 256}}));
  Removed sleeping(create({.name = "sleeping", .resources = {.memory_mb = 256}}));
  sleeping->suspend();
  Removed old(Machine::define({.name = "old"}, host));
  PruneOptions options{.kinds = {PruneKind::machines}, .mode = PruneMode::report};
  auto report = prune(options, host);
  ASSERT_EQ(report.items.size(), 1u);
  EXPECT_EQ(report.items[0].name, "old");
  EXPECT_GT(report.bytes(), 0u);
  EXPECT_EQ(Machine::list_all(host).size(), 3u) << "a report removed something";
  options.older_than = 1h;
  EXPECT_TRUE(prune(options, host).items.empty());
  options.older_than = {};
  options.mode = PruneMode::remove;
  EXPECT_EQ(prune(options, host).items.size(), 1u);
  EXPECT_EQ(Machine::list_all(host).size(), 2u);
  // Only what it would take: the image is shared with the other tests.
  auto images = prune({.kinds = {PruneKind::images}, .mode = PruneMode::report}, host);
  for (const auto& item : images.items) EXPECT_NE(item.name, up->info().image_reference);
}

}  // namespace
}  // namespace holt::test
