#include "models/stream_assembler.hpp"

#include "holt/models/errors.hpp"

#include <gtest/gtest.h>

namespace holt {
namespace {

TEST(StreamAssembler, TextOfArgumentsGrowsInPlace) {
  std::string whole = "{";
  whole.reserve(1000);
  Json args = std::move(whole);
  const char* before = args.get_ref<const std::string&>().data();
  args = add_arguments(std::move(args), "\"a\": 1");
  args = add_arguments(std::move(args), "}");
  EXPECT_EQ(args, R"({"a": 1})");
  EXPECT_EQ(args.get_ref<const std::string&>().data(), before) << "a copy for each delta is quadratic";
}

TEST(StreamAssembler, ArgumentsAreTextOrObjectsButNoMix) {
  EXPECT_EQ(add_arguments({{"a", 1}}, {{"b", 2}}), (Json{{"a", 1}, {"b", 2}}));
  EXPECT_EQ(add_arguments("x", nullptr), "x");
  EXPECT_EQ(add_arguments(nullptr, "x"), "x");
  EXPECT_THROW(add_arguments("x", {{"a", 1}}), UnexpectedModelBehavior);
}

}  // namespace
}  // namespace holt
