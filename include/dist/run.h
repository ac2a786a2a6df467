/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Runs: a function of the host's on every replica at once. What a replica is told about itself, merge functions, threads
 * of the host as replicas, and how any thread asks a run to end early.
 */
#ifndef DIST_RUN_H
#define DIST_RUN_H

#include "collective.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The host's function, called once on each replica, on that replica's thread, concurrently. Its status is
 * the replica's: anything but DIST_OK ends the run for all. It must not throw or longjmp out.
 */
typedef dist_status (*dist_replica_fn)(dist_replica *replica, void *user_data);

typedef struct dist_run_options {
  uint32_t struct_size;
  int32_t reserved; /* 0 */
  /* of waiting for earlier runs and of the run, with all that its merge functions begin; 0: none. A run whose functions
     all return DIST_OK is OK even so where its caller, who is replica 0, cannot return earlier */
  int64_t timeout_ns;
  /* TensorFlow's RunOptions, accepted without effect: here every size may differ from run to run. */
  int32_t enable_dynamic_batch_size; /* 0: the default, on; 1: on; -1: off */
  int32_t bucketizing_dynamic_shape; /* 0: off, 1: on */
  dist_cancel *cancel;               /* ends this run, and no other; NULL: none */
} dist_run_options;
#define DIST_RUN_OPTIONS_INIT \
  { sizeof(dist_run_options), 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_run_options. */
DIST_API void dist_run_options_init(dist_run_options *options, uint32_t struct_size_bytes);

/**
 * Calls `fn` once on every replica and waits for all of them.
 *
 *     for r in 0 .. R-1, at the same time:   status[r] = fn(replica[r], user_data)
 *
 * If a replica fails, its peers' pending and later collectives return ABORTED at once with its report; the
 * result is the status of the lowest replica whose failure was its own. The next run starts clean.
 *
 * Inside a merge function of the same strategy the run has replicas of its own, since those of the outer run wait:
 * the caller's thread is replica 0, the others are threads made at the first such run. Groups are not theirs, and
 * dist_write_trace() and its like do not show it.
 *
 * Context  Strategy, concurrent: several callers are served one after another, in the order of coming. Not inside a
 *          replica.
 * Blocks   Until earlier callers' runs have ended and every replica's function has returned, or options->timeout_ns is
 *          over. Then replicas in collectives return at once, and so does the call (where the caller is replica 0: when
 *          its own function does); a run that comes while one is still inside waits a moment, then it is refused.
 * Owns     Nothing; fn and user_data are used until return, after a deadline until those still inside are out.
 *          options may be NULL.
 * Errors   INVALID_ARGUMENT     strategy or fn is NULL, an option is out of its range.
 *          FAILED_PRECONDITION  inside a replica function, also a detached one; inside another strategy's scope or merge
 *                               function; host threads; a forked child; an earlier run's functions are still inside.
 *          DEADLINE_EXCEEDED    options->timeout_ns is over: while earlier runs were under way, or the message names the
 *                               replicas still inside.
 *          CANCELLED            options->cancel, at once where the run has not begun; dist_strategy_cancel().
 *          any                  what the first failing replica returned.
 */
DIST_API DIST_NODISCARD dist_status dist_run(dist_strategy *strategy, dist_replica_fn fn, void *user_data,
                                             const dist_run_options *options);

/**
 * A replica function on values. `args` is a list or tuple, `kwargs` a dictionary (or NULL); wherever the caller put a
 * per-replica or mirrored value, at any depth, this replica finds its own component. Both are borrowed.
 * *out_result is NULL before the call (no result) and is taken over with its reference.
 */
typedef dist_status (*dist_values_fn)(dist_replica *replica, dist_value *args, dist_value *kwargs,
                                      dist_value **out_result, void *user_data);

/**
 * dist_run() with arguments and results.
 *
 *     for r in 0 .. R-1, at the same time:   result[r] = fn(replica[r], component(args, r), component(kwargs, r))
 *     *out_result = merge(result[0], ..., result[R-1])
 *
 * Results of the same structure (kind, length, keys) merge leaf by leaf: where all replicas hold the same
 * dist_value, that value as it is; otherwise one per-replica value. Leaves may be of different kinds. All nothings
 * are one; NULL is nothing where another replica gives a result. One replica: its result as it is.
 *
 * Context  Strategy, as dist_run().
 * Blocks   As dist_run().
 * Owns     args and kwargs (both may be NULL) are borrowed. *out_result is the caller's: dist_value_release();
 *          NULL if no replica gave a result. out_result may be NULL: results are dropped. After a deadline fn and
 *          user_data are in use until those still inside are out.
 * Errors   As dist_run(), and
 *          INVALID_ARGUMENT   args is no list or tuple, kwargs no dictionary; the results differ in structure (the
 *                             message has the path).
 */
DIST_API DIST_NODISCARD dist_status dist_run_values(dist_strategy *strategy, dist_values_fn fn,
                                                    void *user_data, dist_value *args, dist_value *kwargs,
                                                    const dist_run_options *options, dist_value **out_result);

/**
 * This replica's id in 0 .. R-1, its rank in every collective; -1 for NULL.
 *
 * Context  Any thread, while the replica's function runs.
 */
DIST_API int32_t dist_replica_id(const dist_replica *replica);

/**
 * How many replicas are in sync; 0 for NULL.
 *
 * Context  Any thread, while the replica's function runs.
 */
DIST_API int32_t dist_replica_num_replicas(const dist_replica *replica);

/**
 * The strategy that runs this replica, for functions that make values; NULL for NULL.
 *
 * Context  Any thread, while the replica's function runs.
 * Owns     Borrowed.
 */
DIST_API dist_strategy *dist_replica_strategy(const dist_replica *replica);

/** Takes the part [begin, end) of a loop. Called from several threads at once; must not call collectives. */
typedef void (*dist_range_fn)(int64_t begin, int64_t end, void *user_data);

/**
 * Runs a loop on this replica's share of the cores (by oneTBB), or on the calling thread and those of
 * dist_strategy_options.executor, in pieces of at least `grain` iterations. With DIST_THREADS_HOST, without an executor and
 * helper_threads, the calling thread runs all of it. Where there are several NUMA domains and
 * the share fits into one, oneTBB's workers run their pieces there: in the domain of the replica's CPU where it is kept
 * on one, else replicas take the domains in turn. The calling thread's affinity stays as it is.
 *
 *     for i in begin .. end-1, in any order, some at the same time:   fn(i, i + 1, user_data)
 *
 * Shape    begin <= end; grain >= 1.
 * Order    Pieces run in any order: fn must give the same bits whichever way the range is cut.
 * Context  Replica.
 * Blocks   Until the loop is done. Waits for no peer.
 * Errors   INVALID_ARGUMENT    NULL, end < begin, grain < 1.
 *          RESOURCE_EXHAUSTED  oneTBB could not start, or an executor's loop has no memory; no part of the loop has run.
 */
DIST_API DIST_NODISCARD dist_status dist_parallel_for(dist_replica *replica, int64_t begin, int64_t end,
                                                      int64_t grain, dist_range_fn fn, void *user_data);

/**
 * Runs once, in cross-replica context, on replica 0's thread, while all replicas wait. `args` is the given list or
 * tuple, whose items are merged as dist_run_values() merges results; borrowed. *out_result as in dist_values_fn.
 */
typedef dist_status (*dist_merge_fn)(dist_strategy *strategy, dist_value *args, dist_value **out_result,
                                     void *user_data);

/**
 * All replicas meet, and `fn` runs once for all of them.
 *
 *     result = fn(strategy, merge(args[0], ..., args[R-1]));   every replica r:  *out_result = component(result, r)
 *
 * Inside fn the strategy's functions are open: dist_reduce_to(), dist_update(), dist_run() too. Named arguments are
 * the entries of a dictionary among args.
 *
 * Context  Replica. Collective: the same fn and tag on all replicas. user_data is replica 0's.
 * Blocks   Until every replica has come (as dist_all_reduce()) and fn has returned.
 * Owns     args (a list, a tuple, or NULL) is borrowed. *out_result is the caller's (NULL: fn gave none); out_result
 *          may be NULL.
 * Errors   As dist_all_reduce(); and what fn returned, on every replica.
 */
DIST_API DIST_NODISCARD dist_status dist_merge_call(dist_replica *replica, dist_merge_fn fn, void *user_data,
                                                    dist_value *args, const dist_collective_options *options,
                                                    dist_value **out_result);

/**
 * The calling thread becomes replica `replica_id` of a strategy with DIST_THREADS_HOST. The first to enter
 * begins a run, and each replica enters it once; the run ends when all R have entered and left. The thread
 * may use *out_replica until dist_replica_leave().
 *
 * A run that is not complete within timeout_ns, or cancelled before all have come, is given up: those who have left get
 * its report. Who comes late comes into it, and gets the report too, until somebody who was in it comes back: that begins
 * the next run, as soon as nobody is inside.
 *
 * Entering, leaving, collectives of any kind and size, their works and fused steps take at most 32 KiB of the thread's
 * stack (64-bit Linux), where they report an error too; functions of the host's that they call (operators, merge and update
 * functions) come on top of that, and so does a signal's handler.
 *
 * Two threads on one CPU take turns at every meeting, many times as slow as two that have one each, and the system may
 * leave them there for seconds. Library threads then move to a CPU that no replica is on. A thread of the host's is left
 * where it is, and dist_explain() counts how often it might have moved; with dist_strategy_options.move_host_threads it
 * does: to one of the CPUs that its own affinity mask has. It moves while it waits in a collective, and has its whole mask
 * back at once, so that the host's functions, and what they start, never run with another mask than the host's. A mask
 * that another thread gives it at the very moment of a move may be lost.
 *
 * Context  Strategy, concurrent; one thread a replica.
 * Blocks   While an earlier run that this replica was in has not ended, at most the strategy's timeout_ns.
 * Owns     *out_replica is the strategy's.
 * Errors   INVALID_ARGUMENT     replica_id is not in 0 .. R-1; NULL.
 *          FAILED_PRECONDITION  the strategy has library threads; this thread is a replica already; that
 *                               replica is inside now.
 *          DEADLINE_EXCEEDED    an earlier run did not end in time; the message names who has not come or left.
 */
DIST_API DIST_NODISCARD dist_status dist_replica_enter(dist_strategy *strategy, int32_t replica_id,
                                                       dist_replica **out_replica);

/**
 * This host thread's replica ends its part of the run with `status`. Ending the thread instead, without this
 * call, is seen as a failure of that replica: peers do not hang.
 *
 * Context  Replica, of one that came by dist_replica_enter().
 * Blocks   Until all replicas of the run have left, or it is given up: dist_replica_enter().
 * Owns     Ends the handle's use.
 * Errors   FAILED_PRECONDITION  the replica has not come by dist_replica_enter(): functions of dist_run() and its like
 *                               end by returning; inside a merge function, or one on logical devices.
 *          any                  as dist_run(): every replica's thread gets the run's status.
 */
DIST_API DIST_NODISCARD dist_status dist_replica_leave(dist_replica *replica, dist_status status);

#ifdef __cplusplus
}
#endif
#endif /* DIST_RUN_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_RUN_EXPERIMENTAL_H)
#define DIST_RUN_EXPERIMENTAL_H

