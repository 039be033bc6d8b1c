#include "cli/parser.hpp"

#include "cli/errors.hpp"
#include "cli/verbs.hpp"

#include <gtest/gtest.h>

namespace holt::cli {
namespace {

using Words = std::vector<std::string>;

/// A verb of each kind that notes what it was given.
class Probe : public Command {
 public:
  Probe(std::string_view name, Tail tail, Need need = Need::optional)
      : name_(name), tail_kind_(tail), need_(need) {}
  CommandInfo info() const override {
    return {.name = name_,
            .summary = "Probe",
            .usage = "[flags]",
            .examples = {"holt probe"},
            .tail = tail_kind_};
  }
  void declare(Options& options) override {
    options.flag("-f,--force", force, "Force");
    options.text("--name", "NAME", name, "Name");
    options.texts("-e,--env", "ENV", env, "Env");
    options.duration("--timeout", timeout, "Timeout");
    options.memory("-m,--memory", memory, "Memory");
    options.later_flag("--net", "a network");
    options.later_value("-v,--volume", "mounts");
    if (tail_kind_ == Tail::none) options.arguments("WORD", words, need_, "Words");
  }
  void take_tail(const Words& given) override { tail = given; }
  Outcome run(Session&) override { return ToolExit{}; }

  bool force = false;
  std::optional<std::string> name;
  Words env;
  std::optional<Duration> timeout;
  std::optional<unsigned> memory;
  Words words;
  Words tail;

 private:
  std::string_view name_;
  Tail tail_kind_;
  Need need_;
};

class Parser : public testing::Test {
 protected:
  Parser() {
    commands_.push_back(std::make_unique<Probe>("list", Tail::none));
    commands_.push_back(std::make_unique<Probe>("run", Tail::guest_argv));
    commands_.push_back(std::make_unique<Probe>("image ls", Tail::none));
    commands_.push_back(std::make_unique<Probe>("later", Tail::anything));
    commands_.push_back(std::make_unique<Probe>("need", Tail::none, Need::required));
  }

  Probe& parsed(const Words& argv) { return dynamic_cast<Probe&>(*parse(argv, commands_, globals_).command); }

