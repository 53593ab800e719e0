/* A disk that stalls, for servers of tests: `cc -shared -fPIC`, then LD_PRELOAD. While the file named
   by CHEETAH_STALLED_DISK exists, syncs of files whose path contains its text do not return. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { MICROSECONDS_BETWEEN_LOOKS = 20000 };

/* What is stalled; empty: nothing. */
static void stalled_part(char *part, size_t size) {
  part[0] = 0;
  const char *switch_path = getenv("CHEETAH_STALLED_DISK");
  FILE *file = switch_path ? fopen(switch_path, "r") : NULL;
  if (file == NULL) return;
  if (fgets(part, (int)size, file) == NULL) part[0] = 0;
  fclose(file);
}

static void wait_for_disk(int descriptor) {
  char link[64], path[PATH_MAX], part[PATH_MAX];
  for (;;) {
    stalled_part(part, sizeof part);
    if (part[0] == 0) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return;
    path[length] = 0;
    if (strstr(path, part) == NULL) return;
    usleep(MICROSECONDS_BETWEEN_LOOKS);
  }
}

int fdatasync(int descriptor) {
  static int (*next)(int);
  if (next == NULL) next = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  wait_for_disk(descriptor);
  return next(descriptor);
}
