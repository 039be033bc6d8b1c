// What a program in QEMU's place can do in the jail: jail_probe.c tries, and this reads what came of it.
#include "machine/jail.hpp"

#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "machine/console.hpp"
#include "machine/host.hpp"
#include "machine/jail_stage.hpp"
#include "machine/landlock.hpp"
#include "machine/vmm.hpp"

#include <cerrno>
#include <csignal>
#include <map>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace holt::machine {
namespace {

using namespace std::chrono_literals;

/// A process that no jail may see.
class Bystander {
 public:
  Bystander() : process_(Process::start({.argv = {"/usr/bin/sleep", "1000"}})) {}
  pid_t pid() const { return process_.pid(); }

 private:
  Process process_;
};

/// A umask of this process, for one test.
class Umask {
 public:
  explicit Umask(mode_t mask) : before_(::umask(mask)) {}
  ~Umask() { ::umask(before_); }
  Umask(const Umask&) = delete;
  Umask& operator=(const Umask&) = delete;

 private:
  mode_t before_;
};

std::string read_to_end(int fd, Deadline deadline) {
  std::string text;
  for (;;) {
    pollfd ready{fd, POLLIN, 0};
    if (::poll(&ready, 1, deadline.poll_timeout()) == 0) return text + "\n(deadline)";
    char bytes[4096];
    ssize_t n = ::read(fd, bytes, sizeof bytes);
    if (n <= 0) return text;
    text.append(bytes, static_cast<std::size_t>(n));
  }
}

/// The world of a machine with its files, and a home with a secret beside it.
class Jail : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file_atomically(canary_, "secret", {.mode = 0644});
    write_file_atomically(memory_, std::string(4096, 'm'), {.mode = 0444});
    write_file_atomically(backing_, std::string(4096, 'b'), {.mode = 0444});
    write_file_atomically(disk_, std::string(4096, 'd'), {.mode = 0600});
    write_file_atomically(shim_, "", {.mode = 0644});
    write_file_atomically(list_,
                          fmt::format("canary {}\ntemplate {}\nimage {}\ndisk {}\nhost-passwd /etc/passwd\n"
                                      "other {}\n",
                                      canary_.string(), memory_.string(), backing_.string(), disk_.string(),
                                      other_disk_.string()));
    write_file_atomically(other_disk_, "another machine's", {.mode = 0644});
    std::filesystem::create_directory(home_.path() / "bin");
    std::filesystem::copy_file(HOLT_JAIL_PROBE, program_);
  }

  QemuCommand command(JailChoice jail = JailChoice::automatic) {
    return {.qemu = program_,
            .shim = shim_,
            .memory_mb = 128,
            .memory = {.kind = GuestMemory::Kind::template_reader, .file = memory_},
            .guard = TemplateGuard::rom_off,
            .disk = {.kind = GuestDisk::Kind::overlay, .file = disk_, .backing = backing_},
            .kernel = list_,
            .initramfs = fmt::format("/pid/{}", bystander_.pid()),
            .jail = jail};
  }

  void read_answers(const std::string& text) {
    std::istringstream lines(text);
    for (std::string name, value; lines >> name && std::getline(lines >> std::ws, value);) {
      answers_.emplace(name, value);
    }
    ASSERT_EQ(answers_.count("done"), 1u) << text;
  }

  void probe(JailChoice jail = JailChoice::automatic) {
    auto vmm = Vmm::start(command(jail));
    report_ = vmm.jail();
    auto text = read_to_end(vmm.console().get(), Deadline::after(60s));
    ASSERT_TRUE(vmm.process().wait(Deadline::after(60s)));
    read_answers(text);
  }

  /// The same under one confinement, whatever a stronger one would do.
  void probe_under(Confinement confinement) {
    auto [here, there] = socket_pair();
    JailStage stage(jail_plan(command()), confinement, -1);
    auto process = Process::start({.argv = command().argv(),
                                   .working_dir = "/",
                                   .fds = {{there.get(), 2}},
                                   .new_session = true,
                                   .die_with_parent = true,
                                   .namespaces = stage.namespaces(),
                                   .stage = &stage});
    there.reset();
    auto text = read_to_end(here.get(), Deadline::after(60s));
    ASSERT_TRUE(process.wait(Deadline::after(60s)));
    read_answers(text);
  }

  long answer(const std::string& name) {
    auto found = answers_.find(name);
    if (found == answers_.end()) {
      ADD_FAILURE() << "the probe did not try " << name;
      return -1;
    }
    return std::atol(found->second.c_str());
  }
  void expect_refused(const std::vector<std::string>& names) {
    for (const auto& name : names) EXPECT_NE(answer(name), 0) << name;
  }
  JailPartReport part(JailPart which) const {
    for (const auto& each : report_) {
      if (each.part == which) return each;
    }
    return {};
  }
  void expect_nothing_of_the_host() {
    expect_refused({"read:canary", "write:canary", "chmod:canary", "unlink:canary", "read:host-passwd",
                    "read:other", "write:other"});
    EXPECT_EQ(read_file(canary_, 100), "secret");
  }
  void expect_only_its_own_files_change() {
    EXPECT_EQ(answer("read:template"), 0);
    EXPECT_EQ(answer("read:image"), 0);
    EXPECT_EQ(answer("read:disk"), 0);
    EXPECT_EQ(answer("write:disk"), 0);
    expect_refused({"write:template", "truncate:template", "unlink:template", "write:image", "truncate:image",
                    "unlink:image", "chmod:template", "chmod:image", "unlink:disk", "make"});
    EXPECT_EQ(read_file(memory_, 10'000), std::string(4096, 'm'));
  }
  void expect_no_socket() {
    expect_refused(
        {"socket:inet", "socket:inet6", "socket:unix", "socket:netlink", "socket:vsock", "connect"});
  }
  void expect_no_privileges() {
    EXPECT_EQ(answer("capabilities"), 0);
    EXPECT_EQ(answer("bounding"), 0);
    EXPECT_EQ(answer("no_new_privs"), 1);
    expect_refused({"namespace:user", "namespace:clone", "mount", "umount", "chroot", "bpf", "uring", "perf",
                    "keyring", "mknod"});
  }

  Umask monitors_{077};
  Bystander bystander_;
  TempDir home_;
  TempDir state_;
  std::filesystem::path canary_ = home_.path() / "canary";
  std::filesystem::path program_ = home_.path() / "bin" / "qemu";
  std::filesystem::path memory_ = state_.path() / "memory";
  std::filesystem::path backing_ = state_.path() / "root.ext4";
  std::filesystem::path disk_ = state_.path() / "disk.qcow2";
  std::filesystem::path other_disk_ = state_.path() / "other.qcow2";
  std::filesystem::path shim_ = state_.path() / "shim.so";
  std::filesystem::path list_ = state_.path() / "list";
  std::map<std::string, std::string> answers_;
  JailReport report_;
};

TEST_F(Jail, CHAN_23_AProgramInQemusPlaceSeesNothingOfTheHost) {
  probe();
  if (part(JailPart::files).state != JailState::on) GTEST_SKIP() << part(JailPart::files).detail;
  expect_nothing_of_the_host();
  EXPECT_EQ(answer("descriptors"), 6);
  EXPECT_EQ(answers_.count("descriptor"), 0u);
}

TEST_F(Jail, ItChangesItsOwnDiskAndNeitherTemplateNorImage) {
  probe();
  if (part(JailPart::files).state != JailState::on) GTEST_SKIP() << part(JailPart::files).detail;
  expect_only_its_own_files_change();
}

TEST_F(Jail, CHAN_23_ItOpensNoSocket) {
  probe();
  expect_no_socket();
}

TEST_F(Jail, ItSeesNoOtherProcess) {
  probe();
  if (part(JailPart::namespaces).state != JailState::on) GTEST_SKIP() << part(JailPart::namespaces).detail;
  EXPECT_EQ(answer("pid"), 1);
  EXPECT_EQ(answers_["hostname"], "holt");
  EXPECT_EQ(answer("signal:own"), 0);
  expect_refused({"proc", "see", "signal", "signal:group", "signal:thread", "trace", "pidfd"});
}

TEST_F(Jail, CHAN_23_ItHasNoPrivilegesAndIsNeverRoot) {
  probe();
  expect_no_privileges();
  if (part(JailPart::user).state != JailState::on) GTEST_SKIP() << part(JailPart::user).detail;
  EXPECT_NE(answer("uid"), 0);
  EXPECT_NE(answer("euid"), 0);
  expect_refused({"become:root"});
}

TEST_F(Jail, ItIsBoundedInMemoryAndThreads) {
  probe();
  EXPECT_EQ(answer("limit:core"), 0);
  EXPECT_GT(answer("limit:memory"), 0);
  expect_refused({"raise", "allocate"});
  if (part(JailPart::namespaces).state == JailState::on) EXPECT_LE(answer("threads"), 256);
}

TEST_F(Jail, ItsEnvironmentIsThatOfTheCommand) {
  ::setenv("HOLT_JAIL_TEST_SECRET", "x", 1);
  probe();
  ::unsetenv("HOLT_JAIL_TEST_SECRET");
  EXPECT_EQ(answers_.count("environment"), 1u);
  EXPECT_EQ(answers_["environment"], "LC_ALL=C");
}

TEST_F(Jail, OtherUsersOfTheHostFareTheSame) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  for (const auto& path : {home_.path(), state_.path()}) {
    ::chown(path.c_str(), 12345, 12345);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      ::chown(entry.path().c_str(), 12345, 12345);
    }
  }
  auto [here, there] = socket_pair();
  pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(12345) != 0 || ::setuid(12345) != 0) ::_exit(1);
    try {
      auto vmm = Vmm::start(command());
      auto text = read_to_end(vmm.console().get(), Deadline::after(60s));
      text += fmt::format("state {}\n", to_string(vmm.jail().at(1).state));
      write_all(there.get(), text);
      vmm.process().wait(Deadline::after(60s));
      ::_exit(0);
    } catch (const std::exception& e) {
      write_all(there.get(), e.what());
      ::_exit(1);
    }
  }
  there.reset();
  auto text = read_to_end(here.get(), Deadline::after(60s));
  int status = 0;
  ::waitpid(child, &status, 0);
  read_answers(text);
  EXPECT_EQ(answer("uid"), 12345);
  expect_no_socket();
  expect_no_privileges();
  if (answers_["state"] != "on") GTEST_SKIP() << "no user namespaces here";
  expect_nothing_of_the_host();
  expect_only_its_own_files_change();
}

