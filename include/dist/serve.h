/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Serving: run functions on single replicas to answer requests.
 *
 * Between runs, each replica can act as an *instance*: a worker thread that takes requests from one queue per strategy.
 *
 *     dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
 *     options.threads = DIST_THREADS_LIBRARY;
 *     dist_strategy_create(&options, &strategy);
 *     dist_instances_open(strategy, NULL);                   // each instance creates its state and warms up
 *     dist_completions *completions = NULL;
 *     dist_completions_create(NULL, &completions);           // has a descriptor for poll() or epoll
 *
 *     // on a request
 *     dist_submit_options submit_options = DIST_SUBMIT_OPTIONS_INIT;
 *     submit_options.completions = completions;
 *     submit_options.timeout_ns = 50 * 1000 * 1000;
 *     dist_submit(strategy, answer, question, &submit_options, NULL);
 *
 *     // when the descriptor is readable
 *     dist_request *request = NULL;
 *     while (dist_completions_next(completions, 0, &request) == DIST_OK && request != NULL) {
 *       status = dist_request_wait(request, 0);              // the result: it has completed
 *       reply(dist_request_user_data(request), status);
 *       dist_request_destroy(request);
 *     }
 *
 *     // on SIGTERM
 *     dist_instances_close(strategy, 10 * 1000000000LL);     // accepts no new requests, has 10 s for the accepted ones
 *
 * Requests and runs (dist_run() and similar calls) share the queue. It is ordered by priority (runs have priority 0),
 * then by arrival. A run starts when all replicas are idle; entries behind it wait until it has started. Functions that
 * read or write variables from outside queue like runs.
 *
 * Each accepted request completes exactly once: when its function returns, or when its deadline expires, it is
 * cancelled (through its cancel object or dist_request_cancel()), or the instances close. A request that is still
 * queued completes immediately in these cases. A running function keeps its replica until it returns; it should call
 * dist_replica_check() from time to time and return when that fails. Functions on its logical devices are notified by
 * the calls that they make.
 *
 * If a function ignores cancellation, its replica is blocked, and all runs with it. Set `stuck_ns` to replace the
 * thread: the request then completes with DEADLINE_EXCEEDED or CANCELLED and names the replica, and a new thread takes
 * over the replica, creates its own state and warms up. From then on, every libdist call that the old function makes
 * with its handle fails with CANCELLED. When the function finally returns, its result is discarded, and its thread
 * destroys its state and ends. Until then, keep `fn`, `user_data` and the versions it uses (dist_replica_version())
 * alive. A batcher's step is stuck when the deadline or cancellation of one of its items is that long ago; batch.h
 * describes what happens to the items.
 *
 * Inside a request, the replica works alone: dist_replica_parallel_for(), dist_run_on_devices(), dist_replica_read()
 * and functions that describe the replica work, while collectives, groups and merge calls fail with
 * FAILED_PRECONDITION. A failed request does not affect other requests.
 */
#ifndef DIST_SERVE_H
#define DIST_SERVE_H

#include "run.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Creates the state of an instance, on the instance's thread. dist_instance_state() returns *out_state from then on. If
 * this returns an error, opening the instances fails.
 */
typedef dist_status (*dist_instance_create_fn)(dist_replica *replica, void **out_state, void *user_data);

/** Destroys the state of an instance, on the same thread, when the instances close. */
typedef void (*dist_instance_destroy_fn)(void *state, void *user_data);

/** The lowest and the highest priority of a request. */
enum { DIST_PRIORITY_MIN = -7, DIST_PRIORITY_MAX = 7 };

