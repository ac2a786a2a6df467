// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const int64_t buckets[] = {16, 32, 64, 128, MODEL_MOST_TOKENS};

static _Noreturn void usage(void) {
  fprintf(stderr,
          "usage: inference_host [OPTIONS] MODELS FILE     Serves MODELS/FILE on 127.0.0.1\n"
          "  -p PORT          Port; 0 = any free port, which is printed (default 0)\n"
          "  -r REPLICAS      Number of replicas; 0 = one for each CPU (default 0)\n"
          "  -q REQUESTS      Maximum number of queued requests (default 256)\n"
          "  -b TEXTS         Maximum number of texts in a batch, 1 to 64 (default 8)\n"
          "  -d MICROSECONDS  How long a text waits for others if a replica is idle\n"
          "                   (default 0)\n"
          "  -t MILLISECONDS  How long requests may take to complete after SIGTERM\n"
          "                   (default 10000)\n");
  exit(2);
}

static int64_t number(const char *text, int64_t least, int64_t most) {
  char *rest = NULL;
  const long long value = strtoll(text, &rest, 10);
  if (rest == text || *rest != '\0' || value < least || value > most) usage();
  return value;
}

host_options options_parse(int argc, char **argv) {
  host_options o = {.drain_ns = 10000000000,
                    .strategy = DIST_STRATEGY_OPTIONS_INIT,
                    .instances = DIST_INSTANCES_OPTIONS_INIT,
                    .batcher = DIST_BATCHER_OPTIONS_INIT};
  o.strategy.threads = DIST_THREADS_LIBRARY;
  o.instances.create_state = workspace_create;
  o.instances.destroy_state = workspace_destroy;
  o.batcher.max_items = 8;
  o.batcher.max_waiting = 256;
  o.batcher.buckets = buckets;
  o.batcher.num_buckets = sizeof buckets / sizeof buckets[0];
  for (int option; (option = getopt(argc, argv, "p:r:q:b:d:t:")) != -1;) {
    switch (option) {
      case 'p': o.port = (uint16_t)number(optarg, 0, 65535); break;
      case 'r': o.strategy.num_replicas = (int32_t)number(optarg, 0, 1024); break;
      case 'q': o.batcher.max_waiting = number(optarg, 1, 1000000); break;
      case 'b': o.batcher.max_items = (int32_t)number(optarg, 1, OPTIONS_MOST_ITEMS); break;
      case 'd': o.batcher.max_delay_ns = 1000 * number(optarg, 0, 3600000000); break;
      case 't': o.drain_ns = 1000000 * number(optarg, 0, 3600000); break;
      default: usage();
    }
  }
  if (argc - optind != 2) usage();
  o.models = argv[optind];
  if (snprintf(o.path, sizeof o.path, "%s/%s", o.models, argv[optind + 1]) >= (int)sizeof o.path) usage();
  return o;
}

sigset_t options_block_signals(void) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, NULL);
  return ends;
}
