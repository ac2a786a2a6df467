// SPDX-License-Identifier: Apache-2.0
//
// scaling.h describes the output.
#include "scaling.h"

#include <stdio.h>
#include <string.h>

int scaling_equal(const scaling *s) {
  for (int32_t i = 1; i < s->num_runs; i++)
    if (strcmp(s->runs[i].digest, s->runs[0].digest) != 0) return 0;
  return 1;
}

void scaling_print(const scaling *s) {
  printf("%8s  %7s = %7s + %10s + %6s + %5s  %8s  %8s  %s\n", "replicas", "seconds", "compute", "all_reduce",
         "update", "rest", "speed-up", "accuracy", "parameters");
  for (int32_t i = 0; i < s->num_runs; i++) {
    const scaling_run *run = &s->runs[i];
    char name[16] = "one core";
    if (!run->one_core) snprintf(name, sizeof name, "%d", (int)run->replicas);
    const double *parts = run->parts;
    const double rest =
        run->seconds - parts[TRAINER_COMPUTE] - parts[TRAINER_ALL_REDUCE] - parts[TRAINER_UPDATE];
    printf("%8s  %7.3f   %7.3f   %10.3f   %6.3f   %5.3f  %8.2f  %8.3f  %.16s\n", name, run->seconds,
           parts[TRAINER_COMPUTE], parts[TRAINER_ALL_REDUCE], parts[TRAINER_UPDATE], rest,
           s->runs[0].seconds / run->seconds, run->test_accuracy, run->digest);
  }
}
