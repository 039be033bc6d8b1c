/*
 * A program in QEMU's place that has been taken over: it tries what it must not be able to, and says on
 * standard error what came of it, one "NAME RESULT" a line; the result of a try is 0 or the number of the
 * error.
 *
 * It is started as QEMU is. The file of "-kernel" tells it the paths to try, one "NAME PATH" a line. A name
 * that begins with "host-" is only read: where a jail does not hold, the file must outlive the try. After the
 * line "harmless yes" it does nothing but read.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

extern char** environ;

static void say(const char* name, long value) {
  dprintf(2, "%s %ld\n", name, value);
}
static void tried(const char* name, long result) {
  say(name, result < 0 ? errno : 0);
}

static int harmless = 0;

static void try_path(const char* name, const char* path) {
  char label[128];
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  snprintf(label, sizeof label, "read:%s", name);
  tried(label, fd);
  if (fd >= 0) close(fd);
  if (harmless || strncmp(name, "host-", 5) == 0) return;
  fd = open(path, O_WRONLY | O_CLOEXEC);
  snprintf(label, sizeof label, "write:%s", name);
  tried(label, fd);
  if (fd >= 0) close(fd);
  snprintf(label, sizeof label, "truncate:%s", name);
  struct stat facts;
  tried(label, stat(path, &facts) != 0 ? -1 : truncate(path, facts.st_size));
  snprintf(label, sizeof label, "chmod:%s", name);
  tried(label, chmod(path, 0666));
  snprintf(label, sizeof label, "unlink:%s", name);
  tried(label, unlink(path));
}

static void try_paths(const char* list) {
  FILE* file = fopen(list, "r");
  char name[64];
  char path[4096];
  tried("list", file == NULL ? -1 : 0);
  while (file != NULL && fscanf(file, "%63s %4095s", name, path) == 2) {
    if (strcmp(name, "harmless") == 0) {
      harmless = 1;
    } else {
      try_path(name, path);
    }
  }
  if (file != NULL) fclose(file);
}

static void try_sockets(void) {
  tried("socket:inet", socket(AF_INET, SOCK_STREAM, 0));
  tried("socket:inet6", socket(AF_INET6, SOCK_DGRAM, 0));
  tried("socket:unix", socket(AF_UNIX, SOCK_STREAM, 0));
  tried("socket:netlink", socket(AF_NETLINK, SOCK_RAW, 0));
  tried("socket:vsock", socket(AF_VSOCK, SOCK_STREAM, 0));
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0) {
    /* A socket that needs no socket(2): it must reach nothing either. */
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/run/systemd/notify"};
    tried("connect", connect(pair[0], (struct sockaddr*)&address, sizeof address));
    close(pair[0]);
    close(pair[1]);
  }
}

static void try_processes(pid_t foreign) {
  say("pid", getpid());
  tried("proc", opendir("/proc") == NULL ? -1 : 0);
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/cmdline", (int)foreign);
  int fd = open(path, O_RDONLY);
  tried("see", fd);
  tried("signal", kill(foreign, 0));
  tried("signal:group", kill(-foreign, 0));
  tried("signal:thread", syscall(SYS_tgkill, foreign, foreign, 0));
  tried("signal:parent", kill(getppid(), 0));
  tried("signal:own", kill(getpid(), 0));
  tried("trace", ptrace(PTRACE_ATTACH, foreign, NULL, NULL));
  tried("pidfd", syscall(SYS_pidfd_open, foreign, 0));
}

static void try_privileges(void) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2];
  memset(data, 0, sizeof data);
  syscall(SYS_capget, &header, data);
  say("capabilities",
      data[0].effective | data[0].permitted | data[0].inheritable | data[1].effective | data[1].permitted);
  say("bounding", prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN));
  say("no_new_privs", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
  say("uid", getuid());
  say("euid", geteuid());
  tried("become:root", setuid(0));
  tried("namespace:user", unshare(CLONE_NEWUSER));
  tried("namespace:clone", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL));
  tried("mount", syscall(SYS_mount, "x", "/usr", "tmpfs", 0, NULL));
  tried("umount", syscall(SYS_umount2, "/usr", 2));
  tried("chroot", chroot("/usr"));
  tried("bpf", syscall(SYS_bpf, 0, NULL, 0));
  tried("uring", syscall(SYS_io_uring_setup, 1, NULL));
  tried("perf", syscall(SYS_perf_event_open, NULL, 0, 0, 0, 0));
  tried("keyring", syscall(SYS_keyctl, 0, 0));
  tried("mknod", mknod("/usr/x", S_IFCHR | 0600, 0));
}

static void count_surroundings(void) {
  int descriptors = 0;
  for (int fd = 0; fd < 4096; fd++) {
    if (fcntl(fd, F_GETFD) < 0) continue;
    descriptors++;
    if (fd > 5) say("descriptor", fd);
  }
  say("descriptors", descriptors);
  for (char** each = environ; *each != NULL; each++) dprintf(2, "environment %s\n", *each);
  DIR* root = opendir("/");
  for (struct dirent* each = NULL; root != NULL && (each = readdir(root)) != NULL;) {
    if (each->d_name[0] != '.') dprintf(2, "root %s\n", each->d_name);
  }
  int made = open("/new", O_WRONLY | O_CREAT | O_EXCL, 0600);
  tried("make", made);
  if (made >= 0) unlink("/new");
  char name[64] = "";
  gethostname(name, sizeof name - 1);
  dprintf(2, "hostname %s\n", name);
}

static void say_limit(const char* name, int resource) {
  struct rlimit limit = {0, 0};
  getrlimit(resource, &limit);
  say(name, limit.rlim_max == RLIM_INFINITY ? -1 : (long)(limit.rlim_max >> 10));
}

static void* sleep_for_ever(void* nothing) {
  pause();
  return nothing;
}

static void try_limits(void) {
  say_limit("limit:core", RLIMIT_CORE);
  say_limit("limit:memory", RLIMIT_AS);
  struct rlimit more = {RLIM_INFINITY, RLIM_INFINITY};
  tried("raise", setrlimit(RLIMIT_AS, &more));
  tried("allocate", mmap(NULL, 1UL << 40, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                         -1, 0) == MAP_FAILED
                        ? -1
                        : 0);
  long threads = 0;
  pthread_t thread;
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  while (threads < 2000 && pthread_create(&thread, &small, sleep_for_ever, NULL) == 0) threads++;
  say("threads", threads);
}

int main(int argc, char** argv) {
  const char* list = "";
  pid_t foreign = 1;
  for (int i = 1; i + 1 < argc; i++) {
    if (strcmp(argv[i], "-kernel") == 0) list = argv[i + 1];
    /* A number of MiB in QEMU's place; here, the process to be looked for. */
    if (strcmp(argv[i], "-initrd") == 0 && strncmp(argv[i + 1], "/pid/", 5) == 0)
      foreign = atoi(argv[i + 1] + 5);
  }
  try_paths(list);
  if (!harmless) {
    try_sockets();
    try_processes(foreign);
    try_privileges();
    count_surroundings();
    try_limits();
  }
  dprintf(2, "done 0\n");
  return 0;
}
