// A command as a job: a process of its own session in the workspace, with a folder that tells of it. The
// caller only watches.
#pragma once

#include "holt/workspace/workspace.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace holt::shell {

/// Name of the job of one tool call: a repeated call finds the job of the first.
std::string job_name(const std::string& run_id, const std::string& tool_call_id);

struct Job {
  std::string name;
  std::string folder;  ///< absolute
  std::string pid;
  bool has_group = true;  ///< the pid is a process group's too
};

/// Starts the command, or finds its job. Throws ModelRetry (too long, still starting, supervisor failed),
/// ToolFailed (no folder can be made), and what the workspace throws.
Task<Job> start_job(Workspace workspace, std::string name, std::string command);

/// What there is to know of a job at one moment.
struct JobView {
  std::string status;            ///< status.json as it is; empty when there is none
  std::optional<int> exit_code;  ///< once the job has ended and said so
  std::uint64_t log_bytes = 0;
  std::string fresh;  ///< log bytes from the offset asked for
  std::string tail;   ///< the last bytes of the log, when they were asked for or the job has ended
};

enum class Tail { when_ended, always };
struct LookOptions {
  std::uint64_t offset = 0;     ///< of `fresh`
  std::size_t fresh_bytes = 0;  ///< at most
  Tail tail = Tail::when_ended;
};
Task<JobView> look_at_job(Workspace workspace, Job job, LookOptions options);

/// Ends the job with all its processes and removes its folder. Never throws: it cleans up behind a failure.
Task<void> discard_job(Workspace workspace, std::string name);

/// Bytes of a log that an answer shows.
constexpr std::size_t k_tail_bytes = 16000;
/// The answer's text of a log: its tail, whole lines where there are any, and how much was left out.
std::string log_text(const JobView& view);
/// The lines that name the job, its files and its state.
std::string handles_text(const Job& job, const JobView& view);

}  // namespace holt::shell
