#include "machine/jail_stage.hpp"

#include "machine/syscall_filter.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::machine {
namespace {

// Any folder that is there on every host: the new root is put together on top of it, in a mount namespace
// that nobody else sees.
constexpr const char* k_scaffold = "/usr";
constexpr const char* k_kvm = "/dev/kvm";
constexpr int k_last_capability = 63;
constexpr std::uint64_t k_copy_limit = std::uint64_t{256} << 20;
// Room beside guest RAM for QEMU's translations of guest code (1 GiB under TCG), stacks and arenas, all of
// which count with the addresses they reserve.
constexpr std::uint64_t k_address_room = std::uint64_t{16} << 30;
constexpr rlim_t k_descriptors = 1024;
constexpr rlim_t k_threads = 256;
// One uid of all machines, where there is no user namespace that would count each machine's threads apart.
constexpr rlim_t k_threads_of_all = 16384;
constexpr rlim_t k_short_life_cpu = 600;

enum Step : int {
  k_step_maps = 1,
  k_step_cgroup,
  k_step_sources,
  k_step_root,
  k_step_fill,
  k_step_pivot,
  k_step_user,
  k_step_privileges,
  k_step_limits,
  k_step_landlock,
  k_step_filter,
};

bool write_word(int folder, const char* file, std::string_view word) {
  int fd = ::openat(folder, file, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool written = ::write(fd, word.data(), word.size()) == static_cast<ssize_t>(word.size());
  int error = errno;
  ::close(fd);
  errno = error;
  return written;
}

// The C library of the build host may have no wrappers for these.
int open_tree(const char* path) {
  return static_cast<int>(
      ::syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
}
int attach(int tree, const char* target) {
  return static_cast<int>(::syscall(SYS_move_mount, tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH));
}
int set_mount(int folder, const char* path, unsigned flags, std::uint64_t attributes) {
  mount_attr wanted{.attr_set = attributes, .attr_clr = 0, .propagation = 0, .userns_fd = 0};
  return static_cast<int>(::syscall(SYS_mount_setattr, folder, path, flags, &wanted, sizeof wanted));
}

std::uint64_t attributes_of(JailedFile::Kind kind) {
  switch (kind) {
    case JailedFile::Kind::read:
    case JailedFile::Kind::tree:
      return MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    case JailedFile::Kind::write:
      return MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
    case JailedFile::Kind::device:
      return MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
  }
  return 0;
}

LandlockRule::Access access_of(JailedFile::Kind kind) {
  switch (kind) {
    case JailedFile::Kind::read:
      return LandlockRule::Access::read;
    case JailedFile::Kind::write:
      return LandlockRule::Access::write;
    case JailedFile::Kind::tree:
      return LandlockRule::Access::tree;
    case JailedFile::Kind::device:
      return LandlockRule::Access::device;
  }
  return LandlockRule::Access::read;
}

bool copy_content(int source, const char* target) {
  int copy = ::open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
  ssize_t n = copy < 0 ? -1 : 1;
  while (n > 0) n = ::sendfile(copy, source, nullptr, std::size_t{1} << 24);
  ::close(copy);
  return n == 0;
}

/// All that is permitted takes effect again, after a change of user.
bool raise_capabilities() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2]{};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  for (auto& half : data) half.effective = half.permitted;
  return ::syscall(SYS_capset, &header, data) == 0;
}

/// Since Linux 5.14 the threads of a user are counted in each user namespace apart; before, one limit would
/// hold for all that the user runs.
bool kernel_counts_threads_apart() {
  utsname names{};
  int major = 0;
  int minor = 0;
  ::uname(&names);
  return std::sscanf(names.release, "%d.%d", &major, &minor) == 2 &&
         (major > 5 || (major == 5 && minor >= 14));
}

/// Bounds what may be taken, never raises what the parent had.
bool limit(int resource, rlim_t most) {
  rlimit now{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &now) != 0) return false;
  if (now.rlim_max != RLIM_INFINITY && now.rlim_max < most) most = now.rlim_max;
  rlimit wanted{most, most};
  return ::setrlimit(static_cast<__rlimit_resource_t>(resource), &wanted) == 0;
}

