/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Runs: call one function on every replica at the same time.
 *
 *     static dist_status step(dist_replica *replica, void *user_data) {
 *       const int32_t id = dist_replica_id(replica);                    // 0 .. R-1
 *       ...                                                             // compute a gradient from this replica's input
 *       return dist_all_reduce(replica, DIST_REDUCE_SUM, &gradient, &gradient, 1, NULL, NULL);
 *     }
 *
 *     status = dist_run(strategy, step, &data, NULL);                   // returns when all replicas have returned
 *
 * This header also declares the functions that a replica calls about itself, merge calls (one function in cross-replica
 * context, on behalf of all replicas), host threads as replicas, and cancel objects.
 */
#ifndef DIST_RUN_H
#define DIST_RUN_H

#include "collective.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The host's replica function. libdist calls it once on each replica, on that replica's thread, concurrently. If it
 * returns anything except DIST_OK, the replica has failed and the run ends for all replicas. It must not throw, and
 * must not leave with longjmp().
 */
typedef dist_status (*dist_replica_fn)(dist_replica *replica, void *user_data);

/** Options of dist_run() and dist_run_values(). */
typedef struct dist_run_options {
  uint32_t struct_size;
  int32_t reserved; /* must be 0 */
  /* limit on the time from the call, including the wait for earlier runs and everything that merge functions start; 0 =
     default (no limit). If the caller is replica 0, it cannot return before its own function does; if by then all
     functions have returned DIST_OK, the run succeeds even after the limit */
  int64_t timeout_ns;
  /* TensorFlow's RunOptions, accepted without effect, because every size may differ from run to run: 0 = default (on),
     1 = on, -1 = off */
  int32_t enable_dynamic_batch_size;
  int32_t bucketizing_dynamic_shape; /* accepted without effect: 0 = off, 1 = on */
  dist_cancel *cancel;               /* cancels this run only; may be NULL */
} dist_run_options;
#define DIST_RUN_OPTIONS_INIT \
  { sizeof(dist_run_options), 0, 0, 0, 0, 0 }

/** Initializes a dist_run_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_run_options_init(dist_run_options *options, uint32_t struct_size_bytes);

/**
 * Calls `fn` once on every replica and waits for all of them.
 *
 *     for r in 0 .. R-1, at the same time:   status[r] = fn(replica[r], user_data)
 *
 * If a replica fails, pending and later collectives of its peers immediately return ABORTED with its report. dist_run()
 * returns the status of the lowest replica that failed on its own account. The next run starts clean.
 *
 * Inside a merge function of the same strategy, dist_run() uses separate replicas, because those of the outer run are
 * waiting: the caller's thread is replica 0, and the others are threads created for the first such run. Inner runs
 * cannot use groups, and the inspection functions, such as dist_strategy_write_trace(), do not show them.
 *
 * Context  Strategy, concurrent: calls from several threads run one after another, in the order of arrival. Not inside
 *          a replica.
 * Blocks   Until the runs of earlier callers have ended and every replica's function has returned, or until
 *          options->timeout_ns expires. On expiry, replicas that wait in collectives return at once, and so does the
 *          call, except that a caller that is replica 0 returns when its own function does. A run that starts while
 *          functions of an earlier one are still running waits briefly and is then rejected.
 * Owns     Nothing. fn and user_data are used until the call returns or, after a timeout, until all functions have
 *          returned. options may be NULL.
 * Errors   INVALID_ARGUMENT     strategy or fn is NULL, or an option is out of range.
 *          FAILED_PRECONDITION  called inside a replica function (even a detached one), or inside another strategy's
 *                               scope or merge function; the strategy uses host threads; this is a forked child; or
 *                               functions of an earlier run are still running.
 *          DEADLINE_EXCEEDED    options->timeout_ns expired, either while earlier runs were in progress, or in this
 *                               run: then the message names the replicas whose functions have not returned.
 *          CANCELLED            options->cancel was signalled (a queued run ends at once), or dist_strategy_cancel()
 *                               or dist_strategy_shutdown() was called.
 *          UNAVAILABLE          with several workers: a worker is lost.
 *          ABORTED              with several workers: another worker failed; the report names it.
 *          any                  the status that the first failing replica returned; with DIST_REFORM_AT_NEXT_RUN, an
 *                               error of dist_strategy_reform().
 */
DIST_API DIST_NODISCARD dist_status dist_run(dist_strategy *strategy, dist_replica_fn fn, void *user_data,
                                             const dist_run_options *options);

