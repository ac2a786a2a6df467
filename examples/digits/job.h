// SPDX-License-Identifier: Apache-2.0
//
// Finds out from TF_CONFIG whether this process is a worker of a job with several processes.
#pragma once

#include <dist/dist.h>
#include <stdint.h>

typedef struct {
  int32_t is_there;    /* 0 = TF_CONFIG names no cluster; num_workers is then 1 and worker 0 */
  int32_t num_workers; /* the chief and the workers together */
  int32_t worker;      /* number of this process; the chief is 0 */
} job;

/** Reads TF_CONFIG. Fails if it is invalid, or if this task is neither the chief nor a worker. */
dist_status job_find(job *out);
