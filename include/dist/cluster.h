/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Clusters: which processes a job has, their addresses, and what each of them does.
 *
 *     dist_cluster_resolver *resolver = NULL;
 *     dist_cluster_spec *spec = NULL;
 *     char type[DIST_MAX_ADDRESS_BYTES];
 *     int32_t is_set, id, save;
 *     dist_cluster_resolver_create_tf_config(NULL, &resolver);
 *     dist_cluster_resolver_spec(resolver, &spec);
 *     dist_cluster_resolver_task_type(resolver, type, sizeof type, &is_set);
 *     dist_cluster_resolver_task_id(resolver, &id);
 *     dist_cluster_should_save_checkpoint(spec, is_set ? type : NULL, id, &save);
 *
 * A cluster spec has jobs ("worker", "chief", "ps", "evaluator"), and each job has tasks. A task is a process with an
 * address and an index. A resolver (cluster_resolver.h) finds the cluster that a process belongs to and the task that
 * it is. The functions of this header answer what a task should do.
 *
 * They only evaluate texts, with the same answers as TensorFlow, and open no connections. Texts are untrusted input:
 * names and addresses must be a single line of UTF-8, and sizes are limited by DIST_MAX_CLUSTER_TASKS and the related
 * constants in types.h.
 */
#ifndef DIST_CLUSTER_H
#define DIST_CLUSTER_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Cluster specs ----------------------------------------------------------------------------------- */

/** A job with `num_tasks` tasks. */
typedef struct dist_cluster_job {
  const char *name;
  const char *const *addresses; /* addresses of the tasks, "host:port": [num_tasks] */
  const int32_t *task_indices;  /* [num_tasks]; NULL = 0, 1, ... */
  size_t num_tasks;
} dist_cluster_job;

/** Options of the functions that create cluster specs. */
typedef struct dist_cluster_spec_options {
  uint32_t struct_size;
  int32_t reserved;         /* must be 0 */
  dist_allocator allocator; /* all zero = malloc() and free() */
} dist_cluster_spec_options;
#define DIST_CLUSTER_SPEC_OPTIONS_INIT                \
  {                                                   \
    sizeof(dist_cluster_spec_options), 0, { 0, 0, 0 } \
  }

/** Initializes a dist_cluster_spec_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_cluster_spec_options_init(dist_cluster_spec_options *options, uint32_t struct_size_bytes);

/**
 * Creates a spec from JSON, in the format of "cluster" in TF_CONFIG.
 *
 *     {"worker": ["a:1", "b:2"], "ps": {"3": "c:4"}}
 *
 * Task keys are decimal integers of 32 bits. If two tasks have the same index or two jobs the same name, the later one
 * replaces the earlier one. As in Python, the literals NaN, Infinity and -Infinity count as JSON numbers; but no number
 * is valid in a cluster.
 *
 * Owns     The text is copied. The caller owns *out_spec and destroys it with dist_cluster_spec_destroy().
 * Errors   INVALID_ARGUMENT    an argument is NULL; the text is not JSON, not an object, or exceeds a limit; tasks are
 *                              neither a list nor an object (null, for example); an address is not a text; an index is
 *                              not a 32-bit integer or is DIST_TASK_UNSET.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_spec_from_json(const char *text,
                                                                const dist_cluster_spec_options *options,
                                                                dist_cluster_spec **out_spec);

/**
 * Creates a spec from a list of jobs.
 *
 * Like in dist_cluster_spec_from_json(), the later of two equal jobs or tasks replaces the earlier one. An index can be
 * any 32-bit integer, even a negative one, except DIST_TASK_UNSET.
 *
 * Owns     All texts are copied. The caller owns *out_spec and destroys it with dist_cluster_spec_destroy().
 * Errors   INVALID_ARGUMENT    an argument is NULL (jobs may be NULL if num_jobs is 0, and addresses if num_tasks is
 *                              0); a text is not a single line of UTF-8; an index is DIST_TASK_UNSET; a limit is
 *                              exceeded.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_spec_create(const dist_cluster_job *jobs, size_t num_jobs,
                                                             const dist_cluster_spec_options *options,
                                                             dist_cluster_spec **out_spec);

/**
 * Merges several specs into one.
 *
 * If a job has indices 0, 1, ... in all of the specs, its tasks are appended in order. If it has other indices in one
 * of them, all tasks keep their indices.
 *
 * Owns     The caller owns *out_spec and destroys it with dist_cluster_spec_destroy().
 * Errors   INVALID_ARGUMENT    an argument is NULL; there is no spec; two tasks that keep their indices have the same
 *                              one; a limit is exceeded.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_spec_union(const dist_cluster_spec *const *specs,
                                                            size_t num_specs,
                                                            const dist_cluster_spec_options *options,
                                                            dist_cluster_spec **out_spec);

/**
 * Destroys the caller's handle. Resolvers that use the spec keep it. Does nothing if `spec` is NULL.
 *
 * Context  Any, serialized.
 * Owns     Takes ownership of the spec.
 */
DIST_API void dist_cluster_spec_destroy(dist_cluster_spec *spec);

/** Returns the number of jobs; 0 for NULL. */
DIST_API size_t dist_cluster_spec_num_jobs(const dist_cluster_spec *spec);

/**
 * Returns the name of job `index`, in the order in which the jobs were given; NULL for NULL or an invalid index.
 *
 * Owns     The result is borrowed: valid until the spec is destroyed.
 */
DIST_API const char *dist_cluster_spec_job(const dist_cluster_spec *spec, size_t index);