  void expect_usage(const Words& argv, const std::string& part) {
    GlobalOptions globals;
    try {
      parse(argv, commands_, globals);
      FAIL() << "argv was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage) << error.what();
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }

  Commands commands_;
  GlobalOptions globals_;
};

TEST_F(Parser, GlobalFlagsStandBeforeOrBehindTheVerb) {
  parsed({"--json", "list", "-f", "-q"});
  EXPECT_TRUE(globals_.json);
  EXPECT_TRUE(globals_.quiet);
}

TEST_F(Parser, FromTheFirstPlainWordOnEverythingBelongsToTheGuest) {
  auto& run = parsed({"run", "-f", "--name", "n", "-eA=1", "-m", "2G", "img", "--json", "-f", "--", "-x"});
  EXPECT_TRUE(run.force);
  EXPECT_EQ(run.name, "n");
  EXPECT_EQ(run.env, Words{"A=1"});
  EXPECT_EQ(run.memory, 2048u);
  EXPECT_FALSE(globals_.json);
  EXPECT_EQ(run.tail, (Words{"img", "--json", "-f", "--", "-x"}));
}

TEST_F(Parser, TheTwoDashesStayInTheTailSoThatTheVerbSeesThem) {
  EXPECT_EQ(parsed({"run", "-f", "--", "python3", "-c", "1"}).tail, (Words{"--", "python3", "-c", "1"}));
  EXPECT_EQ(parsed({"run"}).tail, Words{});
  EXPECT_EQ(parsed({"run", ""}).tail, Words{""});
}

TEST_F(Parser, AListFlagTakesOneValueEachTime) {
  auto& run = parsed({"run", "-e", "A=1", "--env=B=2", "img"});
  EXPECT_EQ(run.env, (Words{"A=1", "B=2"}));
  EXPECT_EQ(run.tail, Words{"img"});
}

TEST_F(Parser, TwoWordVerbsAreFound) {
  EXPECT_EQ(parsed({"image", "ls"}).info().name, "image ls");
}

TEST_F(Parser, MisuseIsUsageAndNamesTheWord) {
  expect_usage({}, "no verb");
  expect_usage({"--nope", "list"}, "--nope");
  expect_usage({"lisp"}, "lisp");
  expect_usage({"list", "--nope"}, "--nope");
  expect_usage({"list", "--name"}, "--name");
  expect_usage({"list", "--name", "a", "--name", "b"}, "--name");
  expect_usage({"run", "--timeout=", "img"}, "--timeout");
  expect_usage({"run", "--timeout", "-1"}, "--timeout");
  expect_usage({"run", "--timeout", "0"}, "--timeout");
  expect_usage({"list", "-m", "1K"}, "--memory");
  expect_usage({"image"}, "image");
  expect_usage({"image", "nope"}, "nope");
  expect_usage({"image", "--force"}, "needs one of its verbs");
  expect_usage({"image", "nope", "--help"}, "nope");
  expect_usage({"--", "list"}, "--");
  expect_usage({"--color", "pink", "list"}, "pink");
  expect_usage({"list", "--format", "x"}, "--format");
  expect_usage({"run", "--" + std::string(200'000, 'x')}, "unknown flag");
}

TEST_F(Parser, AMistypedFlagIsNamedBeforeWhatIsMissing) {
  auto hint_of = [&](const Words& argv) -> std::string {
    try {
      GlobalOptions globals;
      parse(argv, commands_, globals);
    } catch (const Error& error) {
      return std::string(error.what()) + " | " + error.hint();
    }
    return "taken";
  };
  EXPECT_EQ(hint_of({"list", "--forse"}),
            "unknown flag '--forse' | Did you mean '--force'? See 'holt list --help'.");
  EXPECT_EQ(hint_of({"run", "--time=3", "img"}),
            "unknown flag '--time' | Did you mean '--timeout'? See 'holt run --help'.");
  EXPECT_EQ(hint_of({"--jsno", "list"}), "unknown flag '--jsno' | Did you mean '--json'? See 'holt help'.");
  EXPECT_EQ(hint_of({"list", "-x"}), "unknown flag '-x' | See 'holt list --help'.");
  EXPECT_EQ(hint_of({"need", "-x"}), "unknown flag '-x' | See 'holt need --help'.");
  EXPECT_EQ(hint_of({"need"}), "WORD is required | See 'holt need --help'.");
  EXPECT_EQ(hint_of({"list", "--name", "--forse"}), "taken") << "a value";
  EXPECT_EQ(hint_of({"list", "--", "--forse"}), "taken");
}

TEST_F(Parser, WhatOtherToolsCallAVerbIsToldByItsNameHere) {
  auto hint_of = [&](const std::string& word) { return unknown_verb(std::vector{word}, commands_).hint(); };
  EXPECT_EQ(hint_of("lsit"), "Did you mean 'list'? See 'holt help'.");
  EXPECT_EQ(hint_of("kill"),
            "'holt stop --kill NAME' ends a machine, 'holt exec --kill SIGNAL ID' signals a command.");
  EXPECT_EQ(hint_of("lster"), "See 'holt help'.") << "'later' is no verb of this version";
}

TEST_F(Parser, FlagsOfLaterVersionsAreRefusedByName) {
  for (const Words& argv :
       {Words{"run", "--net", "img"}, Words{"run", "-v", "a:b", "img"}, Words{"--host", "x", "list"}}) {
    try {
      GlobalOptions globals;
      parse(argv, commands_, globals);
      FAIL() << argv[1] << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::not_supported);
    }
  }
}

TEST_F(Parser, AVerbOfALaterVersionTakesAnyWords) {
  EXPECT_EQ(parsed({"later", "--what", "ever", "--"}).tail, (Words{"--what", "ever", "--"}));
}

TEST_F(Parser, FlagsHaveAnEnvironmentFormAndWin) {
  ::setenv("HOLT_NAME", "from-environment", 1);
  EXPECT_EQ(parsed({"list"}).name, "from-environment");
  EXPECT_EQ(parsed({"list", "--name", "flag"}).name, "flag");
  ::unsetenv("HOLT_NAME");
}

TEST_F(Parser, ABadValueInTheEnvironmentIsUsageOfThatVerbOnly) {
  ::setenv("HOLT_TIMEOUT", "banana", 1);
  expect_usage({"list"}, "--timeout");
  EXPECT_EQ(parsed({"later"}).info().name, "later");
  ::unsetenv("HOLT_TIMEOUT");
}

TEST_F(Parser, JsonIsNoticedAlsoInAWrongCommandLine) {
  EXPECT_TRUE(asks_for_json({"--json", "nope"}, commands_));
  EXPECT_TRUE(asks_for_json({"run", "--nope", "--json"}, commands_));
  EXPECT_FALSE(asks_for_json({"run", "img", "--json"}, commands_));
  EXPECT_FALSE(asks_for_json({"run", "--", "--json"}, commands_));
}

TEST_F(Parser, HelpBeginsWithAnExampleAndNeedsNoArguments) {
  auto parsed = parse({"run", "--help"}, commands_, globals_);
  EXPECT_EQ(parsed.kind, Parsed::Kind::help);
  EXPECT_TRUE(help_of(parsed, commands_).starts_with("Example:\n  holt probe\n"));
  auto all = parse({"--help"}, commands_, globals_);
  EXPECT_TRUE(help_of(all, commands_).starts_with("Example:\n"));
}

TEST_F(Parser, AGroupOfVerbsHasHelpOfItsOwn) {
  for (const Words& argv :
       {Words{"image", "--help"}, Words{"--json", "image", "-h"}, Words{"image", "-q", "--help", "x"}}) {
    auto parsed = parse(argv, commands_, globals_);
    EXPECT_EQ(parsed.kind, Parsed::Kind::help);
    auto help = help_of(parsed, commands_);
    EXPECT_TRUE(help.starts_with("Example:\n  holt probe\n")) << help;
    EXPECT_NE(help.find("\n  ls "), std::string::npos) << help;
  }
}

}  // namespace
}  // namespace holt::cli
