/*
 * Preloaded into QEMU: the template's memory file cannot be opened for writing.
 *
 * QEMU 7.2 opens the file behind guest RAM O_RDWR even for a private mapping; a template that many machines
 * share must not be writable by any of them. Opens of the one path in HOLT_READ_ONLY_FILE become O_RDONLY,
 * which is enough for a private mapping. Punching a hole into a read-only descriptor (free page reporting)
 * reports success and does nothing, so that QEMU goes on to give the private pages back.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int guarded_flags(const char* path, int flags) {
  const char* guarded = getenv("HOLT_READ_ONLY_FILE");
  if (path != NULL && guarded != NULL && strcmp(path, guarded) == 0) {
    return (flags & ~(O_ACCMODE | O_CREAT | O_TRUNC)) | O_RDONLY;
  }
  return flags;
}

int open64(const char* path, int flags, ...) {
  mode_t mode = 0;
  if (flags & (O_CREAT | __O_TMPFILE)) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  return (int)syscall(SYS_openat, AT_FDCWD, path, guarded_flags(path, flags) | O_LARGEFILE, mode);
}

int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
  if ((mode & FALLOC_FL_PUNCH_HOLE) && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY) return 0;
  return (int)syscall(SYS_fallocate, fd, mode, offset, length);
}

/* QEMU calls the checked variants; programs built otherwise call the plain ones. */
int open(const char* path, int flags, ...) __attribute__((alias("open64")));
int __open_2(const char* path, int flags);
int __open64_2(const char* path, int flags);
int __open_2(const char* path, int flags) {
  return open64(path, flags);
}
int __open64_2(const char* path, int flags) {
  return open64(path, flags);
}
int fallocate(int fd, int mode, off_t offset, off_t length) __attribute__((alias("fallocate64")));
