#include "holt/base/files.hpp"
#include "holt/workspace/local.hpp"
#include "holt/workspace/wrappers.hpp"

#include <cstdlib>
#include <filesystem>

#include <boost/asio.hpp>
#include <gtest/gtest.h>

namespace holt {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;

/// A backend with neither commands nor files.
class Bare final : public WorkspaceBackend {
 public:
  std::optional<WorkspaceRef> ref() const override { return std::nullopt; }
  Task<std::string> working_dir() override { co_return std::string("/w"); }
};

TEST(Paths, NormalizeResolvesDotsAsText) {
  EXPECT_EQ(normalize_path("/a//b/./../c/"), "/a/c");
  EXPECT_EQ(normalize_path("/../.."), "/");
  EXPECT_EQ(normalize_path("a/../.."), "..");
  EXPECT_EQ(normalize_path("../../x"), "../../x");
  EXPECT_EQ(normalize_path(""), ".");
}

TEST(Paths, BelowIsByWholeComponents) {
  EXPECT_TRUE(is_below("/a/b", "/a"));
  EXPECT_TRUE(is_below("/a", "/a"));
  EXPECT_FALSE(is_below("/ab", "/a"));
  EXPECT_TRUE(is_below("/x", "/"));
}

TEST(Facade, ResolveIgnoresTheBaseForAbsolutePaths) {
  Workspace workspace(std::make_shared<Bare>());
  EXPECT_EQ(sync_wait(workspace.resolve("x/../y")), "/w/y");
  EXPECT_EQ(sync_wait(workspace.resolve("/x/../y", "/elsewhere")), "/y");
}

TEST(Facade, RelativeBaseIsRefused) {
  Workspace workspace(std::make_shared<Bare>());
  EXPECT_THROW(sync_wait(workspace.resolve("x", "base")), InvalidArgument);
}

TEST(Facade, BackendWithoutCommandsAndFilesIsAUserError) {
  Workspace workspace(std::make_shared<Bare>());
  EXPECT_THROW(workspace.run_sync({"true"}), UserError);
  EXPECT_THROW(workspace.read_bytes_sync("x"), UserError);
  EXPECT_EQ(workspace.realpath_sync("a/../b"), "/w/b");
}

TEST(Facade, NoWorkspaceIsUnavailable) {
  Workspace none;
  EXPECT_FALSE(none.attached());
  EXPECT_TRUE(none.is_placeholder());
  EXPECT_FALSE(none.ref());
  EXPECT_THROW(none.run_sync({"true"}), WorkspaceUnavailableError);
  EXPECT_THROW(none.read_bytes_sync("x"), WorkspaceUnavailableError);
  Workspace on_purpose(std::make_shared<UnavailableWorkspace>("closed today"));
  EXPECT_FALSE(on_purpose.attached());
  EXPECT_FALSE(on_purpose.is_placeholder());
}

TEST(Facade, TextThatIsNotUtf8IsRefused) {
  TempDir directory;
  Workspace workspace = make_local_workspace(directory.path());
  workspace.write_bytes_sync("x", "caf\xe9");
  EXPECT_THROW(workspace.read_text_sync("x"), WorkspaceError);
}

TEST(ReadOnly, RefusesChangesAndCommandsAndLetsReadingThrough) {
  TempDir directory;
  Workspace inner = make_local_workspace(directory.path());
  inner.write_text_sync("file", "text");
  Workspace outer(std::make_shared<ReadOnlyWorkspace>(inner));
  EXPECT_TRUE(outer.read_only());
  EXPECT_FALSE(inner.read_only());
  EXPECT_EQ(outer.backend(), inner.backend());
  EXPECT_EQ(outer.ref(), inner.ref());
  EXPECT_EQ(outer.read_text_sync("file"), "text");
  EXPECT_EQ(outer.list_dir_sync(".").size(), 1U);
  EXPECT_TRUE(outer.exists_sync("file"));
  EXPECT_THROW(outer.run_sync({"true"}), WorkspaceReadOnlyError);
  EXPECT_THROW(outer.write_text_sync("file", "x"), WorkspaceReadOnlyError);
  EXPECT_THROW(outer.make_dir_sync("d"), WorkspaceReadOnlyError);
  EXPECT_THROW(outer.remove_sync("file"), WorkspaceReadOnlyError);
}

TEST(ReadOnly, ReadsThroughDerivedFileOperations) {
  class CommandsOnly final : public WrapperWorkspace {
   public:
    using WrapperWorkspace::WrapperWorkspace;
    SupportsFilesystem* filesystem() override { return nullptr; }
    SupportsRealpath* realpaths() override { return nullptr; }
  };
  TempDir directory;
  Workspace inner = make_local_workspace(directory.path());
  inner.write_text_sync("file", "text");
  Workspace commands(std::make_shared<CommandsOnly>(inner));
  Workspace outer(std::make_shared<ReadOnlyWorkspace>(commands));
  EXPECT_EQ(outer.read_text_sync("file"), "text");
}

/// Commands that a caller cancels as they begin: the first that sends bytes, then the one that cleans up.
class CancelledTwice final : public WorkspaceBackend, public SupportsCommands {
 public:
  explicit CancelledTwice(asio::cancellation_signal& signal) : signal_(signal) {}

