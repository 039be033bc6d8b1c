#include "cli/interrupts.hpp"

#include "cli/output.hpp"
#include "holt/base/fd.hpp"

#include <array>
#include <csignal>
#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace holt::cli {
namespace {

TEST(InterruptsDeathTest, FRONT_05_AProgramThatDoesNotEndInTimeIsEndedWithItsLastWords) {
  EXPECT_EXIT(
      {
        Interrupts interrupts;
        interrupts.set_patience(std::chrono::milliseconds(0));
        interrupts.set_last_words([] { [[maybe_unused]] auto n = ::write(STDERR_FILENO, "said", 4); });
        ::kill(::getpid(), SIGTERM);
        while (true) ::pause();
      },
      testing::ExitedWithCode(128 + SIGTERM), "said");
}

/// Both output streams replaced by pipes that do not block.
class LastWords : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 2; ++i) {
      auto [read, write] = make_pipe();
      ::fcntl(read.get(), F_SETFL, O_NONBLOCK);
      kept_[i] = Fd(::dup(i + 1));
      ::dup2(write.get(), i + 1);
      readers[i] = std::move(read);
    }
  }
  void TearDown() override { restore(); }
  void restore() {
    for (int i = 0; i < 2; ++i) {
      if (kept_[i]) ::dup2(kept_[i].get(), i + 1);
      kept_[i].reset();
    }
  }
  std::string what_came(int i) const {
    std::array<char, 4096> buffer{};
    auto count = ::read(readers[i].get(), buffer.data(), buffer.size());
    return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
  }

  std::array<Fd, 2> readers;

 private:
  std::array<Fd, 2> kept_;
};

TEST_F(LastWords, FRONT_02_AreTheResultWhereThereIsNoneYet) {
  Output output;
  output.last_words("result", "message");
  restore();
  EXPECT_EQ(what_came(0), "result");
  EXPECT_EQ(what_came(1), "message");
}

TEST_F(LastWords, FRONT_02_AreNoSecondResult) {
  Output output;
  output.out("first");
  output.last_words("second", "message");
  restore();
  EXPECT_EQ(what_came(0), "first");
  EXPECT_EQ(what_came(1), "message");
}

TEST_F(LastWords, FRONT_05_AreLeftOutWhereNobodyReads) {
  int flags = ::fcntl(STDOUT_FILENO, F_GETFL);
  ::fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK);
  std::string block(65536, 'x');
  while (::write(STDOUT_FILENO, block.data(), block.size()) > 0) {
  }
  while (::write(STDOUT_FILENO, "x", 1) > 0) {
  }
  ::fcntl(STDOUT_FILENO, F_SETFL, flags);
  Output output;
  output.last_words("result", "message");
  restore();
  EXPECT_EQ(what_came(1), "message");
}

}  // namespace
}  // namespace holt::cli