bool is_readable_in_jail(const struct stat& facts) {
  return (facts.st_mode & S_IROTH) != 0 || (facts.st_uid == k_jail_uid && (facts.st_mode & S_IRUSR) != 0);
}

}  // namespace

JailStage::JailStage(const JailPlan& plan, Confinement confinement, int cgroup_fd)
    : confinement_(confinement),
      cgroup_fd_(cgroup_fd),
      limits_(plan.limits),
      threads_are_counted_apart_(kernel_counts_threads_apart()),
      filter_(syscall_filter()) {
  uid_map_ = fmt::format("{0} {0} 1", ::geteuid());
  gid_map_ = fmt::format("{0} {0} 1", ::getegid());
  jail_map_ = fmt::format("{0} {0} 1", k_jail_uid);
  // A link such as /lib -> usr/lib is made anew; its target is in the jail when that is.
  for (const auto* name : {"/bin", "/sbin", "/lib", "/lib32", "/lib64"}) {
    char target[256];
    ssize_t n = ::readlink(name, target, sizeof target);
    if (n > 0 && n < static_cast<ssize_t>(sizeof target)) {
      links_.emplace_back(std::string(target, static_cast<std::size_t>(n)), name + 1);
    } else if (n < 0 && errno == EINVAL) {
      add_entry({name, JailedFile::Kind::tree});
    }
  }
  for (const auto& file : plan.files) add_entry(file);
  for (const auto& entry : entries_) rules_.push_back({entry.source.c_str(), access_of(entry.kind)});
  trees_.assign(entries_.size(), -1);
  if (confinement == Confinement::landlock) landlock_version_ = landlock_version();
}

void JailStage::add_entry(const JailedFile& file) {
  struct stat facts{};
  if (::stat(file.path.c_str(), &facts) != 0) return;
  auto text = file.path.string();
  if (text.size() < 2 || text.front() != '/') return;
  Entry entry{.source = text, .target = text.substr(1), .kind = file.kind};
  bool unreadable = file.kind == JailedFile::Kind::read && !is_readable_in_jail(facts);
  entry.copied = confinement_ == Confinement::root_namespaces && unreadable &&
                 static_cast<std::uint64_t>(facts.st_size) <= k_copy_limit;
  if (text == k_kvm) {
    kvm_device_ = facts.st_rdev;
    kvm_group_ = facts.st_gid;
  }
  add_folders(entry.target);
  entries_.push_back(std::move(entry));
}

void JailStage::add_folders(const std::string& target) {
  for (auto at = target.find('/'); at != std::string::npos; at = target.find('/', at + 1)) {
    folders_.push_back(target.substr(0, at));
  }
}

unsigned long JailStage::namespaces() const {
  constexpr unsigned long k_all =
      CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWCGROUP;
  switch (confinement_) {
    case Confinement::root_namespaces:
      return k_all;
    case Confinement::user_namespaces:
      return k_all | CLONE_NEWUSER;
    case Confinement::landlock:
    case Confinement::bare:
      break;
  }
  return 0;
}

int JailStage::run() const noexcept {
  bool spaced = namespaces() != 0;
  // First, while paths of the host still lead somewhere.
  if (cgroup_fd_ >= 0 && ::write(cgroup_fd_, "0", 1) != 1) return k_step_cgroup;
  if (confinement_ == Confinement::user_namespaces) {
    if (int step = become_owner_of_namespaces(); step != 0) return step;
  }
  if (spaced) {
    if (int step = enter_root(); step != 0) return step;
  }
  if (confinement_ == Confinement::root_namespaces) {
    if (int step = leave_root_user(); step != 0) return step;
  }
  if (int step = drop_privileges(); step != 0) return step;
  if (int step = set_limits(); step != 0) return step;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return k_step_privileges;
  if (confinement_ == Confinement::landlock && !confine_by_landlock(landlock_version_, rules_)) {
    return k_step_landlock;
  }
  // Last: the steps before it need what it refuses.
  return install_filter(filter_) ? 0 : k_step_filter;
}

