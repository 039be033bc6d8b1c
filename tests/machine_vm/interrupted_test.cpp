// What those in the middle of something are told when a machine goes under their feet.
#include "image/tar_builder.hpp"
#include "machine_vm/vm_fixture.hpp"

#include <csignal>
#include <latch>
#include <map>
#include <mutex>
#include <sys/wait.h>
#include <unistd.h>

namespace holt::test {
namespace {

// More than the windows hold: whoever has sent it has heard from the guest.
constexpr std::size_t k_some = std::size_t{3} << 20;

/// Commands, a write and copies both ways, each on a thread of its own and in the middle until `gone` opens.
class Underway {
 public:
  Underway(const Machine& m, std::latch& gone) : begun_(k_calls) {
    auto background = m.start_shell_command("echo up; exec sleep 1000").id;
    start("command", [this, m] { follow(m.exec_shell_stream("echo up; exec sleep 1000")); });
    start("attached", [this, m, background] { follow(m.attach_command(background)); });
    start("write", [this, m, &gone] {
      auto writer = m.open_write("/root/written", {.call = {.deadline = patient()}});
      writer.write(std::string(k_some, 'x'));
      begun_.count_down();
      gone.wait();
      writer.write(std::string(k_some, 'x'));
      writer.finish();
    });
    start("copy out", [this, m, &gone] {
      bool first = true;
      TarOutput out = [&](std::string_view) {
        if (!std::exchange(first, false)) return;
        begun_.count_down();
        gone.wait();
      };
      m.copy_tar_out("/usr", out, {.call = {.deadline = patient()}});
    });
    start("copy in", [this, m, &gone] {
      auto tar = image::test::TarBuilder().file("f", std::string(2 * k_some, 'x')).finish();
      std::size_t at = 0;
      TarInput in = [&] {
        auto piece = std::string_view(tar).substr(at, 65536);
        if (at < k_some && at + piece.size() >= k_some) {
          begun_.count_down();
          gone.wait();
        }
        at += piece.size();
        return piece;
      };
      m.copy_tar_in(in, "/root/copied", {.call = {.deadline = patient()}});
    });
    begun_.wait();
  }

  using Told = std::map<std::string, std::pair<ErrorCode, std::string>>;
  /// Ends when all have ended.
  Told expect_told(const std::string& reason) {
    threads_.clear();
    EXPECT_EQ(told_.size(), k_calls);
    for (const auto& [what, told] : told_) {
      EXPECT_TRUE(told.first == ErrorCode::guest_lost || told.first == ErrorCode::outcome_unknown)
          << what << ": " << to_string(told.first) << ": " << told.second;
      EXPECT_NE(told.second.find(reason), std::string::npos) << what << ": " << told.second;
    }
    return told_;
  }

 private:
  static constexpr int k_calls = 5;

  void start(const char* what, const std::function<void()>& call) {
    threads_.emplace_back([this, what, call] {
      auto told = failure(call);
      std::lock_guard lock(mutex_);
      told_[what] = told;
    });
  }
  void follow(ExecStream stream) {
    stream.next({.deadline = patient()});
    begun_.count_down();
    while (stream.next({.deadline = patient()})) {
    }
  }

  std::latch begun_;
  std::mutex mutex_;
  Told told_;
  std::vector<std::jthread> threads_;
};

class Interrupted : public MachineTest {};

TEST_F(Interrupted, LIFE_15_AllThatIsUnderWayEndsWithTheReasonOfAStop) {
  Removed m(create({.name = "dev"}));
  std::latch gone(1);
  Underway calls(*m, gone);
  auto failed = code_of([&] { m->stop({.grace = 0s}); });
  gone.count_down();
  EXPECT_EQ(failed, std::nullopt);
  auto told = calls.expect_told("The machine dev was stopped");
  EXPECT_NE(told["command"].second.find("was stopped by a call"), std::string::npos)
      << told["command"].second;
}

TEST_F(Interrupted, LIFE_15_AllThatIsUnderWayEndsWithTheReasonOfARemoval) {
  auto m = create({.name = "dev"});
  std::latch gone(1);
  Underway calls(m, gone);
  auto failed = code_of([&] { m.remove({.mode = RemoveMode::force}); });
  gone.count_down();
  EXPECT_EQ(failed, std::nullopt);
  calls.expect_told("The machine dev was removed");
}

TEST_F(Interrupted, LIFE_15_ACommandLearnsThatTheProgramWhichOwnsItsMachineHasEnded) {
  pid_t owner = ::fork();
  if (owner == 0) {
    code_of([&] {
      auto m = create({.name = "owned", .lifetime = Lifetime::ephemeral});
      ::pause();
    });
    ::_exit(0);
  }
  auto runs = [&] { return code_of([&] { Machine::open("owned", host).exec({"true"}); }) == std::nullopt; };
  ASSERT_TRUE(eventually(runs));
  auto stream = Machine::open("owned", host).exec_shell_stream("echo up; exec sleep 1000");
  ASSERT_EQ(stream.next({.deadline = patient()})->data, "up\n");
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  auto [code, text] = failure([&] {
    while (stream.next({.deadline = patient()})) {
    }
  });
  EXPECT_EQ(code, ErrorCode::outcome_unknown);
  EXPECT_NE(text.find("was stopped by the end of the program that started it"), std::string::npos) << text;
  EXPECT_TRUE(eventually([&] { return all_gone(); }));
}

}  // namespace
}  // namespace holt::test
