// Starts a program with clone3(CLONE_VFORK | CLONE_VM | CLONE_INTO_CGROUP): no page table is copied, and the
// child is in its cgroup before its first instruction.
#pragma once

#include "guest/users.hpp"

#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace holt::guest {

struct SpawnPlan {
  std::vector<std::string> candidates;  ///< paths to try in turn, as execvp does with PATH
  std::vector<std::string> argv;
  std::vector<std::string> env;  ///< NAME=VALUE
  std::string cwd = "/";
  Identity user;
  int stdin_fd = -1;  ///< these three are above 2
  int stdout_fd = -1;
  int stderr_fd = -1;
  int cgroup_fd = -1;                          ///< -1: none
  std::vector<std::pair<int, rlimit>> limits;  ///< for setrlimit(2), above the usual ones
  bool controlling_terminal = false;           ///< make stdin the terminal of the new session
};

enum class SpawnStage { process, limits, user, working_dir, program };
struct SpawnFailure {
  SpawnStage stage = SpawnStage::process;
  int error_number = 0;
  std::string path;  ///< the program tried last
};

/// Pid of the new process, or what failed. When it returns the program runs. The child has default signals,
/// umask 022, oom_score_adj 0, a session of its own, the usual limit of open files, no CAP_SYS_PTRACE, and no
/// other descriptor.
std::expected<pid_t, SpawnFailure> spawn(const SpawnPlan& plan);

}  // namespace holt::guest
