// What an image's content and configuration mean in its machines.
#include "machine_vm/image_fixture.hpp"

#include <csignal>

#include <fmt/format.h>

namespace holt::test {
namespace {

TEST_F(ImageMachine, AScratchImageHasTheWholeFileApi) {
  Removed m(start());
  auto result = m->exec({"/app"});
  EXPECT_EQ(result.out, "scratch\n");
  EXPECT_EQ(result.exit_code, 0);
  std::string bytes = "a\0b\xff";
  bytes[1] = '\0';
  m->make_dir("/data/deep");
  m->write_file("/data/deep/file", bytes);
  EXPECT_EQ(m->read_file("/data/deep/file"), bytes);
  EXPECT_EQ(m->stat("/data/deep/file").size, bytes.size());
  EXPECT_TRUE(m->exists("/data"));
  EXPECT_EQ(m->realpath("/data/../app"), "/app");
  m->rename("/data/deep/file", "/data/other");
  auto entries = m->list("/data");
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].name, "deep");
  EXPECT_EQ(entries[1].name, "other");
  int walked = 0;
  auto walk = m->walk("/data");
  while (walk.next()) walked++;
  EXPECT_EQ(walked, 2);
  m->copy_out("/data", state.path() / "copy");
  EXPECT_EQ(read_file(state.path() / "copy" / "other", 100), bytes);
  m->copy_in(state.path() / "copy", "/again");
  EXPECT_EQ(m->read_file("/again/other"), bytes);
  m->set_attributes("/again/other", {.mode = 0600});
  EXPECT_EQ(m->stat("/again/other").mode, 0600U);
  m->remove_path("/again", RemoveKind::tree);
  EXPECT_FALSE(m->exists("/again"));
}

TEST_F(ImageMachine, AScratchImageGetsWhatTheKernelAndProgramsNeed) {
  Removed m(start());
  for (const auto* folder : {"/proc/self", "/sys/class", "/dev/pts", "/dev/shm", "/run", "/tmp"}) {
    EXPECT_TRUE(m->exists(folder)) << folder;
  }
  EXPECT_EQ(m->stat("/tmp").mode, 01777U);
  EXPECT_EQ(m->read_file("/proc/sys/kernel/hostname"), m->name() + "\n");
  EXPECT_EQ(m->read_file("/etc/machine-id").size(), 33U);
}

TEST_F(ImageMachine, WithoutAShellAScriptIsNotFoundAndTheShellIsNamed) {
  Removed m(start());
  auto result = m->exec_shell("true");
  EXPECT_EQ(result.exit_code, 127);
  EXPECT_NE(result.err.find("/bin/sh"), std::string::npos) << result.err;
}

TEST_F(ImageMachine, TheImagesFoldersOfTheKernelMayBeMissingAndMayNotBeLinks) {
  auto tar = scratch();
  tar.symlink("proc", "/etc").folder("etc");
  try {
    start(tar).remove({.mode = RemoveMode::force});
    FAIL() << "expected IMAGE_INVALID";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::image_invalid) << e.what();
    EXPECT_NE(std::string(e.what()).find("/proc"), std::string::npos) << e.what();
  }
}

TEST_F(ImageMachine, VariablesOfTheCommandStandOverThoseOfTheMachineAndTheImage) {
  Removed m(start({.env = {"A=image", "B=image", "C=image", "A=twice", "NAMELESS", "=x", "D=a=b"}},
                  {.env = {{"B", "machine"}, {"C", "machine"}}}));
  auto result = m->exec({"/app", "show", "A", "B", "C", "NAMELESS", "D"}, {.env = {{"C", "command"}}});
  EXPECT_EQ(result.out, "/ 0 0\ntwice\nmachine\ncommand\n-\na=b\n");
}

TEST_F(ImageMachine, IMG_29_AMissingWorkingFolderIsMade) {
  Removed m(start({.working_dir = "/srv/app"}));
  EXPECT_EQ(m->exec({"/app", "show"}).out, "/srv/app 0 0\n");
  EXPECT_EQ(m->stat("/srv/app").mode, 0755U);
  m->write_file("relative", "x");
  EXPECT_TRUE(m->exists("/srv/app/relative"));
}

TEST_F(ImageMachine, IMG_29_ARelativeWorkingFolderCountsFromTheRoot) {
  Removed m(start({.working_dir = "srv/app"}));
  EXPECT_EQ(m->exec({"/app", "show"}).out, "/srv/app 0 0\n");
  m->stop();
  m->start();
  EXPECT_EQ(m->exec({"/app", "show"}).out, "/srv/app 0 0\n") << "the record must hold it, too";
}

