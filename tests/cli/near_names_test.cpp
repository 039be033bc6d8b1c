#include "cli/near_names.hpp"

#include <gtest/gtest.h>

namespace holt::cli {
namespace {

using Names = std::vector<std::string>;

TEST(NearNames, ASlipOfOneLetterOrASwapIsNear) {
  Names names{"exec", "run", "dev", "image rm"};
  for (const char* word : {"exce", "exc", "exxec", "exek"}) EXPECT_EQ(nearest(word, names), "exec") << word;
  EXPECT_EQ(nearest("rn", names), "run");
  EXPECT_EQ(nearest("dve", names), "dev");
}

TEST(NearNames, LongWordsMayDifferMoreAndShortOnesLess) {
  EXPECT_EQ(nearest("--identify-agent", {"--identity-agents"}), "--identity-agents");
  EXPECT_EQ(nearest("push", {"sh"}), "");
  EXPECT_EQ(nearest("kill", {"pull"}), "");
  EXPECT_EQ(nearest("x", {"y"}), "");
  EXPECT_EQ(nearest("app", {"app", "apt"}), "") << "no slip at all";
  EXPECT_EQ(nearest("", {"y"}), "");
  EXPECT_EQ(nearest(std::string(200'000, 'x'), {std::string(200'001, 'x')}), "");
}

TEST(NearNames, ABeginningIsNearWhereItIsTheOnlyOne) {
  EXPECT_EQ(nearest("--time", {"--timeout", "--rm"}), "--timeout");
  EXPECT_EQ(nearest("--max", {"--max-output", "--max-requests"}), "");
  EXPECT_EQ(nearest("mine", {"mine:1", "other:1"}), "mine:1");
}

TEST(NearNames, TheSentenceStandsInFrontOfAHint) {
  EXPECT_EQ(did_you_mean("exce", {"exec"}) + "See more.", "Did you mean 'exec'? See more.");
  EXPECT_EQ(did_you_mean("zzzz", {"exec"}) + "See more.", "See more.");
}

}  // namespace
}  // namespace holt::cli
