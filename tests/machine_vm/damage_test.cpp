// Damaged templates, missing images, disks that their guest has destroyed: said, bounded, and put right.
#include "machine_vm/image_fixture.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holt::test {
namespace {

class Damaged : public MachineTest {
 protected:
  void SetUp() override {
    MachineTest::SetUp();
    if (!IsSkipped()) host.directories.cache = cache_.path();
  }
  std::filesystem::path template_file(const char* name) {
    for (const auto& entry : std::filesystem::directory_iterator(cache_.path() / "templates")) {
      if (entry.is_directory()) return entry.path() / name;
    }
    return {};
  }

 private:
  TempDir cache_;
};

TEST_F(Damaged, CLONE_15_ADamagedTemplateIsBuiltAgainOnceAndItsMachinesWork) {
  int built = 0;
  auto run = [&] {
    MachineConfig config{.resources = {.cpus = 1, .memory_mb = 192}, .lifetime = Lifetime::ephemeral};
    StartOptions options{.on_progress = [&](const StartProgress& progress) {
      if (progress.step == StartProgress::Step::building_template) built++;
    }};
    return Machine::create(config, options, host).exec({"true"}).success();
  };
  EXPECT_TRUE(run());
  EXPECT_EQ(built, 1);
  const std::vector<std::pair<const char*, std::function<void()>>> damages{
      {"a byte of the state",
       [&] {
         auto file = template_file("state");
         ::chmod(file.c_str(), 0600);
         Fd fd(::open(file.c_str(), O_RDWR | O_CLOEXEC));
         char byte = 0;
         ASSERT_EQ(::pread(fd.get(), &byte, 1, 1000), 1);
         byte = static_cast<char>(byte ^ 1);
         ASSERT_EQ(::pwrite(fd.get(), &byte, 1, 1000), 1);
       }},
      {"the memory is zeroes",
       [&] {
         auto file = template_file("memory");
         ::chmod(file.c_str(), 0600);
         auto size = std::filesystem::file_size(file);
         std::filesystem::resize_file(file, 0);
         std::filesystem::resize_file(file, size);
       }},
  };
  for (const auto& [what, damage] : damages) {
    SCOPED_TRACE(what);
    built = 0;
    damage();
    EXPECT_TRUE(run());
    EXPECT_EQ(built, 1);
    EXPECT_TRUE(run());
    EXPECT_EQ(built, 1) << "the new one is not used";
  }
}

TEST_F(ImageMachine, LIFE_27_TenFirstUsesThatFailAllGetTheReasonAndTheNextMakesOneMachine) {
  Removed m(Machine::define({.name = "lazy", .image = import(scratch())}, host));
  auto image = folder_of(*m).read_record().image_file;
  auto away = image;
  away += ".away";
  std::filesystem::rename(image, away);
  auto ten_times = [](const std::function<void()>& use) {
    std::vector<std::jthread> callers;
    callers.reserve(10);
    for (int i = 0; i < 10; i++) callers.emplace_back(use);
  };
  ten_times([&] {
    auto [code, text] = failure([&] { Machine::connect("lazy", {}, host); });
    EXPECT_EQ(code, ErrorCode::not_found);
    EXPECT_NE(text.find("The image of lazy is gone"), std::string::npos) << text;
  });
  std::filesystem::rename(away, image);
  ten_times([&] { EXPECT_EQ(Machine::connect("lazy", {}, host).exec({"/app"}).out, "scratch\n"); });
  EXPECT_EQ(std::ranges::count(m->events(), "started", &MachineEvent::kind), 1);
  EXPECT_EQ(Machine::list_all(host).size(), 1u);
}

class DestroyedDisk : public MachineTest {};

TEST_F(DestroyedDisk, CHAN_22_IsNotProbedAndTheNextStartSaysSoAndOthersWork) {
  Removed m(create({.name = "dev", .resources = {.memory_mb = 256}}));
  // No file system any more, and the marks of three other formats: qcow2 with a file of the host below it, a
  // partition table, an LVM volume.
  auto script =
      "import os,struct\n"
      "disk=os.open('/dev/vda',os.O_RDWR)\n"
      "for i in range(64): os.pwrite(disk,bytes(1<<20),i<<20)\n"
      "name=b'/etc/hostname'\n"
      "os.pwrite(disk,b'QFI\\xfb'+struct.pack('>IQIIQ',2,72,len(name),16,1<<30)+bytes(40)+name,0)\n"
      "os.pwrite(disk,b'\\x55\\xaa',510)\n"
      "os.pwrite(disk,b'LABELONE',512)\n"
      "os.fsync(disk)\n";
  EXPECT_EQ(m->exec({"python3", "-c", script}).exit_code, 0);
  code_of([&] { m->stop({.grace = 0s}); });
  EXPECT_NE(m->state(), MachineState::running);
  try {
    m->start();
    ADD_FAILURE() << "it started from a destroyed disk";
  } catch (const Error& e) {
    std::string text = e.what();
    for (const auto& cause : e.causes()) text += "\n" + cause;
    EXPECT_NE(text.find("holds no ext4 file system"), std::string::npos) << text;
  }
  EXPECT_EQ(m->state(), MachineState::failed);
  EXPECT_TRUE(m->info().reason);
  Removed other(create({.resources = {.memory_mb = 256}}));
  EXPECT_EQ(other->exec({"true"}).shell_code(), 0);
}

}  // namespace
}  // namespace holt::test
