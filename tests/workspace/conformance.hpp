// The promises that every workspace backend keeps, as a parameterised suite. One source of a test program
// includes this header and instantiates it:
//
//   INSTANTIATE_TEST_SUITE_P(Local, WorkspaceConformance, testing::Values(local_world), world_name);
//
// File promises run through the facade, in a scratch directory below working_dir(), so a backend that has
// only commands is tested on the file operations derived from them.
#pragma once

#include "holt/base/ids.hpp"
#include "holt/base/task.hpp"
#include "workspace/world.hpp"

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace holt::testing_support {

class WorkspaceConformance : public testing::TestWithParam<WorldMaker> {
 protected:
  void SetUp() override {
    world_ = GetParam().make();
    if (!world_) GTEST_SKIP() << "no " << GetParam().name << " environment here";
    workspace_ = Workspace(world_->backend());
    scratch_ = workspace_.working_dir_sync() + "/.pydantic-ai-conformance-" + random_hex(32);
    workspace_.make_dir_sync(scratch_);
  }
  void TearDown() override {
    if (world_ && !scratch_.empty() && workspace_.exists_sync(scratch_)) workspace_.remove_sync(scratch_);
  }

  std::string in_scratch(const std::string& name) const { return scratch_ + "/" + name; }
  CommandResult sh(const std::string& script) const {
    return workspace_.run_sync(WorkspaceCommand::shell(script), {.timeout = std::chrono::seconds(60)});
  }
  /// A script that runs in the scratch directory and must succeed.
  void prepare(const std::string& script) const {
    CommandResult result = sh("cd " + scratch_ + " && " + script);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  static PathErrorKind kind_of_failure(const std::function<void()>& call) {
    try {
      call();
    } catch (const PathError& e) {
      return e.kind();
    }
    ADD_FAILURE() << "a PathError was expected";
    return PathErrorKind::other;
  }

  std::unique_ptr<World> world_;
  Workspace workspace_;
  std::string scratch_;
};

TEST_P(WorkspaceConformance, StdinIsAtEndOfFile) {
  auto result = sh("read value || printf eof");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "eof");
}

TEST_P(WorkspaceConformance, UndecodableBytesBecomeReplacementCharacters) {
  auto result = sh("printf '\\377'; printf '\\376' >&2");
  EXPECT_EQ(result.out, "\uFFFD");
  EXPECT_EQ(result.err, "\uFFFD");
}

TEST_P(WorkspaceConformance, OutputIsComplete) {
  auto result = sh("i=0; while [ $i -lt 1024 ]; do printf workspace; printf workspace >&2; i=$((i+1)); done");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out.size(), 9216U);
  EXPECT_EQ(result.err.size(), 9216U);
}

TEST_P(WorkspaceConformance, BackgroundChildDoesNotHoldTheResultBack) {
  auto result = sh("cd " + scratch_ +
                   "; (while [ ! -e release ]; do sleep 0.05; done; touch finished) & echo $! > pid; "
                   "printf done");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "done");
  EXPECT_EQ(sh("kill -0 $(cat " + in_scratch("pid") + ")").exit_code, 0) << "the child must live on";
  workspace_.write_bytes_sync(in_scratch("release"), "");
  EXPECT_TRUE(eventually([&] { return workspace_.exists_sync(in_scratch("finished")); }));
}

TEST_P(WorkspaceConformance, StreamsStaySeparateAndTheCodeIsReal) {
  auto result = sh("printf out; printf err >&2; exit 7");
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(result.out, "out");
  EXPECT_EQ(result.err, "err");
}

TEST_P(WorkspaceConformance, DeathBySignalIs128PlusItsNumber) {
  EXPECT_EQ(sh("kill -KILL $$").exit_code, 137);
}

TEST_P(WorkspaceConformance, MissingProgramIs127) {
  EXPECT_EQ(workspace_.run_sync({"no-such-program-" + random_hex(8)}).exit_code, 127);
}

TEST_P(WorkspaceConformance, ProgramThatMayNotRunIs126) {
  workspace_.write_bytes_sync(in_scratch("plain"), "#!/bin/sh\n");
  prepare("chmod 0644 plain");
  EXPECT_EQ(workspace_.run_sync({in_scratch("plain")}).exit_code, 126);
}

TEST_P(WorkspaceConformance, ArgumentsStayLiteral) {
  std::string argument = "two  words $(echo no) `echo no` ; && | > * ? ~ \\ ' \" \n end";
  auto result = workspace_.run_sync({"printf", "%s", argument});
  EXPECT_EQ(result.out, argument);
}