int JailStage::become_owner_of_namespaces() const noexcept {
  // Files below /proc/self belong to root in a process that must not be dumped, as the monitor is.
  ::prctl(PR_SET_DUMPABLE, 1);
  write_word(AT_FDCWD, "/proc/self/setgroups", "deny");
  bool mapped = write_word(AT_FDCWD, "/proc/self/uid_map", uid_map_) &&
                write_word(AT_FDCWD, "/proc/self/gid_map", gid_map_);
  return mapped ? 0 : k_step_maps;
}

int JailStage::enter_root() const noexcept {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return k_step_root;
  for (std::size_t i = 0; i < entries_.size(); i++) {
    const char* source = entries_[i].source.c_str();
    trees_[i] = entries_[i].copied ? ::open(source, O_RDONLY | O_CLOEXEC) : open_tree(source);
    if (trees_[i] < 0) return k_step_sources;
    if (!entries_[i].copied &&
        set_mount(trees_[i], "", AT_EMPTY_PATH | AT_RECURSIVE, attributes_of(entries_[i].kind)) != 0) {
      return k_step_sources;
    }
  }
  proc_self_ = ::open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (::mount("holt", k_scaffold, "tmpfs", MS_NOSUID, "mode=0755,size=300m,nr_inodes=4096") != 0 ||
      ::chdir(k_scaffold) != 0) {
    return k_step_root;
  }
  if (int step = fill_root(); step != 0) return step;
  // The old root ends up on top of the new one and is taken off: pivot_root(2), "pivot_root(".", ".")".
  bool pivoted = ::syscall(SYS_pivot_root, ".", ".") == 0 && ::umount2(".", MNT_DETACH) == 0 &&
                 ::chdir("/") == 0 &&
                 set_mount(AT_FDCWD, "/", 0, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC) == 0;
  ::sethostname("holt", 4);
  ::umask(077);
  return pivoted ? 0 : k_step_pivot;
}

int JailStage::fill_root() const noexcept {
  // The jail's user must get through the folders; the monitor's own mask lets nobody.
  ::umask(022);
  // Whole folders first: files may stand on top of them.
  for (bool folders : {true, false}) {
    for (std::size_t i = 0; i < entries_.size(); i++) {
      if ((entries_[i].kind == JailedFile::Kind::tree) != folders) continue;
      if (!place(entries_[i], trees_[i])) return k_step_fill;
    }
  }
  for (const auto& [target, name] : links_) {
    if (::symlink(target.c_str(), name.c_str()) != 0) return k_step_fill;
  }
  return 0;
}

