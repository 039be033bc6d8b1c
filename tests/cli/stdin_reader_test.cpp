#include "cli/stdin_reader.hpp"

#include "holt/base/error.hpp"
#include "holt/base/fd.hpp"

#include <csignal>
#include <unistd.h>

#include <gtest/gtest.h>

namespace holt::cli {
namespace {

/// A pipe in place of standard input, and the signals as they were before Interrupts took them over.
class StandardInput : public testing::Test {
 protected:
  void SetUp() override {
    ::pthread_sigmask(SIG_BLOCK, nullptr, &mask_);
    auto [read, write] = make_pipe();
    kept_ = Fd(::dup(STDIN_FILENO));
    ::dup2(read.get(), STDIN_FILENO);
    writer = std::move(write);
  }
  void TearDown() override {
    if (kept_) {
      ::dup2(kept_.get(), STDIN_FILENO);
    } else {
      ::close(STDIN_FILENO);
    }
    ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  void write(std::string_view text) {
    ASSERT_EQ(::write(writer.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  Fd writer;

 private:
  Fd kept_;
  sigset_t mask_{};
};

TEST_F(StandardInput, IsReadInPiecesToItsEnd) {
  Interrupts interrupts;
  std::string buffer;
  write("one");
  EXPECT_EQ(read_input(interrupts, buffer), "one");
  write("two");
  writer.reset();
  EXPECT_EQ(read_all_input(interrupts, 100), "two");
  EXPECT_EQ(read_input(interrupts, buffer), "");
}

TEST_F(StandardInput, IsReadNotFarAboveTheLimit) {
  Interrupts interrupts;
  write("12345");
  EXPECT_GT(read_all_input(interrupts, 3).size(), 3u) << "so that the caller sees that it is too long";
}

TEST_F(StandardInput, FRONT_05_AnInterruptEndsTheWait) {
  Interrupts interrupts;
  interrupts.set_patience(std::chrono::hours(1));
  ::kill(::getpid(), SIGINT);
  std::string buffer;
  try {
    read_input(interrupts, buffer);
    FAIL() << "there was input";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
  }
  EXPECT_EQ(interrupts.signal(), SIGINT);
}

}  // namespace
}  // namespace holt::cli
