#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "holt/machine/availability.hpp"
#include "machine/console.hpp"
#include "machine/host_facts.hpp"
#include "machine/qmp.hpp"
#include "machine/stub_kernel.hpp"
#include "machine/tsc.hpp"
#include "machine/vmm.hpp"
#include "support/asking.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <thread>

#include <gtest/gtest.h>

namespace holt::machine {
namespace {

using test::code_of;

using namespace std::chrono_literals;

/// A QEMU that says these lines at once, whatever it is asked.
QmpClient talking_to(Fd& there, const std::string& lines) {
  auto [here, other] = socket_pair();
  there = std::move(other);
  write_all(there.get(), lines);
  return QmpClient(std::move(here));
}

TEST(Qmp, GreetsAndKeepsEventsApartFromAnswers) {
  Fd qemu;
  auto qmp = talking_to(qemu,
                        "{\"QMP\":{}}\n{\"event\":\"RESUME\"}\n{\"return\":{}}\n"
                        "{\"event\":\"SHUTDOWN\",\"data\":{\"reason\":\"guest-reset\"}}\n{\"return\":{"
                        "\"status\":\"running\"}}\n");
  qmp.greet(test::patient());
  EXPECT_EQ(qmp.execute("query-status", nullptr, test::patient())["status"], "running");
  EXPECT_EQ(qmp.poll_event()->name, "RESUME");
  auto event = qmp.poll_event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->data["reason"], "guest-reset");
  EXPECT_FALSE(qmp.poll_event());
}

TEST(Qmp, ARefusalIsAnErrorWithItsText) {
  Fd qemu;
  auto qmp =
      talking_to(qemu, "{\"error\":{\"class\":\"GenericError\",\"desc\":\"no \\u001b such thing\"}}\n");
  try {
    qmp.execute("x", nullptr, test::patient());
    FAIL() << "expected HYPERVISOR_UNAVAILABLE";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::hypervisor_unavailable);
    EXPECT_EQ(std::string(e.what()).find('\x1b'), std::string::npos);
  }
}

TEST(Qmp, RubbishSilenceAndEndAreErrors) {
  for (const auto* rubbish : {"not json\n", "[]\n", "\"x\"\n"}) {
    Fd qemu;
    auto qmp = talking_to(qemu, rubbish);
    EXPECT_EQ(code_of([&] { qmp.greet(test::patient()); }), ErrorCode::hypervisor_unavailable) << rubbish;
  }
  Fd qemu;
  auto silent = talking_to(qemu, "");
  EXPECT_EQ(code_of([&] { silent.greet(Deadline::after(20ms)); }), ErrorCode::timeout);
  qemu.reset();
  EXPECT_EQ(code_of([&] { silent.execute("quit", nullptr, Deadline::after(1s)); }),
            ErrorCode::hypervisor_unavailable);
}

TEST(Qmp, ALineWithoutEndIsBounded) {
  auto [here, there] = socket_pair();
  QmpClient qmp(std::move(here));
  std::jthread flood([fd = there.get()] {
    std::string piece(65536, 'x');
    for (int i = 0; i < 64; i++) {
      if (::send(fd, piece.data(), piece.size(), MSG_NOSIGNAL) < 0) return;
    }
  });
  EXPECT_EQ(code_of([&] { qmp.greet(Deadline::after(5s)); }), ErrorCode::hypervisor_unavailable);
  ::shutdown(there.get(), SHUT_RDWR);
}

TEST(Console, CHAN_21_KeepsTheEndAndNeverMoreThanItsLimit) {
  TempDir dir;
  auto file = dir.path() / "console.log";
  auto [guest, reader] = socket_pair();
  {
    ConsoleReader console(std::move(reader), file);
    std::string piece(1 << 20, 'x');
    for (int i = 0; i < 23; i++) write_all(guest.get(), piece);
    write_all(guest.get(), "\nlast \x1b[31mwords\n");
    guest.reset();
  }
  auto size = std::filesystem::file_size(file) + std::filesystem::file_size(dir.path() / "console.log.1");
  EXPECT_LE(size, k_console_limit + 65536);
  auto shown = last_lines_of(file);
  EXPECT_NE(shown.find("words"), std::string::npos) << shown;
  EXPECT_EQ(shown.find('\x1b'), std::string::npos) << shown;
}