TEST_P(WorkspaceConformance, NulInACommandIsRefused) {
  EXPECT_THROW(workspace_.run_sync({"printf", std::string("a\0b", 3)}), InvalidArgument);
  EXPECT_THROW(workspace_.run_sync(WorkspaceCommand::shell(std::string("echo a\0b", 8))), InvalidArgument);
}

TEST_P(WorkspaceConformance, BadTimeoutAndEmptyCommandAreRefused) {
  EXPECT_THROW(workspace_.run_sync({"true"}, {.timeout = Duration::zero()}), InvalidArgument);
  EXPECT_THROW(workspace_.run_sync({"true"}, {.timeout = -std::chrono::seconds(1)}), InvalidArgument);
  EXPECT_THROW(workspace_.run_sync(std::vector<std::string>()), InvalidArgument);
}

TEST_P(WorkspaceConformance, WorkingDirectoryIsCanonical) {
  std::string directory = workspace_.working_dir_sync();
  EXPECT_TRUE(directory.starts_with('/'));
  EXPECT_EQ(directory, normalize_path(directory));
  EXPECT_EQ(sh("pwd -P").out, directory + "\n");
}

TEST_P(WorkspaceConformance, TimeoutStopsTheCommandAndKeepsItsOutput) {
  try {
    workspace_.run_sync(WorkspaceCommand::shell("echo before; sleep 3600"),
                        {.timeout = std::chrono::seconds(1)});
    ADD_FAILURE() << "a timeout was expected";
  } catch (const WorkspaceTimeoutError& e) {
    EXPECT_EQ(e.out(), "before\n");
  }
}

TEST_P(WorkspaceConformance, CancellationStopsTheProcess) {
  CancellationToken token;
  auto running = std::async(std::launch::async, [&] {
    WorkspaceCommand command =
        WorkspaceCommand::shell("echo $$ > " + in_scratch("pid") + "; exec sleep 3600");
    sync_wait(workspace_.run(command), token);
  });
  ASSERT_TRUE(eventually([&] {
    auto pid = in_scratch("pid");
    return workspace_.exists_sync(pid) && workspace_.read_bytes_sync(pid).ends_with('\n');
  }));
  std::string pid = workspace_.read_text_sync(in_scratch("pid"));
  pid.pop_back();
  token.cancel();
  EXPECT_THROW(running.get(), Error);
  EXPECT_TRUE(eventually([&] { return sh("kill -0 " + pid).exit_code != 0; })) << "process " << pid;
  EXPECT_EQ(sh("echo works").out, "works\n");
}

TEST_P(WorkspaceConformance, OutputOverTheCapRaisesWithPreviews) {
  try {
    sh("yes | head -c 20000000");
    ADD_FAILURE() << "an output limit error was expected";
  } catch (const WorkspaceOutputLimitError& e) {
    EXPECT_EQ(e.limit(), 10485760U);
    EXPECT_EQ(e.out().size(), 65536U);
    EXPECT_EQ(e.err(), "");
  }
  EXPECT_EQ(sh("echo works").out, "works\n");
}

TEST_P(WorkspaceConformance, EnvironmentOfACallReachesTheCommandOnly) {
  auto with = workspace_.run_sync(WorkspaceCommand::shell("printf %s \"$CONFORMANCE\""),
                                  {.env = {{"CONFORMANCE", "value"}}});
  EXPECT_EQ(with.out, "value");
  EXPECT_EQ(sh("printf %s \"$CONFORMANCE\"").out, "");
}

TEST_P(WorkspaceConformance, RefIsStable) {
  auto first = workspace_.ref();
  ASSERT_TRUE(first);
  sh("true");
  EXPECT_EQ(workspace_.ref(), first);
}

TEST_P(WorkspaceConformance, ConcurrentFirstUseMakesOneEnvironment) {
  auto backend = world_->fresh();
  if (!backend) GTEST_SKIP() << "this backend's environment is there from the beginning";
  Workspace workspace(backend);
  EXPECT_FALSE(workspace.ref());
  std::vector<std::future<void>> writers;
  for (int i = 0; i < 5; ++i) {
    writers.push_back(std::async(std::launch::async,
                                 [&, i] { workspace.write_text_sync(fmt::format("file{}", i), "text"); }));
  }
  for (auto& writer : writers) writer.get();
  auto ref = workspace.ref();
  ASSERT_TRUE(ref);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(workspace.read_text_sync(fmt::format("file{}", i)), "text");
  EXPECT_EQ(workspace.ref(), ref);
  world_->destroy(*backend);
}

