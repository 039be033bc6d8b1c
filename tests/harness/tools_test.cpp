// What the coding tools offer, and the sentences that they say.
#include "harness/golden_tree.hpp"
#include "harness/wording.hpp"
#include "holt/agent/agent.hpp"
#include "holt/agent/local_workspace.hpp"
#include "holt/harness/coder.hpp"
#include "holt/harness/repo_context.hpp"
#include "holt/models/test_model.hpp"
#include "holt/workspace/local.hpp"
#include "support/fixtures.hpp"

#include <fstream>

#include <gtest/gtest.h>

namespace holt::test {
namespace {

/// The tools that a run with these capabilities offers.
std::vector<ToolDefinition> offered(std::vector<Capability> capabilities) {
  std::vector<ToolDefinition> tools;
  auto model = make_function_model([&](const MessageHistory&, const FunctionInfo& info) {
    tools = info.function_tools;
    return text_response("done");
  });
  Agent(model, {.capabilities = std::move(capabilities)}).run_sync("GO");
  return tools;
}

TEST(CoderTools, AreThoseOfTheRecording) {
  TempDir directory;
  auto tools = offered({LocalWorkspace(directory.path()), Coder()});
  Json recorded = read_fixture(fixtures_directory() / "coder/tools.json")["tools"];
  ASSERT_EQ(tools.size(), recorded.size() - 1) << "all but delegate_task";
  for (std::size_t i = 0; i < tools.size(); ++i) {
    EXPECT_EQ(tools[i].name, recorded[i]["name"].get<std::string>());
    EXPECT_EQ(tools[i].description, recorded[i]["description"].get<std::string>()) << tools[i].name;
    EXPECT_TRUE(json_equal(tools[i].parameters_json_schema, recorded[i]["parameters_json_schema"]))
        << tools[i].name << "\n"
        << dump_json(tools[i].parameters_json_schema) << "\n"
        << dump_json(recorded[i]["parameters_json_schema"]);
    Json kind = tools[i].tool_kind ? Json(*tools[i].tool_kind) : Json(nullptr);
    EXPECT_TRUE(json_equal(kind, recorded[i]["tool_kind"])) << tools[i].name;
    EXPECT_TRUE(json_equal(tools[i].metadata, recorded[i]["metadata"])) << tools[i].name;
  }
}

TEST(CoderTools, AreReadingOnesInAReadOnlyWorkspace) {
  TempDir directory;
  std::vector<std::string> names;
  LocalWorkspaceSettings settings;
  settings.read_only = true;
  for (const auto& tool : offered({LocalWorkspace(directory.path(), settings), Coder()}))
    names.push_back(tool.name);
  EXPECT_EQ(names, (std::vector<std::string>{"read_file", "list_files", "grep"}));
}

TEST(Coder, NeedsAWorkspaceBeforeTheFirstRequest) {
  bool asked = false;
  auto model = make_function_model([&](const MessageHistory&, const FunctionInfo&) {
    asked = true;
    return text_response("done");
  });
  Agent agent(model, {.capabilities = {Coder()}});
  EXPECT_THROW(agent.run_sync("GO"), UserError);
  EXPECT_FALSE(asked);
}

TEST(Coder, CutsAToolsVeryLongResult) {
  TempDir directory;
  Tool long_tool = tool("long_tool", "Gives much.", [] { return std::string(100000, 'x'); });
  auto model = make_test_model({.call_tools = std::vector<std::string>{"long_tool"}});
  auto result =
      Agent(model, {.capabilities = {LocalWorkspace(directory.path()), Coder()}, .tools = {long_tool}})
          .run_sync("GO");
  bool seen = false;
  for (const auto& message : result.all_messages()) {
    const auto* request = std::get_if<ModelRequest>(&message);
    if (request == nullptr) continue;
    for (const auto& part : request->parts) {
      const auto* answer = std::get_if<ToolReturnPart>(&part);
      if (answer == nullptr || answer->tool_name != "long_tool") continue;
      seen = true;
      auto text = answer->content.get<std::string>();
      EXPECT_EQ(text.size(), 64000U);
      EXPECT_NE(
          text.find("[36,089 of 100,000 chars left out here, between the first 25,564 and the last 38,347]"),
          std::string::npos)
          << text.substr(25500, 200);
    }
  }
  EXPECT_TRUE(seen);
}

TEST(RepoContext, GivesTheRecordedTexts) {
  auto folder = fixtures_directory() / "coder";
  Json trees = read_fixture(folder / "trees.json");
  std::ifstream lines(folder / "repo-context.jsonl");
  for (std::string line; std::getline(lines, line);) {
    Json example = parse_json(line).value();
    TempDir directory;
    make_tree(trees[example["tree"].get<std::string>()], directory.path());
    auto text = sync_wait(repo_context_text(make_local_workspace(directory.path())));
    Json found = text ? Json(*text) : Json(nullptr);
    EXPECT_TRUE(json_equal(found, example["instructions"])) << example["tree"] << ": " << dump_json(found);
  }
}

TEST(Wording, IsThePublishedOne) {
  std::map<std::string, std::string> published;
  for (const auto& item : read_fixture(fixtures_directory() / "wording.json")["templates"]) {
    published[item["id"]] = item["ours"];
  }
  using namespace wording;
  std::map<std::string, std::string> ours{
      {"path_outside", path_outside("{path}", "{root_name}", "{root}", "{inside}")},
      {"path_link_outside", path_link_outside("{path}", "{root_name}", "{root}", "{inside}")},
      {"path_protected", path_protected("{path}", "{pattern}")},
      {"path_name_too_long", k_path_name_too_long},
      {"path_link_loop", k_path_link_loop},
      {"path_not_regular", k_path_not_regular},
      {"path_bad_name", k_path_bad_name},
      {"read_offset_negative", k_read_offset_negative},
      {"read_limit_low", k_read_limit_low},
      {"read_binary", k_read_binary},
      {"write_not_regular", write_not_regular("{path}")},
      {"write_no_parent", write_no_parent("{parent}")},
      {"write_parent_not_directory", write_parent_not_directory("{path}")},
      {"edit_no_form", k_edit_no_form},
      {"edit_two_forms", k_edit_two_forms},
      {"edit_binary", edit_binary("{path}")},
      {"edit_empty", edit_empty("{label}")},
      {"edit_not_found", edit_not_found("{label}", "{path}")},
      {"search_not_directory", search_not_directory("{path}")},
      {"search_no_target", search_no_target("{path}")},
      {"grep_bad_regex", grep_bad_regex("{error}")},
      {"grep_needs_rg", k_grep_needs_rg},
      {"grep_type_needs_rg", k_grep_type_needs_rg},
      {"grep_no_context", k_grep_no_context},
      {"grep_nested_repeat", k_grep_nested_repeat},
      {"shell_nul", k_shell_nul},
      {"shell_handles", shell_handles("{pid}", "{kill}")},
      {"shell_too_long", k_shell_too_long},
      {"shell_folder_is_link", shell_folder_is_link("{folder}")},
      {"shell_folder_failed", shell_folder_failed("{folder}", "{reason}")},
      {"shell_pending", k_shell_pending},
      {"read_only", k_read_only},
      {"workspace_failed", workspace_failed("{error_class}")},
      {"tool_output_cut", tool_output_cut("{omitted}", "{total}", "{head}", "{tail}")},
      {"smol_working_dir", smol_working_dir("{value}")},
      {"smol_provider", smol_provider("{provider}")},
      {"smol_no_working_dir", smol_no_working_dir("{directory}", "{id}", "{stderr}")},
      {"smol_gone", smol_gone("{id}")},
      {"smol_no_host", smol_no_host("{code}", "{reason}")},
      {"smol_not_running", smol_not_running("{id}", "{state}")},
      {"smol_timeout", smol_timeout("{seconds}")},
  };
  for (const auto& [id, text] : ours) EXPECT_EQ(text, published[id]) << id;
}

}  // namespace
}  // namespace holt::test
