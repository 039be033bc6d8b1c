#include "holt/machine/availability.hpp"
#include "machine/host_facts.hpp"
#include "machine/sparse_file.hpp"
#include "machine_vm/vm_fixture.hpp"

#include <arpa/inet.h>
#include <csignal>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <set>
#include <sys/socket.h>

#include <fmt/format.h>

namespace holt::test {
namespace {

class Life : public MachineTest {};

TEST_F(Life, DataWrittenBeforeAStopIsThereAfterTheStart) {
  Removed m(create({.name = "dev"}));
  EXPECT_EQ(m->state(), MachineState::running);
  m->write_file("/root/note", "kept");
  EXPECT_EQ(m->exec_shell("echo more >> /root/note").shell_code(), 0);
  m->stop();
  EXPECT_EQ(m->state(), MachineState::stopped);
  EXPECT_EQ(code_of([&] { m->exec({"true"}); }), ErrorCode::invalid_state);
  m->start();
  EXPECT_EQ(m->read_file("/root/note"), "keptmore\n");
  auto info = m->info();
  EXPECT_EQ(info.boot_kind, BootKind::restore);
  EXPECT_GT(info.disk_bytes, 0u);
  EXPECT_TRUE(info.responsive);
}

TEST_F(Life, StopOfAStoppedMachineAndStartOfARunningOneAreQuiet) {
  Removed m(create());
  m->start();
  m->stop();
  m->stop();
  EXPECT_EQ(m->state(), MachineState::stopped);
}

TEST_F(Life, ADefinedMachineIsCreatedUntilItIsStarted) {
  Removed m(Machine::define({.name = "later",
                             .env = {{"COLOUR", "blue"}},
                             .working_dir = "/workspace",
                             .make_dirs = {"/workspace"}},
                            host));
  EXPECT_EQ(m->state(), MachineState::created);
  auto again = Machine::connect("later", {}, host);
  EXPECT_EQ(again.exec_shell("echo $COLOUR; pwd; hostname").out, "blue\n/workspace\nlater\n");
  EXPECT_EQ(m->state(), MachineState::running);
}

TEST_F(Life, AnEphemeralMachineEndsWithItsLastHandle) {
  std::string name;
  {
    auto m = create({.lifetime = Lifetime::ephemeral});
    name = m.name();
    auto copy = m;
    EXPECT_EQ(copy.exec({"true"}).shell_code(), 0);
  }
  EXPECT_TRUE(
      eventually([&] { return code_of([&] { Machine::open(name, host); }) == ErrorCode::not_found; }));
}

TEST_F(Life, ATakenNameIsAConflictAndLeavesTheFirstAlone) {
  Removed m(create({.name = "one"}));
  EXPECT_EQ(code_of([&] { create({.name = "one"}); }), ErrorCode::conflict);
  EXPECT_EQ(m->exec({"true"}).shell_code(), 0);
}

TEST_F(Life, RemoveRefusesARunningMachineWithoutForce) {
  Removed m(create());
  EXPECT_EQ(code_of([&] { m->remove(); }), ErrorCode::conflict);
  m->stop();
  m->remove();
  EXPECT_EQ(code_of([&] { m->state(); }), ErrorCode::not_found);
  EXPECT_EQ(code_of([&] { m->remove(); }), ErrorCode::not_found);
}

TEST_F(Life, LIFE_14_ARemovedNameIsFreshAtOnce) {
  for (int i = 0; i < 3; i++) {
    Removed m(create({.name = "again"}));
    EXPECT_FALSE(m->exists("/root/mark"));
    m->write_file("/root/mark", "x");
    m->remove({.mode = RemoveMode::force});
  }
}

TEST_F(Life, LIFE_15_ACommandUnderWayEndsWhenItsMachineStops) {
  Removed m(create());
  auto stream = m->exec_shell_stream("echo up; sleep 100");
  ASSERT_EQ(stream.next()->data, "up\n");
  std::jthread stopper([&] { m->stop({.grace = 1s}); });
  EXPECT_TRUE(code_of([&] {
                while (stream.next({.deadline = patient()})) {
                }
              }) == ErrorCode::outcome_unknown)
      << "a command whose machine was stopped has no known end";
}

TEST_F(Life, LIFE_24_AnIdleMachineStopsAndABackgroundProcessKeepsItUp) {
  Removed m(create({.idle_stop = 2s}));
  EXPECT_EQ(m->exec_shell("sleep 6 >/dev/null 2>&1 &").shell_code(), 0);
  auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(eventually([&] { return m->state() == MachineState::stopped; }));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 4s) << "the background process was not counted";
}

TEST_F(Life, AskingHowAMachineIsDoesNotKeepItUp) {
  Removed m(create({.idle_stop = 500ms}));
  auto asks = [&] {
    auto info = m->info();  // asks its guest, too, whether it answers
    return info.state == MachineState::stopped;
  };
  EXPECT_TRUE(eventually(asks));
}

TEST_F(Life, TheHostsEnvironmentAndFilesAreNotInTheMachine) {
  ::setenv("HOLT_TEST_SECRET", "s3cret", 1);
  Removed m(create());
  ::unsetenv("HOLT_TEST_SECRET");
  auto everything =
      m->exec_shell("env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; cat /proc/cmdline").out;
  EXPECT_EQ(everything.find("s3cret"), std::string::npos);
  EXPECT_EQ(everything.find("HOLT_TEST_SECRET"), std::string::npos);
  EXPECT_FALSE(m->exists(state.path().string()));
}

TEST_F(Life, NoPacketLeavesAMachineWithoutANetwork) {
  Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(listener);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
  ASSERT_EQ(::listen(listener.get(), 16), 0);
  socklen_t size = sizeof any;
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&any), &size);
  std::string targets = "10.0.2.2 10.0.2.15 169.254.169.254";
  ifaddrs* list = nullptr;
  ::getifaddrs(&list);
  for (auto* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
    targets += std::string(" ") + ::inet_ntoa(reinterpret_cast<sockaddr_in*>(i->ifa_addr)->sin_addr);
  }
  ::freeifaddrs(list);

  Removed m(create());
  // With the interface up and an address and a default route on it: still no frame gets out.
  auto result = m->exec({"python3", "-c", R"(
import socket, struct, fcntl, sys
s = socket.socket()
def req(name, extra): return struct.pack('16s', name) + extra
addr = lambda a: struct.pack('HH4s8x', socket.AF_INET, 0, socket.inet_aton(a))
for code, body in ((0x8916, addr('10.0.2.15')), (0x891c, addr('255.255.255.0')), (0x8914, struct.pack('H', 0x41))):
    try: fcntl.ioctl(s, code, req(b'eth0', body).ljust(40, b'\0'))
    except OSError as e: print('ioctl', hex(code), e)
port = int(sys.argv[1])
for host in sys.argv[2].split():
    if host.startswith('127.'): continue
    c = socket.socket(); c.settimeout(0.5)
    try: c.connect((host, port)); print('REACHED', host)
    except OSError as e: print(host, e)
)",
                         std::to_string(ntohs(any.sin_port)), targets},
                        {.timeout = 60s});
  EXPECT_EQ(result.out.find("REACHED"), std::string::npos) << result.out << result.err;
  EXPECT_NE(result.out.find("10.0.2.2"), std::string::npos) << result.out << result.err;
  ::fcntl(listener.get(), F_SETFL, O_NONBLOCK);
  EXPECT_LT(::accept(listener.get(), nullptr, nullptr), 0) << "somebody reached the host";
}

