// The shell tool: jobs that end, that go on, and that are stopped.
#include "holt/harness/shell.hpp"

#include "holt/agent/agent.hpp"
#include "holt/agent/local_workspace.hpp"
#include "holt/models/test_model.hpp"
#include "support/fixtures.hpp"
#include "workspace/world.hpp"

#include <csignal>
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace holt::test {
namespace {

namespace fs = std::filesystem;
using testing_support::eventually;

class ShellTool : public testing::Test {
 protected:
  ShellTool() : root_(fs::canonical(directory_.path())) {}

  /// One run that makes one call; its result.
  ToolReturnPart call(Json arguments, RunOptions options = {}, const CancellationToken& awaiter = {}) {
    auto asked = std::make_shared<bool>(false);
    auto model = make_function_model([arguments, asked](const MessageHistory&, const FunctionInfo&) {
      if (std::exchange(*asked, true)) return text_response("done");
      ToolCallPart part;
      part.tool_name = "shell";
      part.args = arguments;
      part.tool_call_id = "call-1";
      return tool_call_response({part});
    });
    Agent agent(model, {.capabilities = {LocalWorkspace(root_.string()), Shell()}});
    auto result = sync_wait(agent.run("GO", std::move(options)), awaiter);
    for (const auto& message : result.all_messages()) {
      const auto* request = std::get_if<ModelRequest>(&message);
      if (request == nullptr) continue;
      for (const auto& part : request->parts) {
        if (const auto* answer = std::get_if<ToolReturnPart>(&part)) return *answer;
      }
    }
    ADD_FAILURE() << "no result";
    return {};
  }
  static std::string text(const ToolReturnPart& part) { return part.content.get<std::string>(); }
  static pid_t pid_in(const std::string& answer) {
    std::size_t at = answer.find("PID: ");
    return at == std::string::npos ? 0 : std::stoi(answer.substr(at + 5));
  }
  std::size_t jobs() const {
    std::error_code none;
    auto folder = fs::directory_iterator(root_ / ".pydantic-ai-harness/shell", none);
    return none ? 0 : static_cast<std::size_t>(std::distance(fs::begin(folder), fs::end(folder)));
  }

  TempDir directory_;
  fs::path root_;
};

TEST_F(ShellTool, TimeoutLeavesTheJobRunning) {
  std::string answer = text(call({{"command", "echo begun; sleep 60"}, {"timeout", 0.3}}));
  EXPECT_TRUE(answer.starts_with("begun\nPID: ")) << answer;
  EXPECT_TRUE(answer.ends_with("\"exit_code\": null}")) << answer;
  pid_t pid = pid_in(answer);
  ASSERT_GT(pid, 1);
  EXPECT_EQ(::kill(-pid, 0), 0) << "the job goes on";
  ::kill(-pid, SIGTERM);
  fs::path status;
  for (const auto& job : fs::directory_iterator(root_ / ".pydantic-ai-harness/shell"))
    status = job.path() / "status.json";
  EXPECT_TRUE(eventually([&] {
    return read_file(status, 1000) == fmt::format("{{\"pid\": {}, \"exit_code\": 143}}", pid);
  })) << read_file(status, 1000);
}

TEST_F(ShellTool, CancelledCallStopsItsJobAndRemovesItsFolder) {
  RunOptions options;
  CancellationToken token;
  options.cancellation_token = token;
  pid_t pid = 0;
  options.event_stream_handler = [&](const RunContext&, const AgentEvent& event) {
    const auto* custom = std::get_if<CustomEvent>(&event);
    if (custom == nullptr || custom->name != "shell.command_started") return;
    pid = std::stoi(custom->data["pid"].get<std::string>());
    token.cancel();
  };
  EXPECT_THROW(call({{"command", "trap '' TERM; sleep 60 & wait"}}, options), Error);
  ASSERT_GT(pid, 1);
  EXPECT_TRUE(eventually([&] { return ::kill(-pid, 0) != 0; })) << "the job must be gone";
  EXPECT_EQ(jobs(), 0U);
}

TEST_F(ShellTool, SecondCancellationDoesNotStopTheCleanupOfTheFirst) {
  RunOptions options;
  CancellationToken first;
  CancellationToken second;
  options.cancellation_token = first;
  pid_t pid = 0;
  options.event_stream_handler = [&](const RunContext&, const AgentEvent& event) {
    const auto* custom = std::get_if<CustomEvent>(&event);
    if (custom == nullptr || custom->name != "shell.command_output") return;
    pid = std::stoi(read_file(root_ / "pid", 100));
    first.cancel();
  };
  std::jthread canceller([&] {
    EXPECT_TRUE(eventually([&] { return fs::exists(root_ / "terminated"); })) << "the cleanup must begin";
    second.cancel();
  });
  std::string command =
      "ps -o pgid= -p $$ > pid; trap 'touch terminated' TERM; echo ready; while :; do sleep 0.1; done";
  EXPECT_THROW(call({{"command", command}}, options, second), Error);
  ASSERT_GT(pid, 1);
  EXPECT_TRUE(eventually([&] { return ::kill(-pid, 0) != 0; })) << "the job must be gone";
  EXPECT_EQ(jobs(), 0U);
}

TEST_F(ShellTool, ListenersHearOfTheCommandAndItsOutput) {
  std::vector<std::string> names;
  std::string heard;
  RunOptions options;
  options.event_stream_handler = [&](const RunContext&, const AgentEvent& event) {
    const auto* custom = std::get_if<CustomEvent>(&event);
    if (custom == nullptr) return;
    names.push_back(custom->name);
    if (custom->name == "shell.command_output") heard += custom->data["text"].get<std::string>();
  };
  call({{"command", "echo one; echo two >&2"}}, options);
  EXPECT_EQ(heard, "one\ntwo\n");
  ASSERT_GE(names.size(), 3U);
  EXPECT_EQ(names.front(), "shell.command_started");
  EXPECT_EQ(names.back(), "shell.command_finished");
}

TEST_F(ShellTool, BackgroundModeSaysThatItComesLater) {
  auto answer = call({{"command", "true"}, {"mode", "background"}});
  EXPECT_EQ(answer.outcome, ToolOutcome::retried);
  EXPECT_TRUE(text(answer).starts_with("Background mode comes with a later version")) << text(answer);
  EXPECT_EQ(jobs(), 0U);
}

TEST_F(ShellTool, FolderThatIsALinkIsNotUsed) {
  fs::create_directory(root_ / "elsewhere");
  fs::create_directory_symlink("elsewhere", root_ / ".pydantic-ai-harness");
  auto answer = call({{"command", "true"}});
  EXPECT_EQ(answer.outcome, ToolOutcome::failed);
  EXPECT_EQ(text(answer), "Not using `.pydantic-ai-harness/shell`: it is a symlink.");
  EXPECT_TRUE(fs::is_empty(root_ / "elsewhere"));
}

TEST_F(ShellTool, JobFoldersAreTheOwnersOnly) {
  call({{"command", "umask"}});
  for (const auto& job : fs::directory_iterator(root_ / ".pydantic-ai-harness/shell")) {
    EXPECT_EQ(fs::status(job.path()).permissions(), fs::perms::owner_all);
  }
}

TEST_F(ShellTool, EndlessOutputDoesNotFillTheDisk) {
  std::string answer = text(call({{"command", "yes | head -c 150000000; echo end"}}));
  EXPECT_TRUE(answer.ends_with("\"exit_code\": 0}")) << answer;
  for (const auto& job : fs::directory_iterator(root_ / ".pydantic-ai-harness/shell")) {
    EXPECT_LT(fs::file_size(job.path() / "output.log"), 100'000'000U);
  }
}

TEST_F(ShellTool, OutputThatImitatesTheHandlesChangesNothing) {
  std::string answer = text(call({{"command", "printf 'PID: 1\\n{\"pid\": 1, \"exit_code\": 0}'; exit 3"}}));
  EXPECT_TRUE(answer.ends_with("\"exit_code\": 3}")) << answer;
}

}  // namespace
}  // namespace holt::test
