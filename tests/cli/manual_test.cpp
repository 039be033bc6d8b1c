#include "cli/manual.hpp"

#include "cli/commands/commands.hpp"

#include <gtest/gtest.h>

namespace holt::cli {
namespace {

const ManualPage* page_named(const std::vector<ManualPage>& pages, std::string_view file) {
  for (const auto& page : pages) {
    if (page.file == file) return &page;
  }
  return nullptr;
}

TEST(Manual, HasAPageForEveryVerbThatHelpShowsAndOneForAll) {
  auto pages = manual_pages(describe(make_commands()), "0.1.0");
  for (const char* file : {"holt.1", "holt-run.1", "holt-image-inspect.1", "holt-agent-run.1"})
    EXPECT_NE(page_named(pages, file), nullptr) << file;
  for (const char* file : {"holt-fork.1", "holt-__complete.1"}) EXPECT_EQ(page_named(pages, file), nullptr);
}

TEST(Manual, APageNamesFlagsArgumentsAndExamples) {
  auto pages = manual_pages(describe(make_commands()), "0.1.0");
  const auto* page = page_named(pages, "holt-cp.1");
  ASSERT_NE(page, nullptr);
  for (const char* part : {".TH HOLT\\-CP 1 \"\" \"holt 0.1.0\"", "\\fB\\-r\\fR, \\fB\\-\\-recursive\\fR",
                           "\\fISOURCE\\fR", "holt cp \\-r dev:/work ./work", "\\fB\\-\\-json\\fR"}) {
    EXPECT_NE(page->text.find(part), std::string::npos) << part << "\n" << page->text;
  }
  const auto* run = page_named(pages, "holt-run.1");
  ASSERT_NE(run, nullptr);
  EXPECT_NE(run->text.find("\\fB\\-\\-name\\fR \\fINAME\\fR"), std::string::npos) << run->text;
  EXPECT_NE(run->text.find("python3 \\-c \\(aqprint(2**10)\\(aq"), std::string::npos) << run->text;
}

}  // namespace
}  // namespace holt::cli