TEST_F(Life, CLONE_01_ClonesOfOneTemplateDifferFromTheFirstInstruction) {
  const std::string script =
      "import os,ctypes; print(os.urandom(16).hex()); "
      "print(open('/proc/sys/kernel/random/uuid').read().strip());"
      "print(open('/proc/sys/kernel/random/boot_id').read().strip()); "
      "print(open('/etc/machine-id').read().strip());"
      "print(os.uname().nodename); l=ctypes.CDLL(None); l.getauxval.restype=ctypes.c_ulong;"
      "print(ctypes.string_at(l.getauxval(25),16).hex())";
  std::set<std::string> lines;
  std::size_t count = 0;
  for (int i = 0; i < 4; i++) {
    auto m = create({.lifetime = Lifetime::ephemeral});
    auto out = m.exec({"python3", "-c", script}).out;
    std::size_t at = 0;
    for (std::size_t end = 0; (end = out.find('\n', at)) != std::string::npos; at = end + 1) {
      lines.insert(out.substr(at, end - at));
      count++;
    }
  }
  EXPECT_EQ(count, 4u * 6u);
  EXPECT_EQ(lines.size(), count) << "two machines share something that must be their own";
}

TEST_F(Life, CLONE_07_TheGuestsClockIsTheHosts) {
  Removed m(create());
  expect_right_clock(*m, 1s);
}