/**
 * A replica function on values. `args` is a list or tuple, `kwargs` a dictionary or NULL. Each per-replica or mirrored
 * value that the caller put there, at any depth, is replaced by this replica's component. Both are borrowed.
 * *out_result is NULL before the call, which means no result; libdist takes over the reference that the function stores
 * there.
 */
typedef dist_status (*dist_values_fn)(dist_replica *replica, dist_value *args, dist_value *kwargs,
                                      dist_value **out_result, void *user_data);

/**
 * Runs a function on every replica, like dist_run(), with arguments and results.
 *
 *     for r in 0 .. R-1, at the same time:   result[r] = fn(replica[r], component(args, r), component(kwargs, r))
 *     *out_result = merge(result[0], ..., result[R-1])
 *
 * All results must have the same structure (kinds, lengths, keys) and are merged leaf by leaf. If all replicas returned
 * the same dist_value for a leaf, the merged leaf is that value; otherwise it is a per-replica value, whose components
 * may be of different kinds. All NONE values count as the same value, and NULL counts as NONE if another replica
 * returned a result. With one replica, its result is returned unchanged.
 *
 * If `args` is neither a list nor a tuple, it is the only argument: the functions get a tuple with this one item. So a
 * batch from dist_iterator_next() can be passed as it is.
 *
 * Context  Like dist_run().
 * Blocks   Like dist_run().
 * Owns     args and kwargs are borrowed; both may be NULL. The caller owns *out_result and releases it with
 *          dist_value_release(); it is NULL if no replica returned a result. If out_result is NULL, the results are
 *          discarded. After a timeout, fn and user_data are used until all functions have returned.
 * Errors   Like dist_run(), and
 *          INVALID_ARGUMENT    kwargs is not a dictionary, or the results differ in structure (the message contains
 *                              the path).
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_run_values(dist_strategy *strategy, dist_values_fn fn,
                                                    void *user_data, dist_value *args, dist_value *kwargs,
                                                    const dist_run_options *options, dist_value **out_result);

/**
 * Returns this replica's id in 0 .. R-1, which is its rank in every collective; -1 for NULL.
 *
 * Context  Any, while the replica's function runs.
 */
DIST_API int32_t dist_replica_id(const dist_replica *replica);

/**
 * Returns the number of replicas in sync, R; 0 for NULL.
 *
 * Context  Any, while the replica's function runs.
 */
DIST_API int32_t dist_replica_num_replicas(const dist_replica *replica);

/**
 * Returns the strategy that runs this replica, which functions that create values need; NULL for NULL.
 *
 * Context  Any, while the replica's function runs.
 * Owns     The result is borrowed.
 */
DIST_API dist_strategy *dist_replica_strategy(const dist_replica *replica);

/**
 * Runs the part [begin, end) of a loop. Called from several threads concurrently. Collectives, runs, accesses to
 * variables and requests for a batch fail there with FAILED_PRECONDITION.
 */
typedef void (*dist_range_fn)(int64_t begin, int64_t end, void *user_data);

/**
 * Runs a loop in parallel, in pieces of at least `grain` iterations, on this replica's share of the cores.
 *
 *     for i in begin .. end-1, in any order, some at the same time:   fn(i, i + 1, user_data)
 *
 * The calling thread and oneTBB threads run the pieces, or the calling thread and those of
 * dist_host_options.executor. With DIST_THREADS_HOST, without an executor and without helper_threads, the calling
 * thread runs the whole loop.
 *
 * On a machine with several NUMA domains, if the share fits into one domain, oneTBB threads run their pieces there: in
 * the domain of the replica's CPU if the replica is pinned, otherwise replicas are assigned to domains in turn. The
 * affinity of the calling thread does not change.
 *
 * Shape    begin <= end; grain >= 1.
 * Order    Pieces run in any order: fn must produce the same bits however the range is divided.
 * Context  Replica.
 * Blocks   Until the loop is complete. Does not wait for peers.
 * Errors   INVALID_ARGUMENT     replica or fn is NULL, end < begin, or grain < 1.
 *          FAILED_PRECONDITION  not inside this replica's function, or its run has ended.
 *          RESOURCE_EXHAUSTED   oneTBB could not start, or an executor's loop ran out of memory; no part of the loop
 *                               has run.
 *          UNKNOWN              fn threw a C++ exception; the other parts of the loop have run.
 */
