#include "holt/image/platform.hpp"

#include <gtest/gtest.h>

namespace holt::image {
namespace {

TEST(Platform, ReadsWhatItWrites) {
  for (const char* text : {"linux/amd64", "linux/arm64/v8", "linux/arm/v7", "windows/amd64"}) {
    auto parsed = parse_platform(text);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error();
    EXPECT_EQ(parsed->text(), text);
  }
  EXPECT_EQ(Platform::of_machines().text(), "linux/amd64");
}

TEST(Platform, KnowsTheKernelsWords) {
  EXPECT_EQ(parse_platform("linux/x86_64")->text(), "linux/amd64");
  EXPECT_EQ(parse_platform("linux/aarch64")->text(), "linux/arm64");
}

TEST(Platform, RefusesEverythingElse) {
  for (const std::string& text :
       {std::string(), std::string("linux"), std::string("linux/"), std::string("/amd64"),
        std::string("linux/amd64/"), std::string("linux/a/b/c"), std::string("Linux/amd64"),
        std::string("linux/.."), std::string("linux/am d64"), std::string("linux/\x1b"),
        std::string("linux/a\0b", 9), "linux/" + std::string(65, 'a')}) {
    auto parsed = parse_platform(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_FALSE(parsed.error().empty());
  }
}

}  // namespace
}  // namespace holt::image
