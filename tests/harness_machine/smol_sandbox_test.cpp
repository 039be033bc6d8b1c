// SmolSandbox with real machines: when they are made, what outlives what, who may name what.
#include "harness_machine/smol_world.hpp"
#include "holt/agent/agent.hpp"
#include "holt/base/log.hpp"
#include "holt/harness/coder.hpp"
#include "holt/models/test_model.hpp"

#include <chrono>
#include <csignal>
#include <fstream>
#include <future>
#include <vector>

#include <spdlog/sinks/base_sink.h>

namespace holt::test {
namespace {

using namespace std::chrono_literals;

/// Hands each line of a logger to a function.
class LineSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit LineSink(std::function<void(const std::string&)> hear) : hear_(std::move(hear)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& entry) override {
    hear_(std::string(entry.payload.begin(), entry.payload.end()));
  }
  void flush_() override {}
  std::function<void(const std::string&)> hear_;
};

class SmolSandboxTest : public testing::Test {
 protected:
  void SetUp() override {
    auto host = prepared_host(directory_.path());
    if (!host) GTEST_SKIP() << "no engine to boot machines with";
    options_.host = *host;
  }
  void TearDown() override {
    if (!options_.host) return;
    remove_all_machines(*options_.host);
    std::error_code none;
    EXPECT_TRUE(std::filesystem::is_empty(options_.host->directories.runtime, none) || none)
        << "a lock is left";
  }

  std::shared_ptr<SmolSandboxBackend> fresh() {
    SmolSandboxBackendOptions options;
    static_cast<SmolSandboxOptions&>(options) = options_;
    return std::make_shared<SmolSandboxBackend>(options);
  }
  std::size_t machines() const { return Machine::list_all(*options_.host).size(); }
  MachineState state_of(const WorkspaceRef& ref) const {
    return Machine::open(ref.id, *options_.host).state();
  }
  static std::string text_of_unavailable(const std::function<void()>& call) {
    try {
      call();
    } catch (const WorkspaceUnavailableError& error) {
      return error.what();
    }
    ADD_FAILURE() << "a WorkspaceUnavailableError was expected";
    return {};
  }

