#include "cli/units.hpp"

#include <gtest/gtest.h>

namespace holt::cli {
namespace {

using namespace std::chrono_literals;

TEST(Sizes, BareNumbersCountInTheUnitOfTheFlag) {
  EXPECT_EQ(parse_size("512", k_mib), 512 * k_mib);
  EXPECT_EQ(parse_size("20", k_gib), 20 * k_gib);
}

TEST(Sizes, SuffixesArePowersOf1024InAllTheirSpellings) {
  for (const char* text : {"2G", "2g", "2GB", "2GiB", "2gib", "2048M", "2097152K"}) {
    EXPECT_EQ(parse_size(text, 1), 2 * k_gib) << text;
  }
  EXPECT_EQ(parse_size("1.5M", 1), 3 * k_mib / 2);
  EXPECT_EQ(parse_size("7B", k_mib), 7u);
}

TEST(Sizes, WhatIsNoSizeIsRefused) {
  for (const char* text :
       {"", "-1", "G", "1X", "1GG", "1 G", "nan", "inf", "1e3", "0x10", "1..5", "1GiBx", "Bi"}) {
    EXPECT_FALSE(parse_size(text, 1)) << text;
  }
  EXPECT_FALSE(parse_size("99999999T", 1));
}

TEST(Durations, PartsAddUpAndBareNumbersAreSeconds) {
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("1h30m"), 90min);
  EXPECT_EQ(parse_duration("90"), 90s);
  EXPECT_EQ(parse_duration("0.001"), 1ms);
  EXPECT_EQ(parse_duration("2d"), 48h);
  EXPECT_EQ(parse_duration("1e9"), 1'000'000'000s);
}

TEST(Durations, WhatIsNoPositiveFiniteDurationIsRefused) {
  for (const char* text :
       {"", "0", "-1", "0s", "nan", "NaN", "inf", "5 minutes", "5x", "s", "1h30", "1e12", "1e400"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(Shown, SizesAndDurationsReadWell) {
  EXPECT_EQ(show_size(12), "12 B");
  EXPECT_EQ(show_size(3 * k_mib / 2), "1.5 MiB");
  EXPECT_EQ(show_duration(5ms), "5.0 ms");
  EXPECT_EQ(show_duration(812ms), "812 ms");
  EXPECT_EQ(show_duration(3200ms), "3.2 s");
}

}  // namespace
}  // namespace holt::cli
