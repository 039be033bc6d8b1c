// Which workspace a run gets, and what the history records of it.
#include "agent/scripted.hpp"
#include "holt/agent/agent.hpp"
#include "holt/agent/local_workspace.hpp"
#include "holt/base/files.hpp"
#include "holt/workspace/wrappers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holt::test {
namespace {

using ::testing::HasSubstr;

/// An environment that exists from the first operation on, or from the start when made from a ref.
class FakeBackend : public WorkspaceBackend, public SupportsCommands {
 public:
  explicit FakeBackend(std::optional<WorkspaceRef> ref = std::nullopt) : ref_(std::move(ref)) {}
  std::optional<WorkspaceRef> ref() const override { return ref_; }
  Task<std::string> working_dir() override { co_return "/"; }
  Task<CommandResult> run(WorkspaceCommand, CommandOptions) override {
    if (!ref_) ref_ = WorkspaceRef{"fake", "made"};
    co_return CommandResult{};
  }

 private:
  std::optional<WorkspaceRef> ref_;
};

/// Answers for refs of its provider, and for fresh ones if it may.
class Supplier : public CapabilityBase {
 public:
  enum class Fresh { yes, no };
  explicit Supplier(std::string provider, Fresh fresh = Fresh::yes)
      : provider_(std::move(provider)), fresh_(fresh) {}
  bool supplies_workspace() const override { return true; }
  WorkspaceBackendPtr get_workspace(const RunContext&,
                                    const std::optional<WorkspaceRef>& ref) const override {
    if (!ref) return fresh_ == Fresh::yes ? std::make_shared<FakeBackend>() : nullptr;
    if (ref->provider == "liar") return std::make_shared<FakeBackend>(WorkspaceRef{"fake", "other"});
    return ref->provider == provider_ ? std::make_shared<FakeBackend>(*ref) : nullptr;
  }

 private:
  std::string provider_;
  Fresh fresh_;
};

WorkspaceRef fake(std::string id) {
  return {"fake", std::move(id)};
}

MessageHistory history_with(std::optional<WorkspaceRef> ref) {
  ModelRequest request;
  UserPromptPart prompt;
  prompt.content = "before";
  request.parts.emplace_back(prompt);
  ModelResponse response = text_response("yes");
  response.workspace_ref = std::move(ref);
  return {request, response};
}

Tool touch() {
  return tool("touch", "", [](RunContext& ctx) -> Task<std::string> {
    auto pending = ctx.workspace().run({"true"});
    co_await std::move(pending);
    co_return "touched";
  });
}

std::optional<WorkspaceRef> last_ref(const RunRecord& record) {
  return record.response()->workspace_ref;
}

std::string user_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no UserError";
}

Agent agent_with(std::vector<Capability> capabilities) {
  return Agent(script({"ok"}), {.capabilities = std::move(capabilities)});
}

TEST(WorkspaceSelection, ABackendIsUsedAsItIs) {
  auto backend = std::make_shared<FakeBackend>(fake("mine"));
  auto result = agent_with({Supplier("fake")})
                    .run_sync("go", {.message_history = history_with(fake("old")), .workspace = backend});
  EXPECT_EQ(result.workspace().ref(), fake("mine"));
  EXPECT_EQ(last_ref(result), fake("mine"));
}

TEST(WorkspaceSelection, ARefIsOfferedToTheCapabilities) {
  auto result =
      agent_with({Supplier("other"), Supplier("fake")})
          .run_sync("go", {.message_history = history_with(fake("old")), .workspace = fake("named")});
  EXPECT_EQ(result.workspace().ref(), fake("named"));
}

TEST(WorkspaceSelection, CapabilitiesOfTheRunComeFirst) {
  auto result =
      agent_with({Supplier("fake")})
          .run_sync("go", {.capabilities = {Supplier("mine")}, .workspace = WorkspaceRef{"mine", "x"}});
  EXPECT_EQ(result.workspace().ref(), (WorkspaceRef{"mine", "x"}));
}

TEST(WorkspaceSelection, ARefThatNobodyKnowsIsAUserError) {
  EXPECT_THAT(user_error([] { agent_with({}).run_sync("go", {.workspace = fake("x")}); }),
              HasSubstr("neither the agent nor the run has a capability"));
  EXPECT_THAT(user_error([] { agent_with({Supplier("other")}).run_sync("go", {.workspace = fake("x")}); }),
              HasSubstr("No capability of the agent or the run recognises the workspace fake:x"));
}

TEST(WorkspaceSelection, AnAnswerWithAnotherRefIsAUserError) {
  EXPECT_THAT(user_error([] {
                agent_with({Supplier("fake")}).run_sync("go", {.workspace = WorkspaceRef{"liar", "x"}});
              }),
              HasSubstr("Asked for the workspace liar:x, a capability answered with fake:other"));
}

TEST(WorkspaceSelection, NewIgnoresTheHistoryAndNeedsACapability) {
  auto result =
      agent_with({Supplier("fake")})
          .run_sync("go", {.message_history = history_with(fake("old")), .workspace = new_workspace});
  EXPECT_EQ(result.workspace().ref(), std::nullopt);
  EXPECT_EQ(last_ref(result), std::nullopt) << "nothing is carried on";
  EXPECT_THAT(user_error([] { agent_with({}).run_sync("go", {.workspace = new_workspace}); }),
              HasSubstr("no capability of the agent or the run can make one"));
  EXPECT_THAT(
      user_error([] {
        agent_with({Supplier("fake", Supplier::Fresh::no)}).run_sync("go", {.workspace = new_workspace});
      }),
      HasSubstr("can make one"));
}

