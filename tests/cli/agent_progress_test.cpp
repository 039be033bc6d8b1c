#include "cli/agent_progress.hpp"

#include <gtest/gtest.h>

namespace holt::cli {
namespace {

TEST(AgentProgress, ACallIsShownByItsCommandOrPath) {
  EXPECT_EQ(short_arguments({.tool_name = "shell", .args = {{"command", "make test"}, {"timeout", 5}}}),
            "make test");
  EXPECT_EQ(short_arguments({.tool_name = "read_file", .args = R"({"path": "a.py"})"}), "a.py");
  EXPECT_EQ(short_arguments({.tool_name = "now"}), "");
  EXPECT_EQ(short_arguments({.tool_name = "add", .args = {{"a", 1}}}), R"({"a":1})");
}

TEST(AgentProgress, OnlyTheFirstLineOfACommandIsShownAndItsControlBytesAreEscaped) {
  EXPECT_EQ(short_arguments({.tool_name = "shell", .args = {{"command", "cat <<X\n\x1b[31m\nX"}}}),
            "cat <<X ...");
  auto escaped = short_arguments({.tool_name = "shell", .args = {{"command", "\x1b[31mred"}}});
  EXPECT_EQ(escaped.find('\x1b'), std::string::npos) << escaped;
}

TEST(AgentProgress, ArgumentsThatAreNoJsonAreShownAsTheyAre) {
  EXPECT_EQ(short_arguments({.tool_name = "shell", .args = R"({"command": )"}), R"("{\"command\": ")");
}

TEST(AgentProgress, TheTailIsTheLastLineWithText) {
  EXPECT_EQ(last_line("one\ntwo\n\n"), "two");
  EXPECT_EQ(last_line("one"), "one");
  EXPECT_EQ(last_line("\n \n"), "");
  EXPECT_EQ(last_line(""), "");
}

}  // namespace
}  // namespace holt::cli