TEST_P(WorkspaceConformance, LargeFileRoundTrips) {
  std::string bytes(std::size_t{8} << 20, 'x');
  workspace_.write_bytes_sync(in_scratch("large"), bytes);
  EXPECT_EQ(workspace_.read_bytes_sync(in_scratch("large")), bytes);
}

TEST_P(WorkspaceConformance, AnyBytesAndMissingParentsAreWritten) {
  std::string bytes("\0workspace\xff", 11);
  std::string path = in_scratch("a/b/c.bin");
  workspace_.write_bytes_sync(path, bytes);
  EXPECT_EQ(workspace_.read_bytes_sync(path), bytes);
  workspace_.write_bytes_sync(path, "\xff\n");
  EXPECT_EQ(workspace_.read_bytes_sync(path), "\xff\n");
  workspace_.write_bytes_sync(path, "");
  EXPECT_EQ(workspace_.read_bytes_sync(path), "");
}

TEST_P(WorkspaceConformance, ExistsTellsFilesAndDirectories) {
  workspace_.write_bytes_sync(in_scratch("file"), "x");
  EXPECT_TRUE(workspace_.exists_sync(in_scratch("file")));
  EXPECT_TRUE(workspace_.exists_sync(scratch_));
  EXPECT_FALSE(workspace_.exists_sync(in_scratch("absent")));
  EXPECT_FALSE(workspace_.exists_sync(in_scratch("file/below")));
}

TEST_P(WorkspaceConformance, StatAndListTellNamesTypesAndSizes) {
  workspace_.write_bytes_sync(in_scratch("d/file"), "1234");
  workspace_.make_dir_sync(in_scratch("d/sub"));
  FileEntry file = workspace_.stat_sync(in_scratch("d/file"));
  EXPECT_EQ(file.name, "file");
  EXPECT_EQ(file.path, in_scratch("d/file"));
  EXPECT_FALSE(file.is_dir);
  EXPECT_EQ(file.size, 4U);
  EXPECT_TRUE(workspace_.stat_sync(in_scratch("d")).is_dir);
  EXPECT_FALSE(workspace_.stat_sync(in_scratch("d")).size);
  auto entries = workspace_.list_dir_sync(in_scratch("d"));
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].path, in_scratch("d/file"));
  EXPECT_TRUE(!entries[0].size || entries[0].size == 4U);
  EXPECT_EQ(entries[1].name, "sub");
  EXPECT_TRUE(entries[1].is_dir);
}

TEST_P(WorkspaceConformance, ListingAnEmptyDirectoryIsEmpty) {
  workspace_.make_dir_sync(in_scratch("nothing"));
  EXPECT_TRUE(workspace_.list_dir_sync(in_scratch("nothing")).empty());
}

TEST_P(WorkspaceConformance, MakeDirMakesParentsAndRepeats) {
  workspace_.make_dir_sync(in_scratch("a/b"));
  workspace_.make_dir_sync(in_scratch("a/b"));
  EXPECT_TRUE(workspace_.stat_sync(in_scratch("a/b")).is_dir);
}

TEST_P(WorkspaceConformance, FilesAndCommandsSeeOneFileSystem) {
  workspace_.write_bytes_sync(in_scratch("file"), "one");
  prepare("[ \"$(cat file)\" = one ] && printf two > file");
  EXPECT_EQ(workspace_.read_bytes_sync(in_scratch("file")), "two");
}

TEST_P(WorkspaceConformance, RewritingKeepsTheMode) {
  workspace_.write_bytes_sync(in_scratch("script"), "#!/bin/sh\necho one\n");
  prepare("chmod 0755 script");
  workspace_.write_bytes_sync(in_scratch("script"), "#!/bin/sh\necho two\n");
  EXPECT_EQ(workspace_.run_sync({in_scratch("script")}).out, "two\n");
}

TEST_P(WorkspaceConformance, MissingPathsAreNotFound) {
  std::string path = in_scratch("missing");
  EXPECT_EQ(kind_of_failure([&] { workspace_.read_bytes_sync(path); }), PathErrorKind::not_found);
  EXPECT_EQ(kind_of_failure([&] { workspace_.stat_sync(path); }), PathErrorKind::not_found);
  EXPECT_EQ(kind_of_failure([&] { workspace_.list_dir_sync(path); }), PathErrorKind::not_found);
  EXPECT_EQ(kind_of_failure([&] { workspace_.remove_sync(path); }), PathErrorKind::not_found);
}

