// SPDX-License-Identifier: Apache-2.0
//
// How busy the machine is. The report uses it to tell waiting that a busy machine causes from the cost of libdist.
#pragma once

#include <stdint.h>

/** One reading. The times count up, so the difference of two readings describes the time between them. */
enum {
  MACHINE_ID,       /* a number for this boot of the machine, the same in all its containers; 0 = unknown */
  MACHINE_CPUS,     /* CPUs that this process may use; 0 = unknown */
  MACHINE_ALL_CPUS, /* CPUs of the machine */
  MACHINE_WALL_NS,  /* steady clock */
  MACHINE_OWN_NS,   /* CPU time of this process */
  MACHINE_DELAY_NS, /* time for which threads of this process were ready to run but had no CPU; 0 = unknown */
  MACHINE_BUSY_NS,  /* CPU time of all programs on the machine; 0 = unknown */
  MACHINE_STOLEN_NS, /* CPU time that the hypervisor gave to other virtual machines */
  MACHINE_NUMBERS
};

void machine_read(int64_t out[MACHINE_NUMBERS]);

/** Replaces the times of `start` by the times since then. */
void machine_since(int64_t start[MACHINE_NUMBERS]);

/** Nanoseconds of a POSIX clock. */
int64_t machine_clock_ns(int clock);
