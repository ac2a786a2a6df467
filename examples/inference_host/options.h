// SPDX-License-Identifier: Apache-2.0
#ifndef EXAMPLES_INFERENCE_HOST_OPTIONS_H
#define EXAMPLES_INFERENCE_HOST_OPTIONS_H

#include <dist/dist.h>
#include <signal.h>

#include "model.h"

enum { OPTIONS_MOST_ITEMS = 64 };  // of a batch

typedef struct {
  const char *models;  // the folder
  char path[4096];     // of the first model
  uint16_t port;       // 0: any
  int64_t drain_ns;
  dist_strategy_options strategy;
  dist_instances_options instances;  // whose state is a workspace
  dist_batcher_options batcher;
} host_options;

// Says what is wrong, and ends the program.
host_options options_parse(int argc, char **argv);

// SIGTERM and SIGINT, which are for sigwait() from now on, in this thread and in those that it makes.
sigset_t options_block_signals(void);

#endif
