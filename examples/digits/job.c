// SPDX-License-Identifier: Apache-2.0
#include "job.h"

#include <stdio.h>
#include <string.h>

// Finds the worker number of task `type`:`id` in `spec`.
static dist_status find_place(const dist_cluster_spec *spec, const char *type, int32_t id, job *out) {
  if (strcmp(type, "chief") != 0 && strcmp(type, "worker") != 0) {
    char message[128];
    snprintf(message, sizeof message,
             "the task's type is \"%.40s\"; a digits trainer is the chief or a worker", type);
    return dist_fail(DIST_INVALID_ARGUMENT, message);
  }
  dist_status status = dist_cluster_validate(spec, type, id);
  if (!status) status = dist_cluster_worker_count(spec, type, &out->num_workers);
  if (!status) status = dist_cluster_id_in_cluster(spec, type, id, &out->worker);
  if (!status) out->is_there = 1;
  return status;
}

dist_status job_find(job *out) {
  *out = (job){.num_workers = 1};
  char type[DIST_MAX_ADDRESS_BYTES + 1] = "";
  int32_t id = DIST_TASK_UNSET, is_set = 0;
  dist_cluster_resolver *resolver = NULL;
  dist_cluster_spec *spec = NULL;
  dist_status status = dist_cluster_resolver_create_tf_config(NULL, &resolver);
  if (!status) status = dist_cluster_resolver_spec(resolver, &spec);
  if (!status && dist_cluster_spec_num_jobs(spec) > 0) {
    status = dist_cluster_resolver_task_type(resolver, type, sizeof type, &is_set);
    if (!status) status = dist_cluster_resolver_task_id(resolver, &id);
    if (!status && (!is_set || id == DIST_TASK_UNSET))
      status =
          dist_fail(DIST_INVALID_ARGUMENT, "it names a cluster, but not which task of it this process is");
    if (!status) status = find_place(spec, type, id, out);
  }
  dist_cluster_spec_destroy(spec);
  dist_cluster_resolver_destroy(resolver);
  return status;
}
