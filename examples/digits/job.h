// SPDX-License-Identifier: Apache-2.0
//
// Whether this process is one worker of a job of several processes, as TF_CONFIG says.
#pragma once

#include <dist/dist.h>
#include <stdint.h>

typedef struct {
  int32_t is_there;    /* 0: TF_CONFIG names no cluster, and the rest is 1 and 0 */
  int32_t num_workers; /* chief and workers */
  int32_t worker;      /* which one this process is; the chief is 0 */
} job;

/** Reads TF_CONFIG. Fails where it is wrong, and for a task that is neither chief nor worker. */
dist_status job_find(job *out);