  TempDir directory_;
  SmolSandboxOptions options_;
};

TEST_F(SmolSandboxTest, NothingIsMadeBeforeTheFirstUse) {
  auto backend = fresh();
  EXPECT_FALSE(backend->ref());
  EXPECT_EQ(machines(), 0U);
}

TEST_F(SmolSandboxTest, RefAndLogLineComeBeforeTheBoot) {
  auto backend = fresh();
  std::string line;
  std::optional<WorkspaceRef> known;
  std::size_t made = 1;
  auto log = logger("pydantic_ai_harness.smol_sandbox._backend");
  log->set_level(spdlog::level::info);
  log->sinks().push_back(std::make_shared<LineSink>([&](const std::string& entry) {
    line = entry;
    known = backend->ref();
    made = machines();
  }));
  Workspace workspace(backend);
  EXPECT_EQ(workspace.working_dir_sync(), "/workspace");
  log->sinks().pop_back();
  log->set_level(spdlog::level::warn);
  ASSERT_TRUE(known);
  EXPECT_EQ(known, backend->ref());
  EXPECT_EQ(known->provider, "smol");
  EXPECT_EQ(line, "Creating smol VM " + known->id);
  EXPECT_EQ(made, 0U);
}

TEST_F(SmolSandboxTest, FilesOutliveStopAndBackend) {
  auto first = fresh();
  Workspace(first).write_text_sync("note.txt", "kept\n");
  WorkspaceRef ref = *first->ref();
  first.reset();
  Machine::open(ref.id, *options_.host).stop();
  EXPECT_EQ(state_of(ref), MachineState::stopped);
  Workspace second(SmolSandbox(options_).backend(ref));
  EXPECT_EQ(second.run_sync({"cat", "note.txt"}).out, "kept\n");
}

TEST_F(SmolSandboxTest, StoppedMachineStartsAgainAtTheNextUse) {
  auto backend = fresh();
  Workspace workspace(backend);
  workspace.write_text_sync("note.txt", "kept\n");
  sync_wait(backend->get_sandbox()).stop();
  EXPECT_EQ(workspace.read_text_sync("note.txt"), "kept\n");
  sync_wait(backend->get_sandbox()).stop();
  EXPECT_EQ(workspace.run_sync({"cat", "note.txt"}).out, "kept\n");
}

TEST_F(SmolSandboxTest, SeveralUsesAtOnceStartAStoppedMachine) {
  auto backend = fresh();
  Workspace(backend).run_sync({"true"});
  for (int round = 0; round < 3; round++) {
    sync_wait(backend->get_sandbox()).stop();
    std::vector<std::future<int>> uses;
    for (int i = 0; i < 4; i++) {
      uses.push_back(
          std::async(std::launch::async, [&] { return Workspace(backend).run_sync({"true"}).exit_code; }));
    }
    for (auto& use : uses) EXPECT_EQ(use.get(), 0);
  }
}

TEST_F(SmolSandboxTest, DestroyedMachineIsGoneForGood) {
  auto backend = fresh();
  Workspace workspace(backend);
  workspace.run_sync({"true"});
  WorkspaceRef ref = *backend->ref();
  SmolSandbox sandbox(options_);
  sandbox.destroy(ref);
  EXPECT_EQ(machines(), 0U);
  std::string text = text_of_unavailable([&] { workspace.run_sync({"true"}); });
  EXPECT_TRUE(text.starts_with("smol VM '" + ref.id + "' is gone")) << text;
  text_of_unavailable([&] { workspace.read_bytes_sync("x"); });
  text = text_of_unavailable([&] { Workspace(sandbox.backend(ref)).working_dir_sync(); });
  EXPECT_TRUE(text.starts_with("smol VM '" + ref.id + "' is gone")) << text;
  EXPECT_EQ(machines(), 0U) << "no replacement";
  sandbox.destroy(ref);
}

TEST_F(SmolSandboxTest, MachineThatCrashesUnderACommandIsUnavailableAndCanBeAttachedAgain) {
  auto backend = fresh();
  Workspace workspace(backend);
  workspace.write_text_sync("note.txt", "kept\n");
  workspace.run_sync({"sync"});
  auto running = std::async(std::launch::async, [&] {
    return text_of_unavailable(
        [&] { workspace.run_sync(WorkspaceCommand::shell("touch started; sleep 60"), {.timeout = 50s}); });
  });
  ASSERT_TRUE(testing_support::eventually([&] { return workspace.exists_sync("started"); }));
  auto pid = sync_wait(backend->get_sandbox()).info().pid;
  ASSERT_TRUE(pid);
  ::kill(*pid, SIGKILL);
  std::string text = running.get();
  EXPECT_TRUE(text.starts_with("smol VM '" + backend->ref()->id + "' does not run but is failed")) << text;
  text_of_unavailable([&] { workspace.read_text_sync("note.txt"); });
  Workspace again(SmolSandbox(options_).backend(*backend->ref()));
  EXPECT_EQ(again.read_text_sync("note.txt"), "kept\n");
}

TEST_F(SmolSandboxTest, DestroyDoesNotBootAStoppedMachine) {
  auto backend = fresh();
  Workspace(backend).run_sync({"true"});
  sync_wait(backend->get_sandbox()).stop();
  SmolSandbox(options_).destroy(*backend->ref());
  EXPECT_EQ(machines(), 0U);
}

TEST_F(SmolSandboxTest, FailedBootClearsTheRefAndLeavesNothing) {
  options_.image = "sha256:" + std::string(64, '0');
  auto backend = fresh();
  EXPECT_THROW(Workspace(backend).working_dir_sync(), Error);
  EXPECT_FALSE(backend->ref());
  EXPECT_EQ(machines(), 0U);
}

TEST_F(SmolSandboxTest, CallerWhoLeavesDuringTheBootLosesNoMachine) {
  auto backend = fresh();
  CancellationToken token;
  auto first = std::async(std::launch::async, [&] { sync_wait(Workspace(backend).working_dir(), token); });
  ASSERT_TRUE(testing_support::eventually([&] { return backend->ref().has_value(); }));
  token.cancel();
  EXPECT_THROW(first.get(), Error);
  auto ref = backend->ref();
  ASSERT_TRUE(ref);
  EXPECT_EQ(Workspace(backend).working_dir_sync(), "/workspace");
  EXPECT_EQ(backend->ref(), ref);
  EXPECT_EQ(machines(), 1U);
}

TEST_F(SmolSandboxTest, DestroyWaitsForABootUnderWay) {
  auto backend = fresh();
  auto first = std::async(std::launch::async, [&] {
    try {
      Workspace(backend).working_dir_sync();
    } catch (const Error&) {
      // It was destroyed.
    }
  });
  ASSERT_TRUE(testing_support::eventually([&] { return backend->ref().has_value() && machines() > 0; }));
  SmolSandbox(options_).destroy(*backend->ref());
  first.get();
  EXPECT_EQ(machines(), 0U);
}

TEST_F(SmolSandboxTest, WorkingDirThatCannotBeMadeIsNamedAndTheMachineKept) {
  options_.working_dir = "/proc/nowhere";
  auto backend = fresh();
  try {
    Workspace(backend).run_sync({"true"});
    ADD_FAILURE() << "an error was expected";
  } catch (const WorkspaceError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("No working_dir '/proc/nowhere' in smol VM "))
        << error.what();
  }
  EXPECT_TRUE(backend->ref());
  EXPECT_EQ(machines(), 1U);
}

TEST_F(SmolSandboxTest, CommandsSeeTheirEnvironmentAndNothingOfTheHosts) {
  ::setenv("HOLT_TEST_SECRET", "secret", 1);
  options_.env = {{"MINE", "1"}};
  Workspace workspace(fresh());
  auto result = workspace.run_sync({"env"}, {.env = {{"CALL", "2"}}});
  EXPECT_NE(result.out.find("MINE=1"), std::string::npos);
  EXPECT_NE(result.out.find("CALL=2"), std::string::npos);
  EXPECT_EQ(result.out.find("secret"), std::string::npos);
  ::unsetenv("HOLT_TEST_SECRET");
}