/**
 * Returns the number of tasks of a job.
 *
 * Errors   INVALID_ARGUMENT  an argument is NULL, or the job does not exist.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_spec_num_tasks(const dist_cluster_spec *spec,
                                                                const char *job, int32_t *out_num_tasks);

/**
 * Returns the indices of a job's tasks, in ascending order.
 *
 * Shape    out_indices: [capacity]. *out_n is the number of tasks, which can exceed capacity.
 * Errors   INVALID_ARGUMENT  an argument is NULL (out_indices may be NULL if capacity is 0), or the job does not exist.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_spec_task_indices(const dist_cluster_spec *spec,
                                                                   const char *job, int32_t *out_indices,
                                                                   size_t capacity, size_t *out_n);

/**
 * Returns the address of a task.
 *
 * Owns     *out_address is borrowed: valid until the spec is destroyed.
 * Errors   INVALID_ARGUMENT  an argument is NULL, or the job or the task does not exist.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_spec_task_address(const dist_cluster_spec *spec,
                                                                   const char *job, int32_t task,
                                                                   const char **out_address);

/**
 * Returns 1 if both specs have the same jobs, in any order, with the same tasks; 0 otherwise and if one of them is
 * NULL.
 */
DIST_API int32_t dist_cluster_spec_is_equal(const dist_cluster_spec *a, const dist_cluster_spec *b);

/**
 * Returns the spec as JSON (TensorFlow: as_dict()); NULL for NULL.
 *
 * A job with tasks 0, 1, ... becomes a list of addresses; any other job, including one without tasks, becomes an
 * object.
 *
 * Owns     The result is borrowed: valid until the spec is destroyed.
 */
DIST_API const char *dist_cluster_spec_json(const dist_cluster_spec *spec);

/* ---- The rules of a cluster ---------------------------------------------------------------------------- */

/**
 * Checks that a cluster is suitable for training and that a task belongs to it. The checks are those of TensorFlow, in
 * its order:
 *
 *   - every job is "chief", "worker", "ps" or "evaluator";
 *   - task_type is one of these and a job of the cluster (an evaluator's job may be missing), or it is not set (NULL);
 *   - there is at most one chief and at most one evaluator;
 *   - task_id is below the number of tasks of its job, if the cluster has that job; negative ids are accepted.
 *
 * Errors   INVALID_ARGUMENT  spec is NULL; a check fails; task_id is DIST_TASK_UNSET although its job is in the
 *                            cluster.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_validate(const dist_cluster_spec *spec,
                                                          const char *task_type, int32_t task_id);

/**
 * Determines whether a task is the chief. This is true for the task of job "chief", for an evaluator, and for worker 0
 * if the cluster has no chief.
 *
 * Errors   INVALID_ARGUMENT  out_is_chief is NULL, or an error of dist_cluster_validate().
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_is_chief(const dist_cluster_spec *spec,
                                                          const char *task_type, int32_t task_id,
                                                          int32_t *out_is_chief);

/**
 * Writes the task that leads the collectives, for example "/job:worker/replica:0/task:0": the chief, or worker 0 if
 * there is no chief. Writes "" if there is no leader: in an empty cluster, and for an evaluator.
 *
 * Errors   INVALID_ARGUMENT  an argument is NULL; an error of dist_cluster_validate(), unless the cluster is empty;
 *                            there are neither a chief nor workers; size_bytes is too small.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_collective_leader(const dist_cluster_spec *spec,
                                                                   const char *task_type, int32_t task_id,
                                                                   char *out_text, size_t size_bytes);

/**
 * Writes the task that leads the coordination of a cluster: ps 0, or else the chief, or else worker 0. Writes "" for an
 * empty cluster.
 *
 * Errors   INVALID_ARGUMENT  an argument is NULL; the cluster has none of the three; size_bytes is too small.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_coordination_leader(const dist_cluster_spec *spec,
                                                                     char *out_text, size_t size_bytes);

/**
 * Returns the number of tasks that work together with a task, including itself: chief and workers, or the evaluators
 * for an evaluator.
 *
 * Errors   INVALID_ARGUMENT  an argument is NULL; an error of dist_cluster_validate() for task 0; another job; an
 *                            evaluator in a cluster without that job.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_worker_count(const dist_cluster_spec *spec,
                                                              const char *task_type,
                                                              int32_t *out_num_workers);

/**
 * Returns the number of a task among the tasks that it works with: the chief is 0, and the workers follow. For an
 * evaluator, it is the task id.
 *
 * Errors   INVALID_ARGUMENT  an argument is NULL; an error of dist_cluster_validate(); another job; an evaluator
 *                            without an id.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_id_in_cluster(const dist_cluster_spec *spec,
                                                               const char *task_type, int32_t task_id,
                                                               int32_t *out_id);

/**
 * Determines whether a task writes checkpoints: the chief does (dist_cluster_is_chief()), and so does the single
 * process of an empty cluster.
 *
 * Errors   Like dist_cluster_is_chief().
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_should_save_checkpoint(const dist_cluster_spec *spec,
                                                                        const char *task_type,
                                                                        int32_t task_id, int32_t *out_should);

/**
 * Determines whether a task writes summaries; the answer is that of dist_cluster_should_save_checkpoint().
 *
 * Errors   Like dist_cluster_is_chief().
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_should_save_summary(const dist_cluster_spec *spec,
                                                                     const char *task_type, int32_t task_id,
                                                                     int32_t *out_should);

/**
 * Determines whether a task evaluates the model: an evaluator does; if the cluster has no evaluator, the task that
 * writes checkpoints does.
 *
 * Errors   Like dist_cluster_is_chief().
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_should_evaluate(const dist_cluster_spec *spec,
                                                                 const char *task_type, int32_t task_id,
                                                                 int32_t *out_should);

#ifdef __cplusplus
}
#endif
#endif /* DIST_CLUSTER_H */
