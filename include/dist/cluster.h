/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Clusters: which processes there are, where each is, and what each of them does.
 *
 * A cluster spec has jobs ("worker", "chief", "ps", "evaluator"), and each job has tasks: processes with an address and an
 * index. cluster_resolver.h says which cluster a process is part of, and which task it is. The rules of the cluster say what
 * a task does:
 *
 *     dist_cluster_resolver_create_tf_config(NULL, &resolver);
 *     dist_cluster_resolver_spec(resolver, &spec);
 *     dist_cluster_resolver_task_type(resolver, type, sizeof type, &is_set);
 *     dist_cluster_resolver_task_id(resolver, &id);
 *     dist_cluster_should_save_checkpoint(spec, is_set ? type : NULL, id, &save);
 *
 * All of it is arithmetic on texts, with TensorFlow's answers: nothing is connected to. Texts, wherever they come from, are
 * not trusted: names and addresses are one line of UTF-8, and the limits are DIST_MAX_CLUSTER_TASKS and its like in types.h.
 */
#ifndef DIST_CLUSTER_H
#define DIST_CLUSTER_H

#include "types.h"

#endif /* DIST_CLUSTER_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_CLUSTER_EXPERIMENTAL_H)
#define DIST_CLUSTER_EXPERIMENTAL_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Cluster specs ----------------------------------------------------------------------------------- */

/** A job: `num_tasks` tasks. */
typedef struct dist_cluster_job {
  const char *name;
  const char *const *addresses; /* of its tasks, "host:port": [num_tasks] */
  const int32_t *task_indices;  /* [num_tasks]; NULL: 0, 1, ... */
  size_t num_tasks;
} dist_cluster_job;

typedef struct dist_cluster_spec_options {
  uint32_t struct_size;
  int32_t reserved;         /* 0 */
  dist_allocator allocator; /* all zero: malloc and free */
} dist_cluster_spec_options;
#define DIST_CLUSTER_SPEC_OPTIONS_INIT                \
  {                                                   \
    sizeof(dist_cluster_spec_options), 0, { 0, 0, 0 } \
  }

/** As dist_strategy_options_init(), of dist_cluster_spec_options. */
DIST_API void dist_cluster_spec_options_init(dist_cluster_spec_options *options, uint32_t struct_size_bytes);

/**
 * Makes a spec of a JSON text, as "cluster" in TF_CONFIG has it: {"worker": ["a:1", "b:2"], "ps": {"3": "c:4"}}. The keys
 * of tasks are read as Python's int() reads digits of ASCII: " 3 ", "+3", "03" and "0_3" are 3. Of two tasks of one index,
 * and of two jobs of one name, the later one counts.
 *
 * Owns     The text is copied. *out_spec is the caller's: dist_cluster_spec_destroy().
 * Errors   INVALID_ARGUMENT    NULL, a text that is not JSON or beyond a limit, tasks that are no list and no object, an
 *                              address that is no text, an index that is no 32-bit integer, or is DIST_TASK_UNSET.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_spec_from_json(const char *text,
                                                                const dist_cluster_spec_options *options,
                                                                dist_cluster_spec **out_spec);

/**
 * Makes a spec of jobs. As in dist_cluster_spec_from_json(), the later one of two counts. An index may be any 32-bit
 * integer, a negative one too, but not DIST_TASK_UNSET, which says that no task is given.
 *
 * Owns     All texts are copied. *out_spec is the caller's: dist_cluster_spec_destroy().
 * Errors   INVALID_ARGUMENT    NULL (jobs may be where num_jobs is 0, addresses where num_tasks is 0), a text that is not
 *                              one line of UTF-8, an index of DIST_TASK_UNSET, more than a limit.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_spec_create(const dist_cluster_job *jobs, size_t num_jobs,
                                                             const dist_cluster_spec_options *options,
                                                             dist_cluster_spec **out_spec);

/**
 * Makes one spec of several. The tasks of a job that has indices 0, 1, ... in all of them follow one another; where it has
 * other indices in one of them its tasks keep theirs.
 *
 * Owns     *out_spec is the caller's: dist_cluster_spec_destroy().
 * Errors   INVALID_ARGUMENT    NULL, no spec, one index twice where tasks keep theirs, more than a limit.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_spec_union(const dist_cluster_spec *const *specs,
                                                            size_t num_specs,
                                                            const dist_cluster_spec_options *options,
                                                            dist_cluster_spec **out_spec);

/**
 * Ends a spec for the caller; resolvers that have it go on. NULL is fine.
 *
 * Context  Any, serialized.
 * Owns     Takes the spec.
 */
DIST_API void dist_cluster_spec_destroy(dist_cluster_spec *spec);

/** The number of jobs; 0 for NULL. */
DIST_API size_t dist_cluster_spec_num_jobs(const dist_cluster_spec *spec);

/**
 * The name of a job, in the order in which they came; NULL for NULL and for a job that is not.
 *
 * Owns     Borrowed: valid while the spec is.
 */
DIST_API const char *dist_cluster_spec_job(const dist_cluster_spec *spec, size_t index);