TEST_P(WorkspaceConformance, WrongKindsOfFileAreTold) {
  workspace_.write_bytes_sync(in_scratch("file"), "x");
  EXPECT_EQ(kind_of_failure([&] { workspace_.read_bytes_sync(scratch_); }), PathErrorKind::is_a_directory);
  EXPECT_EQ(kind_of_failure([&] { workspace_.list_dir_sync(in_scratch("file")); }),
            PathErrorKind::not_a_directory);
  EXPECT_EQ(kind_of_failure([&] { workspace_.write_bytes_sync(scratch_, "x"); }),
            PathErrorKind::is_a_directory);
}

TEST_P(WorkspaceConformance, LinkLoopIsListedAsNoDirectory) {
  prepare("ln -s loop loop");
  auto entries = workspace_.list_dir_sync(scratch_);
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].name, "loop");
  EXPECT_FALSE(entries[0].is_dir);
  EXPECT_FALSE(entries[0].size);
}

TEST_P(WorkspaceConformance, FifoIsRefusedWithoutBlocking) {
  prepare("mkfifo pipe");
  EXPECT_EQ(kind_of_failure([&] { workspace_.read_bytes_sync(in_scratch("pipe")); }),
            PathErrorKind::not_regular);
  EXPECT_EQ(kind_of_failure([&] { workspace_.write_bytes_sync(in_scratch("pipe"), "x"); }),
            PathErrorKind::not_regular);
}

TEST_P(WorkspaceConformance, PermissionsOfTheCommandsUserCount) {
  if (sh("id -u").out == "0\n") GTEST_SKIP() << "commands run as root, whom permissions do not stop";
  workspace_.write_bytes_sync(in_scratch("locked"), "x");
  prepare("chmod 000 locked");
  EXPECT_EQ(kind_of_failure([&] { workspace_.read_bytes_sync(in_scratch("locked")); }),
            PathErrorKind::permission);
  EXPECT_EQ(kind_of_failure([&] { workspace_.write_bytes_sync(in_scratch("locked"), "y"); }),
            PathErrorKind::permission);
}

TEST_P(WorkspaceConformance, FileIsNoParent) {
  workspace_.write_bytes_sync(in_scratch("file"), "x");
  EXPECT_EQ(kind_of_failure([&] { workspace_.write_bytes_sync(in_scratch("file/below"), "x"); }),
            PathErrorKind::not_a_directory);
  EXPECT_EQ(kind_of_failure([&] { workspace_.write_bytes_sync(in_scratch("file/far/below"), "x"); }),
            PathErrorKind::not_a_directory);
  EXPECT_EQ(kind_of_failure([&] { workspace_.make_dir_sync(in_scratch("file/below")); }),
            PathErrorKind::not_a_directory);
}

TEST_P(WorkspaceConformance, MakeDirOverAFileIsRefused) {
  workspace_.write_bytes_sync(in_scratch("file"), "x");
  EXPECT_EQ(kind_of_failure([&] { workspace_.make_dir_sync(in_scratch("file")); }), PathErrorKind::exists);
}

TEST_P(WorkspaceConformance, RemoveTakesFilesTreesAndLinksThemselves) {
  workspace_.write_bytes_sync(in_scratch("file"), "x");
  workspace_.write_bytes_sync(in_scratch("tree/a/b"), "x");
  workspace_.write_bytes_sync(in_scratch("target"), "x");
  prepare("ln -s target link");
  workspace_.remove_sync(in_scratch("file"));
  workspace_.remove_sync(in_scratch("tree"));
  workspace_.remove_sync(in_scratch("link"));
  EXPECT_FALSE(workspace_.exists_sync(in_scratch("file")));
  EXPECT_FALSE(workspace_.exists_sync(in_scratch("tree")));
  EXPECT_FALSE(workspace_.exists_sync(in_scratch("link")));
  EXPECT_TRUE(workspace_.exists_sync(in_scratch("target")));
}

TEST_P(WorkspaceConformance, WorkingDirectoryAndItsAncestorsStay) {
  std::string directory = workspace_.working_dir_sync();
  EXPECT_THROW(workspace_.remove_sync("."), InvalidArgument);
  EXPECT_THROW(workspace_.remove_sync(directory), InvalidArgument);
  EXPECT_THROW(workspace_.remove_sync(normalize_path(directory + "/..")), InvalidArgument);
  EXPECT_THROW(workspace_.remove_sync("/"), InvalidArgument);
  EXPECT_TRUE(workspace_.exists_sync(scratch_));
}