DIST_API DIST_NODISCARD dist_status dist_replica_parallel_for(dist_replica *replica, int64_t begin,
                                                              int64_t end, int64_t grain, dist_range_fn fn,
                                                              void *user_data);

/**
 * A merge function: runs once, in cross-replica context, on replica 0's thread, while all replicas wait. `args` is the
 * list or tuple passed to dist_merge_call(), an empty list if all passed NULL, and `kwargs` the dictionary or NULL;
 * their items are merged as dist_run_values() merges results. Both are borrowed. *out_result works as in
 * dist_values_fn.
 */
typedef dist_status (*dist_merge_fn)(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                     dist_value **out_result, void *user_data);

/**
 * Waits for all replicas, then runs `fn` once on behalf of all of them.
 *
 *     result = fn(strategy, merge(args[0], ..., args[R-1]), merge(kwargs[0], ..., kwargs[R-1]))
 *     every replica r:  *out_result = component(result, r)
 *
 * Inside fn, functions of the strategy can be called: dist_reduce_to(), dist_update(), and also dist_run().
 *
 * Context  Replica. Collective: all replicas pass the same fn and tag. fn receives replica 0's user_data.
 * Blocks   Until every replica has arrived (as in dist_all_reduce()) and fn has returned.
 * Owns     args (a list, a tuple, or NULL) and kwargs (a dictionary or NULL) are borrowed. The caller owns *out_result;
 *          it is NULL if fn returned no result. out_result may be NULL.
 * Errors   Like dist_all_reduce(), and
 *          INVALID_ARGUMENT     fn is NULL; args is neither a list nor a tuple; kwargs is not a dictionary; the
 *                               arguments or results of the replicas differ in structure; options->group is set or
 *                               options->planned is 1.
 *          FAILED_PRECONDITION  called on a logical device.
 *          any                  the status that fn returned, on every replica.
 */
DIST_API DIST_NODISCARD dist_status dist_merge_call(dist_replica *replica, dist_merge_fn fn, void *user_data,
                                                    dist_value *args, dist_value *kwargs,
                                                    const dist_collective_options *options,
                                                    dist_value **out_result);

/**
 * Makes the calling thread replica `replica_id` of a strategy with DIST_THREADS_HOST. The first replica to enter starts
 * a run. Each replica enters a run once, and the run ends when all R replicas have entered and left. The thread can use
 * *out_replica until it calls dist_replica_leave().
 *
 * **Incomplete runs.** A run is abandoned if it is not complete within timeout_ns, or if it is cancelled before all
 * replicas have entered. Replicas that have left receive its report. A replica that enters late still joins the
 * abandoned run and receives the report too. The next run starts when a replica that took part in the abandoned run
 * enters again, as soon as no replica is inside.
 *
 * **Stack.** Entering, leaving, collectives of any kind and size, their works and fused steps need at most 32 KiB of
 * the thread's stack on 64-bit Linux, including error reports. Each replica of the process beyond the 256th adds 64
 * bytes, and each contribution to a sum beyond the 1,024th adds 16. Host callbacks that they call (operators, merge
 * and update functions) and signal handlers need additional space.
 *
 * **Shared CPUs.** Two threads on one CPU take turns at every collective. This is many times slower than one CPU each,
 * and the system may leave them there for seconds. Library threads then move to a CPU without a replica. A host thread
 * is not moved by default, and dist_strategy_explain() reports how often a move would have helped. With
 * dist_cpu_options.move_host_threads it is moved to a CPU in its own affinity mask. libdist moves it while it
 * waits in a collective and restores the full mask immediately, so host functions, and threads that they start, always
 * run with the host's mask. If another thread changes the mask at the very moment of a move, that change may be lost.
 *
 * Context  Strategy, concurrent; one thread per replica.
 * Blocks   While an earlier run of this replica has not ended, up to the strategy's timeout_ns.
 * Owns     *out_replica belongs to the strategy.
 * Errors   INVALID_ARGUMENT     an argument is NULL, or replica_id is not in 0 .. R-1.
 *          FAILED_PRECONDITION  the strategy uses library threads, this thread already is a replica, or that replica is
 *                               currently inside.
 *          DEADLINE_EXCEEDED    an earlier run did not end in time; the message names the replicas that have not
 *                               entered or left.
 *          CANCELLED            the strategy has been shut down.
 */
DIST_API DIST_NODISCARD dist_status dist_replica_enter(dist_strategy *strategy, int32_t replica_id,
                                                       dist_replica **out_replica);

