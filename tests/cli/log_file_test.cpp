#include "cli/log_file.hpp"

#include "holt/base/error.hpp"
#include "holt/base/files.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace holt::cli {
namespace {

class LogFiles : public ::testing::Test {
 protected:
  TempDir dir;
  std::filesystem::path path = dir.path() / "console.log";

  void add(const std::string& text) const { std::ofstream(path, std::ios::app) << text; }
  void begin_anew() const { std::filesystem::rename(path, dir.path() / "console.log.1"); }
};

TEST_F(LogFiles, WhatIsNotThereIsEmptyAndMayCome) {
  LogFile log(path);
  EXPECT_EQ(log.read(), "");
  add("one");
  EXPECT_EQ(log.read(), "one");
  EXPECT_EQ(log.read(), "");
  add("two");
  EXPECT_EQ(log.read(), "two");
}

TEST_F(LogFiles, BeginsWithTheOldOne) {
  add("one");
  begin_anew();
  add("two");
  EXPECT_EQ(LogFile(path).read(), "onetwo");
}

TEST_F(LogFiles, CHAN_21_IsFollowedOverEachNewBeginning) {
  LogFile log(path);
  add("one");
  EXPECT_EQ(log.read(), "one");
  add("two");
  begin_anew();
  EXPECT_EQ(log.read(), "two");  // the new one is not there yet
  EXPECT_EQ(log.read(), "");
  add("three");
  EXPECT_EQ(log.read(), "three");
  add("four");
  begin_anew();
  add("five");
  EXPECT_EQ(log.read(), "fourfive");
  EXPECT_EQ(log.read(), "");
}

TEST_F(LogFiles, GivesAllThatIsKeptWhereItBeganAnewTwice) {
  LogFile log(path);
  add("one");
  EXPECT_EQ(log.read(), "one");
  add("-");
  begin_anew();
  add("two");
  begin_anew();
  add("three");
  EXPECT_EQ(log.read(), "-twothree");
}

TEST_F(LogFiles, ALinkInItsPlaceIsNotFollowed) {
  std::ofstream(dir.path() / "secret") << "secret";
  std::filesystem::create_symlink(dir.path() / "secret", path);
  EXPECT_THROW(LogFile(path).read(), Error);
}

}  // namespace
}  // namespace holt::cli
