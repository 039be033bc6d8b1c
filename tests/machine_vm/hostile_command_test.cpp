// Commands that misuse their machine: the guest program stays reachable and says the truth of them.
#include "machine_vm/vm_fixture.hpp"

namespace holt::test {
namespace {

class HostileCommands : public InOneMachine {
 protected:
  /// The guest program answers and starts a command.
  void expect_usable() {
    m->ping({.deadline = patient()});
    EXPECT_EQ(m->exec({"true"}, {.deadline = patient()}).exit_code, 0);
  }
};

TEST_F(HostileCommands, EXEC_25_SignalsAndTracersDoNotReachTheGuestProgram) {
  auto victim = m->exec_shell_stream("echo up; exec sleep 1000");
  ASSERT_EQ(victim.next()->data, "up\n");
  EXPECT_EQ(m->exec_shell("kill -9 1; kill -STOP 1; kill -SEGV 1").exit_code, 0);
  expect_usable();
  auto traced = m->exec({"python3", "-c",
                         "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"
                         "print(libc.ptrace(16, 1, 0, 0), libc.ptrace(0x4206, 1, 0, 0))\n"
                         "try: open('/proc/1/mem', 'r+b')\n"
                         "except OSError as e: print(e.errno)\n"});
  EXPECT_EQ(traced.out, "-1 -1\n13\n") << "PTRACE_ATTACH, PTRACE_SEIZE, memory: " << traced.err;
  EXPECT_EQ(m->exec_shell("kill -STOP -1; echo stopped", {.timeout = 60s}).out, "stopped\n");
  expect_usable();
  m->exec_shell("kill -CONT -1; kill -9 -1");
  auto end = victim.next({.deadline = patient()});
  EXPECT_EQ(end->result.signal, 9) << "the true end, not one made up";
  expect_usable();
}

TEST_F(HostileCommands, CommandsTraceEachOtherAllTheSame) {
  auto traced = m->exec({"python3", "-c",
                         "import ctypes, subprocess; libc = ctypes.CDLL(None)\n"
                         "p = subprocess.Popen(['sleep', '100'])\n"
                         "print(libc.ptrace(16, p.pid, 0, 0))\n"
                         "p.kill()\n"});
  EXPECT_EQ(traced.out, "0\n");
}

TEST_F(HostileCommands, EXEC_26_OneThatTakesAllMemoryIsKilledAndMarked) {
  auto hog =
      m->exec({"python3", "-c", "x = []\nwhile True: x.append(bytearray(1 << 26))"}, {.timeout = 300s});
  EXPECT_EQ(hog.signal, 9);
  EXPECT_TRUE(hog.oom);
  EXPECT_FALSE(hog.timed_out);
  expect_usable();
  auto limited = m->exec({"python3", "-c", "x = bytearray(1 << 28)"}, {.limits = {.memory = 32 << 20}});
  EXPECT_EQ(limited.signal, 9);
  EXPECT_TRUE(limited.oom);
  EXPECT_FALSE(m->exec_shell("kill -9 $$").oom) << "a kill for another reason";
}

TEST_F(HostileCommands, EXEC_26_AForkBombLeavesRoomForOthers) {
  auto processes = [&] {
    return std::stoi(m->exec_shell("cat /sys/fs/cgroup/commands/pids.current", {.deadline = patient()}).out);
  };
  auto bomb = m->exec_stream(
      {"python3", "-c", "import os\nwhile True:\n try: os.fork()\n except OSError: pass"}, {.timeout = 300s});
  EXPECT_TRUE(eventually([&] { return processes() > 100; })) << "no bomb";
  expect_usable();
  bomb.kill();
  EXPECT_TRUE(eventually([&] { return processes() < 5; }));
  auto bounded =
      m->exec_shell("for i in 1 2 3 4 5 6 7 8; do sleep 1 & done; wait", {.limits = {.processes = 4}});
  EXPECT_NE(bounded.exit_code, 0);
  expect_usable();
}

TEST_F(HostileCommands, EXEC_26_OneThatOpensAllDescriptorsTakesThemFromItselfAlone) {
  auto opener = m->exec_stream({"python3", "-c",
                                "import os, resource, time\n"
                                "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
                                "resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))\n"
                                "try:\n"
                                "  for i in range(50000): os.open('/dev/null', 0)\n"
                                "except OSError: pass\n"
                                "print('full', flush=True); time.sleep(1000)"});
  EXPECT_EQ(opener.next({.deadline = patient()})->data, "full\n");
  expect_usable();
  m->write_file("/root/f", "x");
}

TEST_F(HostileCommands, EXEC_26_OneThatFillsTheDiskStopsNoCommand) {
  m->exec_shell(
      "for i in 1 2 3 4 5 6 7; do fallocate -l 4G /root/b$i; done; head -c 2000000000 /dev/zero > "
      "/dev/shm/full");
  expect_usable();
  EXPECT_EQ(code_of([&] { m->write_file("/root/f", std::string(1 << 20, 'x')); }), ErrorCode::storage_full);
  EXPECT_EQ(m->exec_shell("rm /dev/shm/full /root/b*").exit_code, 0);
  m->write_file("/root/f", "x");
}

TEST_F(HostileCommands, EXEC_06_OutputWithoutEndIsCutAtItsLimitOrEndsTheCommand) {
  auto cut = m->exec({"yes"}, {.timeout = 2s, .output_limit = 1 << 20});
  EXPECT_EQ(cut.out.size(), std::size_t{1} << 20);
  EXPECT_TRUE(cut.out_truncated);
  EXPECT_TRUE(cut.timed_out);
  try {
    m->exec({"yes"}, {.output_limit = 100'000, .over_limit = OverLimit::fail});
    FAIL() << "expected LIMIT_EXCEEDED";
  } catch (const OutputLimitError& e) {
    EXPECT_EQ(e.code(), ErrorCode::limit_exceeded);
    EXPECT_EQ(e.limit(), 100'000U);
    EXPECT_EQ(e.out_preview().substr(0, 4), "y\ny\n");
    EXPECT_EQ(e.err_preview(), "");
  }
  EXPECT_EQ(
      m->exec({"head", "-c", "100000", "/dev/zero"}, {.output_limit = 100'000, .over_limit = OverLimit::fail})
          .out.size(),
      100'000U);
  EXPECT_TRUE(eventually(
      [&] { return m->exec_shell("cat /proc/[0-9]*/comm | grep -c '^yes$' || true").out == "0\n"; }));
}

TEST_F(HostileCommands, EXEC_24_OrphansLeaveNoZombies) {
  auto made = m->exec_shell("i=0; while [ $i -lt 300 ]; do (sh -c 'sleep 0.01' &); i=$((i+1)); done; exit 7");
  EXPECT_EQ(made.exit_code, 7) << "the reaper took the command's own end";
  EXPECT_TRUE(eventually([&] {
    return m->exec_shell("cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z ' || true").out == "0\n" &&
           m->exec_shell("cat /proc/[0-9]*/comm 2>/dev/null | grep -c '^sleep$' || true").out == "0\n";
  }));
}

using PatientCommands = HostileCommands;

// 130 s of silence, scaled: nothing between a command and its reader counts time but idle_stop, which is a
// fifth of the silence here; a timer for silent streams would have to be longer than that to be of any use.
TEST_F(PatientCommands, EXEC_27_SilenceIsNoEnd) {
  Removed quiet(Machine::create({.lifetime = Lifetime::persistent, .idle_stop = 2s}, {}, host));
  auto detached = quiet->start_shell_command("sleep 10; echo line");
  EXPECT_EQ(quiet->exec_shell("sleep 10; echo line").out, "line\n");
  auto waiting = detached.id;
  EXPECT_EQ(quiet->wait_command(waiting).result->exit_code, 0);
  EXPECT_EQ(quiet->commands().at(0).out_bytes, 5U);
}

TEST_F(PatientCommands, EXEC_32_AClockThatMovesEndsNothingEarlyAndNothingLate) {
  std::jthread mover([&] {
    m->exec_shell("sleep 0.5; date -s '+1 day' > /dev/null; sleep 1; date -s '-1 day' > /dev/null");
  });
  auto whole = m->exec({"sleep", "3"}, {.timeout = 60s});
  EXPECT_EQ(whole.exit_code, 0) << "an early timeout";
  EXPECT_GE(whole.duration, 3s);
  EXPECT_LT(whole.duration, 60s);
  mover = std::jthread([&] { m->exec_shell("sleep 0.3; date -s '-1 day' > /dev/null"); });
  EXPECT_TRUE(m->exec({"sleep", "100"}, {.timeout = 1s, .deadline = patient()}).timed_out) << "a missing one";
}

TEST_F(PatientCommands, EXEC_19_WorkingFoldersOfEveryKind) {
  m->exec_shell(
      "mkdir -p '/root/dir ' /root/real; ln -s real /root/link; touch /root/file; chmod 700 /root/real; "
      "chmod 755 /root");
  EXPECT_EQ(m->exec_shell("pwd -P", {.working_dir = "/root/link"}).out, "/root/real\n");
  EXPECT_EQ(m->exec_shell("pwd", {.working_dir = "/root/dir "}).out, "/root/dir \n");
  EXPECT_EQ(m->exec_shell("pwd", {.working_dir = "/"}).out, "/\n");
  EXPECT_EQ(code_of([&] { m->exec({"true"}, {.working_dir = "/root/file"}); }), ErrorCode::not_a_directory);
  EXPECT_EQ(code_of([&] { m->exec({"true"}, {.working_dir = "/root/real", .user = "nobody"}); }),
            ErrorCode::permission_denied);
  EXPECT_EQ(m->exec_shell("mkdir gone; cd gone; rmdir ../gone; pwd; ls; echo alive", {.working_dir = "/tmp"})
                .exit_code,
            0);
  expect_usable();
}

TEST_F(PatientCommands, EXEC_20_UsersAreFoundWhateverThePasswdFileIs) {
  m->exec_shell("echo 'extra:x:4242:nobody' >> /etc/group; echo 'own:x:4243:' >> /etc/group");
  EXPECT_EQ(m->exec_shell("id -G", {.user = "nobody"}).out, "65534 4242\n");
  EXPECT_EQ(m->exec_shell("id -u; id -g", {.user = "nobody:own"}).out, "65534\n4243\n");
  EXPECT_EQ(m->exec_shell("id -u; id -g", {.user = "1000:2000"}).out, "1000\n2000\n");
  EXPECT_EQ(code_of([&] { m->exec({"true"}, {.user = "nobody-here"}); }), ErrorCode::not_found);
  for (const char* bad : {"-1", "4294967295", "4294967296", "nobody\n"}) {
    EXPECT_EQ(code_of([&] { m->exec({"true"}, {.user = bad}); }), ErrorCode::invalid_config) << bad;
  }
  for (const char* make : {"true", "mkfifo /etc/passwd", "truncate -s 100M /etc/passwd"}) {
    m->exec({"/bin/sh", "-c", std::string("rm -f /etc/passwd; ") + make}, {.user = "0"});
    EXPECT_EQ(m->exec_shell("id -u", {.user = "1000", .deadline = patient()}).out, "1000\n") << make;
    EXPECT_EQ(code_of([&] { m->exec({"true"}, {.user = "nobody", .deadline = patient()}); }),
              ErrorCode::not_found)
        << make;
    EXPECT_EQ(m->exec_shell("id -u").out, "0\n") << make;
  }
}

TEST_F(PatientCommands, EXEC_17_AThousandVariablesArriveAndBadOnesAreNamed) {
  ExecOptions options;
  for (int i = 0; i < 1000; ++i) options.env["V" + std::to_string(i)] = "value " + std::to_string(i);
  options.env["LARGE"] = std::string(131'000, 'x');
  options.env["ODD"] = "a \"b' $(id)\n\xc3\xa4";
  EXPECT_EQ(m->exec_shell("env | grep -c ^V; echo ${#LARGE}; printf %s \"$ODD\"", options).out,
            "1000\n131000\n" + options.env["ODD"]);
  try {
    m->exec({"true"}, {.env = {{"BAD=NAME", "secret"}}});
    FAIL() << "expected INVALID_CONFIG";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::invalid_config);
    EXPECT_EQ(std::string(e.what()).find("secret"), std::string::npos);
  }
}

}  // namespace
}  // namespace holt::test