TEST_F(Life, CLONE_09_MachinesNeverChangeTheirTemplateOrImage) {
  constexpr unsigned k_memory_mb = 256;
  auto templates = host.directories.cache / "templates";
  {
    auto m = create({.resources = {.memory_mb = k_memory_mb}, .lifetime = Lifetime::ephemeral});
  }
  std::map<std::string, std::string> before;
  auto digest_all = [&] {
    std::map<std::string, std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(templates)) {
      auto memory = entry.path() / "memory";
      if (!std::filesystem::exists(memory)) continue;
      found[memory] = machine::sampled_digest(memory);
      // Every byte of the one that is used below.
      if (std::filesystem::file_size(memory) == std::uintmax_t{k_memory_mb} << 20) {
        found[memory] += run_process({.argv = {"sha256sum", memory}}, {.deadline = patient()}).out;
      }
    }
    auto image = image::Store(host.directories).resolve(image::k_default_image).ext4;
    found[image] = machine::sampled_digest(image);
    return found;
  };
  before = digest_all();
  {
    std::vector<Machine> clones;
    clones.reserve(2);
    for (int i = 0; i < 2; i++) {
      clones.push_back(create({.resources = {.memory_mb = k_memory_mb}, .lifetime = Lifetime::ephemeral}));
    }
    // Each writes its own pattern into its memory, at the same time, and finds it there unmixed.
    std::vector<std::jthread> writers;
    writers.reserve(clones.size());
    for (const auto& clone : clones) {
      auto script = fmt::format(
          "head -c 50000000 /dev/zero | tr '\\0' {0} > /dev/shm/fill; rm -rf /usr/share; sync; "
          "tr -d {0} < /dev/shm/fill | wc -c; stat -c %s /dev/shm/fill",
          writers.empty() ? "a" : "b");
      writers.emplace_back([clone, script] {
        auto result = clone.exec_shell(script);
        EXPECT_EQ(result.out, "0\n50000000\n") << result.err;
      });
    }
  }
  EXPECT_EQ(before, digest_all());
}

/// Whether the data of a file hold one of some texts; holes are passed over.
bool holds_one_of(const std::filesystem::path& file, const std::vector<std::string>& texts) {
  constexpr std::size_t k_piece = std::size_t{4} << 20;
  constexpr std::size_t k_overlap = 256;
  Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  std::string piece(k_piece, '\0');
  for (off_t at = ::lseek(fd.get(), 0, SEEK_DATA); at >= 0; at = ::lseek(fd.get(), at, SEEK_DATA)) {
    auto n = ::pread(fd.get(), piece.data(), piece.size(), at);
    if (n <= 0) return false;
    auto read = std::string_view(piece).substr(0, static_cast<std::size_t>(n));
    auto found = [&](const std::string& text) { return read.find(text) != std::string_view::npos; };
    if (std::ranges::any_of(texts, found)) return true;
    at += read.size() < piece.size() ? n : n - static_cast<off_t>(k_overlap);
  }
  return false;
}

TEST_F(Life, CLONE_19_SecretsReachNoDiskNoTemplateAndNoOtherProcess) {
  const std::string own = "o-27182818284";
  ::setenv("HOLT_TEST_API_KEY", own.c_str(), 1);
  const std::string given = "k-31415926535";
  auto m =
      create({.resources = {.memory_mb = 256}, .env = {{"API_KEY", given}}, .lifetime = Lifetime::ephemeral});
  ::unsetenv("HOLT_TEST_API_KEY");
  EXPECT_EQ(m.exec_shell("echo $API_KEY").out, given + "\n");
  // As they are, in base64, in a URL, in UTF-16.
  std::vector<std::string> texts{given, "ay0zMTQxNTkyNjUzNQ", "k%2D31415926535", own, "by0yNzE4MjgxODI4NA"};
  std::string wide;
  for (char letter : given) wide += {letter, '\0'};
  texts.push_back(wide);
  EXPECT_FALSE(std::ranges::any_of(texts, [](const auto& text) { return text.size() > 200; }));
  for (const auto& folder : {state.path(), host.directories.cache}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file() || entry.path().filename() == "disk.qcow2") continue;
      EXPECT_FALSE(holds_one_of(entry.path(), texts)) << entry.path();
    }
  }
  auto status = status_of(m.name());
  for (auto pid : {status.monitor->pid, status.vmm->pid}) {
    auto process = std::filesystem::path("/proc") / std::to_string(pid);
    for (const auto* name : {"environ", "cmdline"}) {
      auto text = code_of([&] { read_file(process / name, std::size_t{1} << 20); })
                      ? std::string()
                      : read_file(process / name, std::size_t{1} << 20);
      for (const auto& secret : texts) EXPECT_EQ(text.find(secret), std::string::npos) << process / name;
    }
    auto limits = read_file(process / "limits", 65536);
    auto core = limits.substr(std::min(limits.find("Max core file size"), limits.size()), 60);
    EXPECT_EQ(core.find_first_of("123456789u", 20), std::string::npos)
        << "it may write a core file: " << core;
  }
}