TEST_P(WorkspaceConformance, RealpathFollowsLinksAsPosixDoes) {
  prepare(
      "mkdir -p d/sub out && ln -s d to_d && ln -s sub d/rel && ln -s ../out d/up && ln -s d/sub deep && "
      "ln -s b a && ln -s a b");
  EXPECT_EQ(workspace_.realpath_sync(in_scratch("to_d/missing")), in_scratch("d/missing"));
  EXPECT_EQ(workspace_.realpath_sync(in_scratch("d/rel")), in_scratch("d/sub"));
  EXPECT_EQ(workspace_.realpath_sync(in_scratch("d/up")), in_scratch("out"));
  EXPECT_EQ(workspace_.realpath_sync(in_scratch("deep/..")), in_scratch("d"));
  try {
    std::string loop = workspace_.realpath_sync(in_scratch("a"));
    EXPECT_TRUE(is_below(loop, scratch_)) << loop;
  } catch (const PathError& e) {
    EXPECT_EQ(e.kind(), PathErrorKind::other);
  }
  EXPECT_TRUE(workspace_.stat_sync(in_scratch("to_d")).is_dir);
  for (const auto& entry : workspace_.list_dir_sync(scratch_)) {
    EXPECT_EQ(entry.is_dir, entry.name != "a" && entry.name != "b") << entry.name;
  }
}

TEST_P(WorkspaceConformance, WritingGoesThroughALink) {
  workspace_.write_bytes_sync(in_scratch("target"), "old");
  prepare("ln -s target link");
  workspace_.write_bytes_sync(in_scratch("link"), "new");
  EXPECT_EQ(workspace_.read_bytes_sync(in_scratch("target")), "new");
  EXPECT_EQ(workspace_.realpath_sync(in_scratch("link")), in_scratch("target"));
}

TEST_P(WorkspaceConformance, RealpathKeepsWhatIsNoLink) {
  std::string directory = workspace_.working_dir_sync();
  EXPECT_EQ(workspace_.realpath_sync(directory), directory);
  EXPECT_EQ(workspace_.realpath_sync(directory + "/missing"), directory + "/missing");
}

TEST_P(WorkspaceConformance, OddNamesRoundTrip) {
  std::vector<std::string> names{"-n", "new\nline", "trailing ", "quote'\"$x`", "\xc3\xa9", "raw\xff", "*"};
  for (const auto& name : names) workspace_.write_bytes_sync(in_scratch(name), name);
  std::vector<std::string> listed;
  for (const auto& entry : workspace_.list_dir_sync(scratch_)) {
    listed.push_back(entry.name);
    EXPECT_EQ(workspace_.read_bytes_sync(entry.path), entry.name);
  }
  std::ranges::sort(names);
  EXPECT_EQ(listed, names);
}

TEST_P(WorkspaceConformance, AttachedBackendSeesTheSameEnvironment) {
  auto second = world_->attach(*workspace_.ref());
  if (!second) GTEST_SKIP() << "this backend attaches to nothing";
  Workspace attached(second);
  workspace_.write_bytes_sync(in_scratch("file"), "shared");
  EXPECT_EQ(attached.read_bytes_sync(in_scratch("file")), "shared");
  EXPECT_EQ(attached.run_sync({"cat", in_scratch("file")}).out, "shared");
  EXPECT_EQ(attached.ref(), workspace_.ref());
}

TEST_P(WorkspaceConformance, EnvironmentDestroyedDuringACommandIsUnavailable) {
  auto backend = world_->destructible();
  if (!backend) GTEST_SKIP() << "this environment cannot be destroyed by a test";
  Workspace workspace(backend);
  std::string directory = workspace.working_dir_sync();
  auto running = std::async(std::launch::async, [&] {
    workspace.run_sync(
        WorkspaceCommand::shell("touch started; while [ -d " + directory + " ]; do sleep 0.05; done"),
        {.timeout = std::chrono::seconds(30)});
  });
  ASSERT_TRUE(eventually([&] { return workspace.exists_sync("started"); }));
  world_->destroy(*backend);
  EXPECT_THROW(running.get(), WorkspaceUnavailableError);
  auto again = world_->attach(*workspace.ref());
  if (again) EXPECT_THROW(Workspace(again).working_dir_sync(), WorkspaceUnavailableError);
}

}  // namespace holt::testing_support
