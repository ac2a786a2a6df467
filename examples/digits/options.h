// SPDX-License-Identifier: Apache-2.0
//
// The command line. A bad one ends the program with a message and status 2; --help ends it with status 0.
#pragma once

#include <stdint.h>

enum { EXIT_USAGE = 2, EXIT_INTERRUPTED = 130, OPTIONS_MAX_RUNS = 16 };

typedef struct {
  int32_t replicas[OPTIONS_MAX_RUNS]; /* of each run */
  int32_t num_runs;
  int32_t replicas_given; /* 0: nobody said how many */
  int32_t workers;        /* of this process, each with as many replicas */
  int32_t numerics;       /* DIST_NUMERICS_... */
  int32_t epochs;
  uint64_t seed;
  const char *data;
  const char *label; /* NULL: the last column */
  int32_t fault_replica;
  int64_t fault_step; /* from 1; 0: no fault */
  const char *report; /* NULL: none */
} options;

options options_parse(int argc, char **argv);
