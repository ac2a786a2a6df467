// SPDX-License-Identifier: Apache-2.0
//
// scaling.h says what is printed.
#include "scaling.h"

#include <stdio.h>
#include <string.h>

int scaling_equal(const scaling *s) {
  for (int32_t i = 1; i < s->num_runs; i++)
    if (strcmp(s->runs[i].digest, s->runs[0].digest) != 0) return 0;
  return 1;
}

void scaling_print(const scaling *s) {
  printf("%8s  %8s  %8s  %8s  %s\n", "replicas", "seconds", "speed-up", "accuracy", "parameters");
  for (int32_t i = 0; i < s->num_runs; i++) {
    const scaling_run *run = &s->runs[i];
    printf("%8d  %8.3f  %8.2f  %8.3f  %.16s\n", (int)run->replicas, run->seconds,
           s->runs[0].seconds / run->seconds, run->test_accuracy, run->digest);
  }
}