  std::optional<WorkspaceRef> ref() const override { return std::nullopt; }
  Task<std::string> working_dir() override { co_return std::string("/w"); }
  SupportsCommands* commands() override { return this; }
  Task<CommandResult> run(WorkspaceCommand command, CommandOptions) override {
    std::string script = command.argv().at(2);
    CommandResult result;
    if (script.find("readlink") != std::string::npos) result.out = "L3cveA==";  // /w/x
    if (script.find(">>") != std::string::npos) {
      cancel();
      co_await sleep_for(1h);
    }
    if (script.find("rm -f") != std::string::npos && script.find("mv -f") == std::string::npos) {
      cancel();
      co_await asio::post(asio::use_awaitable);
      co_await asio::post(asio::use_awaitable);
      cleaned_ = true;
    }
    co_return result;
  }
  bool cleaned() const { return cleaned_; }
  int cancellations() const { return cancellations_; }

 private:
  void cancel() {
    ++cancellations_;
    signal_.emit(asio::cancellation_type::terminal);
  }

  asio::cancellation_signal& signal_;
  int cancellations_ = 0;
  bool cleaned_ = false;
};

TEST(DerivedFiles, ASecondCancellationLeavesNoTemporaryFile) {
  asio::io_context loop(1);
  asio::cancellation_signal signal;
  auto backend = std::make_shared<CancelledTwice>(signal);
  Workspace workspace(backend);
  std::exception_ptr failure;
  asio::co_spawn(loop, workspace.write_bytes("x", "data"),
                 asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr e) { failure = e; }));
  loop.run();
  EXPECT_EQ(backend->cancellations(), 2);
  EXPECT_TRUE(backend->cleaned()) << "the temporary file stays";
  ASSERT_TRUE(failure);
  try {
    std::rethrow_exception(failure);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::cancelled) << e.what();
  } catch (const boost::system::system_error& e) {
    EXPECT_EQ(e.code(), asio::error::operation_aborted);
  }
}

TEST(Local, MissingDirectoryIsUnavailableAndNeverMade) {
  TempDir parent;
  auto path = (parent.path() / "gone").string();
  Workspace workspace = make_local_workspace(path);
  EXPECT_EQ(workspace.ref(), (WorkspaceRef{"local", path}));
  try {
    workspace.run_sync({"true"});
    ADD_FAILURE();
  } catch (const WorkspaceUnavailableError& e) {
    EXPECT_EQ(std::string(e.what()), "no workspace directory " + path);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Local, CommandThatRemovesItsWorkspaceIsUnavailable) {
  TempDir parent;
  auto path = parent.path() / "here";
  std::filesystem::create_directory(path);
  Workspace workspace = make_local_workspace(path.string());
  EXPECT_THROW(workspace.run_sync({"rm", "-rf", path.string()}), WorkspaceUnavailableError);
}

TEST(Local, CommandsGetNothingElseOfTheHostsEnvironment) {
  TempDir directory;
  ::setenv("HOLT_TEST_SECRET", "secret", 1);
  Workspace workspace = make_local_workspace(directory.path(), {.env = {{"MINE", "1"}}});
  auto result = workspace.run_sync({"env"});
  EXPECT_EQ(result.out.find("secret"), std::string::npos);
  EXPECT_NE(result.out.find("MINE=1"), std::string::npos);
  EXPECT_NE(result.out.find("PATH="), std::string::npos);
  ::unsetenv("HOLT_TEST_SECRET");
}

TEST(Local, ProgramIsLookedUpOnThePathOfTheCall) {
  TempDir directory;
  Workspace workspace = make_local_workspace(directory.path());
  workspace.write_text_sync("bin/greet", "#!/bin/sh\necho hi\n");
  workspace.run_sync({"chmod", "+x", "bin/greet"});
  auto path = (directory.path() / "bin").string();
  EXPECT_EQ(workspace.run_sync({"greet"}, {.env = {{"PATH", path}}}).out, "hi\n");
  EXPECT_EQ(workspace.run_sync({"ls"}, {.env = {{"PATH", path}}}).err, "ls: command not found\n");
}

TEST(Local, TimeoutNamesItsSeconds) {
  TempDir directory;
  Workspace workspace = make_local_workspace(directory.path());
  try {
    workspace.run_sync({"sleep", "60"}, {.timeout = 500ms});
    ADD_FAILURE();
  } catch (const WorkspaceTimeoutError& e) {
    EXPECT_STREQ(e.what(), "command stopped at its timeout of 0.5s");
  }
}

TEST(Local, TooLongACommandLineIsAnErrorOfItsOwn) {
  TempDir directory;
  Workspace workspace = make_local_workspace(directory.path());
  try {
    workspace.run_sync(WorkspaceCommand::shell(": " + std::string(200000, 'x')));
    ADD_FAILURE();
  } catch (const PathError& e) {
    EXPECT_EQ(e.error_number(), E2BIG);
  }
}

TEST(Local, DirectoryBehindALinkIsResolved) {
  TempDir parent;
  std::filesystem::create_directory(parent.path() / "real");
  std::filesystem::create_symlink("real", parent.path() / "link");
  Workspace workspace = make_local_workspace((parent.path() / "link").string());
  EXPECT_EQ(workspace.working_dir_sync(), std::filesystem::canonical(parent.path() / "real").string());
  EXPECT_THROW(workspace.remove_sync((parent.path() / "link").string()), InvalidArgument);
}

}  // namespace
}  // namespace holt
