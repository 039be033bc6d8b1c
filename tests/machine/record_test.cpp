#include "machine/record.hpp"

#include "holt/base/error.hpp"
#include "holt/base/json.hpp"
#include "machine/host_facts.hpp"
#include "machine/launch.hpp"
#include "support/asking.hpp"

#include <sys/stat.h>
#include <thread>

#include <gtest/gtest.h>

namespace holt::machine {
namespace {

using namespace std::chrono_literals;

MachineRecord sample_record() {
  return {.config = {.name = "dev",
                     .resources = {.cpus = 3, .memory_mb = 777, .disk_gb = 40},
                     .env = {{"TOKEN", "secret"}},
                     .make_dirs = {"/workspace"},
                     .labels = {{"k", "v"}},
                     .idle_stop = 900s},
          .machine_id = "0123456789abcdef0123456789abcdef",
          .image_reference = "holt/default:latest",
          .image_digest = "sha256:00",
          .image_file = "/images/root.ext4",
          .disk_bytes = std::uint64_t{40} << 30,
          .working_dir = "/workspace",
          .user = "root",
          .image_env = {"PATH=/bin"},
          .created_at = wall_now()};
}

ErrorCode code_of_decoding(const std::string& text) {
  try {
    decode_record(text);
  } catch (const Error& e) {
    return e.code();
  }
  return ErrorCode::internal;
}

TEST(MachineRecord, IsReadAsItWasWritten) {
  auto record = sample_record();
  auto again = decode_record(encode_record(record));
  EXPECT_EQ(again.config.name, "dev");
  EXPECT_EQ(again.config.resources.memory_mb, 777u);
  EXPECT_EQ(again.disk_bytes, record.disk_bytes);
  EXPECT_EQ(again.config.idle_stop, Duration(900s));
  EXPECT_EQ(again.config.labels, record.config.labels);
  EXPECT_EQ(again.created_at, record.created_at);
  EXPECT_EQ(again.image_file, record.image_file);
  EXPECT_EQ(again.working_dir, "/workspace");
}

TEST(MachineRecord, HoldsNoValueOfAVariable) {
  auto text = encode_record(sample_record());
  EXPECT_EQ(text.find("secret"), std::string::npos);
  EXPECT_NE(text.find("TOKEN"), std::string::npos);
}

TEST(MachineRecord, LIFE_20_DamageIsNamedNotRepaired) {
  auto good = encode_record(sample_record());
  EXPECT_EQ(code_of_decoding(""), ErrorCode::invalid_state);
  EXPECT_EQ(code_of_decoding("[]"), ErrorCode::invalid_state);
  EXPECT_EQ(code_of_decoding(std::string("\0\x01\x02", 3)), ErrorCode::invalid_state);
  EXPECT_EQ(code_of_decoding(good.substr(0, good.size() / 2)), ErrorCode::invalid_state);
  EXPECT_EQ(code_of_decoding(R"({"version":1,"name":7})"), ErrorCode::invalid_state);
  EXPECT_EQ(code_of_decoding(R"({"version":-1})"), ErrorCode::invalid_state);
}

TEST(MachineRecord, LIFE_19_ANewerVersionIsRefusedWithASentence) {
  try {
    decode_record(R"({"version":99,"name":"dev"})");
    FAIL() << "expected INVALID_STATE";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::invalid_state);
    EXPECT_NE(std::string(e.what()).find("99"), std::string::npos) << e.what();
  }
}

TEST(MachineRecord, LIFE_20_NumbersOutOfRangeAreDamage) {
  auto with = [](const char* member, const char* value) {
    auto json = *parse_json(encode_record(sample_record()));
    json[Json::json_pointer(member)] = "@";
    auto text = dump_json(json);  // writes no 1e400
    return code_of_decoding(text.replace(text.find("\"@\""), 3, value));
  };
  ASSERT_EQ(with("/diskBytes", "1"), ErrorCode::internal);  // it was decoded
  for (const char* member : {"/diskBytes", "/idleStopMs", "/resources/cpus"}) {
    for (const char* value : {"-1", "1e400", "1.5", "18446744073709551616", "\"1\""}) {
      EXPECT_EQ(with(member, value), ErrorCode::invalid_state) << member << " " << value;
    }
  }
  // A time of 584 million years is a number, and no duration.
  EXPECT_EQ(with("/idleStopMs", "18446744073709551615"), ErrorCode::invalid_state);
  EXPECT_EQ(with("/resources/cpus", "4294967298"), ErrorCode::invalid_state);
}

TEST(MachineStatus, IsReadAsItWasWritten) {
  MachineStatus status{
      .state = MachineState::failed,
      .failure =
          MachineFailure{.code = ErrorCode::guest_lost, .message = "x", .at = wall_now(), .signal = 11},
      .vmm = ProcessIdentity{.pid = 17, .start_ticks = 4711},
      .host_boot_id = "boot",
      .boot_time = 120ms};
  auto again = decode_status(encode_status(status));
  EXPECT_EQ(again.state, MachineState::failed);
  EXPECT_EQ(again.failure->signal, 11);
  EXPECT_EQ(again.vmm->start_ticks, 4711u);
  EXPECT_EQ(again.boot_time, Duration(120ms));
  EXPECT_FALSE(again.monitor);
}

TEST(MachineStatus, DamageIsAFailedMachine) {
  EXPECT_EQ(decode_status("{").state, MachineState::failed);
  EXPECT_EQ(decode_status(R"({"version":1,"state":"dancing"})").state, MachineState::failed);
  // No process has a negative number: a signal to it would reach many.
  EXPECT_EQ(decode_status(R"({"version":1,"state":"running","vmm":{"pid":-1}})").state, MachineState::failed);
  EXPECT_EQ(decode_status(R"({"version":1,"state":"running","vmm":{"pid":4294967295}})").state,
            MachineState::failed);
  EXPECT_EQ(decode_status(R"({"version":1,"state":"running","bootMs":839999999999999994})").state,
            MachineState::failed);
}

class Folders : public ::testing::Test {
 protected:
  TempDir dir;
  MachineFolders folders{dir.path() / "machines"};