TEST_F(Jail, WithoutNamespacesLandlockKeepsFilesAndSocketsAway) {
  if (landlock_version() == 0) GTEST_SKIP() << "no Landlock in this kernel";
  probe_under(Confinement::landlock);
  expect_nothing_of_the_host();
  expect_only_its_own_files_change();
  expect_no_socket();
  expect_no_privileges();
  expect_refused({"see", "signal", "signal:thread", "trace", "pidfd"});
}

TEST_F(Jail, UserNamespacesAloneKeepTheSame) {
  try {
    probe_under(Confinement::user_namespaces);
  } catch (const ChildStageError& e) {
    GTEST_SKIP() << e.what();
  }
  expect_nothing_of_the_host();
  expect_only_its_own_files_change();
  expect_no_socket();
  expect_no_privileges();
}

TEST_F(Jail, WithNothingElseTheFilterAndTheLimitsHold) {
  probe_under(Confinement::bare);
  expect_no_socket();
  expect_no_privileges();
  expect_refused({"signal", "signal:thread", "signal:parent", "trace", "pidfd", "allocate"});
}

TEST_F(Jail, OffIsSaidAndNotSilent) {
  // Nothing holds the probe here.
  write_file_atomically(list_, fmt::format("harmless yes\ncanary {}\n", canary_.string()));
  probe(JailChoice::off);
  EXPECT_EQ(answer("read:canary"), 0);
  for (const auto& each : report_) EXPECT_EQ(each.state, JailState::off) << to_string(each.part);
}

