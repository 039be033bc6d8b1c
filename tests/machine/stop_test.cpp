// What a stop says of a machine whose processes are those of this test.
#include "holt/machine/host_config.hpp"
#include "machine/host_facts.hpp"
#include "machine/lifecycle.hpp"
#include "support/asking.hpp"

#include <csignal>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace holt::machine {
namespace {

using namespace std::chrono_literals;

/// In QEMU's place: a child that takes a while to die, because it has much memory to give back.
class SlowToDie {
 public:
  SlowToDie() {
    auto [here, there] = socket_pair();
    pid_ = ::fork();
    if (pid_ == 0) {
      constexpr std::size_t k_bytes = std::size_t{256} << 20;
      void* memory =
          ::mmap(nullptr, k_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
      [[maybe_unused]] auto told = ::write(there.get(), memory == MAP_FAILED ? "-" : "x", 1);
      for (;;) ::pause();
    }
    char sign = 0;
    ready_ = ::read(here.get(), &sign, 1) == 1 && sign == 'x';
  }
  ~SlowToDie() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  SlowToDie(const SlowToDie&) = delete;
  SlowToDie& operator=(const SlowToDie&) = delete;

  bool ready() const { return ready_; }
  ProcessIdentity identity() const { return identify_process(pid_).value_or(ProcessIdentity{}); }

 private:
  pid_t pid_ = -1;
  bool ready_ = false;
};

TEST(Stop, LIFE_03_IsNoSuccessWhileTheVmmLives) {
  TempDir dir;
  MachineFolder folder(dir.path() / "dev");
  make_private_directory(folder.path());
  SlowToDie vmm;
  if (!vmm.ready()) GTEST_SKIP() << "this host has no 256 MiB to spare";
  auto identity = vmm.identity();
  folder.write_status({.state = MachineState::running, .vmm = identity, .host_boot_id = host_boot_id()});
  auto code = test::code_of([&] {
    stop_machine(folder, {.grace = 0s, .call = {.deadline = Deadline::after(0s)}}, HostConfig{});
    EXPECT_FALSE(is_alive(identity)) << "stopped, and its VMM lives";
  });
  // Where it has died at once all the same, the stop has succeeded.
  if (code) EXPECT_EQ(*code, ErrorCode::timeout);
  stop_machine(folder, {.grace = 0s, .call = {.deadline = test::patient()}}, HostConfig{});
  EXPECT_FALSE(is_alive(identity));
}

TEST(Stop, LIFE_03_ARemovalThatCannotEndTheVmmKeepsTheMachine) {
  TempDir dir;
  MachineFolders folders(dir.path());
  auto folder = folders.of("dev");
  make_private_directory(folder.path());
  write_file_atomically(folder.disk(), "disk");
  SlowToDie vmm;
  if (!vmm.ready()) GTEST_SKIP() << "this host has no 256 MiB to spare";
  auto identity = vmm.identity();
  folder.write_status({.state = MachineState::running, .vmm = identity, .host_boot_id = host_boot_id()});
  for (auto mode : {RemoveMode::stopped_only, RemoveMode::force}) {
    auto code = test::code_of([&] {
      remove_machine(folders, folder, {.mode = mode, .call = {.deadline = Deadline::after(0s)}});
      EXPECT_FALSE(is_alive(identity)) << "removed, and its VMM lives";
    });
    // Where it has died at once all the same, the removal has succeeded.
    if (!code) return;
    EXPECT_EQ(*code, ErrorCode::timeout);
    EXPECT_TRUE(std::filesystem::exists(folder.disk()));
  }
  remove_machine(folders, folder, {.mode = RemoveMode::force, .call = {.deadline = test::patient()}});
  EXPECT_FALSE(is_alive(identity));
  EXPECT_FALSE(folder.exists());
}

}  // namespace
}  // namespace holt::machine
