// What SmolSandbox refuses before anything runs.
#include "holt/agent/agent.hpp"
#include "holt/harness/coder.hpp"
#include "holt/harness/smol_sandbox.hpp"

#include <gtest/gtest.h>

namespace holt {
namespace {

const std::string k_name = "pydantic-ai-0123456789abcdef0123456789abcdef";

template <class E>
std::string text_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "an error was expected";
  return {};
}

TEST(SmolSandboxOptions, NumbersMustBeAboveZero) {
  EXPECT_EQ(text_of<UserError>([] { SmolSandbox({.cpus = 0}); }),
            "cpus must be None or a whole number above 0, not 0.");
  EXPECT_EQ(text_of<UserError>([] { SmolSandbox({.memory_mb = -1}); }),
            "memory_mb must be None or a whole number above 0, not -1.");
}

TEST(SmolSandboxOptions, WorkingDirMustBeAbsolute) {
  EXPECT_EQ(text_of<UserError>([] { SmolSandbox({.working_dir = "work"}); }),
            "working_dir must be None or an absolute path, not work.");
  SmolSandboxBackendOptions options;
  options.working_dir = "work";
  EXPECT_THROW(SmolSandboxBackend{options}, InvalidArgument);
}

TEST(SmolSandboxOptions, EnvironmentMustBeOneThatAProcessCanHave) {
  SmolSandboxBackendOptions options;
  options.env = {{"A=B", "x"}};
  EXPECT_THROW(SmolSandboxBackend{options}, InvalidArgument);
  options.env = {{"", "x"}};
  EXPECT_THROW(SmolSandboxBackend{options}, InvalidArgument);
  options.env = {{"A", std::string("x\0y", 3)}};
  EXPECT_THROW(SmolSandboxBackend{options}, InvalidArgument);
}

TEST(SmolSandboxOptions, InternetAccessIsRefusedAndNotIgnored) {
  try {
    SmolSandbox({.allow_internet_access = true});
    ADD_FAILURE() << "an error was expected";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_supported);
  }
}

TEST(SmolSandboxRefs, OfOtherProvidersAreDeclined) {
  SmolSandbox sandbox;
  EXPECT_EQ(text_of<InvalidArgument>([&] { sandbox.backend({"local", "/x"}); }),
            "workspace provider 'local' is not 'smol'");
  SmolSandboxBackendOptions options;
  options.ref = WorkspaceRef{"local", "/x"};
  EXPECT_THROW(SmolSandboxBackend{options}, InvalidArgument);
}

TEST(SmolSandboxRefs, ReachOnlyMachinesThatTheCapabilityNamed) {
  SmolSandbox sandbox;
  std::vector<std::string> others{"dev",
                                  "../../etc",
                                  k_name + "0",
                                  k_name.substr(0, 43),
                                  "PYDANTIC-AI-" + k_name.substr(12),
                                  "pydantic-ai-0123456789ABCDEF0123456789abcdef"};
  for (const auto& id : others) {
    EXPECT_THROW(sandbox.backend({"smol", id}), InvalidArgument) << id;
    EXPECT_THROW(sandbox.destroy({"smol", id}), InvalidArgument) << id;
  }
  EXPECT_EQ(sandbox.backend({"smol", k_name})->ref(), (WorkspaceRef{"smol", k_name}));
}

TEST(SmolSandboxRefs, OfAProgramsOwnBackendMayNameAnyMachine) {
  SmolSandboxBackendOptions options;
  options.ref = WorkspaceRef{"smol", "dev"};
  EXPECT_EQ(SmolSandboxBackend(options).ref(), (WorkspaceRef{"smol", "dev"}));
}

TEST(SmolSandbox, AgentIsMadeAsTheFirstProgramMakesIt) {
  Agent agent("test", {.capabilities = {SmolSandbox({.image = "python:3.12-alpine"}), Coder()}});
  EXPECT_FALSE(agent.capabilities().empty());
}

}  // namespace
}  // namespace holt
