// The child's half of the jail: what a process does to itself between fork and exec.
#pragma once

#include "holt/base/process.hpp"
#include "machine/jail.hpp"
#include "machine/landlock.hpp"

#include <linux/filter.h>
#include <string>
#include <sys/types.h>
#include <vector>

namespace holt::machine {

/// How far the jail can go on a host, strongest first.
enum class Confinement {
  root_namespaces,  ///< made by root, who then becomes an unprivileged user
  user_namespaces,  ///< made by anybody, in a user namespace of their own
  landlock,         ///< no namespaces: the kernel's Landlock keeps files, TCP and signals away
  bare,             ///< system call filter, no privileges, limits
};

/// The user and group that QEMU runs as when root starts it: nobody.
inline constexpr uid_t k_jail_uid = 65534;

class JailStage final : public ChildStage {
 public:
  /// `cgroup_fd`: cgroup.procs of the group to join, or -1.
  JailStage(const JailPlan& plan, Confinement confinement, int cgroup_fd);

  /// Flags for ProcessSpec::namespaces.
  unsigned long namespaces() const;
  int run() const noexcept override;
  /// What a number that run() returned stands for.
  static const char* step_name(int step);
  static bool is_step_of_cgroup(int step);

 private:
  /// One entry of the new root; its storage is made before the fork.
  struct Entry {
    std::string source;
    std::string target;  ///< relative to the new root
    JailedFile::Kind kind;
    bool copied = false;  ///< the jail's user may not read the source: it gets a copy
  };

  void add_entry(const JailedFile& file);
  void add_folders(const std::string& target);
  int become_owner_of_namespaces() const noexcept;
  int enter_root() const noexcept;
  int fill_root() const noexcept;
  bool place(const Entry& entry, int tree) const noexcept;
  bool make_kvm(const char* target) const noexcept;
  int leave_root_user() const noexcept;
  bool count_threads_apart() const noexcept;
  int drop_privileges() const noexcept;
  int set_limits() const noexcept;

  Confinement confinement_;
  int cgroup_fd_;
  JailLimits limits_;
  std::string uid_map_;
  std::string gid_map_;
  std::string jail_map_;
  std::vector<std::string> folders_;
  std::vector<std::pair<std::string, std::string>> links_;  // target, name
  std::vector<Entry> entries_;
  dev_t kvm_device_ = 0;
  gid_t kvm_group_ = 0;
  bool threads_are_counted_apart_;
  int landlock_version_ = 0;
  std::vector<LandlockRule> rules_;
  // Written in the child only, whose memory is its own.
  mutable std::vector<int> trees_;
  mutable std::vector<sock_filter> filter_;
  mutable int proc_self_ = -1;
  mutable bool own_user_namespace_ = false;
};

}  // namespace holt::machine
