// Background commands and terminals in real machines.
#include "holt/machine/operations.hpp"
#include "machine_vm/vm_fixture.hpp"

namespace holt::test {
namespace {

class BackgroundCommands : public InOneMachine {
 protected:
  BackgroundCommands() { lifetime_ = Lifetime::persistent; }
  struct Log {
    std::string out;
    std::string err;
    ExecResult result;
  };
  Log log_of(const std::string& id, const AttachOptions& options = {}) {
    Log log;
    auto stream = m->attach_command(id, options);
    while (auto event = stream.next({.deadline = patient()})) {
      if (event->kind == ExecEvent::Kind::out) log.out += event->data;
      if (event->kind == ExecEvent::Kind::err) log.err += event->data;
      if (event->kind == ExecEvent::Kind::exit) log.result = event->result;
    }
    return log;
  }
};

TEST_F(BackgroundCommands, EXEC_28_AreFoundAgainAndEndWithTheMachine) {
  auto started = m->start_shell_command("echo one; echo two >&2; sleep 1; echo three; exit 7");
  EXPECT_TRUE(started.running);
  EXPECT_LT(wall_now() - started.started_at, 60s);
  // Another handle knows nothing of the first one's connections.
  auto other = Machine::open(m->name(), host);
  ASSERT_EQ(other.commands().size(), 1U);
  EXPECT_EQ(other.commands()[0].id, started.id);
  auto log = log_of(started.id);
  EXPECT_EQ(log.out, "one\nthree\n");
  EXPECT_EQ(log.err, "two\n");
  EXPECT_EQ(log.result.exit_code, 7);
  EXPECT_EQ(other.wait_command(started.id).result->exit_code, 7);
  EXPECT_EQ(log_of(started.id, {.out_offset = 4}).out, "three\n") << "also after its end";

  auto forever = m->start_command({"sleep", "1000"});
  m->stop();
  EXPECT_EQ(code_of([&] { m->commands(); }), ErrorCode::invalid_state);
  m->start();
  // The ids begin anew with the kernel: a command with the same pid runs there soon.
  auto again = m->start_command({"sleep", "1000"});
  EXPECT_NE(again.id, forever.id);
  EXPECT_EQ(code_of([&] { m->attach_command(forever.id).next(); }), ErrorCode::not_found);
  EXPECT_EQ(code_of([&] { m->kill_command(forever.id); }), ErrorCode::not_found);
  EXPECT_EQ(m->commands().size(), 1U);
  EXPECT_EQ(m->kill_command(again.id).result->signal, 9);
  EXPECT_EQ(m->kill_command(again.id).result->signal, 9) << "quiet when it has ended";
}

TEST_F(BackgroundCommands, EXEC_11_SurviveTheirStartersAndTheirWatchers) {
  auto started = m->start_shell_command("echo up; exec sleep 1000");
  {
    auto watcher = m->attach_command(started.id);
    EXPECT_EQ(watcher.next()->data, "up\n");
  }
  EXPECT_TRUE(m->commands().at(0).running);
  m->signal_command(started.id, SIGTERM);
  EXPECT_EQ(m->wait_command(started.id, {.deadline = patient()}).result->signal, SIGTERM);
}

TEST_F(BackgroundCommands, EXEC_11_ACommandWithAStreamEndsWithIt) {
  {
    auto stream = m->exec_shell_stream("echo up; exec sleep 1000");
    EXPECT_EQ(stream.next()->data, "up\n");
  }
  EXPECT_TRUE(eventually(
      [&] { return m->exec_shell("cat /proc/[0-9]*/comm | grep -c '^sleep$' || true").out == "0\n"; }));
}

TEST_F(BackgroundCommands, KeepTheMachinesWaitersInformedOfItsEnd) {
  auto started = m->start_command({"sleep", "1000"});
  auto waiter = Operations(*m).wait_command(started.id);
  auto watcher = m->attach_command(started.id);
  m->remove({.mode = RemoveMode::force});
  EXPECT_EQ(code_of([&] { watcher.next({.deadline = patient()}); }), ErrorCode::guest_lost);
  EXPECT_EQ(code_of([&] { EXPECT_TRUE(eventually([&] { return waiter.try_get().has_value(); })); }),
            ErrorCode::guest_lost);
  m.reset();
}

TEST_F(BackgroundCommands, RefuseWhatTheyCannotHave) {
  EXPECT_EQ(code_of([&] { m->start_command({"cat"}, {.stdin_mode = StdinMode::pipe}); }),
            ErrorCode::invalid_config);
  EXPECT_EQ(code_of([&] { m->start_command({"cat"}, {.input = std::string(3 << 20, 'x')}); }),
            ErrorCode::too_large);
  EXPECT_EQ(code_of([&] { m->start_command({"true"}, {.working_dir = "/nowhere"}); }), ErrorCode::not_found);
  EXPECT_EQ(code_of([&] { m->signal_command("x", 99); }), ErrorCode::invalid_config);
  EXPECT_EQ(m->start_command({"/nope"}).result->exit_code, 127);
  auto once = m->start_command({"sleep", "1000"}, {.idempotency_key = "k"});
  EXPECT_EQ(m->start_command({"sleep", "1000"}, {.idempotency_key = "k"}).id, once.id);
}

}  // namespace
}  // namespace holt::test
