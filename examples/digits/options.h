// SPDX-License-Identifier: Apache-2.0
//
// The command line. If it is invalid, the program prints a message and exits with status 2. --help exits with
// status 0.
#pragma once

#include <dist/types.h>
#include <stdint.h>

enum { EXIT_USAGE = 2, EXIT_INTERRUPTED = 130, OPTIONS_MAX_RUNS = 16 };

typedef struct {
  int32_t replicas[OPTIONS_MAX_RUNS]; /* [run] */
  int32_t num_runs;
  int32_t replicas_given; /* 0 = the default number of replicas is used */
  int32_t workers;        /* workers in this process, each with the same number of replicas */
  dist_numerics numerics; /* 0 = not given */
  int32_t epochs;
  uint64_t seed;
  const char *data;
  const char *label; /* NULL = the last column */
  int32_t fault_replica;
  int64_t fault_step; /* counted from 1; 0 = no fault */
  const char *report; /* NULL = no report */
} options;

options options_parse(int argc, char **argv);
