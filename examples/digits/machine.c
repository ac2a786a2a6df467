// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

#include <dirent.h>
#include <dist/dist.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int64_t machine_clock_ns(int clock) {
  struct timespec now = {0, 0};
  clock_gettime((clockid_t)clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// The first line of a file, or "" if it cannot be read.
static void first_line(const char *path, char *line, int size) {
  FILE *f = fopen(path, "r");
  if (!f || !fgets(line, size, f)) line[0] = '\0';
  if (f) fclose(f);
}

static int64_t boot_id(void) {
  char line[64];
  uint32_t high, low;
  first_line("/proc/sys/kernel/random/boot_id", line, sizeof line); /* 8-4-4-4-12 hexadecimal digits */
  return sscanf(line, "%8" SCNx32 "-%4" SCNx32, &high, &low) == 2 ? (int64_t)high << 16 | low : 0;
}

// Over all threads of the process, how long they were ready to run without running; 0 if the kernel does not report it.
static int64_t wait_for_cpu_ns(void) {
  int64_t sum = 0;
  DIR *threads = opendir("/proc/self/task");
  for (const struct dirent *entry; threads && (entry = readdir(threads));) {
    char path[300], line[64];
    int64_t waited = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", entry->d_name);
    first_line(path, line, sizeof line);
    if (sscanf(line, "%*s %" SCNd64, &waited) == 1) sum += waited;
  }
  if (threads) closedir(threads);
  return sum;
}

static int64_t usable_cpus(void) {
  dist_topology *topology = NULL;
  if (dist_topology_from_host(NULL, &topology)) return 0;
  const int64_t cpus = dist_topology_num_devices_per_task(topology);
  dist_topology_destroy(topology);
  return cpus;
}

void machine_read(int64_t out[MACHINE_NUMBERS]) {
  // In ticks: user, nice, system, idle, waiting for devices, two kinds of interrupts, stolen.
  int64_t ticks[8] = {0};
  char line[512];
  first_line("/proc/stat", line, sizeof line);
  const int count = sscanf(
      line,
      "cpu %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64,
      &ticks[0], &ticks[1], &ticks[2], &ticks[3], &ticks[4], &ticks[5], &ticks[6], &ticks[7]);
  const int64_t tick_ns = count == 8 ? 1000000000 / sysconf(_SC_CLK_TCK) : 0;
  out[MACHINE_ID] = boot_id();
  out[MACHINE_CPUS] = usable_cpus();
  out[MACHINE_ALL_CPUS] = sysconf(_SC_NPROCESSORS_ONLN);
  out[MACHINE_WALL_NS] = machine_clock_ns(CLOCK_MONOTONIC);
  out[MACHINE_OWN_NS] = machine_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  out[MACHINE_BUSY_NS] = (ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]) * tick_ns;
  out[MACHINE_DELAY_NS] = wait_for_cpu_ns();
  out[MACHINE_STOLEN_NS] = ticks[7] * tick_ns;
}

void machine_since(int64_t start[MACHINE_NUMBERS]) {
  int64_t now[MACHINE_NUMBERS];
  machine_read(now);
  for (int i = MACHINE_WALL_NS; i < MACHINE_NUMBERS; i++) start[i] = now[i] - start[i];
}
