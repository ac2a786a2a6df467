/* SPDX-License-Identifier: Apache-2.0
 *
 * The number of threads, descriptors and mappings of this process, and its memory.
 */
#ifndef TESTS_GUESTS_PROCESS_SIZES_H
#define TESTS_GUESTS_PROCESS_SIZES_H

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

typedef struct process_sizes {
  long threads, descriptors, mappings;
  long private_kib; /* resident memory that is not a page of a file */
} process_sizes;

static inline long entries_of(const char *folder) {
  long n = -2; /* "." and ".." */
  DIR *d = opendir(folder);
  while (d != NULL && readdir(d) != NULL) n++;
  if (d != NULL) closedir(d);
  return n;
}

static inline process_sizes sizes_now(void) {
  process_sizes now = {entries_of("/proc/self/task"), entries_of("/proc/self/fd") - 1, 0, -1};
  char line[512];
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) now.mappings++;
  if (maps != NULL) fclose(maps);
  FILE *pages = fopen("/proc/self/statm", "r");
  long all = 0, resident = 0, of_files = 0;
  if (pages != NULL && fscanf(pages, "%ld %ld %ld", &all, &resident, &of_files) == 3)
    now.private_kib = (resident - of_files) * (sysconf(_SC_PAGESIZE) / 1024);
  if (pages != NULL) fclose(pages);
  return now;
}

/* A joined thread is listed for another moment. Returns the number of threads once it is `expected`, or the
 * number that remains. */
static inline long threads_down_to(long expected) {
  long n = entries_of("/proc/self/task");
  for (int tries = 0; n > expected && tries < 100000; tries++) {
    sched_yield();
    n = entries_of("/proc/self/task");
  }
  return n;
}

#endif
