/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Preemption: a job that is about to lose a machine saves a checkpoint first, and ends. As TensorFlow's
 * PreemptionCheckpointHandler has it, for one worker or many.
 *
 *     dist_preemption_handler_create(strategy, &options, &handler);    loads the checkpoint, where there is one
 *     while (dist_preemption_total_run_calls(handler) < steps) {
 *       status = dist_preemption_run(handler, train_step, data, NULL);
 *       if (status != DIST_OK) break;                                  CANCELLED: all is saved, end the program
 *     }
 *
 * Whoever learns of it calls dist_preemption_notify(), as a handler of SIGTERM, on one worker or on several. All workers
 * save between the same two runs: the notice travels to worker 0 with the end of a run, and worker 0 announces it with the
 * end of a later one. So it takes two or three runs, and all workers make the same calls of these functions.
 */
#ifndef DIST_PREEMPTION_H
#define DIST_PREEMPTION_H

#include "checkpoint.h"

#endif /* DIST_PREEMPTION_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_PREEMPTION_EXPERIMENTAL_H)
#define DIST_PREEMPTION_EXPERIMENTAL_H

#include "checkpoint.h"
#include "run.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What saves a checkpoint before a machine is lost. */
typedef struct dist_preemption_handler dist_preemption_handler;

/** What a look at the notice came to. */
enum {
  DIST_PREEMPTION_NONE = 0,  /* nobody has given one */
  DIST_PREEMPTION_SAVED = 1, /* the checkpoint is saved; the job goes on until its grace is over */
  DIST_PREEMPTION_OVER = 2   /* the checkpoint is saved for the last time: the job is to end */
};

typedef struct dist_preemption_options {
  uint32_t struct_size;
  int32_t reserved;                /* 0 */
  const char *path;                /* of the checkpoint, one file for all workers; NULL: the host saves */
  dist_variable *const *variables; /* that are in it; held */
  size_t num_variables;
  /* how long the job may go on after the notice, which TensorFlow calls grace_period: it saves at once, goes on, and saves
     again when the time is over, by worker 0's clock. 0: it saves and ends */
  int64_t grace_ns;
} dist_preemption_options;
#define DIST_PREEMPTION_OPTIONS_INIT \
  { sizeof(dist_preemption_options), 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_preemption_options. */
DIST_API void dist_preemption_options_init(dist_preemption_options *options, uint32_t struct_size_bytes);

/**
 * Makes the handler of a training loop. Where the checkpoint is there, its values come to the variables, and how often
 * dist_preemption_run() was called before it was saved (its text "preemption.total_run_calls") to the handler.
 *
 * Context  Strategy, serialized; on all workers.
 * Blocks   Until all workers have it.
 * Owns     *out_handler is the caller's: dist_preemption_handler_destroy(), before the strategy.
 * Errors   INVALID_ARGUMENT     NULL; an option is out of its range; variables and no path.
 *          FAILED_PRECONDITION  inside a replica function; another strategy's variable; workers have read different files.
 *          Others               as dist_checkpoint_load().
 */
DIST_API DIST_NODISCARD dist_status dist_preemption_handler_create(dist_strategy *strategy,
                                                                   const dist_preemption_options *options,
                                                                   dist_preemption_handler **out_handler);

/** Ends the handler; NULL is ignored. */
DIST_API void dist_preemption_handler_destroy(dist_preemption_handler *handler);

/**
 * This worker is to be preempted. May be called again, and by a signal's handler: it only sets a word.
 */
DIST_API void dist_preemption_notify(dist_preemption_handler *handler);

/**
 * A step of the loop: dist_preemption_save_if_preempted(), dist_run(), and dist_preemption_count_run() where that went well.
 *
 * Errors   CANCELLED  the job is preempted, and its checkpoint is saved: nothing was run, end the program. Or dist_run(), or
 *                     the wait before it, was cancelled, also by options->cancel: dist_preemption_save_if_preempted() tells.
 *          Others     as dist_run() and dist_checkpoint_save().
 */
DIST_API DIST_NODISCARD dist_status dist_preemption_run(dist_preemption_handler *handler, dist_replica_fn fn,
                                                        void *user_data, const dist_run_options *options);

/**
 * Saves the checkpoint where the job is preempted, once when that is known and once when the grace is over, and tells what
 * it has come to, the same on all workers. Where options had no path, the host saves when *out_state changes. `cancel` may
 * be NULL.
 *
 * Context  Strategy, serialized; on all workers, between the same runs.
 * Blocks   Until worker 0 has ended the latest run, and the file is on the disk.
 * Errors   INVALID_ARGUMENT  NULL.
 *          CANCELLED         `cancel` or dist_strategy_cancel() has ended the wait.
 *          Others            as dist_checkpoint_save(): it will be tried again.
 */
DIST_API DIST_NODISCARD dist_status dist_preemption_save_if_preempted(dist_preemption_handler *handler,
                                                                      dist_cancel *cancel,
                                                                      int32_t *out_state);

/** Counts a run that the host has made without dist_preemption_run(). */
DIST_API void dist_preemption_count_run(dist_preemption_handler *handler);

/** How many runs have been counted, with those of earlier starts that the checkpoint knows of; 0 for NULL. */
DIST_API int64_t dist_preemption_total_run_calls(const dist_preemption_handler *handler);

#ifdef __cplusplus
}
#endif
#endif /* DIST_PREEMPTION_EXPERIMENTAL_H */
