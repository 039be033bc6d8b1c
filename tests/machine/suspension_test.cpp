#include "machine/suspension.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "holt/base/json.hpp"
#include "machine/event_log.hpp"
#include "machine/sparse_file.hpp"
#include "support/asking.hpp"

#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace holt::machine {
namespace {

using test::code_of;

class SuspensionFiles : public ::testing::Test {
 protected:
  SuspensionFiles() : folder(dir.path()) {
    std::filesystem::create_directory(folder.suspended());
    write_file_atomically(folder.suspended() / "memory", std::string(100'000, 'm'));
    write_file_atomically(folder.suspended() / "state", "devices");
  }

  Suspension whole() const {
    return {.vmm_version = "QEMU emulator version 7.2",
            .cpus = 3,
            .memory_mb = 77,
            .tsc_khz = 5,
            .processor = "1:2.3",
            .disk_bytes = std::uint64_t{20} << 30,
            .memory_digest = sampled_digest(folder.suspended() / "memory"),
            .state_digest = sha256_hex("devices"),
            .at = wall_now(),
            .channel = {.generation = "g",
                        .next_stream = 9,
                        .next_sequence = 4'000'000'000,
                        .expected_sequence = 7,
                        .unparsed = std::string("\0\xff half", 7),
                        .unsent = std::string("\0frame", 6),
                        .streams = {{.number = 4, .started = true, .window = 12}, {.number = 5}}}};
  }

  TempDir dir;
  MachineFolder folder;
};

TEST_F(SuspensionFiles, AreReadAsTheyWereWritten) {
  EXPECT_FALSE(folder.is_suspended());
  auto written = whole();
  write_suspension(folder, written);
  EXPECT_TRUE(folder.is_suspended());
  auto read = read_suspension(folder);
  EXPECT_EQ(read.channel, written.channel);
  EXPECT_EQ(read.vmm_version, written.vmm_version);
  EXPECT_EQ(read.cpus, 3u);
  EXPECT_EQ(read.memory_mb, 77u);
  EXPECT_EQ(read.processor, "1:2.3");
  EXPECT_EQ(read.disk_bytes, written.disk_bytes);
  check_suspension(folder, read);
}

TEST_F(SuspensionFiles, AMachineIsSuspendedAsLongAsTheLastFileStands) {
  write_suspension(folder, whole());
  EXPECT_EQ(observe(folder).status.state, MachineState::suspended);
  delete_suspended_files(folder);
  EXPECT_TRUE(std::filesystem::exists(folder.suspended() / "memory")) << "the memory of a suspended machine";
  end_suspension(folder);
  end_suspension(folder);
  EXPECT_FALSE(folder.is_suspended());
  EXPECT_NE(observe(folder).status.state, MachineState::suspended);
  delete_suspended_files(folder);
  EXPECT_FALSE(std::filesystem::exists(folder.suspended()));
}

TEST_F(SuspensionFiles, CLONE_15_WhatIsNotWhatWasWrittenIsRefused) {
  auto suspension = whole();
  write_file_atomically(folder.suspended() / "state", "devicez");
  EXPECT_EQ(code_of([&] { check_suspension(folder, suspension); }), ErrorCode::storage_error);
  write_file_atomically(folder.suspended() / "state", "devices");
  write_file_atomically(folder.suspended() / "memory", std::string(99'999, 'm'));
  EXPECT_EQ(code_of([&] { check_suspension(folder, suspension); }), ErrorCode::storage_error);
  std::filesystem::remove(folder.suspended() / "memory");
  EXPECT_EQ(code_of([&] { check_suspension(folder, suspension); }), ErrorCode::storage_error);
}

TEST_F(SuspensionFiles, DamageInAnyByteIsRefusedOrHarmless) {
  write_suspension(folder, whole());
  auto file = folder.suspended() / k_suspension_name;
  auto text = read_file(file, 100'000);
  for (std::size_t i = 0; i < text.size(); i++) {
    auto damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x15);
    write_file_atomically(file, damaged);
    auto code = code_of([&] { read_suspension(folder); });
    EXPECT_TRUE(!code || code == ErrorCode::storage_error) << i;
  }
  auto json = *parse_json(text);
  json["channel"]["nextStream"] = "@";
  auto damaged_number = dump_json(json);
  write_file_atomically(file, damaged_number.replace(damaged_number.find("\"@\""), 3, "1e400"));
  EXPECT_EQ(code_of([&] { read_suspension(folder); }), ErrorCode::storage_error);
  for (const char* rubbish : {"", "{}", "[]", "{\"version\":2}", "null"}) {
    write_file_atomically(file, rubbish);
    EXPECT_EQ(code_of([&] { read_suspension(folder); }), ErrorCode::storage_error) << rubbish;
  }
}

TEST(Events, AreKeptInOrderWithTheirCodes) {
  TempDir dir;
  EventLog log(dir.path() / "events.jsonl");
  EXPECT_TRUE(log.read().empty());
  log.append({.kind = "started", .message = "It runs"});
  log.append({.kind = "failed", .message = "line\nand \x1b[31m\xff", .code = ErrorCode::guest_lost});
  auto events = log.read();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, "started");
  EXPECT_FALSE(events[0].code);
  EXPECT_LE(events[0].at, events[1].at);
  EXPECT_EQ(events[1].code, ErrorCode::guest_lost);
}

TEST(Events, AreBoundedAndTheNewestStay) {
  TempDir dir;
  EventLog log(dir.path() / "events.jsonl");
  for (int i = 0; i < 5000; i++)
    log.append({.kind = "n", .message = std::to_string(i) + std::string(200, '.')});
  auto events = log.read();
  EXPECT_GT(events.size(), 500u);
  EXPECT_TRUE(events.back().message.starts_with("4999"));
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) bytes += entry.file_size();
  EXPECT_LT(bytes, 600'000u);
}

TEST(Events, WritersAtOnceDoNotMixTheirLines) {
  TempDir dir;
  EventLog log(dir.path() / "events.jsonl");
  std::vector<std::jthread> writers;
  for (int w = 0; w < 8; w++) {
    writers.emplace_back([&] {
      for (int i = 0; i < 20; i++) log.append({.kind = "n", .message = std::string(300, 'x')});
    });
  }
  writers.clear();
  EXPECT_EQ(log.read().size(), 160u);
}

TEST(Events, RubbishIsLeftOutAndAnUnwritableFileIsNoFailure) {
  TempDir dir;
  auto file = dir.path() / "events.jsonl";
  write_file_atomically(file, "no json\n{\"kind\":1}\n{\"atUs\":\"x\",\"kind\":\"k\"}\n\xff\n");
  EventLog(file).append({.kind = "good", .message = "m"});
  EXPECT_EQ(EventLog(file).read().size(), 1u);
  EventLog(dir.path() / "missing" / "file").append({.kind = "lost", .message = "m"});
}

}  // namespace
}  // namespace holt::machine