TEST_F(Life, LIFE_12_TwentyMachinesAtOnceAllWorkAndGo) {
  std::atomic<int> done = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 20; i++) {
    threads.emplace_back([&, i] {
      try {
        auto m = create({.name = "many-" + std::to_string(i), .lifetime = Lifetime::ephemeral});
        if (m.exec_shell("echo " + std::to_string(i)).out == std::to_string(i) + "\n") done++;
        m.remove({.mode = RemoveMode::force});
      } catch (const Error& e) {
        ADD_FAILURE() << i << ": " << e.what();
      }
    });
  }
  threads.clear();
  EXPECT_EQ(done, 20);
}

TEST_F(Life, LIFE_13_OfTwentyThatCreateOneNameOneWins) {
  std::atomic<int> won = 0;
  std::atomic<int> conflicts = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 20; i++) {
    threads.emplace_back([&] {
      auto code = code_of([&] { create({.name = "same"}); });
      won += code ? 0 : 1;
      conflicts += code == ErrorCode::conflict ? 1 : 0;
    });
  }
  threads.clear();
  EXPECT_EQ(won, 1);
  EXPECT_EQ(conflicts, 19);
  Machine::open("same", host).remove({.mode = RemoveMode::force});
}

TEST_F(Life, LIFE_13_TwoStartsAtOnceBootOnce) {
  Removed m(Machine::define({.name = "twice"}, host));
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; i++) threads.emplace_back([&] { m->start(); });
  threads.clear();
  EXPECT_EQ(m->state(), MachineState::running);
  EXPECT_EQ(m->exec({"true"}).shell_code(), 0);
}

TEST_F(Life, LIFE_13_AStartThatWaitsForAStopIsNotStoppedItself) {
  Removed m(Machine::define({.name = "again", .resources = {.memory_mb = 256}}, host));
  for (int round = 0; round < 4; round++) {
    SCOPED_TRACE(round);
    m->start();
    auto number = std::to_string(round);
    m->exec_shell("echo " + number + " > /root/round");
    std::optional<ErrorCode> stopped;
    std::jthread stopper([&] { stopped = code_of([&] { m->stop(); }); });
    ASSERT_TRUE(eventually([&] { return status_of("again").state != MachineState::running; }));
    // Several, so that one of them has the folder before the stop looks at it again.
    std::vector<std::jthread> starters;
    for (int i = 0; i < 6; i++) {
      starters.emplace_back([&] { EXPECT_EQ(code_of([&] { m->start(); }), std::nullopt); });
    }
    starters.clear();
    stopper.join();
    EXPECT_EQ(stopped, std::nullopt);
    EXPECT_EQ(m->state(), MachineState::running)
        << "the stop went on to the machine that was started behind it";
    EXPECT_EQ(m->read_file("/root/round"), number + "\n");
  }
}

TEST_F(Life, CHAN_24_RequireKvmIsRefusedAtOnceWhereKvmDoesNotWork) {
  auto verdict = probe_accelerator(host);
  if (verdict.accelerator == Accelerator::kvm) GTEST_SKIP() << "KVM works here";
  host.accelerator = AcceleratorChoice::require_kvm;
  EXPECT_TRUE(cached_accelerator(host)) << "the verdict was not remembered";
  EXPECT_EQ(code_of([&] { create(); }), ErrorCode::kvm_unavailable);
  EXPECT_EQ(local_availability(host).code, ErrorCode::kvm_unavailable);
  host.accelerator = AcceleratorChoice::automatic;
  EXPECT_TRUE(local_availability(host).available);
}

TEST_F(Life, WhatIsMissingIsNamed) {
  auto broken = host;
  broken.qemu = "/nowhere/qemu";
  EXPECT_EQ(code_of([&] { Machine::create({}, {}, broken); }), ErrorCode::hypervisor_unavailable);
  EXPECT_EQ(local_availability(broken).code, ErrorCode::hypervisor_unavailable);
  broken = host;
  broken.kernel = "/nowhere/vmlinux";
  EXPECT_EQ(code_of([&] { Machine::create({}, {}, broken); }), ErrorCode::runtime_not_installed);
  EXPECT_EQ(code_of([&] { create({.image = "no/such:image", .pull = image::PullPolicy::never}); }),
            ErrorCode::not_found);
  EXPECT_EQ(code_of([&] { create({.name = "a/b"}); }), ErrorCode::invalid_config);
}

TEST_F(Life, LIFE_28_CancelledCreationLeavesNothing) {
  for (auto delay : {1ms, 30ms, 100ms, 200ms, 300ms}) {
    CancellationToken token;
    std::jthread canceller([&] {
      std::this_thread::sleep_for(delay);  // the moment under test
      token.cancel();
    });
    try {
      auto m = Machine::create({.name = "cut"}, {.call = {.cancel = token}}, host);
      m.remove({.mode = RemoveMode::force});
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::cancelled) << e.what();
    }
    EXPECT_TRUE(Machine::list_all(host).empty());
  }
}

}  // namespace
}  // namespace holt::test