/** Options of dist_instances_open(). */
typedef struct dist_instances_options {
  uint32_t struct_size;
  /* DIST_THREADS_HOST only: 1 = libdist may start threads for deadlines and `done` callbacks, 0 = it may not. With
     library threads it always may */
  int32_t helper_threads;
  /* maximum number of queued requests, 1 to 2^24; further ones are rejected; 0 = default (1024) */
  int64_t max_queued;
  /* how long an idle instance spins before it sleeps; 0 = default (60 us), < 0 = do not spin. A spinning instance
     occupies a CPU */
  int64_t spin_ns;
  dist_instance_create_fn create_state;   /* NULL = instances have no state */
  dist_instance_destroy_fn destroy_state; /* may be NULL */
  /* called once on each instance, after create_state and before the first request; may be NULL */
  dist_replica_fn warm_up;
  /* passed to these functions; must stay valid until the instances have closed and stuck functions have returned */
  void *user_data;
  /* replace the thread of a function that still runs this long after its deadline or cancellation; 0 = never. The limit
     also applies to a batcher's step, counted from the deadline or cancellation of one of its items, so choose it
     longer than any step takes */
  int64_t stuck_ns;
  int32_t max_replaced; /* maximum number of such replacements, 1 or more; 0 = default (4) */
  int32_t reserved;     /* must be 0 */
} dist_instances_options;
#define DIST_INSTANCES_OPTIONS_INIT \
  { sizeof(dist_instances_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** Initializes a dist_instances_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_instances_options_init(dist_instances_options *options, uint32_t struct_size_bytes);

/**
 * Prepares the replicas for requests: each instance creates its state and warms up. If the instances are not open, the
 * first dist_submit() opens them with default options. With DIST_THREADS_HOST the instances are the threads that call
 * dist_serve(), and each creates its state there.
 *
 * Context  Strategy, concurrent. Not inside a replica.
 * Blocks   Until earlier runs have ended and all instances are ready.
 * Owns     options may be NULL.
 * Errors   FAILED_PRECONDITION  the strategy has DIST_THREADS_CALLER, so that the caller of dist_run() is replica 0
 *                               (create the strategy with DIST_THREADS_LIBRARY or DIST_THREADS_HOST); or the instances
 *                               are already open.
 *          UNIMPLEMENTED        the strategy has several workers; or stuck_ns is set and the threads are host threads,
 *                               or replicas have logical devices, which could be stuck too.
 *          INVALID_ARGUMENT     an option is out of range.
 *          CANCELLED            the strategy is shut down meanwhile.
 *          any                  the status that create_state or warm_up returned, of the lowest replica that failed.
 */
DIST_API DIST_NODISCARD dist_status dist_instances_open(dist_strategy *strategy,
                                                        const dist_instances_options *options);

/**
 * Stops serving. New calls to dist_submit() fail with UNAVAILABLE, accepted requests run to completion (until
 * `timeout_ns` expires), and then each instance destroys its state. The instances can be opened again afterwards.
 *
 * When `timeout_ns` expires (0: at once), libdist cancels the remaining requests: queued ones complete immediately,
 * and running ones are cancelled as with dist_request_cancel().
 *
 * Context  Strategy, concurrent. Not inside a replica.
 * Blocks   Up to `timeout_ns`, plus a short time for cancelled functions to return.
 * Errors   INVALID_ARGUMENT     strategy is NULL, or timeout_ns is below DIST_NO_TIMEOUT.
 *          FAILED_PRECONDITION  called inside a replica or a dist_done_fn, or another thread is closing the instances.
 *          DEADLINE_EXCEEDED    requests were cancelled: the message states how many, and which replicas are still
 *                               running a function.
 */
DIST_API DIST_NODISCARD dist_status dist_instances_close(dist_strategy *strategy, int64_t timeout_ns);

/**
 * Makes the calling thread instance `replica_id` of a strategy with DIST_THREADS_HOST, until the instances close. If
 * the instances are not open, it opens them with default options.
 *
 * Context  Strategy, concurrent; one thread per replica. Not inside a replica, nor in a scope.
 * Blocks   Until dist_instances_close() or dist_strategy_shutdown() is called, or create_state or warm_up fails.
 * Errors   INVALID_ARGUMENT     replica_id is not in 0 .. R-1.
 *          FAILED_PRECONDITION  the strategy has library threads; another thread serves as that replica; or called
 *                               inside a replica or a scope.
 *          CANCELLED            the strategy has been shut down.
 *          any                  the status that create_state or warm_up returned.
 */
DIST_API DIST_NODISCARD dist_status dist_serve(dist_strategy *strategy, int32_t replica_id);

/**
 * Returns the state that create_state created for this instance; NULL if it has none, or if the function does not serve
 * a request.
 *
 * Context  Replica, inside a request.
 * Owns     The result is borrowed: destroy_state receives it when the instance closes.
 */
DIST_API void *dist_instance_state(const dist_replica *replica);

/**
 * Checks whether the function that this replica runs should stop: returns DIST_OK while it may continue. Call it from
 * time to time in long functions that make no collective calls; collectives check by themselves.
 *
 * Context  Replica, or logical device.
 * Errors   CANCELLED, DEADLINE_EXCEEDED  the run or the request was cancelled, or its deadline expired.
 *          ABORTED                       a peer in the run has failed; the message names it.
 */
DIST_API DIST_NODISCARD dist_status dist_replica_check(dist_replica *replica);

/** A request, or an item of a batch (batch.h): a call that libdist has accepted and that completes exactly once. */
typedef struct dist_request dist_request;

/** A queue of completed requests, for requests of any strategies. */
typedef struct dist_completions dist_completions;

/**
 * Called when a request has completed. `request` is borrowed; dist_request_wait(request, 0) returns its result.
 *
 * libdist calls it on a thread reserved for this purpose, one call after another, in the order in which requests
 * complete. It may submit requests. While it blocks, the callbacks of other requests wait, but instances do not.
 */
typedef void (*dist_done_fn)(dist_request *request, void *user_data);

/** Options of dist_submit(). */
typedef struct dist_submit_options {
  uint32_t struct_size;
  int32_t priority;              /* DIST_PRIORITY_MIN .. DIST_PRIORITY_MAX; higher priorities run first */
  int64_t timeout_ns;            /* time limit from now to completion; 0 = no limit */
  dist_cancel *cancel;           /* cancels the request; may be NULL */
  dist_completions *completions; /* queue that receives the completed request; may be NULL */
  dist_done_fn done;             /* called on completion; may be NULL; not together with completions */
  int64_t request_id; /* id in traces (dist_strategy_write_trace()); 0 = libdist assigns 1, 2, 3, ... */
} dist_submit_options;
#define DIST_SUBMIT_OPTIONS_INIT \
  { sizeof(dist_submit_options), 0, 0, 0, 0, 0, 0 }

/** Initializes a dist_submit_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_submit_options_init(dist_submit_options *options, uint32_t struct_size_bytes);

/**
 * Schedules one call to `fn` on the next idle replica and returns immediately.
 *
 *     status = fn(replica, user_data)
 *
 * Destroying the request releases the handle only; it still runs.
 *
 * Context  Any, concurrent; also inside a replica, a dist_done_fn or another callback.
 * Blocks   Never for a callback, except that the first call opens the instances; see dist_instances_open(). It may also
 *          wait for an opening in progress.
 * Owns     The caller owns *out_request and destroys it with dist_request_destroy() before the strategy. out_request
 *          and options may be NULL. `fn` and `user_data` must stay valid until the request has completed and `fn` has
 *          returned (which can be later, see stuck_ns).
 * Errors   INVALID_ARGUMENT     strategy or fn is NULL, an option is out of range, or both completions and done are
 *                               set.
 *          RESOURCE_EXHAUSTED   the queue is full (max_queued), or libdist is out of memory.
 *          UNAVAILABLE          the instances are closing, closed, or being reopened.
 *          CANCELLED            options->cancel was already signalled, or the strategy has been shut down.
 *          FAILED_PRECONDITION  the strategy's threads do not allow it, see dist_instances_open(); `done` is set with
 *                               DIST_THREADS_HOST but without dist_instances_options.helper_threads; or this is a
 *                               forked child.
 *          any                  an error of dist_instances_open(), if the call opens the instances.
 */
DIST_API DIST_NODISCARD dist_status dist_submit(dist_strategy *strategy, dist_replica_fn fn, void *user_data,
                                                const dist_submit_options *options,
                                                dist_request **out_request);

/**
 * Tests whether the request has completed and stores 1 or 0 in *out_done. An item with completions counts as completed
 * once it has arrived there for the last time, and never for the handles of its earlier arrivals (batch.h).
 *
 * Errors   If the request has failed, its status; *out_done is then not written, and the request has completed.
 *          INVALID_ARGUMENT     an argument is NULL.
 *          FAILED_PRECONDITION  called in a forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_request_test(dist_request *request, int32_t *out_done);

/**
 * Waits until the request has completed and returns its result, the same each time.
 *
 * Context  Any, concurrent; inside replicas of its strategy only if it has completed or timeout_ns is 0.
 * Blocks   Up to timeout_ns (0: does not wait).
 * Errors   INVALID_ARGUMENT     request is NULL, or timeout_ns is below DIST_NO_TIMEOUT.
 *          DEADLINE_EXCEEDED    timeout_ns has expired, and the request continues; or it is the result of the request.
 *                               dist_request_test() shows which, for an item with completions after its last arrival.
 *          FAILED_PRECONDITION  the call would wait inside a replica; or this is a forked child.
 *          any                  the result of the request.
 */
DIST_API DIST_NODISCARD dist_status dist_request_wait(dist_request *request, int64_t timeout_ns);

/**
 * Waits until one of n requests of one strategy has completed, stores its index in *out_index, and returns its result.
 *
 * Context  Like dist_request_wait().
 * Blocks   Up to timeout_ns (0: does not wait).
 * Errors   The result of that request; *out_index is written in this case too.
 *          INVALID_ARGUMENT     an argument is NULL, n is 0, timeout_ns is below DIST_NO_TIMEOUT, or the requests
 *                               belong to different strategies.
 *          DEADLINE_EXCEEDED    timeout_ns has expired, and no request has completed; *out_index is not written.
 *          FAILED_PRECONDITION  the call would wait inside a replica; or this is a forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_request_wait_any(dist_request *const *requests, size_t n,
                                                          int64_t timeout_ns, size_t *out_index);

/**
 * Cancels the request. If it is queued, it completes with CANCELLED at once. If its function is running,
 * dist_replica_check() fails there, and the request completes when the function returns. An item that is in a step
 * completes after the step. If the request has completed, nothing happens.
 *
 * Errors   INVALID_ARGUMENT     request is NULL.
 *          FAILED_PRECONDITION  called in a forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_request_cancel(dist_request *request);

/**
 * Returns the user_data that was passed to dist_submit() or dist_batcher_submit(); NULL for NULL.
 *
 * Owns     libdist never frees it.
 */
DIST_API void *dist_request_user_data(const dist_request *request);

/**
 * Destroys the handle. A request in progress continues. Must be called before dist_strategy_destroy(). Does nothing if
 * `request` is NULL.
 *
 * Context  Any, serialized.
 * Owns     Takes ownership of the handle.
 */
DIST_API void dist_request_destroy(dist_request *request);

/**
 * Creates a queue of completed requests. `allocator` may be NULL, which selects malloc() and free().
 *
 * Owns     The caller owns *out_completions and destroys it with dist_completions_destroy().
 * Errors   INVALID_ARGUMENT    out_completions is NULL, or only one of the allocator's functions is set.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_completions_create(const dist_allocator *allocator,
                                                            dist_completions **out_completions);

/**
 * Removes the request that completed first and stores it in *out_request. Stores NULL if no request completes within
 * `timeout_ns` (0: does not wait).
 *
 * Context  Any, concurrent; inside replica functions only with a timeout_ns of 0.
 * Blocks   Up to timeout_ns.
 * Owns     The caller owns *out_request and destroys it with dist_request_destroy(). If dist_submit() also returned a
 *          handle, destroy both.
 * Errors   INVALID_ARGUMENT     completions or out_request is NULL, or timeout_ns is below DIST_NO_TIMEOUT.
 *          FAILED_PRECONDITION  called in a forked child, or inside a replica with a timeout_ns that is not 0.
 */
DIST_API DIST_NODISCARD dist_status dist_completions_next(dist_completions *completions, int64_t timeout_ns,
                                                          dist_request **out_request);

/**
 * Returns a file descriptor that is readable while the queue is not empty, for poll() and epoll (level-triggered). The
 * first call creates it, and dist_completions_destroy() closes it. Do not read from it.
 *
 * Errors   INVALID_ARGUMENT     completions or out_descriptor is NULL.
 *          RESOURCE_EXHAUSTED   the system is out of descriptors.
 *          UNIMPLEMENTED        this system does not support such descriptors.
 *          FAILED_PRECONDITION  called in a forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_completions_descriptor(dist_completions *completions,
                                                                int32_t *out_descriptor);

/**
 * Destroys the queue. Completed requests in it are released, and requests that would be added later complete without
 * being reported. Does nothing if `completions` is NULL.
 *
 * Context  Any, but not while another thread is in a call with it.
 * Owns     Takes ownership of the handle.
 */
DIST_API void dist_completions_destroy(dist_completions *completions);

#ifdef __cplusplus
}
#endif
#endif /* DIST_SERVE_H */
