// A cgroup v2 for each command, so that it can be killed as a whole, also children that left its session.
#pragma once

#include "holt/base/fd.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holt::guest {

/// One command's group.
class Cgroup {
 public:
  Cgroup(std::string path, Fd directory) : path_(std::move(path)), directory_(std::move(directory)) {}

  const std::string& path() const { return path_; }
  /// For CLONE_INTO_CGROUP.
  int fd() const { return directory_.get(); }
  /// SIGKILL to every process in it, none can escape.
  void kill();
  /// Not again after a kill: Linux 6.18 was seen to kill whatever is cloned into a group that has been killed
  /// once. Nor with limits.
  bool reusable() const { return !killed_ && !limited_; }
  /// What all processes in it may have together. False when the kernel refuses.
  bool limit(std::optional<std::uint64_t> processes, std::optional<std::uint64_t> memory_bytes);
  bool empty() const;
  /// How often the kernel killed in it for want of memory, ever.
  std::uint64_t oom_kills() const;
  void remove() const;

 private:
  std::string path_;
  Fd directory_;
  bool killed_ = false;
  bool limited_ = false;
};

/// The folder of the cgroup file system below which commands get theirs.
class CgroupTree {
 public:
  /// No folder: make() gives nothing, and commands are killed by walking their children.
  CgroupTree() = default;
  explicit CgroupTree(std::string folder) : folder_(std::move(folder)) {}

  /// An empty group: one that was given back, or a new one.
  std::optional<Cgroup> take();
  /// Takes an empty group back. Making and removing one costs more than starting a small program, so a few
  /// are kept.
  void give_back(Cgroup group);
  /// Processes in all groups; nothing without groups.
  std::optional<std::uint64_t> processes() const;
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
  std::uint64_t next_ = 1;
  std::vector<Cgroup> idle_;
};

/// Sends a signal to a process, all its descendants and all of its session: what is left to do without a
/// cgroup.
void kill_descendants(pid_t root, int signal_number);

}  // namespace holt::guest
