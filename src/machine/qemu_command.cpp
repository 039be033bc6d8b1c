#include "machine/qemu_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace holt::machine {
namespace {

std::string memory_backend(const QemuCommand& command) {
  const auto& memory = command.memory;
  auto size = fmt::format("id=ram,size={}M", command.memory_mb);
  switch (memory.kind) {
    case GuestMemory::Kind::anonymous:
      // Never shared: a core file or another process must not see the guest.
      return fmt::format("memory-backend-ram,{}", size);
    case GuestMemory::Kind::template_writer:
      return fmt::format("memory-backend-file,{},mem-path={},share=on", size, option_value(memory.file));
    case GuestMemory::Kind::template_reader:
      return fmt::format("memory-backend-file,{},mem-path={},share=off{}", size, option_value(memory.file),
                         command.guard == TemplateGuard::rom_off ? ",readonly=on,rom=off" : "");
  }
  return {};
}

std::string block_device(const GuestDisk& disk) {
  if (disk.kind == GuestDisk::Kind::placeholder) {
    return "driver=null-co,node-name=d0,size=1048576,read-zeroes=on";
  }
  // Each driver is named: a guest writes any bytes into its disk, also another format's header. Locking is
  // off because the machine's own lock stands for it, and the image is shared by many.
  const char* no_flush = disk.flush == GuestDisk::Flush::never ? "on" : "off";
  auto node = [&](std::string_view prefix, std::string_view driver, const std::filesystem::path& file) {
    return fmt::format(
        "{0}driver={1},{0}file.driver=file,{0}file.filename={2},{0}file.locking=off,"
        "{0}file.aio=threads,{0}cache.no-flush={3},{0}file.cache.no-flush={3}",
        prefix, driver, option_value(file), no_flush);
  };
  return fmt::format("node-name=d0,discard=unmap,{},{},backing.read-only=on", node("", "qcow2", disk.file),
                     node("backing.", "raw", disk.backing));
}

std::string kernel_arguments(const QemuCommand& command) {
  std::vector<std::string> words{
      "console=ttyS0",       "reboot=t",         "panic=-1", "quiet", "no_timer_check",
      "random.trust_cpu=on", "cryptomgr.notests"};
  if (command.accelerator == Accelerator::tcg) {
    // The microvm board has no timer to calibrate the TSC by: without its frequency most boots under TCG
    // hang.
    words.insert(words.begin(), fmt::format("tsc_early_khz={}", command.tsc_khz));
    words.push_back("tsc=reliable");
    // Emulated code is no boundary; under KVM the guest keeps its kernel's mitigations.
    words.push_back("mitigations=off");
  }
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace

std::string option_value(const std::filesystem::path& path) {
  std::string out;
  for (char c : path.string()) {
    out.push_back(c);
    if (c == ',') out.push_back(',');
  }
  return out;
}

std::vector<std::string> QemuCommand::argv() const {
  const bool kvm = accelerator == Accelerator::kvm;
  // The list of devices and their order are the same for a template and all that is restored from it.
  std::vector<std::string> words{qemu.string(),
                                 "-M",
                                 "microvm,acpi=on,pcie=off,rtc=on,pit=off,pic=off,memory-backend=ram",
                                 "-accel",
                                 kvm ? "kvm" : "tcg,thread=multi",
                                 "-cpu",
                                 kvm ? "host" : "max",
                                 "-smp",
                                 fmt::format("{}", cpus),
                                 "-m",
                                 fmt::format("{}M", memory_mb),
                                 "-object",
                                 memory_backend(*this),
                                 "-nodefaults",
                                 "-no-user-config",
                                 "-no-reboot",
                                 "-display",
                                 "none",
                                 "-chardev",
                                 fmt::format("socket,id=q,fd={}", k_qmp_fd),
                                 "-mon",
                                 "chardev=q,mode=control",
                                 "-chardev",
                                 fmt::format("socket,id=a,fd={}", k_agent_fd),
                                 "-device",
                                 "virtio-serial-device,id=vs0",
                                 "-device",
                                 "virtserialport,chardev=a,name=agent,id=port0",
                                 "-blockdev",
                                 block_device(disk),
                                 "-device",
                                 "virtio-blk-device,drive=d0,id=disk0",
                                 "-device",
                                 "virtio-net-device,id=nic0,mac=52:54:00:12:34:56",
                                 "-device",
                                 "virtio-rng-device",
                                 "-chardev",
                                 fmt::format("socket,id=c,fd={}", k_console_fd),
                                 "-serial",
                                 "chardev:c",
                                 "-kernel",
                                 kernel.string(),
                                 "-initrd",
                                 initramfs.string(),
                                 "-append",
                                 kernel_arguments(*this),
                                 "-sandbox",
                                 "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"};
  if (start == Start::wait_for_state) words.insert(words.end(), {"-S", "-incoming", "defer"});
  return words;
}

std::map<std::string, std::string> QemuCommand::env() const {
  std::map<std::string, std::string> variables{{"LC_ALL", "C"}};
  if (memory.kind == GuestMemory::Kind::template_reader && guard == TemplateGuard::shim) {
    variables["LD_PRELOAD"] = shim.string();
    variables["HOLT_READ_ONLY_FILE"] = memory.file.string();
  }
  return variables;
}

}  // namespace holt::machine
