/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Preemption: save a checkpoint and stop before a machine is taken away, for one worker or for many. This is the
 * counterpart of TensorFlow's PreemptionCheckpointHandler.
 *
 *     dist_preemption_options options = DIST_PREEMPTION_OPTIONS_INIT;
 *     options.path = "model.safetensors";
 *     options.variables = variables;
 *     options.num_variables = n;
 *     dist_preemption_handler *handler = NULL;
 *     dist_preemption_handler_create(strategy, &options, &handler);    // loads the checkpoint, if it exists
 *     while (dist_preemption_total_run_calls(handler) < steps) {
 *       status = dist_preemption_run(handler, train_step, data, NULL);
 *       if (status != DIST_OK) break;                                  // CANCELLED: all is saved, end the program
 *     }
 *
 * When the host learns that a machine will be preempted, it calls dist_preemption_notify(), for example in a SIGTERM
 * handler, on one or more workers. All workers save between the same two runs: the notice reaches worker 0 at the end
 * of a run, and worker 0 announces it at the end of a later one. Saving therefore starts after two or three runs, and
 * all workers must make the same calls of these functions.
 *
 * This interface is experimental: it may change or be removed in any version.
 */
#ifndef DIST_EXPERIMENTAL_PREEMPTION_H
#define DIST_EXPERIMENTAL_PREEMPTION_H

#include "../checkpoint.h"
#include "../run.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Saves a checkpoint before a machine is preempted. */
typedef struct dist_preemption_handler dist_preemption_handler;

/** The state of a preemption. */
typedef enum dist_preemption_state DIST_INT32 {
  DIST_PREEMPTION_NONE = 0x1A00,  /* no notice has been given */
  DIST_PREEMPTION_SAVED = 0x1A01, /* the checkpoint is saved; the job continues until the grace period ends */
  DIST_PREEMPTION_OVER = 0x1A02,  /* the checkpoint is saved for the last time: the job should end */
  DIST_FORCE_INT32(DIST_PREEMPTION)
} dist_preemption_state;

/** Options of dist_preemption_handler_create(). */
typedef struct dist_preemption_options {
  uint32_t struct_size;
  int32_t reserved; /* must be 0 */
  /* path of the checkpoint, one file for all workers; NULL = the host saves */
  const char *path;
  dist_variable *const *variables; /* variables in the checkpoint; retained */
  size_t num_variables;
  /* grace period (TensorFlow: grace_period) during which the job continues after the notice: it saves at once,
     continues, and saves again at the end, by worker 0's clock. 0 = save and end */
  int64_t grace_ns;
} dist_preemption_options;
#define DIST_PREEMPTION_OPTIONS_INIT \
  { sizeof(dist_preemption_options), 0, 0, 0, 0, 0 }

/** Initializes a dist_preemption_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_preemption_options_init(dist_preemption_options *options, uint32_t struct_size_bytes);

/**
 * Creates the handler of a training loop. If the checkpoint exists, it is loaded into the variables, and the handler
 * continues with the saved number of dist_preemption_run() calls (its text "preemption.total_run_calls").
 *
 * Context  Strategy, serialized; on all workers.
 * Blocks   Until all workers have called it and compared what they loaded.
 * Owns     The caller owns *out_handler and destroys it with dist_preemption_handler_destroy() before the strategy.
 * Errors   Like dist_checkpoint_load(), and
 *          INVALID_ARGUMENT     an argument is NULL, an option is out of range, or variables are given without a path.
 *          FAILED_PRECONDITION  called inside a replica function, a variable belongs to another strategy, or the
 *                               workers have read different files.
 */
DIST_API DIST_NODISCARD dist_status dist_preemption_handler_create(dist_strategy *strategy,
                                                                   const dist_preemption_options *options,
                                                                   dist_preemption_handler **out_handler);

/**
 * Destroys the handler. Does nothing if `handler` is NULL, or in a forked child.
 *
 * Context  Any, serialized.
 * Owns     Takes ownership of the handler.
 */
DIST_API void dist_preemption_handler_destroy(dist_preemption_handler *handler);

/**
 * Announces that this worker will be preempted. May be called repeatedly, and in a signal handler: it only sets a flag.
 */
DIST_API void dist_preemption_notify(dist_preemption_handler *handler);

/**
 * Runs one step of the loop: calls dist_preemption_save_if_preempted(), dist_run() and, if that succeeds,
 * dist_preemption_count_run().
 *
 * Errors   Like dist_run() and dist_checkpoint_save(), and
 *          CANCELLED  the job is preempted and its checkpoint is saved: nothing was run, end the program. Also:
 *                     dist_run(), or the wait before it, was cancelled (for example by options->cancel);
 *                     dist_preemption_save_if_preempted() tells the two apart.
 */
DIST_API DIST_NODISCARD dist_status dist_preemption_run(dist_preemption_handler *handler, dist_replica_fn fn,
                                                        void *user_data, const dist_run_options *options);

/**
 * Saves the checkpoint if the job is preempted, once when the notice arrives and once when the grace period ends.
 * Stores the state in *out_state, the same on all workers. If the options have no path, the host must save when
 * *out_state changes. `cancel` may be NULL.
 *
 * Context  Strategy, serialized; on all workers, between the same runs.
 * Blocks   Until worker 0 has ended the latest run, and the file is on disk.
 * Errors   Like dist_checkpoint_save(), after which the next call tries again, and
 *          INVALID_ARGUMENT  a required argument is NULL.
 *          CANCELLED         `cancel` or dist_strategy_cancel() ended the wait.
 */
DIST_API DIST_NODISCARD dist_status dist_preemption_save_if_preempted(dist_preemption_handler *handler,
                                                                      dist_cancel *cancel,
                                                                      dist_preemption_state *out_state);

/** Counts a run that the host made without dist_preemption_run(). */
DIST_API void dist_preemption_count_run(dist_preemption_handler *handler);

/**
 * Returns the number of counted runs, including those of earlier program starts that the checkpoint recorded; 0 for
 * NULL.
 */
DIST_API int64_t dist_preemption_total_run_calls(const dist_preemption_handler *handler);

#ifdef __cplusplus
}
#endif
#endif /* DIST_EXPERIMENTAL_PREEMPTION_H */
