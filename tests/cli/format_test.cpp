#include "cli/cp_paths.hpp"
#include "cli/errors.hpp"
#include "cli/machine_flags.hpp"
#include "cli/outcome.hpp"
#include "cli/table.hpp"

#include <gtest/gtest.h>

namespace holt::cli {
namespace {

TEST(Table, ColumnsAlignByCharactersAndLinesEndWithoutSpaces) {
  EXPECT_EQ(format_table({"NAME", "STATE"}, {{"d\u00e9v", "running"}, {"b", ""}}),
            "NAME   STATE\nd\u00e9v    running\nb\n");
}

TEST(Table, ControlBytesOfCellsAreEscaped) {
  EXPECT_EQ(format_table({"NAME"}, {{"a\x1b[31m\nb"}}), "NAME\na\\x1b[31m\\x0ab\n");
}

Json machine_like() {
  return {{"name", "dev"},
          {"reason", nullptr},
          {"resources", {{"cpus", 2}, {"memoryMb", 512}}},
          {"labels", {{"org.example.team", "red"}}}};
}

TEST(Template, KeysAreReplacedAndWhatIsNullIsEmpty) {
  EXPECT_EQ(
      format_template(R"({{.name}}\t{{ .resources.cpus }} {{.reason}}{{.reason.code}}|)", machine_like()),
      "dev\t2 |");
}

TEST(Template, LabelsHaveAnyKeysAlsoWithDots) {
  EXPECT_EQ(format_template("{{.labels.org.example.team}}{{.labels.none}}|", machine_like()), "red|");
}

TEST(Template, AnUnknownKeyIsUsageAndTheKeysAreNamed) {
  auto expect_refused = [](const char* text, const std::string& message, const std::string& hint) {
    try {
      format_template(text, machine_like());
      FAIL() << text << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      EXPECT_EQ(error.what(), message);
      EXPECT_EQ(error.hint(), hint);
    }
  };
  expect_refused("{{.Name}}", "--format: there is no key 'Name'", "Keys: name, reason, resources, labels.");
  expect_refused("{{.resources.cpu}}", "--format: 'resources' has no key 'cpu'", "Keys: cpus, memoryMb.");
  expect_refused("{{.name.x}}", "--format: 'name' has no key 'x'", "");
  EXPECT_EQ(format_template("{{.Name}}|", machine_like(), UnknownKey::empty), "|");
}

TEST(Template, WhatIsNoTemplateIsUsage) {
  for (const char* text : {"{{.name", "{{name}}", "{{}}"}) {
    EXPECT_THROW(format_template(text, Json::object()), Error) << text;
  }
}

TEST(CpPaths, AColonBeforeTheFirstSlashMakesAMachinesPath) {
  auto side = parse_cp_side("m:/a b");
  ASSERT_TRUE(std::holds_alternative<GuestPath>(side));
  EXPECT_EQ(std::get<GuestPath>(side).machine, "m");
  EXPECT_EQ(std::get<GuestPath>(side).path, "/a b");
  for (const char* text : {"./m:/x", "/m:/x", "a/b:c", "plain"}) {
    EXPECT_TRUE(std::holds_alternative<HostPath>(parse_cp_side(text))) << text;
  }
  EXPECT_TRUE(std::holds_alternative<Stream>(parse_cp_side("-")));
}

TEST(CpPaths, ATypoInAMachinesNameNeverBecomesAHostFile) {
  for (const char* text : {"m:", "m:relative", ":/x", ""}) EXPECT_THROW(parse_cp_side(text), Error) << text;
}

TEST(Environment, EntriesAreSetAndABareNameIsCopied) {
  ::setenv("HOLT_TEST_COPIED", "here", 1);
  auto env = parse_env({"A=1", "B=", "C=x=y", "HOLT_TEST_COPIED"});
  EXPECT_EQ(env, (std::map<std::string, std::string>{
                     {"A", "1"}, {"B", ""}, {"C", "x=y"}, {"HOLT_TEST_COPIED", "here"}}));
}

TEST(Environment, ARefusalNamesTheVariableAndNotTheValue) {
  try {
    parse_env({"HOLT_TEST_ABSENT"});
    FAIL() << "an absent variable was copied";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find("HOLT_TEST_ABSENT"), std::string::npos);
  }
  try {
    parse_env({"=secret"});
    FAIL() << "a variable without name was taken";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("secret"), std::string::npos);
  }
}

TEST(ErrorObject, HasTheKeysOfTheReferenceInOrder) {
  Error error(ErrorCode::not_found, "There is no machine 'x'",
              {.subject = "x", .hint = "h", .causes = {"c"}});
  EXPECT_EQ(dump_json(error_json(error)),
            R"({"error":{"code":"NOT_FOUND","message":"There is no machine 'x'","machine":"x","hint":"h",)"
            R"("retryable":false,"cause":["c"]}})");
}

TEST(Outcomes, TheGuestsCodeAndItsOriginAreToldApart) {
  GuestExit exit;
  exit.result.exit_code = 124;
  EXPECT_EQ(exit_code(exit), 124);
  EXPECT_EQ(origin_of(exit), "guest");
  exit.result.exit_code = std::nullopt;
  exit.result.signal = 9;
  exit.result.timed_out = true;
  EXPECT_EQ(exit_code(exit), 124);
  EXPECT_EQ(origin_of(exit), "timeout");
  exit.result.timed_out = false;
  exit.result.signal = 15;
  EXPECT_EQ(exit_code(exit), 143);
  EXPECT_EQ(origin_of(exit), "signal");
  exit.interrupted_by = 2;
  EXPECT_EQ(exit_code(exit), 130);
}

}  // namespace
}  // namespace holt::cli