#include "collective.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The calling thread lets go of the replica whose function it is in, so that another thread can go on as that replica:
 * dist_replica_attach(). What the first thread did is seen by the second. For hosts whose functions change threads (a
 * goroutine, a fiber): the thread that libdist called waits for the other one, and attaches again before it returns.
 *
 * Context  Replica, or logical device.
 * Blocks   Never. A function that returns while another thread is attached waits until that one detaches or ends.
 * Errors   FAILED_PRECONDITION  the handle is none of the calling thread's function.
 */
DIST_API DIST_NODISCARD dist_status dist_replica_detach(dist_replica *replica);

/**
 * The calling thread goes on as a replica that another one has let go by dist_replica_detach(). The end of a thread
 * that is attached detaches it; a host's thread that ends detached leaves its replica inside, until another attaches.
 *
 * Context  Any thread that is in no replica's function and in no scope.
 * Errors   FAILED_PRECONDITION  the replica is not detached, or not running; this thread is in a function or scope.
 */
DIST_API DIST_NODISCARD dist_status dist_replica_attach(dist_replica *replica);

/**
 * An object by which any thread can ask what was begun with it to end early: dist_run_options.cancel,
 * dist_collective_options.cancel, dist_devices_options.cancel. One may serve any number of calls, of any
 * strategies, at the same time; what was begun without it, or with another one, goes on.
 *
 * Owns     *out_cancel is the caller's: dist_cancel_destroy(). `allocator` may be NULL: malloc() and free().
 * Errors   INVALID_ARGUMENT    out_cancel is NULL; one of the allocator's functions is there without the other.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_cancel_create(const dist_allocator *allocator,
                                                       dist_cancel **out_cancel);

/**
 * Asks, for good: what was begun with the object ends with CANCELLED, and so does, at once, what is begun with it
 * later. A run that waits for earlier ones never begins. A run under way ends as by dist_strategy_cancel(). A
 * collective, blocking, under way or planned, ends its group's rounds in that run, on every member.
 *
 * Each report has `reason`. A second signal changes nothing. Nothing is left over for later: a run that has
 * ended, or a work that has, is not touched, nor any that comes after it.
 *
 * Context  Any thread, concurrent; also inside a replica, a merge function, an operator, and what it ends. Not
 *          inside an allocator's functions.
 * Blocks   Never for a function of the host's, nor for a peer.
 * Owns     `reason` is copied, and cut at 255 bytes; NULL: none.
 * Errors   INVALID_ARGUMENT     cancel is NULL.
 *          FAILED_PRECONDITION  this is a forked child of the process that made it.
 */
DIST_API DIST_NODISCARD dist_status dist_cancel_signal(dist_cancel *cancel, const char *reason);

/** Whether it has been signalled, and all that this ends has been told: 1 or 0; 0 for NULL. */
DIST_API int32_t dist_cancel_signalled(const dist_cancel *cancel);

/**
 * Gives up the handle; what was begun with it goes on, and cannot be asked to end any more. NULL is fine.
 *
 * Context  Any thread; not while another thread is in a call that gets this handle as its own argument or is about to
 *          hand it to one: a call that has begun with it in its options holds on to it.
 * Owns     Takes the handle.
 */
DIST_API void dist_cancel_destroy(dist_cancel *cancel);

#ifdef __cplusplus
}
#endif
#endif /* DIST_RUN_EXPERIMENTAL_H */
