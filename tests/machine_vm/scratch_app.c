/*
 * The one program of a scratch image.
 *
 *   app                prints "scratch"
 *   app show NAME...   prints its folder, uid and gid, then the value of each variable, or "-"
 *   app wait FILE      says "up", takes the first signal but SIGCONT and writes its number to FILE
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int main(int argc, char** argv) {
  if (argc >= 2 && strcmp(argv[1], "show") == 0) return show(argc - 2, argv + 2);
  if (argc == 3 && strcmp(argv[1], "wait") == 0) return wait_for_signal(argv[2]);
  puts("scratch");
  return 0;
}
