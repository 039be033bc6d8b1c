/*
 * The one program of a scratch image.
 *
 *   app                prints "scratch"
 *   app show NAME...   prints its folder, uid and gid, then the value of each variable, or "-"
 *   app wait FILE      says "up", takes the first signal but SIGCONT and writes its number to FILE
 *   app who            prints the real and the effective uid, and the effective capabilities in hexadecimal
 *   app tree FOLDER    prints a line of all that can be seen of each entry below it, in any order: the same
 * program looks at the same tree on the host
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

static int show(int count, char** names) {
  char folder[4096];
  printf("%s %u %u\n", getcwd(folder, sizeof folder) ? folder : "?", getuid(), getgid());
  for (int i = 0; i < count; i++) {
    const char* value = getenv(names[i]);
    printf("%s\n", value ? value : "-");
  }
  return 0;
}

static int wait_for_signal(const char* path) {
  sigset_t all;
  sigfillset(&all);
  sigdelset(&all, SIGCONT);
  sigprocmask(SIG_BLOCK, &all, NULL);
  puts("up");
  fflush(stdout);
  int number = 0;
  if (sigwait(&all, &number) != 0) return 1;
  FILE* file = fopen(path, "w");
  if (!file) return 1;
  fprintf(file, "%d\n", number);
  return fclose(file) == 0 ? 0 : 1;
}

static int who(void) {
  char line[256];
  FILE* status = fopen("/proc/self/status", "r");
  unsigned long long effective = 0;
  while (status && fgets(line, sizeof line, status)) sscanf(line, "CapEff: %llx", &effective);
  printf("%u %u %llx\n", getuid(), geteuid(), effective);
  return status && fclose(status) == 0 ? 0 : 1;
}

static void print_bytes(const char* bytes, size_t size) {
  for (size_t i = 0; i < size; i++) {
    unsigned char byte = (unsigned char)bytes[i];
    printf(byte > ' ' && byte < 0x7f && byte != '\\' ? "%c" : "\\x%02x", byte);
  }
}

/* FNV-1a in 64 bits, of all its bytes. */
static void print_content(const char* path) {
  unsigned char buffer[4096];
  uint64_t sum = 0xcbf29ce484222325;
  ssize_t n = 0;
  int fd = open(path, O_RDONLY);
  while (fd >= 0 && (n = read(fd, buffer, sizeof buffer)) > 0) {
    for (ssize_t i = 0; i < n; i++) sum = (sum ^ buffer[i]) * 0x100000001b3;
  }
  printf(fd < 0 || n < 0 ? " unreadable" : " content=%016llx", (unsigned long long)sum);
  if (fd >= 0) close(fd);
}

static int by_bytes(const void* a, const void* b) {
  return strcmp(*(char* const*)a, *(char* const*)b);
}

static void print_attributes(const char* path) {
  static char names[65536], value[65536];
  char* sorted[256];
  size_t count = 0;
  ssize_t size = llistxattr(path, names, sizeof names);
  for (char* name = names; size > 0 && name < names + size && count < 256; name += strlen(name) + 1)
    sorted[count++] = name;
  qsort(sorted, count, sizeof *sorted, by_bytes);
  for (size_t i = 0; i < count; i++) {
    ssize_t length = lgetxattr(path, sorted[i], value, sizeof value);
    /* What a security module gave the file is nothing of the image. */
    if (length < 0 || strcmp(sorted[i], "security.selinux") == 0) continue;
    printf(" %s=", sorted[i]);
    print_bytes(value, (size_t)length);
  }
}

/* Sizes and links of folders are the file system's own affair. */
static void print_entry(const char* root, const char* path, const struct stat* info) {
  print_bytes(path + strlen(root), strlen(path) - strlen(root));
  printf(" %06o %u:%u", info->st_mode, info->st_uid, info->st_gid);
  if (!S_ISDIR(info->st_mode))
    printf(" links=%lu size=%lld", (unsigned long)info->st_nlink, (long long)info->st_size);
  if (S_ISCHR(info->st_mode) || S_ISBLK(info->st_mode))
    printf(" %u:%u", major(info->st_rdev), minor(info->st_rdev));
  if (S_ISREG(info->st_mode)) print_content(path);
  if (S_ISLNK(info->st_mode)) {
    char target[4096];
    ssize_t length = readlink(path, target, sizeof target);
    printf(" -> ");
    print_bytes(target, length > 0 ? (size_t)length : 0);
  }
  print_attributes(path);
  putchar('\n');
}

static int tree(const char* root, const char* path) {
  struct stat info;
  if (lstat(path, &info) != 0) return 1;
  print_entry(root, path, &info);
  if (!S_ISDIR(info.st_mode)) return 0;
  DIR* folder = opendir(path);
  if (!folder) return 1;
  int failed = 0;
  for (struct dirent* entry = readdir(folder); entry; entry = readdir(folder)) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    char below[8192];
    snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
    failed |= tree(root, below);
  }
  closedir(folder);
  return failed;
}

int main(int argc, char** argv) {
  if (argc >= 2 && strcmp(argv[1], "show") == 0) return show(argc - 2, argv + 2);
  if (argc == 3 && strcmp(argv[1], "wait") == 0) return wait_for_signal(argv[2]);
  if (argc == 2 && strcmp(argv[1], "who") == 0) return who();
  if (argc == 3 && strcmp(argv[1], "tree") == 0) return tree(argv[2], argv[2]);
  puts("scratch");
  return 0;
}