TEST_F(SmolSandboxTest, TimeoutTellsItsSecondsAndTheNextCommandRuns) {
  Workspace workspace(fresh());
  try {
    workspace.run_sync(WorkspaceCommand::shell("echo begun; sleep 60"), {.timeout = 500ms});
    ADD_FAILURE() << "a timeout was expected";
  } catch (const WorkspaceTimeoutError& error) {
    EXPECT_STREQ(error.what(), "Command stopped at its timeout of 0.5 seconds");
    EXPECT_EQ(error.out(), "begun\n");
  }
  EXPECT_EQ(workspace.run_sync({"echo", "works"}).out, "works\n");
}

/// A model that makes one call after another, then says "done".
ModelPtr calls_in_order(std::vector<std::pair<std::string, Json>> calls) {
  auto next = std::make_shared<std::size_t>(0);
  return make_function_model([calls = std::move(calls), next](const MessageHistory&, const FunctionInfo&) {
    if (*next == calls.size()) return text_response("done");
    ToolCallPart part;
    part.tool_name = calls[*next].first;
    part.args = calls[*next].second;
    part.tool_call_id = "call-" + std::to_string((*next)++);
    return tool_call_response({part});
  });
}

std::vector<std::string> answers_in(const MessageHistory& history) {
  std::vector<std::string> answers;
  for (const auto& message : history) {
    const auto* request = std::get_if<ModelRequest>(&message);
    if (request == nullptr) continue;
    for (const auto& part : request->parts) {
      const auto* answer = std::get_if<ToolReturnPart>(&part);
      if (answer != nullptr)
        answers.push_back(answer->content.is_string() ? answer->content.get<std::string>() : "");
    }
  }
  return answers;
}

TEST_F(SmolSandboxTest, AgentWritesAndRunsAScriptAndASecondRunFindsTheMachine) {
  SmolSandbox sandbox(options_);
  Agent writer(calls_in_order({{"write_file", {{"path", "hello.py"}, {"content", "print(6 * 7)\n"}}},
                               {"shell", {{"command", "python3 hello.py"}}}}),
               {.capabilities = {sandbox, Coder()}});
  auto first = writer.run_sync("Write a script and run it.");
  auto answers = answers_in(first.all_messages());
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0], "Wrote hello.py (13 chars, 1 lines).");
  EXPECT_TRUE(answers[1].starts_with("42\nPID: ")) << answers[1];
  EXPECT_TRUE(answers[1].ends_with("\"exit_code\": 0}")) << answers[1];

  Agent reader(calls_in_order({{"read_file", {{"path", "hello.py"}}}, {"grep", {{"pattern", "6"}}}}),
               {.capabilities = {sandbox, Coder()}});
  auto second = reader.run_sync("Show it.", {.message_history = first.all_messages()});
  EXPECT_EQ(second.workspace().ref(), first.workspace().ref());
  auto again = answers_in(second.new_messages());
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0], "[hello.py | 1 lines]\n     1\tprint(6 * 7)\n");
  EXPECT_EQ(again[1], "hello.py:1:print(6 * 7)");
  auto ref = second.workspace().ref();
  ASSERT_TRUE(ref);
  sandbox.destroy(*ref);
  EXPECT_EQ(machines(), 0U);
}

TEST_F(SmolSandboxTest, EveryToolActsInTheMachineAndNotOnTheHost) {
  std::filesystem::path canary = directory_.path() / "canary.txt";
  std::ofstream(canary) << "host canary\n";
  std::string path = canary.string();
  CoderOptions unrestricted;
  unrestricted.files = CoderOptions::Files::unrestricted;
  Agent agent(calls_in_order({{"shell", {{"command", "mkdir -p '" + directory_.path().string() + "'"}}},
                              {"read_file", {{"path", path}}},
                              {"write_file", {{"path", path}, {"content", "guest\n"}}},
                              {"edit_file", {{"path", path}, {"old_text", "guest"}, {"new_text", "edited"}}},
                              {"list_files", {{"path", directory_.path().string()}}},
                              {"grep", {{"pattern", "."}, {"path", path}}},
                              {"shell", {{"command", "cat '" + path + "'"}}}}),
              {.capabilities = {SmolSandbox(options_), Coder(unrestricted)}});
  auto answers = answers_in(agent.run_sync("GO").all_messages());
  ASSERT_EQ(answers.size(), 7U);
  EXPECT_EQ(answers[1], "Path not found: " + path);
  EXPECT_EQ(answers[3], "Edited " + path + ".");
  EXPECT_NE(answers[5].find("edited"), std::string::npos) << answers[5];
  EXPECT_TRUE(answers[6].starts_with("edited\n")) << answers[6];
  for (const auto& answer : answers) EXPECT_EQ(answer.find("host canary"), std::string::npos);
  EXPECT_EQ(read_file(canary, 100), "host canary\n");
}

}  // namespace
}  // namespace holt::test
