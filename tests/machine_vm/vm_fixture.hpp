// Real machines for tests: each test has a state directory of its own and leaves no process and no file
// behind.
#pragma once

#include "holt/base/files.hpp"
#include "holt/image/engine_files.hpp"
#include "holt/image/store.hpp"
#include "holt/machine/machine.hpp"
#include "machine/record.hpp"
#include "support/asking.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace holt::test {

using namespace std::chrono_literals;

/// Command lines of live processes that name `text`.
inline std::vector<std::string> processes_naming(const std::string& text) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    auto pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0 || pid == ::getpid()) continue;
    try {
      auto line = read_file_if_exists(entry.path() / "cmdline", std::size_t{1} << 20).value_or("");
      std::ranges::replace(line, '\0', ' ');
      if (line.find(text) != std::string::npos && identify_process(pid)) found.push_back(line);
    } catch (const Error&) {
      // It ended meanwhile.
    }
  }
  return found;
}

class MachineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("HOLT_HOME") == nullptr) GTEST_SKIP() << "HOLT_HOME is not set: run scripts/test";
    host = HostConfig::from_environment();
    if (!image::EngineFiles::find(host.directories))
      GTEST_SKIP() << "no engine in HOLT_HOME: run scripts/setup";
    if (!image::Store(host.directories).find(image::k_default_image)) {
      GTEST_SKIP() << "no default image in HOLT_HOME: run scripts/setup";
    }
    if (host.monitor.empty()) host.monitor = HOLT_BINARY_DIR "/src/monitor/holt-monitor";
    host.directories.state = state.path();
  }

  void TearDown() override {
    if (IsSkipped()) return;
    std::vector<std::string> left;
    EXPECT_TRUE(eventually([&] {
      left = processes_naming(state.path().string());
      return left.empty();
    })) << "left: "
        << left.front();
    machine::MachineFolders folders(host.directories);
    for (const auto& name : folders.names()) ADD_FAILURE() << "machine " << name << " is left";
  }

  Machine create(MachineConfig config = {}) { return Machine::create(config, {}, host); }
  machine::MachineFolder folder_of(const Machine& m) {
    return machine::MachineFolders(host.directories).of(m.name());
  }
  /// Nothing runs any more for a machine of this test. The end of a machine is that of its folder and of all
  /// its processes, in either order.
  bool all_quiet() { return processes_naming(state.path().string()).empty(); }
  bool all_gone() { return Machine::list_all(host).empty() && all_quiet(); }
  machine::MachineStatus status_of(const std::string& name) {
    return machine::MachineFolders(host.directories).of(name).read_status();
  }

  TempDir state;
  HostConfig host;
};

/// A machine for each test, which is there from its beginning to its end.
class InOneMachine : public MachineTest {
 protected:
  void SetUp() override {
    MachineTest::SetUp();
    if (!IsSkipped()) m = std::make_unique<Machine>(create({.lifetime = lifetime_}));
  }
  void TearDown() override {
    if (m) m->remove({.mode = RemoveMode::force});
    m.reset();
    MachineTest::TearDown();
  }

  Lifetime lifetime_ = Lifetime::ephemeral;
  std::unique_ptr<Machine> m;
};

/// Removes its machine at the end of a test, however that ends.
class Removed {
 public:
  explicit Removed(Machine machine) : machine_(std::move(machine)) {}
  ~Removed() {
    try {
      machine_.remove({.mode = RemoveMode::force});
    } catch (const Error&) {
      // The test removed it.
    }
  }
  Removed(const Removed&) = delete;
  Removed& operator=(const Removed&) = delete;
  Machine* operator->() { return &machine_; }
  Machine& operator*() { return machine_; }

 private:
  Machine machine_;
};

/// The guest's clock is the host's, within `tolerance`, however long the question takes.
inline void expect_right_clock(Machine& m, Duration tolerance) {
  auto now = [] { return std::chrono::system_clock::now().time_since_epoch(); };
  auto before = now();
  auto guest = std::chrono::nanoseconds(std::stoll(m.exec({"date", "+%s%N"}).out));
  EXPECT_GT(guest, before - tolerance);
  EXPECT_LT(guest, now() + tolerance);
}

}  // namespace holt::test
