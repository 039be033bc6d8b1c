#include "guest/spawn.hpp"

#include <csignal>
#include <cstdint>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HOLT_NO_ASAN __attribute__((no_sanitize("address", "undefined")))
#endif
#endif
#ifndef HOLT_NO_ASAN
#define HOLT_NO_ASAN
#endif

namespace holt::guest {
namespace {

constexpr std::size_t k_stack_size = std::size_t{64} << 10;
/// The soft limit of open files that programs expect, under the guest's own hard limit.
constexpr rlim_t k_soft_files = 1024;

/// What the child works from and answers in; it lives in the parent's memory, which the child shares.
struct ChildPlan {
  const char* const* candidates = nullptr;
  char* const* argv = nullptr;
  char* const* env = nullptr;
  const SpawnPlan* plan = nullptr;
  rlimit files{};
  // Answer:
  SpawnStage stage = SpawnStage::process;
  int error_number = 0;
  std::size_t candidate = 0;
};

[[noreturn]] HOLT_NO_ASAN void give_up(ChildPlan* child, SpawnStage stage) {
  child->stage = stage;
  child->error_number = errno;
  ::_exit(127);
}

HOLT_NO_ASAN void reset_oom_score() {
  int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  [[maybe_unused]] auto written = ::write(fd, "0", 1);
  ::close(fd);
}

// Runs in the child, on memory of the parent: system calls only, no allocation, no lock. The raw calls for
// ids, since glibc's wrappers would signal the parent's threads.
[[noreturn]] HOLT_NO_ASAN void child_main(ChildPlan* child) {
  const SpawnPlan& plan = *child->plan;
  ::setsid();
  ::dup2(plan.stdin_fd, 0);
  ::dup2(plan.stdout_fd, 1);
  ::dup2(plan.stderr_fd, 2);
  if (plan.controlling_terminal) ::ioctl(0, TIOCSCTTY, 0);
  ::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
  reset_oom_score();
  ::umask(022);
  ::prlimit(0, RLIMIT_NOFILE, &child->files, nullptr);
  for (const auto& [resource, limit] : plan.limits) {
    if (::prlimit(0, static_cast<__rlimit_resource>(resource), &limit, nullptr) != 0)
      give_up(child, SpawnStage::limits);
  }
  // Without it a command cannot stop or change the guest program, which has it; one another they can.
  ::prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE, 0, 0, 0);
  if (plan.user.uid != ::geteuid() || plan.user.gid != ::getegid() || ::geteuid() == 0) {
    bool good = ::syscall(SYS_setgroups, plan.user.groups.size(), plan.user.groups.data()) == 0 &&
                ::syscall(SYS_setgid, plan.user.gid) == 0 && ::syscall(SYS_setuid, plan.user.uid) == 0;
    if (!good) give_up(child, SpawnStage::user);
  }
  if (::chdir(plan.cwd.c_str()) != 0) give_up(child, SpawnStage::working_dir);

  struct sigaction by_default{};
  by_default.sa_handler = SIG_DFL;
  ::sigaction(SIGPIPE, &by_default, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);

  int denied = 0;
  std::size_t denied_at = 0;
  for (std::size_t i = 0; child->candidates[i] != nullptr; ++i) {
    child->candidate = i;
    ::execve(child->candidates[i], child->argv, child->env);
    if (errno == EACCES && denied == 0) {
      denied = errno;
      denied_at = i;
    }
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) break;
  }
  if (denied != 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES)) {
    errno = denied;
    child->candidate = denied_at;
  }
  give_up(child, SpawnStage::program);
}

/// clone3 with a stack for the child. The parent sleeps until the child has executed or ended.
HOLT_NO_ASAN long clone_and_run(clone_args* args, ChildPlan* child) {
  long result = SYS_clone3;
  register ChildPlan* argument asm("r12") = child;
  register void (*entry)(ChildPlan*) asm("r13") = child_main;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "mov %%r12, %%rdi\n\t"
      "call *%%r13\n\t"
      "hlt\n"
      "1:"
      : "+a"(result)
      : "D"(args), "S"(sizeof(clone_args)), "r"(argument), "r"(entry)
      : "rcx", "r11", "memory", "cc");
  return result;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> list;
  list.reserve(strings.size() + 1);
  for (const auto& item : strings) list.push_back(const_cast<char*>(item.c_str()));
  list.push_back(nullptr);
  return list;
}

/// The child's stack, mapped once a thread.
char* child_stack() {
  static thread_local void* const stack =
      ::mmap(nullptr, k_stack_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  return static_cast<char*>(stack);
}

}  // namespace

std::expected<pid_t, SpawnFailure> spawn(const SpawnPlan& plan) {
  auto candidates = pointers(plan.candidates);
  auto argv = pointers(plan.argv);
  auto env = pointers(plan.env);
  ChildPlan child{.candidates = candidates.data(), .argv = argv.data(), .env = env.data(), .plan = &plan};
  ::getrlimit(RLIMIT_NOFILE, &child.files);
  child.files.rlim_cur = std::min(child.files.rlim_max, k_soft_files);

  clone_args args{};
  args.flags = CLONE_VM | CLONE_VFORK;
  args.exit_signal = SIGCHLD;
  args.stack = reinterpret_cast<std::uint64_t>(child_stack());
  args.stack_size = k_stack_size;
  if (plan.cgroup_fd >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(plan.cgroup_fd);
  }
  // A signal handled in the child would run on the parent's memory.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  long pid = clone_and_run(&args, &child);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);

  if (pid < 0) return std::unexpected(SpawnFailure{SpawnStage::process, static_cast<int>(-pid), {}});
  if (child.error_number == 0) return static_cast<pid_t>(pid);
  // The child has ended; the reaper must not take it for a command.
  ::syscall(SYS_wait4, pid, nullptr, __WALL, nullptr);
  return std::unexpected(
      SpawnFailure{child.stage, child.error_number,
                   child.stage == SpawnStage::program ? plan.candidates[child.candidate] : ""});
}

}  // namespace holt::guest