bool JailStage::place(const Entry& entry, int tree) const noexcept {
  const char* target = entry.target.c_str();
  for (const auto& folder : folders_) {
    if (entry.target.starts_with(folder) && entry.target[folder.size()] == '/') ::mkdir(folder.c_str(), 0755);
  }
  if (entry.copied) return copy_content(tree, target);
  if (entry.source == k_kvm && make_kvm(target)) return true;
  struct stat there{};
  if (::stat(target, &there) != 0) {
    if (entry.kind == JailedFile::Kind::tree) {
      if (::mkdir(target, 0755) != 0) return false;
    } else {
      int fd = ::open(target, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
      if (fd < 0) return false;
      ::close(fd);
    }
  }
  return attach(tree, target) == 0;
}

/// Root makes the device anew for the jail's user alone, who may be in no group that may open the host's.
bool JailStage::make_kvm(const char* target) const noexcept {
  return confinement_ == Confinement::root_namespaces && ::mknod(target, S_IFCHR | 0600, kvm_device_) == 0 &&
         ::chown(target, k_jail_uid, k_jail_uid) == 0;
}

int JailStage::leave_root_user() const noexcept {
  for (const auto& entry : entries_) {
    if (entry.kind == JailedFile::Kind::write && ::chown(entry.source.c_str(), k_jail_uid, k_jail_uid) != 0) {
      return k_step_user;
    }
  }
  // Not through the C library, whose functions wait for threads that this process does not have.
  bool left = ::prctl(PR_SET_KEEPCAPS, 1) == 0 &&
              ::syscall(SYS_setgroups, kvm_group_ == 0 ? 0 : 1, &kvm_group_) == 0 &&
              ::syscall(SYS_setresgid, k_jail_uid, k_jail_uid, k_jail_uid) == 0 &&
              ::syscall(SYS_setresuid, k_jail_uid, k_jail_uid, k_jail_uid) == 0 && raise_capabilities();
  if (!left) return k_step_user;
  return count_threads_apart() ? 0 : k_step_user;
}

/// In a user namespace of its own, because RLIMIT_NPROC counts the threads of a user in each namespace apart.
/// A host without user namespaces goes on without.
bool JailStage::count_threads_apart() const noexcept {
  if (proc_self_ < 0 || ::unshare(CLONE_NEWUSER) != 0) return true;
  ::prctl(PR_SET_DUMPABLE, 1);
  write_word(proc_self_, "setgroups", "deny");
  own_user_namespace_ =
      write_word(proc_self_, "uid_map", jail_map_) && write_word(proc_self_, "gid_map", jail_map_);
  return own_user_namespace_;
}

int JailStage::drop_privileges() const noexcept {
  // Without the right to, there is nothing to drop either: then exec gives none, because of no_new_privs.
  for (int capability = 0; capability <= k_last_capability; capability++) {
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) break;
  }
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct none[2]{};
  return ::syscall(SYS_capset, &header, none) == 0 ? 0 : k_step_privileges;
}

int JailStage::set_limits() const noexcept {
  bool apart = own_user_namespace_ || confinement_ == Confinement::user_namespaces;
  bool set = limit(RLIMIT_CORE, 0) && limit(RLIMIT_NOFILE, k_descriptors) && limit(RLIMIT_MSGQUEUE, 0) &&
             limit(RLIMIT_RTPRIO, 0) && limit(RLIMIT_NICE, 0) &&
             limit(RLIMIT_AS, limits_.guest_memory + k_address_room);
  if (set && apart && threads_are_counted_apart_) set = limit(RLIMIT_NPROC, k_threads);
  if (set && confinement_ == Confinement::root_namespaces && !apart)
    set = limit(RLIMIT_NPROC, k_threads_of_all);
  if (set && limits_.life == JailLimits::Life::short_lived) set = limit(RLIMIT_CPU, k_short_life_cpu);
  return set ? 0 : k_step_limits;
}

const char* JailStage::step_name(int step) {
  switch (step) {
    case ChildStageError::k_namespaces:
      return "making namespaces";
    case k_step_maps:
      return "mapping the user";
    case k_step_cgroup:
      return "joining the cgroup";
    case k_step_sources:
      return "taking the files";
    case k_step_root:
    case k_step_fill:
      return "making a root file system";
    case k_step_pivot:
      return "changing the root file system";
    case k_step_user:
      return "leaving the user root";
    case k_step_privileges:
      return "dropping privileges";
    case k_step_limits:
      return "setting limits";
    case k_step_landlock:
      return "Landlock";
    case k_step_filter:
      return "installing the system call filter";
    default:
      return "an unknown step";
  }
}

bool JailStage::is_step_of_cgroup(int step) {
  return step == k_step_cgroup;
}

}  // namespace holt::machine