TEST_F(Jail, ItsProcessDiesWithItsParent) {
  auto [here, there] = socket_pair();
  pid_t parent = ::fork();
  if (parent == 0) {
    auto command = this->command();
    command.qemu = "/usr/bin/sleep";
    // sleep(1) takes none of QEMU's arguments.
    auto plan = jail_plan(command);
    auto jailed =
        start_in_jail({.argv = {"/usr/bin/sleep", "1000"}, .new_session = true, .die_with_parent = true},
                      plan, JailChoice::automatic);
    auto pid = jailed.process.pid();
    write_all(there.get(), fmt::format("{}\n", pid));
    ::pause();
    ::_exit(0);
  }
  there.reset();
  char bytes[32]{};
  ASSERT_GT(::read(here.get(), bytes, sizeof bytes - 1), 0);
  auto jailed = identify_process(std::atoi(bytes));
  ASSERT_TRUE(jailed);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  auto deadline = Deadline::after(60s);
  while (is_alive(*jailed) && !deadline.passed()) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(is_alive(*jailed));
}

TEST_F(Jail, AProgramThatIsNotThereIsNotFound) {
  auto command = this->command();
  command.qemu = "/nowhere/qemu";
  try {
    Vmm::start(command);
    FAIL() << "expected HYPERVISOR_UNAVAILABLE";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::hypervisor_unavailable);
  }
}

