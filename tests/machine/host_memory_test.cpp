#include "machine/host_memory.hpp"

#include "holt/base/error.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace holt::machine {
namespace {

constexpr std::uint64_t k_gib = std::uint64_t{1} << 30;

TEST(HostMemory, IsSomethingOnEveryHost) {
  EXPECT_GT(host_memory_bytes(), k_gib / 4);
}

TEST(HostMemory, MachineMayBeAsLargeAsTheHost) {
  EXPECT_NO_THROW(check_memory_fits(128, 16 * k_gib));
  EXPECT_NO_THROW(check_memory_fits(16 * 1024, 16 * k_gib));
}

TEST(HostMemory, MachineLargerThanTheHostIsRefusedWithBothSizes) {
  try {
    check_memory_fits(16 * 1024 + 1, 16 * k_gib);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_config);
    EXPECT_STREQ(error.what(), "A memory of 16385 MiB is more than the 16384 MiB of this host");
  }
}

TEST(HostMemory, LIFE_10_TooFewAddressesAreRefusedWithTheLimitsName) {
  EXPECT_NO_THROW(check_address_space(1024, std::numeric_limits<std::uint64_t>::max()));
  EXPECT_NO_THROW(check_address_space(1024, 2 * k_gib));
  try {
    check_address_space(1024, k_gib);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::limit_exceeded);
    EXPECT_NE(error.hint().find("ulimit -v"), std::string::npos) << error.hint();
  }
}

TEST(HostMemory, RefusesNothingOnAHostThatDoesNotSay) {
  EXPECT_NO_THROW(check_memory_fits(1 << 20, 0));
}

}  // namespace
}  // namespace holt::machine
