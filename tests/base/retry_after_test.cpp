// What a reply's headers ask a client to wait.
#include "holt/base/retry_after.hpp"

#include <gtest/gtest.h>

namespace holt {
namespace {

TEST(RetryAfter, ReadsWhatTheServerAsksFor) {
  WallTime now(std::chrono::seconds(1000));
  EXPECT_EQ(retry_after_seconds({{"retry-after", "7"}}, now), 7.0);
  EXPECT_EQ(retry_after_seconds({{"retry-after-ms", "250"}, {"retry-after", "7"}}, now), 0.25);
  EXPECT_EQ(retry_after_seconds({{"retry-after", "soon"}}, now), std::nullopt);
  EXPECT_EQ(retry_after_seconds({{"retry-after", ""}}, now), std::nullopt);
  EXPECT_EQ(retry_after_seconds({}, now), std::nullopt);
}

TEST(RetryAfter, ReadsTheThreeFormsOfADate) {
  WallTime now(std::chrono::seconds(1000));
  EXPECT_EQ(retry_after_seconds({{"retry-after", "Thu, 01 Jan 1970 00:17:10 GMT"}}, now), 30.0);
  EXPECT_EQ(retry_after_seconds({{"retry-after", "Thursday, 01-Jan-70 00:17:10 GMT"}}, now), 30.0);
  EXPECT_EQ(retry_after_seconds({{"retry-after", "Thu Jan  1 00:17:10 1970"}}, now), 30.0);
  EXPECT_EQ(retry_after_seconds({{"retry-after", "Thu, 01 Jan 1970 00:00:10 GMT"}}, now), 0.0);
  EXPECT_EQ(retry_after_seconds({{"retry-after", "Thu, 01 Jan 1970 00:17:10 GMT more"}}, now), std::nullopt);
}

}  // namespace
}  // namespace holt
