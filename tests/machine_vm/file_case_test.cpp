// Cases FILES and CHAN of the project's lists that need a guest kernel, a disk or a VMM of their own.
#include "holt/base/encoding.hpp"
#include "holt/base/ids.hpp"
#include "machine_vm/vm_fixture.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::test {
namespace {

namespace fs = std::filesystem;

class FileCases : public InOneMachine {
 protected:
  std::string sh(const std::string& script) { return m->exec_shell(script).out; }
};

TEST_F(FileCases, FILES_01_ThreeHundredMebibytesTakeNoMemoryOfTheHost) {
  constexpr std::size_t k_pieces = 300;
  auto piece = random_bytes(1 << 20);
  auto peak = [] {
    auto status = read_file("/proc/self/status", 1 << 16);
    return std::stoul(status.substr(status.find("VmHWM:") + 6));
  };
  auto before = peak();
  auto writer = m->open_write("/root/big", {.size = k_pieces << 20});
  for (std::size_t i = 0; i < k_pieces; i++) writer.write(piece);
  writer.finish();
  std::size_t at = 0;
  auto reader = m->open_read("/root/big");
  while (auto part = reader.next()) {
    // Pieces of a stream are parts of the piece that was written again and again.
    for (std::string_view rest = *part; !rest.empty();) {
      auto same = rest.substr(0, piece.size() - at % piece.size());
      ASSERT_TRUE(same == std::string_view(piece).substr(at % piece.size(), same.size())) << "at " << at;
      at += same.size();
      rest.remove_prefix(same.size());
    }
  }
  EXPECT_EQ(at, k_pieces << 20);
  EXPECT_LT(peak() - before, 64u << 10) << "KiB";
}

TEST_F(FileCases, FILES_01_SparseFilesOfFiveGibibytesStaySparse) {
  TempDir dir;
  {
    Fd fd(::open((dir.path() / "s").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    ASSERT_EQ(::pwrite(fd.get(), "end", 3, (off_t{5} << 30) - 3), 3);
  }
  m->copy_in(dir.path() / "s", "/root/s");
  EXPECT_EQ(m->stat("/root/s").size, std::uint64_t{5} << 30);
  EXPECT_LT(m->stat("/root/s").allocated, 1u << 20);
  EXPECT_EQ(m->read_file("/root/s", {.offset = (std::uint64_t{5} << 30) - 3}), "end");
  m->copy_out("/root/s", dir.path() / "back");
  struct stat info{};
  ASSERT_EQ(::stat((dir.path() / "back").c_str(), &info), 0);
  EXPECT_EQ(info.st_size, off_t{5} << 30);
  EXPECT_LT(info.st_blocks * 512, 1 << 20);
}

TEST_F(FileCases, FILES_09_TheKernelsFilesAreReadOrRefusedAndNeverWaitedFor) {
  auto begin = std::chrono::steady_clock::now();
  EXPECT_NE(m->read_file("/proc/kmsg"), "");
  EXPECT_EQ(m->read_file("/sys/class/block/vda/ro"), "0\n");
  EXPECT_NE(m->read_file("/proc/self/environ", {.call = {.deadline = patient()}}).size(), 1u << 20);
  EXPECT_EQ(code_of([&] { m->read_file("/dev/tty"); }), ErrorCode::not_regular);
  sh("mkfifo /tmp/fifo");
  EXPECT_EQ(code_of([&] { m->read_file("/tmp/fifo"); }), ErrorCode::not_regular);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
}

TEST_F(FileCases, FILES_11_MountsAndImmutableFilesStayAndAreNamed) {
  sh("mkdir -p /root/t/m /root/u && mount -t tmpfs none /root/t/m && touch /root/t/m/kept /root/u/fixed");
  EXPECT_NE(code_of([&] { m->remove_path("/root/t", RemoveKind::tree); }), std::nullopt);
  EXPECT_TRUE(m->exists("/root/t/m/kept"));
  EXPECT_EQ(code_of([&] { m->remove_path("/", RemoveKind::tree); }), ErrorCode::invalid_config);
  // FS_IOC_SETFLAGS with FS_IMMUTABLE_FL, ioctl_iflags(2).
  auto set = m->exec({"python3", "-c",
                      "import fcntl,struct;f=open('/root/u/fixed');"
                      "fcntl.ioctl(f,0x40086602,struct.pack('l',16))"});
  ASSERT_EQ(set.exit_code, 0) << set.err;
  try {
    m->remove_path("/root/u", RemoveKind::tree);
    FAIL() << "an immutable file was removed";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::permission_denied);
    EXPECT_NE(std::string(e.what()).find("fixed"), std::string::npos) << e.what();
  }
}

TEST_F(FileCases, FILES_16_TheMachinesUserIsTheDefault) {
  Removed other(create({.user = "1000:1000", .make_dirs = {"/home/w"}}));
  other->write_file("/home/w/f", "x");
  EXPECT_EQ(other->stat("/home/w/f").uid, 1000u);
  EXPECT_EQ(other->stat("/home/w/f").mode, 0644u);
  EXPECT_EQ(code_of([&] { other->write_file("/etc/passwd", "x"); }), ErrorCode::permission_denied);
  EXPECT_FALSE(code_of([&] { other->write_file("/etc/motd", "x", {.user = "root"}); }));
  sh("umask 077");
  m->write_file("/root/f", "x");
  EXPECT_EQ(m->stat("/root/f").mode, 0644u);
}

TEST_F(FileCases, CHAN_20_TheMachinesPortIsClosedToItsUsersAndTaken) {
  EXPECT_NE(m->exec_shell("exec 3<>/dev/vport0p1", {.user = "1000"}).exit_code, 0);
  sh("for p in /dev/vport*; do (printf rubbish > $p) 2>/dev/null & done; sleep 0.2");
  EXPECT_EQ(m->exec({"echo", "on"}).out, "on\n") << "a port has one opener, and that is the guest program";
}

TEST_F(FileCases, CHAN_21_AGuestThatWritesToItsConsoleFillsNoDisk) {
  m->exec_shell("head -c 6000000 /dev/zero > /dev/console; printf '\\033]52;c;x\\007\\0end' > /dev/console");
  auto older = m->console_log();
  older += ".1";
  EXPECT_TRUE(eventually([&] { return fs::exists(older) && fs::file_size(m->console_log()) > 0; }));
  EXPECT_LE(fs::file_size(m->console_log()) + fs::file_size(older), std::uintmax_t{10} << 20);
  EXPECT_EQ(m->exec({"true"}).exit_code, 0);
}

class FileLives : public MachineTest {};

TEST_F(FileLives, FILES_17_WhatWasWrittenIsThereAfterAStopAndWhatWasSyncedAfterAKill) {
  Removed m(create({.name = "dev"}));
  m->make_dir("/root/d");
  for (int i = 0; i < 100; i++)
    m->write_file("/root/d/" + std::to_string(i), std::string(1000, 'x') + std::to_string(i));
  m->stop();
  m->start();
  for (int i = 0; i < 100; i++) {
    EXPECT_EQ(m->read_file("/root/d/" + std::to_string(i)), std::string(1000, 'x') + std::to_string(i));
  }
  for (int i = 0; i < 20; i++) {
    m->write_file("/root/synced-" + std::to_string(i), std::string(5000, 's'),
                  {.durability = Durability::now});
    m->write_file("/root/d/" + std::to_string(i), std::string(5000, 'n'));
  }
  ::kill(m->info().pid.value(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return m->state() == MachineState::failed; }));
  m->start();
  for (int i = 0; i < 20; i++) {
    EXPECT_EQ(m->read_file("/root/synced-" + std::to_string(i)), std::string(5000, 's'));
    auto other = m->read_file("/root/d/" + std::to_string(i));
    EXPECT_TRUE(other == std::string(5000, 'n') || other == std::string(1000, 'x') + std::to_string(i))
        << other.size() << " bytes of neither content";
  }
  EXPECT_EQ(m->exec_shell("ls -A /root | grep -c holt-").out, "0\n") << "a temporary file";
}

TEST_F(FileLives, FILES_18_AMachineTakesFilesInTheBreathItIsMadeIn) {
  for (int i = 0; i < 12; i++) {
    auto m = create({.lifetime = Lifetime::ephemeral});
    m.write_file("/root/f", std::to_string(i));
    EXPECT_EQ(m.read_file("/root/f"), std::to_string(i));
    m.remove({.mode = RemoveMode::force});
  }
  Removed m(create({.name = "dev"}));
  for (int i = 0; i < 3; i++) {
    m->suspend();
    m->resume();
    m->write_file("/root/f", std::to_string(i));
    EXPECT_EQ(m->read_file("/root/f"), std::to_string(i));
  }
}

TEST_F(FileLives, FILES_25_ADiskHoldsWhatItSaysAndSaysSoWhenItIsFull) {
  constexpr std::uint64_t k_size = std::uint64_t{2} << 30;
  Removed m(create({.name = "small", .resources = {.memory_mb = 512, .disk_gb = 2}}));
  auto free = std::stoull(m->exec_shell("df --output=avail -B1M / | tail -1").out);
  // Most of it without a write; the rest must not fit.
  auto fill = fmt::format("fallocate -l {}M /root/fill", free - 40);
  ASSERT_EQ(m->exec_shell(fill).exit_code, 0);
  EXPECT_EQ(code_of([&] { m->write_file("/root/more", std::string(64 << 20, 'x')); }),
            ErrorCode::storage_full);
  EXPECT_FALSE(m->exists("/root/more"));
  m->write_file("/root/old", "old");
  EXPECT_NE(m->exec_shell("dd if=/dev/zero of=/root/rest bs=1M count=100").exit_code, 0);
  EXPECT_EQ(code_of([&] { m->write_file("/root/old", std::string(1 << 20, 'n')); }), ErrorCode::storage_full);
  EXPECT_EQ(m->read_file("/root/old"), "old");
  EXPECT_LE(m->info().disk_bytes, k_size + k_size / 20);
  EXPECT_EQ(m->exec_shell("df -B1M --output=size /dev/shm | tail -1 | awk '{print ($1 <= 256)}'").out, "1\n");
  EXPECT_EQ(m->exec_shell("rm /root/fill /root/rest").exit_code, 0);
  EXPECT_EQ(m->exec({"true"}).exit_code, 0);
}

TEST_F(FileLives, FILES_26_ADiskGrowsUnderAWriterAndNeverShrinks) {
  Removed m(create({.name = "dev"}));
  auto stream = m->exec_shell_stream("head -c 30000000 /dev/urandom | tee /root/f | sha256sum");
  m->resize({.disk_gb = 22});
  std::string sum;
  while (auto event = stream.next({.deadline = patient()})) {
    if (event->kind == ExecEvent::Kind::out) sum += event->data;
  }
  EXPECT_EQ(m->exec({"sha256sum", "/root/f"}).out.substr(0, 64), sum.substr(0, 64));
  EXPECT_NE(code_of([&] { m->resize({.disk_gb = 1}); }), std::nullopt);
  EXPECT_GT(std::stoull(m->exec_shell("df --output=size -B1M / | tail -1").out), 20'900u);
}

TEST_F(FileLives, CHAN_22_AHeaderOfAnotherFormatInTheGuestsDiskIsOnlyBytes) {
  Removed m(create({.name = "dev"}));
  // The first 1,024 bytes of ext4 are free; a qcow2 header there names a file of the host as its backing
  // file.
  auto script =
      "import struct;name=b'/etc/hostname';"
      "h=b'QFI\\xfb'+struct.pack('>IQIIQ',2,72,len(name),16,1<<30)+bytes(40)+name;"
      "f=open('/dev/vda','r+b');f.write(h)";
  auto written = m->exec({"python3", "-c", script});
  ASSERT_EQ(written.exit_code, 0) << written.err;
  m->exec({"sync"});
  m->stop();
  m->start();
  EXPECT_EQ(m->exec({"head", "-c", "3", "/dev/vda"}).out, "QFI");
  EXPECT_EQ(m->exec({"true"}).exit_code, 0);
}

}  // namespace
}  // namespace holt::test