TEST_F(ImageMachine, IMG_29_AWorkingFolderMayLeadAnywhereInTheMachine) {
  auto tar = scratch();
  tar.folder("a").folder("etc").symlink("proc-link", "/proc").symlink("loop", "loop").file("file", "");
  auto cwd = [&](const std::string& folder) {
    Removed m(start(tar, {.working_dir = folder}));
    return m->exec({"/app", "show"}).out;
  };
  EXPECT_EQ(cwd("/proc-link"), "/proc 0 0\n") << "the machine's own";
  EXPECT_EQ(cwd("/a/../../../etc"), "/etc 0 0\n");
  EXPECT_EQ(code_of([&] { cwd("/file"); }), ErrorCode::not_a_directory);
  EXPECT_EQ(code_of([&] { cwd("/proc/nowhere"); }), ErrorCode::not_found);
  EXPECT_NE(code_of([&] { cwd("/loop"); }), std::nullopt);
}

TEST_F(ImageMachine, IMG_29_AWorkingFolderThatIsNoPathIsRefused) {
  EXPECT_EQ(code_of([&] { start({.working_dir = "/" + std::string(5000, 'x')}); }), ErrorCode::image_invalid);
  EXPECT_EQ(code_of([&] { start({.working_dir = std::string("/a\0b", 4)}); }), ErrorCode::image_invalid);
  EXPECT_TRUE(Machine::list_all(host).empty());
}

TEST_F(ImageMachine, TheImagesUserIsANameOrNumbers) {
  auto tar = scratch();
  tar.folder("etc")
      .file("etc/passwd", "root:x:0:0::/root:/app\nweb:x:33:34::/srv:/app\n")
      .file("etc/group", "web:x:34:\nextra:x:77:web\n");
  auto identity = [&](const std::string& user) {
    Removed m(start(tar, {.user = user}));
    return m->exec({"/app", "show", "HOME"}).out;
  };
  EXPECT_EQ(identity("web"), "/ 33 34\n/srv\n");
  EXPECT_EQ(identity("web:extra"), "/ 33 77\n/srv\n");
  EXPECT_EQ(identity("33:1000"), "/ 33 1000\n/srv\n");
  EXPECT_EQ(identity("4242"), "/ 4242 0\n/\n") << "a number needs no entry";
}

TEST_F(ImageMachine, IMG_29_AUserThatIsNoneIsToldByEachCommandAndAnotherOneStillWorks) {
  for (auto [user, code] : {std::pair("nobody-here", ErrorCode::not_found),
                            {"4294967295", ErrorCode::invalid_config},
                            {"4294967296", ErrorCode::invalid_config},
                            {"99999999999999999999", ErrorCode::invalid_config},
                            {"-1", ErrorCode::invalid_config},
                            {"0:b:c", ErrorCode::invalid_config},
                            {":0", ErrorCode::invalid_config},
                            {"0:", ErrorCode::invalid_config},
                            {"a b", ErrorCode::invalid_config}}) {
    Removed m(start({.user = user}));
    EXPECT_EQ(code_of([&] { m->exec({"/app"}); }), code) << user;
    EXPECT_EQ(m->exec({"/app"}, {.user = "0"}).out, "scratch\n") << user;
  }
}

TEST_F(ImageMachine, AStopEndsACommandWithItsOwnSignal) {
  Removed m(start());
  auto by_default = m->exec_stream({"/app", "wait", "/default"});
  auto own = m->exec_stream({"/app", "wait", "/own"}, {.stop_signal = SIGQUIT});
  auto real_time = m->start_command({"/app", "wait", "/real-time"}, {.stop_signal = 37});
  EXPECT_EQ(by_default.next()->data, "up\n");
  EXPECT_EQ(own.next()->data, "up\n");
  auto log = m->attach_command(real_time.id);
  EXPECT_EQ(log.next()->data, "up\n");
  m->stop({.grace = 60s});
  m->start();
  EXPECT_EQ(m->read_file("/default"), fmt::format("{}\n", SIGTERM));
  EXPECT_EQ(m->read_file("/own"), fmt::format("{}\n", SIGQUIT));
  EXPECT_EQ(m->read_file("/real-time"), "37\n");
  EXPECT_EQ(code_of([&] { m->exec({"/app"}, {.stop_signal = 65}); }), ErrorCode::invalid_config);
}

}  // namespace
}  // namespace holt::test
