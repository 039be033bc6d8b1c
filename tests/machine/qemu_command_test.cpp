#include "machine/qemu_command.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holt::machine {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

QemuCommand machine_command() {
  return {.qemu = "/usr/bin/qemu",
          .shim = "/lib/shim.so",
          .memory_mb = 512,
          .tsc_khz = 2500000,
          .memory = {.kind = GuestMemory::Kind::template_reader, .file = "/t/memory"},
          .disk = {.kind = GuestDisk::Kind::overlay, .file = "/m/disk.qcow2", .backing = "/i/root.ext4"},
          .kernel = "/k",
          .initramfs = "/i",
          .start = QemuCommand::Start::wait_for_state};
}

std::string value_after(const std::vector<std::string>& argv, const std::string& option) {
  auto at = std::ranges::find(argv, option);
  return at == argv.end() || at + 1 == argv.end() ? "" : *(at + 1);
}

std::vector<std::string> devices(const QemuCommand& command) {
  std::vector<std::string> found;
  auto argv = command.argv();
  for (std::size_t i = 0; i + 1 < argv.size(); i++) {
    if (argv[i] == "-device") found.push_back(argv[i + 1]);
  }
  return found;
}

TEST(QemuCommand, CHAN_22_EveryDiskDriverIsNamedAndNothingIsProbed) {
  auto disk = value_after(machine_command().argv(), "-blockdev");
  EXPECT_THAT(disk, HasSubstr("driver=qcow2"));
  EXPECT_THAT(disk, HasSubstr("backing.driver=raw"));
  EXPECT_THAT(disk, HasSubstr("file.driver=file"));
  EXPECT_THAT(disk, HasSubstr("backing.file.driver=file"));
  EXPECT_THAT(disk, HasSubstr("backing.read-only=on"));
}

TEST(QemuCommand, AFlushReachesTheHostUnlessTheDiskIsThrownAway) {
  auto command = machine_command();
  EXPECT_THAT(value_after(command.argv(), "-blockdev"), HasSubstr("cache.no-flush=off"));
  command.disk.flush = GuestDisk::Flush::never;
  EXPECT_THAT(value_after(command.argv(), "-blockdev"), Not(HasSubstr("no-flush=off")));
}

TEST(QemuCommand, ATemplateIsMappedPrivatelyAndGuarded) {
  auto command = machine_command();
  EXPECT_THAT(value_after(command.argv(), "-object"), HasSubstr("share=off"));
  EXPECT_EQ(command.env()["LD_PRELOAD"], "/lib/shim.so");
  EXPECT_EQ(command.env()["HOLT_READ_ONLY_FILE"], "/t/memory");
  command.guard = TemplateGuard::rom_off;
  EXPECT_THAT(value_after(command.argv(), "-object"), HasSubstr("readonly=on,rom=off"));
  EXPECT_FALSE(command.env().contains("LD_PRELOAD"));
}

TEST(QemuCommand, TheEnvironmentIsNothingOfOurs) {
  auto command = machine_command();
  command.memory = {};
  EXPECT_EQ(command.env(), (std::map<std::string, std::string>{{"LC_ALL", "C"}}));
}

TEST(QemuCommand, TemplateAndMachineHaveTheSameDevicesInTheSameOrder) {
  auto machine = machine_command();
  auto maker = machine_command();
  maker.memory = {.kind = GuestMemory::Kind::template_writer, .file = "/t/memory"};
  maker.disk = {};
  maker.start = QemuCommand::Start::boot;
  EXPECT_EQ(devices(machine), devices(maker));
}

TEST(QemuCommand, TcgGetsTheFrequencyAndKvmKeepsItsMitigations) {
  auto command = machine_command();
  EXPECT_THAT(value_after(command.argv(), "-append"), HasSubstr("tsc_early_khz=2500000"));
  EXPECT_THAT(value_after(command.argv(), "-append"), HasSubstr("mitigations=off"));
  command.accelerator = Accelerator::kvm;
  EXPECT_THAT(value_after(command.argv(), "-append"), Not(HasSubstr("mitigations=off")));
  EXPECT_THAT(value_after(command.argv(), "-append"), Not(HasSubstr("tsc_early_khz")));
  EXPECT_EQ(value_after(command.argv(), "-cpu"), "host");
}

TEST(QemuCommand, TheSandboxIsAlwaysOnAndNoNetworkBackEndExists) {
  auto argv = machine_command().argv();
  EXPECT_THAT(value_after(argv, "-sandbox"), HasSubstr("spawn=deny"));
  EXPECT_THAT(argv, Not(Contains(HasSubstr("netdev"))));
}

TEST(QemuCommand, CommasInPathsAreDoubled) {
  EXPECT_EQ(option_value("/a,b/c,,d"), "/a,,b/c,,,,d");
}

}  // namespace
}  // namespace holt::machine
