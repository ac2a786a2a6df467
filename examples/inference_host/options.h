// SPDX-License-Identifier: Apache-2.0
#ifndef EXAMPLES_INFERENCE_HOST_OPTIONS_H
#define EXAMPLES_INFERENCE_HOST_OPTIONS_H

#include <dist/dist.h>
#include <signal.h>

#include "model.h"

enum { OPTIONS_MOST_ITEMS = 64 };  // maximum batch size

typedef struct {
  const char *models;  // the folder of the models
  char path[4096];     // path of the first model
  uint16_t port;       // 0 = any free port
  int64_t drain_ns;
  dist_strategy_options strategy;
  dist_instances_options instances;  // their state is a workspace
  dist_batcher_options batcher;
} host_options;

// Prints a message and exits if the command line is invalid.
host_options options_parse(int argc, char **argv);

// Blocks SIGTERM and SIGINT for sigwait(), in this thread and in threads created later. Returns the set.
sigset_t options_block_signals(void);

#endif
