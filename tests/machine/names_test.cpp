#include "holt/machine/names.hpp"

#include "holt/base/error.hpp"
#include "holt/machine/config.hpp"

#include <gtest/gtest.h>

namespace holt {
namespace {

TEST(MachineNames, LIFE_21_TheRuleTakesWhatItSays) {
  for (const auto* name :
       {"a", "7", "A-b_c", "con", "pydantic-ai-0123456789abcdef0123456789abcdef", "a_", "a-_-b"}) {
    EXPECT_TRUE(is_machine_name(name)) << name;
  }
  EXPECT_TRUE(is_machine_name(std::string(128, 'x')));
}

TEST(MachineNames, LIFE_21_TheRuleRefusesTheRest) {
  for (const std::string name :
       {"", ".", "..", "a/b", "-x", "_x", "a--b", "a-", "ä", "a b", "a\n", "a.b", "--help"}) {
    EXPECT_FALSE(is_machine_name(name)) << name;
  }
  EXPECT_FALSE(is_machine_name(std::string(129, 'x')));
  EXPECT_FALSE(is_machine_name(std::string_view("a\0b", 3)));
}

TEST(MachineNames, ARefusalNamesTheRuleAndShowsNoControlBytes) {
  try {
    check_machine_name("x\x1b[31m");
    FAIL() << "expected INVALID_CONFIG";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::invalid_config);
    EXPECT_EQ(std::string(e.what()).find('\x1b'), std::string::npos) << e.what();
    EXPECT_NE(e.hint().find("128"), std::string::npos) << e.hint();
  }
}

TEST(MachineNames, ANewNameKeepsTheRuleAndDiffers) {
  auto name = new_machine_name();
  EXPECT_TRUE(is_machine_name(name)) << name;
  EXPECT_EQ(name.size(), std::string("holt-").size() + 8);
  EXPECT_NE(name, new_machine_name());
}

TEST(MachineNames, AHostNameIsALabel) {
  EXPECT_EQ(host_name_of("dev"), "dev");
  EXPECT_EQ(host_name_of("a_b"), "a-b");
  EXPECT_EQ(host_name_of("a_"), "a");
  EXPECT_EQ(host_name_of(std::string(128, 'x')).size(), 63u);
}

TEST(MachineConfig, RangesAndNamesAreChecked) {
  auto code_of = [](const MachineConfig& config) {
    try {
      check_machine_config(config);
    } catch (const Error& e) {
      return std::string(to_string(e.code()));
    }
    return std::string("none");
  };
  EXPECT_EQ(code_of({}), "none");
  EXPECT_EQ(code_of({.name = "a/b"}), "INVALID_CONFIG");
  EXPECT_EQ(code_of({.resources = {.cpus = 0}}), "INVALID_CONFIG");
  EXPECT_EQ(code_of({.resources = {.memory_mb = 64}}), "INVALID_CONFIG");
  EXPECT_EQ(code_of({.resources = {.disk_gb = 0}}), "INVALID_CONFIG");
  EXPECT_EQ(code_of({.env = {{"A=B", "x"}}}), "INVALID_CONFIG");
  EXPECT_EQ(code_of({.env = {{"A", std::string("x\0y", 3)}}}), "INVALID_CONFIG");
  EXPECT_EQ(code_of({.working_dir = "relative"}), "INVALID_CONFIG");
  EXPECT_EQ(code_of({.make_dirs = {"x"}}), "INVALID_CONFIG");
  EXPECT_EQ(code_of({.network = {.mode = NetworkMode::open}}), "NOT_SUPPORTED");
  EXPECT_EQ(code_of({.idle_stop = Duration::zero()}), "INVALID_CONFIG");
}

TEST(MachineConfig, CLONE_20_AnErrorNeverHoldsTheValueOfAVariable) {
  try {
    check_machine_config({.env = {{"TOKEN", std::string("hunter2\0", 8)}}});
    FAIL() << "expected INVALID_CONFIG";
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()).find("hunter2"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("TOKEN"), std::string::npos);
  }
}

}  // namespace
}  // namespace holt
