#include "machine/syscall_filter.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace holt::machine {
namespace {

// Not in the headers of every distribution that holt is built on.
constexpr unsigned k_memfd_secret = 447;
constexpr unsigned k_fchmodat2 = 452;
// Stands for the pid, which is known in the child only. No pid is that large: PID_MAX_LIMIT of the kernel.
constexpr unsigned k_own_pid = 0x7fff'fffe;
constexpr unsigned k_x32 = 0x40000000;
constexpr unsigned k_namespace_flags =
    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWCGROUP;

constexpr auto k_refused = std::to_array<unsigned>({
    // sockets: those that QEMU needs are given to it
    SYS_socket,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    // other processes
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_process_madvise,
    SYS_pidfd_open,
    SYS_pidfd_getfd,
    SYS_pidfd_send_signal,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_tkill,
    SYS_kcmp,
    // file systems and namespaces
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_unshare,
    SYS_setns,
    SYS_mknod,
    SYS_mknodat,
    SYS_swapon,
    SYS_swapoff,
    SYS_quotactl,
    SYS_quotactl_fd,
    SYS_acct,
    SYS_fanotify_init,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    // owners, modes and attributes, which Landlock does not guard
    SYS_chmod,
    SYS_fchmod,
    SYS_fchmodat,
    k_fchmodat2,
    SYS_chown,
    SYS_fchown,
    SYS_lchown,
    SYS_fchownat,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_fsetxattr,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_fremovexattr,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
    SYS_utimensat,
    // the kernel
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_reboot,
    SYS_syslog,
    k_memfd_secret,
    // the machine
    SYS_iopl,
    SYS_ioperm,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_vhangup,
    SYS_personality,
});

sock_filter statement(unsigned code, unsigned k) {
  return {.code = static_cast<__u16>(code), .jt = 0, .jf = 0, .k = k};
}
sock_filter jump(unsigned code, unsigned k, std::size_t if_true, std::size_t if_false) {
  return {.code = static_cast<__u16>(code),
          .jt = static_cast<__u8>(if_true),
          .jf = static_cast<__u8>(if_false),
          .k = k};
}
sock_filter load(std::size_t offset) {
  return statement(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset));
}
sock_filter answer(unsigned action) {
  return statement(BPF_RET | BPF_K, action);
}

constexpr std::size_t k_number = offsetof(seccomp_data, nr);
// The low half; a pid and the flags of clone(2) have no other.
constexpr std::size_t k_first_argument = offsetof(seccomp_data, args);

constexpr unsigned k_allow = SECCOMP_RET_ALLOW;
constexpr unsigned k_deny = SECCOMP_RET_ERRNO | EPERM;
constexpr unsigned k_unknown = SECCOMP_RET_ERRNO | ENOSYS;

/// Of one system call whose first argument decides: the call is let through when it is one of `allowed`.
void only_with(std::vector<sock_filter>& program, unsigned call, const std::vector<unsigned>& allowed) {
  program.push_back(jump(BPF_JMP | BPF_JEQ | BPF_K, call, 0, allowed.size() + 3));
  program.push_back(load(k_first_argument));
  for (std::size_t i = 0; i < allowed.size(); i++) {
    program.push_back(jump(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], allowed.size() - i, 0));
  }
  program.push_back(answer(k_deny));
  program.push_back(answer(k_allow));
}

}  // namespace

std::vector<sock_filter> syscall_filter() {
  std::vector<sock_filter> program{load(offsetof(seccomp_data, arch)),
                                   jump(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
                                   answer(SECCOMP_RET_KILL_PROCESS),
                                   load(k_number),
                                   jump(BPF_JMP | BPF_JGE | BPF_K, k_x32, 0, 1),
                                   answer(k_unknown),
                                   jump(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
                                   answer(k_unknown)};
  only_with(program, SYS_kill, {k_own_pid});
  only_with(program, SYS_tgkill, {k_own_pid});
  only_with(program, SYS_prlimit64, {0, k_own_pid});
  program.insert(program.end(), {jump(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4), load(k_first_argument),
                                 jump(BPF_JMP | BPF_JSET | BPF_K, k_namespace_flags, 0, 1), answer(k_deny),
                                 answer(k_allow)});
  for (std::size_t i = 0; i < k_refused.size(); i++) {
    // The refusal stands behind the permission at the end.
    program.push_back(jump(BPF_JMP | BPF_JEQ | BPF_K, k_refused[i], k_refused.size() - i, 0));
  }
  program.push_back(answer(k_allow));
  program.push_back(answer(k_deny));
  return program;
}

bool install_filter(std::vector<sock_filter>& filter) noexcept {
  const auto pid = static_cast<unsigned>(::getpid());
  for (auto& step : filter) {
    if (step.k == k_own_pid) step.k = pid;
  }
  sock_fprog program{.len = static_cast<unsigned short>(filter.size()), .filter = filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

}  // namespace holt::machine