  FileLock publish(const std::string& name) {
    auto staged = folders.stage();
    auto record = sample_record();
    record.config.name = name;
    write_file_atomically(staged.folder.path() / "machine.json", encode_record(record));
    return folders.publish(std::move(staged), name);
  }
};

TEST_F(Folders, ANameIsGivenOnce) {
  auto lock = publish("dev");
  try {
    publish("dev");
    FAIL() << "expected CONFLICT";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::conflict);
  }
  EXPECT_EQ(folders.names(), std::vector<std::string>{"dev"});
  for (const auto& entry : std::filesystem::directory_iterator(folders.root())) {
    EXPECT_EQ(entry.path().filename(), "dev") << "something half-made was left";
  }
}

TEST_F(Folders, OneOfManyThatCreateTheSameNameWins) {
  std::atomic<int> won = 0;
  std::atomic<int> conflicts = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 20; i++) {
    threads.emplace_back([&] {
      try {
        auto lock = publish("same");
        won++;
      } catch (const Error& e) {
        conflicts += e.code() == ErrorCode::conflict ? 1 : 0;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(won, 1);
  EXPECT_EQ(conflicts, 19);
}

TEST_F(Folders, ABadNameNeverBecomesAPath) {
  EXPECT_THROW(folders.of("../etc"), Error);
  EXPECT_THROW(folders.of(""), Error);
}

TEST_F(Folders, AMissingMachineIsNotFound) {
  try {
    folders.of("nobody").read_record();
    FAIL() << "expected NOT_FOUND";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::not_found);
  }
}

TEST_F(Folders, ARecordUnderAnotherNameIsDamage) {
  publish("dev");
  std::filesystem::rename(folders.root() / "dev", folders.root() / "other");
  EXPECT_THROW(folders.of("other").read_record(), Error);
}

TEST_F(Folders, WhatIsErasedIsGoneAtOnce) {
  auto lock = publish("dev");
  folders.erase(folders.of("dev"));
  EXPECT_TRUE(folders.names().empty());
  EXPECT_TRUE(std::filesystem::is_empty(folders.root()));
}

TEST_F(Folders, SweepTakesLeftOversAndLeavesWhatIsBeingMade) {
  auto busy = folders.stage();
  std::filesystem::create_directories(folders.root() / ".removing-dead/deep");
  write_file_atomically(folders.root() / ".removing-dead/lock", "");
  folders.sweep();
  EXPECT_FALSE(std::filesystem::exists(folders.root() / ".removing-dead"));
  EXPECT_TRUE(std::filesystem::exists(busy.folder.path()));
}

TEST_F(Folders, SweepLeavesARemovalThatHasDoneAwayWithItsLockUntilItIsOld) {
  auto left = folders.root() / ".removing-busy";
  std::filesystem::create_directories(left);
  write_file_atomically(left / "disk", "");
  folders.sweep();
  EXPECT_TRUE(std::filesystem::exists(left / "disk"));
  EXPECT_FALSE(std::filesystem::exists(left / "lock"));
  std::filesystem::last_write_time(left,
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  folders.sweep();
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST_F(Folders, AMachineWhoseMonitorIsGoneIsSeenAsFailed) {
  {
    auto lock = publish("dev");
  }
  auto folder = folders.of("dev");
  folder.write_status({.state = MachineState::running, .host_boot_id = host_boot_id()});
  auto observed = observe(folder);
  EXPECT_FALSE(observed.monitored);
  EXPECT_EQ(observed.status.state, MachineState::failed);
  EXPECT_NE(observed.status.failure->message.find("monitor"), std::string::npos);
}

TEST_F(Folders, AHostThatRestartedIsTheReasonThen) {
  {
    auto lock = publish("dev");
  }
  folders.of("dev").write_status({.state = MachineState::running, .host_boot_id = "another boot"});
  EXPECT_NE(observe(folders.of("dev")).status.failure->message.find("restarted"), std::string::npos);
}

TEST(Launch, IsReadAsItWasWritten) {
  Launch launch{
      .kind = LaunchKind::resume,
      .shape = {.vmm = {.path = "/q", .version = "v", .guard = TemplateGuard::rom_off},
                .shim = "/s",
                .boot = {.kernel = "/k", .kernel_sha256 = "1", .initramfs = "/i", .initramfs_sha256 = "2"},
                .cpus = 5,
                .memory_mb = 333,
                .tsc_khz = 99},
      .start_from = Template{"/t"},
      .machines = "/m",
      .env = {{"A", "b"}},
      .ownership = Ownership::stopped,
      .owner = ProcessIdentity{.pid = 12, .start_ticks = 34}};
  auto again = decode_launch(encode_launch(launch));
  EXPECT_EQ(again.shape.key(), launch.shape.key());
  EXPECT_EQ(again.start_from->folder, "/t");
  EXPECT_EQ(again.env, launch.env);
  EXPECT_EQ(again.ownership, Ownership::stopped);
  EXPECT_EQ(again.kind, LaunchKind::resume);
  EXPECT_EQ(again.owner->start_ticks, 34u);
  EXPECT_THROW(decode_launch("{}"), Error);
  auto newer = *parse_json(encode_launch(launch));
  newer["version"] = 2;
  EXPECT_EQ(test::code_of([&] { decode_launch(dump_json(newer)); }), ErrorCode::not_supported);
  for (const char* value : {"1e400", "-1", "1.5", "4294967296"}) {
    auto json = *parse_json(encode_launch(launch));
    json["cpus"] = "@";
    auto text = dump_json(json);
    EXPECT_THROW(decode_launch(text.replace(text.find("\"@\""), 3, value)), Error) << value;
  }
}

TEST(Launch, AReportThatNeverCameIsAFailedStart) {
  EXPECT_FALSE(decode_report("").started);
  EXPECT_FALSE(decode_report("{\"started\":1").started);
  EXPECT_TRUE(decode_report(encode_report({.started = true})).started);
  std::vector<std::string> causes{"A restore: one\nline", "A cold boot: another"};
  EXPECT_EQ(decode_report(encode_report({.causes = causes})).causes, causes);
  EXPECT_TRUE(decode_report(R"({"causes":"none"})").causes.empty());
}

TEST(TemplateKey, CLONE_15_ChangesWithEveryInput) {
  TemplateShape shape{.vmm = {.path = "/q", .version = "v"},
                      .boot = {.kernel_sha256 = "1", .initramfs_sha256 = "2"}};
  std::set<std::string> keys{shape.key()};
  auto expect_new = [&](TemplateShape changed) { EXPECT_TRUE(keys.insert(changed.key()).second); };
  auto other = shape;
  other.vmm.version = "w";
  expect_new(other);
  other = shape, other.cpus = 1;
  expect_new(other);
  other = shape, other.memory_mb = 512;
  expect_new(other);
  other = shape, other.tsc_khz = 1;
  expect_new(other);
  other = shape, other.processor = host_processor();
  expect_new(other);
  other = shape, other.boot.kernel_sha256 = "x";
  expect_new(other);
  other = shape, other.boot.initramfs_sha256 = "x";
  expect_new(other);
  other = shape, other.accelerator = Accelerator::kvm;
  expect_new(other);
}

}  // namespace
}  // namespace holt::machine
