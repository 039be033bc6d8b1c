#include "cli/signal_names.hpp"

#include <csignal>

#include <gtest/gtest.h>

namespace holt::cli {
namespace {

TEST(SignalNames, NamesWithAndWithoutSigAndNumbersAreOne) {
  for (const auto* text : {"TERM", "SIGTERM", "15"}) EXPECT_EQ(signal_number(text), SIGTERM) << text;
  EXPECT_EQ(signal_number("WINCH"), SIGWINCH);
  EXPECT_EQ(signal_number("64"), 64);
}

TEST(SignalNames, IMG_29_RealTimeSignalsCountFromBothEnds) {
  EXPECT_EQ(signal_number("RTMIN"), 34);
  EXPECT_EQ(signal_number("RTMIN+3"), 37);
  EXPECT_EQ(signal_number("SIGRTMIN+30"), 64);
  EXPECT_EQ(signal_number("SIGRTMAX"), 64);
  EXPECT_EQ(signal_number("RTMAX-14"), 50);
}

TEST(SignalNames, IMG_29_EverythingElseIsNone) {
  for (const auto* text :
       {"", "0", "-1", "65", "15x", "99999999999999999999", "term", "SIG", "SIGSIGTERM", "RTMIN+31",
        "RTMIN-1", "RTMIN+", "RTMIN++1", "RTMIN+ 1", "RTMAX-31", "RTMAX+1", "TERM "}) {
    EXPECT_EQ(signal_number(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace holt::cli