TEST(WorkspaceSelection, TheHistorysLastRefIsContinued) {
  auto result = agent_with({Supplier("fake")}).run_sync("go", {.message_history = history_with(fake("old"))});
  EXPECT_EQ(result.workspace().ref(), fake("old"));
  EXPECT_EQ(last_ref(result), fake("old")) << "recorded again, though never touched";
}

TEST(WorkspaceSelection, OnlyTheLastResponseCounts) {
  auto history = history_with(fake("older"));
  for (auto& message : history_with(std::nullopt)) history.push_back(message);
  auto result = agent_with({Supplier("fake")}).run_sync("go", {.message_history = history});
  EXPECT_EQ(result.workspace().ref(), std::nullopt);
}

TEST(WorkspaceSelection, AHistoryRefThatNobodyKnowsIsRefusedOrCarriedOn) {
  EXPECT_THAT(
      user_error([] {
        agent_with({Supplier("other")}).run_sync("go", {.message_history = history_with(fake("old"))});
      }),
      HasSubstr("The history names the workspace fake:old"));
  auto result = agent_with({}).run_sync("go", {.message_history = history_with(fake("old"))});
  EXPECT_FALSE(result.workspace().attached());
  EXPECT_EQ(last_ref(result), fake("old"));
}

TEST(WorkspaceSelection, ARefOfAMegabyteIsNamedShortened) {
  auto history = history_with(fake(std::string(1 << 20, 'x')));
  EXPECT_LT(user_error([&] {
              agent_with({Supplier("other")}).run_sync("go", {.message_history = history});
            }).size(),
            1000U);
}

TEST(WorkspaceSelection, WithoutOneItsUseFails) {
  Agent agent(script({call("touch"), "ok"}), {.tools = {touch()}});
  EXPECT_THROW(agent.run_sync("go"), WorkspaceUnavailableError);
}

TEST(WorkspaceSelection, AnEnvironmentMadeByAToolIsRecordedOnItsResponseAndLater) {
  Agent agent(script({call("touch"), "ok"}), {.capabilities = {Supplier("fake")}, .tools = {touch()}});
  auto result = agent.run_sync("go");
  EXPECT_EQ(std::get<ModelResponse>(result.all_messages()[1]).workspace_ref, fake("made"));
  EXPECT_EQ(last_ref(result), fake("made"));
}

TEST(WorkspaceSelection, AFailedRunRecordsTheEnvironmentToo) {
  Agent agent(script({call("touch")}), {.capabilities = {Supplier("fake")}, .tools = {touch()}});
  try {
    agent.run_sync("go", {.usage_limits = {.request_limit = 1}});
    FAIL() << "expected UsageLimitExceeded";
  } catch (const UsageLimitExceeded& e) {
    EXPECT_EQ(last_ref(*run_record(e)), fake("made"));
  }
}

TEST(WorkspaceSelection, ResponsesOfEarlierRunsAreNotRewritten) {
  auto history = history_with(std::nullopt);
  Agent agent(script({call("touch"), "ok"}), {.capabilities = {Supplier("fake")}, .tools = {touch()}});
  auto result = agent.run_sync("go", {.message_history = history});
  EXPECT_EQ(std::get<ModelResponse>(result.all_messages()[1]).workspace_ref, std::nullopt);
}

TEST(WorkspaceSelection, AResultsWorkspaceCanBePassedOn) {
  Agent agent(script({call("touch"), "ok", "again"}),
              {.capabilities = {Supplier("fake")}, .tools = {touch()}});
  auto first = agent.run_sync("go");
  auto second = agent.run_sync("more", {.workspace = first.workspace()});
  EXPECT_EQ(second.workspace().backend(), first.workspace().backend());
}

TEST(WorkspaceSelection, TheWorkspaceOfAChildRun) {
  // The placeholder lets the child choose; one that is unavailable on purpose is kept.
  Agent child = agent_with({Supplier("fake")});
  EXPECT_TRUE(child.run_sync("go", {.workspace = Workspace()}).workspace().attached());
  auto unavailable = std::make_shared<UnavailableWorkspace>("closed");
  EXPECT_FALSE(
      agent_with({Supplier("fake")}).run_sync("go", {.workspace = unavailable}).workspace().attached());
}

TEST(WorkspaceSelection, ALocalWorkspaceAnswersForItsOwnFolderOnly) {
  TempDir mine;
  TempDir other;
  auto agent = [&] { return agent_with({LocalWorkspace(mine.path())}); };
  EXPECT_EQ(last_ref(agent().run_sync("go")), (WorkspaceRef{"local", mine.path()}));
  EXPECT_THAT(user_error([&] {
                agent().run_sync("go",
                                 {.message_history = history_with(WorkspaceRef{"local", other.path()})});
              }),
              HasSubstr("The history names the workspace local:"));
}

TEST(WorkspaceSelection, OfTwoLocalWorkspacesTheLaterCounts) {
  TempDir first;
  TempDir second;
  auto both = agent_with({LocalWorkspace(first.path()), LocalWorkspace(second.path())}).run_sync("go");
  EXPECT_EQ(last_ref(both), (WorkspaceRef{"local", second.path()}));
  auto of_run = agent_with({LocalWorkspace(first.path())})
                    .run_sync("go", {.capabilities = {LocalWorkspace(second.path(), {.read_only = true})}});
  EXPECT_EQ(last_ref(of_run), (WorkspaceRef{"local", second.path()}));
  EXPECT_TRUE(of_run.workspace().read_only());
}

}  // namespace
}  // namespace holt::test