TEST(FindVmm, UnderKvmItIsNoQemuWithoutASystemCallFilter) {
  TempDir cache;
  HostConfig host;
  host.directories.cache = cache.path();
  VmmProgram vmm;
  try {
    vmm = find_vmm(host, Accelerator::kvm);
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  auto asked = run_process({.argv = {vmm.path.string(), "-sandbox", "on", "--version"}},
                           {.deadline = Deadline::after(60s)});
  EXPECT_EQ(asked.status.exit_code, 0) << asked.err;
}

TEST(JailPlan, NamesTheFilesOfItsCommandAndNoFolderOfAUsers) {
  QemuCommand command{.qemu = "/usr/bin/qemu",
                      .memory = {.kind = GuestMemory::Kind::template_writer, .file = "/c/memory"},
                      .disk = {.kind = GuestDisk::Kind::overlay, .file = "/s/disk", .backing = "/s/image"},
                      .kernel = "/d/kernel",
                      .initramfs = "/d/initramfs"};
  std::map<std::string, JailedFile::Kind> files;
  for (const auto& file : jail_plan(command).files) files[file.path.string()] = file.kind;
  EXPECT_EQ(files.at("/c/memory"), JailedFile::Kind::write);
  EXPECT_EQ(files.at("/s/disk"), JailedFile::Kind::write);
  EXPECT_EQ(files.at("/s/image"), JailedFile::Kind::read);
  EXPECT_EQ(files.at("/d/kernel"), JailedFile::Kind::read);
  EXPECT_EQ(files.count("/dev/kvm"), 0u);
  for (const auto& [path, kind] : files) {
    if (kind != JailedFile::Kind::tree) continue;
    EXPECT_TRUE(path == "/usr" || path == "/nix/store" || path == "/gnu/store" || path == "/etc/alternatives")
        << path;
  }
  command.memory.kind = GuestMemory::Kind::template_reader;
  command.accelerator = Accelerator::kvm;
  for (const auto& file : jail_plan(command).files) files[file.path.string()] = file.kind;
  EXPECT_EQ(files.at("/c/memory"), JailedFile::Kind::read);
  EXPECT_EQ(files.at("/dev/kvm"), JailedFile::Kind::device);
}

}  // namespace
}  // namespace holt::machine