/**
 * How many tasks a job has.
 *
 * Errors   INVALID_ARGUMENT  NULL, no such job.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_spec_num_tasks(const dist_cluster_spec *spec,
                                                                const char *job, int32_t *out_num_tasks);

/**
 * The indices of a job's tasks, ascending.
 *
 * Shape    out_indices: [capacity]; *out_n is how many there are, which may be more.
 * Errors   INVALID_ARGUMENT  NULL (out_indices may be where capacity is 0), no such job.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_spec_task_indices(const dist_cluster_spec *spec,
                                                                   const char *job, int32_t *out_indices,
                                                                   size_t capacity, size_t *out_n);

/**
 * The address of a task.
 *
 * Owns     *out_address is borrowed: valid while the spec is.
 * Errors   INVALID_ARGUMENT  NULL, no such job, no task of that index in it.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_spec_task_address(const dist_cluster_spec *spec,
                                                                   const char *job, int32_t task,
                                                                   const char **out_address);

/** 1 where both have the same jobs, in any order, with the same tasks; 0 otherwise, and where one is NULL. */
DIST_API int32_t dist_cluster_spec_is_equal(const dist_cluster_spec *a, const dist_cluster_spec *b);

/**
 * The spec as JSON (TensorFlow: as_dict()): a job with tasks 0, 1, ... is a list of addresses, any other an object, also
 * one without tasks. NULL for NULL.
 *
 * Owns     Borrowed: valid while the spec is.
 */
DIST_API const char *dist_cluster_spec_json(const dist_cluster_spec *spec);

/* ---- The rules of a cluster ---------------------------------------------------------------------------- */

/**
 * Whether a cluster has the jobs that training has, and a task is one of it. TensorFlow's checks, in its order:
 *
 *     every job is "chief", "worker", "ps" or "evaluator"
 *     task_type is one of these, and a job of the cluster, but that an evaluator need not be; or it is not set (NULL)
 *     there is at most one chief, and at most one evaluator
 *     task_id is below the number of tasks of its job, where the cluster has that; a negative one passes
 *
 * Errors   INVALID_ARGUMENT  NULL spec; one of these does not hold; no task_id (DIST_TASK_UNSET) where it is looked at.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_validate(const dist_cluster_spec *spec,
                                                          const char *task_type, int32_t task_id);

/**
 * Whether a task is the chief: the chief, an evaluator, and worker 0 where there is no chief.
 *
 * Errors   INVALID_ARGUMENT  as dist_cluster_validate(); NULL.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_is_chief(const dist_cluster_spec *spec,
                                                          const char *task_type, int32_t task_id,
                                                          int32_t *out_is_chief);

/**
 * Writes who leads the collectives: the chief, else worker 0, as "/job:worker/replica:0/task:0". "" where nobody does: in an
 * empty cluster, and for an evaluator.
 *
 * Errors   INVALID_ARGUMENT  as dist_cluster_validate(), but for an empty cluster; NULL; neither chief nor workers; no room
 *                            for the text.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_collective_leader(const dist_cluster_spec *spec,
                                                                   const char *task_type, int32_t task_id,
                                                                   char *out_text, size_t size_bytes);

/**
 * Writes who leads the coordination of a cluster: ps 0, else the chief, else worker 0. "" in an empty cluster.
 *
 * Errors   INVALID_ARGUMENT  NULL; none of the three is there; no room for the text.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_coordination_leader(const dist_cluster_spec *spec,
                                                                     char *out_text, size_t size_bytes);

/**
 * With how many others, itself counted, a task works: chief and workers, or, for an evaluator, the evaluators.
 *
 * Errors   INVALID_ARGUMENT  as dist_cluster_validate() of task 0; NULL; another job; an evaluator where there is no such job.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_worker_count(const dist_cluster_spec *spec,
                                                              const char *task_type,
                                                              int32_t *out_num_workers);

/**
 * The number of a task among those that it works with: the chief is 0 and workers follow; an evaluator's is its id.
 *
 * Errors   INVALID_ARGUMENT  as dist_cluster_validate(); NULL; another job.
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_id_in_cluster(const dist_cluster_spec *spec,
                                                               const char *task_type, int32_t task_id,
                                                               int32_t *out_id);

/**
 * Whether a task writes checkpoints: the chief does, and in an empty cluster the one process.
 *
 * Errors   As dist_cluster_is_chief().
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_should_save_checkpoint(const dist_cluster_spec *spec,
                                                                        const char *task_type,
                                                                        int32_t task_id, int32_t *out_should);

/** As dist_cluster_should_save_checkpoint(), of summaries. */
DIST_API DIST_NODISCARD dist_status dist_cluster_should_save_summary(const dist_cluster_spec *spec,
                                                                     const char *task_type, int32_t task_id,
                                                                     int32_t *out_should);

/**
 * Whether a task evaluates the model: an evaluator does; where the cluster has none, who writes checkpoints.
 *
 * Errors   As dist_cluster_is_chief().
 */
DIST_API DIST_NODISCARD dist_status dist_cluster_should_evaluate(const dist_cluster_spec *spec,
                                                                 const char *task_type, int32_t task_id,
                                                                 int32_t *out_should);

#ifdef __cplusplus
}
#endif
#endif /* DIST_CLUSTER_EXPERIMENTAL_H */