TEST(Console, CHAN_12_CHAN_17_ALineIsFoundBehindManyOthersButNotInAnEarlierLife) {
  TempDir dir;
  auto found_in = [&](const std::string& text) {
    auto [guest, reader] = socket_pair();
    ConsoleReader console(std::move(reader), dir.path() / "console.log");
    write_all(guest.get(), text);
    guest.reset();
    return console.find_line("Kernel panic");
  };
  std::string trace;
  for (int i = 0; i < 60; i++) trace += "[   1.5] Call trace line\r\n";
  EXPECT_EQ(found_in("[   1.5] Kernel panic - not syncing: a\x1b[31m reason\r\n" + trace +
                     "---[ end Kernel panic - not syncing: a reason ]---\r\n"),
            "Kernel panic - not syncing: a\\x1b[31m reason");
  EXPECT_EQ(found_in(trace), "") << "the panic was that of the life before";
  EXPECT_EQ(found_in("Kernel panic: old\n" + std::string(70'000, 'x')), "") << "64 KiB before the end";
  EXPECT_LE(found_in("Kernel panic: " + std::string(4000, 'x')).size(), 400u);
}

TEST(Console, OfNothingIsNothing) {
  EXPECT_EQ(last_lines_of("/nowhere"), "");
}

TEST(Tsc, MeasurementsOfOneHostAreTheSameFrequency) {
  unsigned first = measure_tsc_khz();
  unsigned second = measure_tsc_khz();
  EXPECT_GT(first, 100'000u);
  EXPECT_NEAR(first, second, first * 1e-3);
  EXPECT_TRUE(same_tsc_frequency(2'500'000, 2'500'003));
  EXPECT_FALSE(same_tsc_frequency(2'500'000, 2'501'000));
}

TEST(Tsc, TheRememberedFrequencyStaysWhileItIsTrue) {
  TempDir dir;
  auto first = stable_tsc_khz(dir.path());
  EXPECT_EQ(stable_tsc_khz(dir.path()), first);
  // After a restart of the host it is measured again, and another host's value does not stay.
  write_file_atomically(dir.path() / "tsc-khz", "17 another-boot");
  EXPECT_GT(stable_tsc_khz(dir.path()), 100'000u);
  write_file_atomically(dir.path() / "tsc-khz", "rubbish");
  EXPECT_GT(stable_tsc_khz(dir.path()), 100'000u);
}

TEST(HostFacts, AreFoundOnceWhileTheFileStaysTheSame) {
  TempDir dir;
  auto file = dir.path() / "f";
  write_file_atomically(file, "one");
  int asked = 0;
  auto fact = [&] {
    return cached_fact(dir.path() / "cache", "name", file, [&] { return std::to_string(++asked); });
  };
  EXPECT_EQ(fact(), "1");
  EXPECT_EQ(fact(), "1");
  write_file_atomically(file, "two");
  EXPECT_EQ(fact(), "2");
  EXPECT_EQ(file_sha256(dir.path() / "cache", file),
            "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3");
}

TEST(Availability, NeverThrowsWhereNothingIsInstalled) {
  TempDir dir;
  HostConfig host{.directories = Directories::below(dir.path()), .monitor = "/nowhere/holt-monitor"};
  auto answer = local_availability(host);
  EXPECT_FALSE(answer.available);
  EXPECT_EQ(answer.code, ErrorCode::runtime_not_installed);
  EXPECT_TRUE(answer.reason);
}

TEST(StubKernel, RunsUnderEmulationAndSaysItsSign) {
  if (::access("/usr/bin/qemu-system-x86_64", X_OK) != 0)
    GTEST_SKIP() << "qemu-system-x86_64 is not installed";
  TempDir dir;
  write_file_atomically(dir.path() / "kernel", stub_kernel());
  write_file_atomically(dir.path() / "empty", std::string(1, '\0'));
  auto vmm = Vmm::start({.qemu = "/usr/bin/qemu-system-x86_64",
                         .cpus = 1,
                         .memory_mb = 128,
                         .kernel = dir.path() / "kernel",
                         .initramfs = dir.path() / "empty"});
  std::string seen;
  auto deadline = Deadline::after(30s);
  while (seen.find(k_stub_sign) == std::string::npos && !deadline.passed()) {
    pollfd ready{vmm.console().get(), POLLIN, 0};
    if (::poll(&ready, 1, deadline.poll_timeout()) <= 0) continue;
    char bytes[256];
    auto n = ::read(vmm.console().get(), bytes, sizeof bytes);
    if (n <= 0) break;
    seen.append(bytes, static_cast<std::size_t>(n));
  }
  EXPECT_NE(seen.find(k_stub_sign), std::string::npos) << seen;
}

}  // namespace
}  // namespace holt::machine
