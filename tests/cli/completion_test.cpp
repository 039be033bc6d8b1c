#include "cli/completion.hpp"

#include "cli/commands/commands.hpp"
#include "cli/errors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holt::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using Words = std::vector<std::string>;

class Completions : public testing::Test {
 protected:
  Completion of(const Words& words) const {
    return complete(
        tree_, words,
        {.machines = [] { return Words{"dev", "web"}; }, .images = [] { return Words{"app:1"}; }});
  }
  Words texts(const Words& words) const {
    Words texts;
    for (const auto& word : of(words).words) texts.push_back(word.text);
    return texts;
  }

  CommandTree tree_ = describe(make_commands());
};

TEST_F(Completions, OfAnEmptyLineAreTheVerbsThatHelpShows) {
  auto all = texts({""});
  for (const char* verb : {"run", "exec", "images", "image", "agent", "completion"})
    EXPECT_EQ(std::ranges::count(all, verb), 1) << verb;
  for (const char* hidden : {"__complete", "fork", "image rm"}) EXPECT_THAT(all, Not(Contains(hidden)));
  EXPECT_EQ(texts({}), all);
  EXPECT_THAT(texts({"ru"}), ElementsAre("run"));
}

TEST_F(Completions, OfAGroupAreItsVerbs) {
  EXPECT_THAT(texts({"image", "i"}), ElementsAre("inspect", "import"));
  EXPECT_THAT(texts({"-q", "image", "insp"}), ElementsAre("inspect"));
  EXPECT_THAT(texts({"image", "nope", ""}), IsEmpty());
}

TEST_F(Completions, FlagsAreThoseOfTheVerbAndTheGlobalOnes) {
  EXPECT_THAT(texts({"run", "--ke"}), ElementsAre("--keep"));
  EXPECT_THAT(texts({"run", "--js"}), ElementsAre("--json"));
  EXPECT_THAT(texts({"--ver"}), ElementsAre("--version", "--verbose"));
  EXPECT_THAT(texts({"run", "--net"}), IsEmpty()) << "a flag that this version refuses";
  EXPECT_EQ(of({"run", "--keep"}).words.at(0).help,
            "Keep the machine after the command, also an unnamed one");
}

TEST_F(Completions, OfArgumentsAreWhatTheyName) {
  EXPECT_THAT(texts({"exec", ""}), ElementsAre("dev", "web"));
  EXPECT_THAT(texts({"exec", "-it", "w"}), ElementsAre("web"));
  EXPECT_THAT(texts({"stop", "dev", ""}), ElementsAre("dev", "web"));
  EXPECT_THAT(texts({"run", ""}), ElementsAre("app:1"));
  EXPECT_THAT(texts({"image", "rm", "a"}), ElementsAre("app:1"));
  EXPECT_THAT(texts({"create", ""}), IsEmpty()) << "a new name";
  EXPECT_THAT(texts({"create", "new", ""}), ElementsAre("app:1"));
  EXPECT_THAT(texts({"help", "image", "r"}), ElementsAre("rm"));
  EXPECT_THAT(texts({"completion", ""}), ElementsAre("bash", "zsh", "fish"));
  EXPECT_THAT(texts({"logs", "dev", ""}), IsEmpty());
}

TEST_F(Completions, FromTheCommandOnTheLineIsTheGuests) {
  for (const Words& line : {Words{"run", "app:1", ""}, Words{"run", "app:1", "--"}, Words{"run", "--", ""},
                            Words{"exec", "dev", ""}, Words{"exec", "dev", "ls", "--"}}) {
    EXPECT_THAT(texts(line), IsEmpty()) << line.back();
  }
  EXPECT_THAT(texts({"exec", "--", "d"}), ElementsAre("dev"));
}

TEST_F(Completions, ValuesOfFlagsAreWhatTheirPlaceholdersSay) {
  EXPECT_THAT(texts({"--color", ""}), ElementsAre("auto", "always", "never"));
  EXPECT_THAT(texts({"run", "--pull=mi"}), ElementsAre("--pull=missing"));
  EXPECT_THAT(texts({"run", "-i", "--stop-signal", "K"}), ElementsAre("KILL"));
  EXPECT_THAT(texts({"agent", "run", "--workspace", ""}), ElementsAre("new"));
  EXPECT_THAT(texts({"agent", "run", "--image", ""}), ElementsAre("app:1"));
  EXPECT_THAT(texts({"run", "--name", ""}), IsEmpty()) << "a new name";
  EXPECT_EQ(of({"run", "--env-file", "x"}).paths, Completion::Paths::files);
  EXPECT_EQ(of({"--home", ""}).paths, Completion::Paths::folders);
  EXPECT_EQ(of({"run", "--name", "x"}).paths, Completion::Paths::none);
}

TEST_F(Completions, OfACopyAreMachinesAndFiles) {
  EXPECT_THAT(texts({"cp", "-r", "d"}), ElementsAre("dev:"));
  EXPECT_EQ(of({"cp", "a", ""}).paths, Completion::Paths::files);
  EXPECT_EQ(of({"cp", "a", "b", ""}).paths, Completion::Paths::none);
}

TEST_F(Completions, NamesAreAskedForOnlyWhereTheyAreOffered) {
  KnownNames none{.machines = [] -> Words { throw std::runtime_error("asked"); },
                  .images = [] -> Words { throw std::runtime_error("asked"); }};
  for (const Words& line : {Words{""}, Words{"run", "--"}, Words{"doctor", ""}, Words{"exec", "-"}})
    EXPECT_NO_THROW(complete(tree_, line, none));
}

TEST(CompletionText, IsOneWordALineWithItsHelpAndThenThePaths) {
  EXPECT_EQ(to_text({.words = {{"dev", ""}, {"--rm", "Delete it"}}, .paths = Completion::Paths::files}),
            "dev\n--rm\tDelete it\n:files\n");
}

TEST(CompletionScripts, AreThereForThreeShells) {
  for (const char* shell : {"bash", "zsh", "fish"})
    EXPECT_NE(completion_script(shell).find("__complete"), std::string_view::npos) << shell;
  EXPECT_THROW(completion_script("tcsh"), Error);
}

}  // namespace
}  // namespace holt::cli