/**
 * Ends this host thread's part of the run with `status`. If a thread ends without this call, its replica counts as
 * failed, so that its peers do not hang.
 *
 * Context  Replica, on a thread that called dist_replica_enter().
 * Blocks   Until all replicas of the run have left, or the run is abandoned; see dist_replica_enter().
 * Owns     The handle is no longer valid.
 * Errors   FAILED_PRECONDITION  the replica did not enter with dist_replica_enter() (functions of dist_run() end by
 *                               returning), or the call is made inside a merge function or a function on logical
 *                               devices.
 *          any                  the status of the run, like dist_run(): every replica's thread receives it.
 */
DIST_API DIST_NODISCARD dist_status dist_replica_leave(dist_replica *replica, dist_status status);

/**
 * Detaches the calling thread from the replica whose function it runs, so that another thread can continue as that
 * replica with dist_replica_attach(). Everything that the first thread wrote is visible to the second. This is for
 * hosts whose functions change threads, such as goroutines and fibers: the thread that libdist called waits for the
 * other one and attaches again before it returns.
 *
 * Context  Replica, or logical device.
 * Blocks   Never. If a function returns while another thread is attached, libdist waits until that thread detaches or
 *          ends.
 * Errors   FAILED_PRECONDITION  the handle does not belong to the function that the calling thread runs.
 */
DIST_API DIST_NODISCARD dist_status dist_replica_detach(dist_replica *replica);

/**
 * Attaches the calling thread to a replica from which another thread detached. An attached thread that ends is detached
 * automatically. If a host thread ends while detached, its replica stays inside until another thread attaches.
 *
 * Context  Any, except in a replica function or a scope.
 * Errors   FAILED_PRECONDITION  the replica is not detached or not running, or this thread is in a replica function or
 *                               scope.
 */
DIST_API DIST_NODISCARD dist_status dist_replica_attach(dist_replica *replica);

/**
 * Creates a cancel object. Any thread can signal it to cancel everything that was started with it: set it in
 * dist_run_options.cancel, dist_collective_options.cancel or dist_devices_options.cancel. One object can serve any
 * number of calls at the same time, also of different strategies. Calls without it are not affected.
 *
 * Owns     The caller owns *out_cancel and destroys it with dist_cancel_destroy(). `allocator` may be NULL, which
 *          selects malloc() and free().
 * Errors   INVALID_ARGUMENT    out_cancel is NULL, or only one of the allocator's functions is set.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_cancel_create(const dist_allocator *allocator,
                                                       dist_cancel **out_cancel);

/**
 * Cancels everything that was started with the object. Calls in progress end with CANCELLED; calls that are started
 * with it later fail with CANCELLED immediately. A signal cannot be undone.
 *
 *   - A queued run never starts. A run in progress ends as with dist_strategy_cancel().
 *   - A collective, whether blocking, asynchronous or planned, ends its group's rounds in that run, on every member.
 *   - Runs and works that have already ended are not affected, nor are those that come after them.
 *
 * Every report contains `reason`. A second signal has no effect.
 *
 * Context  Any, concurrent; also inside replicas and merge functions, including those that it cancels. Not inside a
 *          reduction operator, an allocator's functions or another callback that must not call libdist.
 * Blocks   Never for a host callback or a peer.
 * Owns     `reason` is copied and truncated to 255 bytes; it may be NULL.
 * Errors   INVALID_ARGUMENT     cancel is NULL.
 *          FAILED_PRECONDITION  called in a forked child of the process that created the object, or in a callback that
 *                               must not call libdist. Nothing is cancelled.
 */
DIST_API DIST_NODISCARD dist_status dist_cancel_signal(dist_cancel *cancel, const char *reason);

/** Returns 1 if the object has been signalled and everything that it cancels has been notified, else 0; 0 for NULL. */
DIST_API int32_t dist_cancel_signalled(const dist_cancel *cancel);

/**
 * Destroys a cancel object. Calls that were started with it continue and can no longer be cancelled through it. Does
 * nothing if `cancel` is NULL.
 *
 * Context  Any, but not while another thread is in a call with this handle as an argument, or is about to pass
 *          it to one. A call that has started with the handle in its options keeps its own reference.
 * Owns     Takes ownership of the handle.
 */
DIST_API void dist_cancel_destroy(dist_cancel *cancel);

#ifdef __cplusplus
}
#endif
#endif /* DIST_RUN_H */
