/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Serving: functions that run on one free replica each, beside one another, for hosts that answer requests.
 *
 *     options.threads = DIST_THREADS_LIBRARY;
 *     dist_strategy_create(&options, &strategy);
 *     dist_instances_open(strategy, &instances_options);             each replica makes its state, and warms up
 *     dist_completions_create(NULL, &completions);
 *
 *     on a request:   submit_options.completions = completions;      the descriptor is in the host's epoll set
 *                     submit_options.timeout_ns = 50 * 1000 * 1000;
 *                     dist_submit(strategy, answer, request, &submit_options, NULL);
 *     on the event:   while (dist_completions_next(completions, 0, &work) == DIST_OK && work != NULL) {
 *                       request = dist_work_user_data(work);
 *                       status = dist_work_wait(work, 0);            how it ended; never waits here
 *                       dist_work_destroy(work);
 *                     }
 *     on SIGTERM:     dist_instances_close(strategy, 10 * second);   what was accepted ends; nothing new begins
 *
 * A replica that answers requests is an *instance*. Runs (dist_run() and its like) and requests share the replicas by one
 * queue: what has the higher priority comes first (runs have 0), and what came first within a priority. A run begins when
 * all replicas are free, and nothing that stands behind it begins before. What reads or writes variables from outside stands
 * in it as a run does.
 *
 * Inside a request's function the replica is alone: dist_parallel_for(), dist_run_on_devices(), dist_replica_read() and the
 * other questions about it work; collectives, groups and merge functions are FAILED_PRECONDITION. A failure is that
 * request's, and of no other.
 *
 * Every request that was accepted ends, exactly once: as its function returned, or by its deadline, its cancel object,
 * dist_work_cancel() or the end of the instances. While it is queued each of these ends it at once. While its function
 * runs, dist_replica_check() tells the function, and so does what its logical devices call; it has ended when the function
 * has returned.
 *
 * A function that does not return, though it has been told, holds up its replica, and all runs with it. With
 * dist_instances_options.stuck_ns the replica gets another thread then, which makes a state of its own and warms up; the
 * request ends with DEADLINE_EXCEEDED or CANCELLED, and names the replica. From then on the function gets CANCELLED from
 * libdist, whatever it calls with its handle. What it returns is dropped, and its thread ends its state and itself; until
 * then it uses `fn`, `user_data`, and what it sees of versions (dist_replica_version()). A batcher's step is stuck when one of
 * its items was to end so long ago; batch.h says what becomes of the items.
 */
#ifndef DIST_SERVE_H
#define DIST_SERVE_H

#include "run.h"
#include "work.h"

#endif /* DIST_SERVE_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_SERVE_EXPERIMENTAL_H)
#define DIST_SERVE_EXPERIMENTAL_H

#include "run.h"
#include "work.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes the state of an instance, on its thread: *out_state is what dist_instance_state() gives from then on. Anything but
 * DIST_OK, and the instances do not open.
 */
typedef dist_status (*dist_instance_create_fn)(dist_replica *replica, void **out_state, void *user_data);

/** Ends it, on the same thread, when the instances close. */
typedef void (*dist_instance_destroy_fn)(void *state, void *user_data);

/* the least and the greatest priority of a request */
enum { DIST_PRIORITY_MIN = -7, DIST_PRIORITY_MAX = 7 };

typedef struct dist_instances_options {
  uint32_t struct_size;
  int32_t helper_threads; /* with DIST_THREADS_HOST, whether libdist may start the threads that watch deadlines and call
                             dist_submit_options.done; 0: no; 1: yes. With library threads it always may */
  int64_t max_queued;     /* requests that no instance has begun; one more is refused; 0: 1024 */
  int64_t spin_ns;        /* how long a free instance looks for the next request before it sleeps; 0: 60 us; < 0: it sleeps
                             at once. A free instance that spins takes a CPU */
  dist_instance_create_fn create_state; /* NULL: instances have no state */
  dist_instance_destroy_fn destroy_state; /* NULL: nothing is done at their end */
  dist_replica_fn warm_up; /* called once on each instance, after create_state, before it gets requests; NULL: nothing */
  void *user_data;         /* of these functions; used until the instances have closed, and stuck functions have returned */
  int64_t stuck_ns;        /* how long after its deadline or cancel a request's function may go on before its replica gets
                              another thread, and a batcher's step after that of one of its items, so that it is longer than
                              any step; 0: for ever */
  int32_t max_replaced;    /* how often that may be done; 0: 4 times */
  int32_t reserved;        /* 0 */
} dist_instances_options;
#define DIST_INSTANCES_OPTIONS_INIT \
  { sizeof(dist_instances_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_instances_options. */
DIST_API void dist_instances_options_init(dist_instances_options *options, uint32_t struct_size_bytes);

/**
 * Makes the replicas ready for requests: each makes its state and warms up. The first dist_submit() does it with the default
 * options where nobody has. With DIST_THREADS_HOST the instances are the threads that call dist_serve(), and each makes its
 * state there.
 *
 * Context  Strategy, concurrent. Not inside a replica.
 * Blocks   Until runs that came before have ended and all instances are ready.
 * Owns     options may be NULL.
 * Errors   FAILED_PRECONDITION  the calling thread of dist_run() is replica 0 (DIST_THREADS_CALLER): create the strategy with
 *                               DIST_THREADS_LIBRARY or DIST_THREADS_HOST; instances are open already.
 *          UNIMPLEMENTED        the strategy has several workers; stuck_ns where threads are the host's, or replicas have
 *                               logical devices, which would be stuck too.
 *          INVALID_ARGUMENT     an option is out of its range.
 *          CANCELLED            the strategy ends meanwhile.
 *          any                  what create_state or warm_up returned, of the lowest replica that failed.
 */
DIST_API DIST_NODISCARD dist_status dist_instances_open(dist_strategy *strategy,
                                                        const dist_instances_options *options);

/**
 * Ends the serving: from now on dist_submit() is UNAVAILABLE; what was accepted runs to its end; then each instance ends its
 * state. Afterwards the instances may be opened again.
 *
 * Where requests have not ended after `timeout_ns` (< 0: no limit), they are cancelled: those that are queued at once, and
 * those whose functions run as by dist_work_cancel().
 *
 * Context  Strategy, concurrent. Not inside a replica.
 * Blocks   At most `timeout_ns`, and a moment for functions to return that have been told.
 * Errors   FAILED_PRECONDITION  another thread closes them.
 *          DEADLINE_EXCEEDED    requests were cancelled: the message says how many, and which replicas are still inside.
 */
DIST_API DIST_NODISCARD dist_status dist_instances_close(dist_strategy *strategy, int64_t timeout_ns);

/**
 * The calling thread serves as instance `replica_id` of a strategy with DIST_THREADS_HOST, until the instances close. With
 * none open, it opens them with the default options.
 *
 * Context  Strategy, concurrent; one thread a replica. Not inside a replica, nor in a scope.
 * Blocks   Until dist_instances_close(), dist_strategy_shutdown(), or create_state or warm_up fails.
 * Errors   INVALID_ARGUMENT     replica_id is not in 0 .. R-1.
 *          FAILED_PRECONDITION  the strategy has library threads; another thread serves as that replica.
 *          any                  what create_state or warm_up returned.
 */
DIST_API DIST_NODISCARD dist_status dist_serve(dist_strategy *strategy, int32_t replica_id);

/**
 * What create_state made for this instance; NULL: it has none, or the function is no request's.
 *
 * Context  Replica, of a request.
 */
DIST_API void *dist_instance_state(const dist_replica *replica);

/**
 * Whether the function that this replica runs is to end: DIST_OK while it may go on. A host's long function asks it now and
 * then, where it calls no collectives, which find out for themselves.
 *
 * Context  Replica, or logical device.
 * Errors   CANCELLED, DEADLINE_EXCEEDED  the run, or the request.
 *          ABORTED                       a peer in the run has failed; the message says which.
 */
DIST_API DIST_NODISCARD dist_status dist_replica_check(dist_replica *replica);

/** Where requests arrive that have ended: a queue of the host's, for requests of any strategies. */
typedef struct dist_completions dist_completions;

/**
 * Tells the host that a request has ended: dist_work_wait(work, 0) says how. `work` is borrowed.
 *
 * Called on a thread of libdist that does nothing else, one after another in the order in which requests end. It may submit.
 * While it blocks, other requests' functions wait, and no instance does.
 */
typedef void (*dist_done_fn)(dist_work *work, void *user_data);

typedef struct dist_submit_options {
  uint32_t struct_size;
  int32_t priority;              /* DIST_PRIORITY_MIN .. DIST_PRIORITY_MAX; the greater comes first */
  int64_t timeout_ns;            /* until its end, from now; 0: none */
  dist_cancel *cancel;           /* ends it; NULL: none */
  dist_completions *completions; /* where it arrives when it has ended; NULL: nowhere */
  dist_done_fn done;             /* called when it has ended; NULL: nothing. Not with completions */
  int64_t request_id;            /* in traces (dist_write_trace()), to find it there; 0: libdist numbers them from 1 on */
} dist_submit_options;
#define DIST_SUBMIT_OPTIONS_INIT \
  { sizeof(dist_submit_options), 0, 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_submit_options. */
DIST_API void dist_submit_options_init(dist_submit_options *options, uint32_t struct_size_bytes);

/**
 * Has `fn` called once, on one replica that is free, and returns at once.
 *
 *     when replica r is free and nothing comes before it in the queue:   status = fn(replica[r], user_data)
 *
 * *out_work is for dist_work_test(), wait(), wait_any() and cancel() by any thread outside the strategy's replicas, and for
 * dist_work_destroy(), which takes nothing back. It holds no collective.
 *
 * Context  Any thread, concurrent; also inside a replica, a dist_done_fn, and any function of the host's.
 * Blocks   Never for a function of the host's. The first one opens the instances: dist_instances_open(); beside an opening
 *          it may wait for that.
 * Owns     fn and user_data are used until the request has ended, and the function has returned (stuck_ns). *out_work is the caller's: dist_work_destroy(), before
 *          dist_strategy_destroy(). out_work may be NULL. options may be NULL.
 * Errors   INVALID_ARGUMENT     strategy or fn is NULL; an option is out of its range; completions and done together.
 *          RESOURCE_EXHAUSTED   max_queued requests wait; no memory.
 *          UNAVAILABLE          the instances close, or have been closed, or are being opened again.
 *          FAILED_PRECONDITION  the replicas' threads: dist_instances_open(); with DIST_THREADS_HOST, `done` without
 *                               dist_instances_options.helper_threads; a forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_submit(dist_strategy *strategy, dist_replica_fn fn, void *user_data,
                                                const dist_submit_options *options, dist_work **out_work);

/**
 * What dist_submit() got as user_data; NULL for NULL, and for work of a collective.
 *
 * Context  Any thread.
 */
DIST_API void *dist_work_user_data(const dist_work *work);

/**
 * Makes a queue of requests that have ended. `allocator` may be NULL: malloc() and free().
 *
 * Owns     *out_completions is the caller's: dist_completions_destroy().
 * Errors   INVALID_ARGUMENT    out_completions is NULL; one of the allocator's functions is there without the other.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_completions_create(const dist_allocator *allocator,
                                                            dist_completions **out_completions);

/**
 * Takes the request that ended first: *out_work, or NULL where none has within `timeout_ns` (0: at once; < 0: no limit).
 *
 * Context  Any thread, concurrent; outside the replicas' functions where it waits.
 * Blocks   At most timeout_ns.
 * Owns     *out_work is the caller's: dist_work_destroy(). Where dist_submit() gave a handle too, both are to be destroyed.
 * Errors   INVALID_ARGUMENT     NULL.
 *          FAILED_PRECONDITION  a forked child; inside a replica, where timeout_ns is not 0.
 */
DIST_API DIST_NODISCARD dist_status dist_completions_next(dist_completions *completions, int64_t timeout_ns,
                                                          dist_work **out_work);

/**
 * A descriptor that is readable while there is something to take, for poll() and epoll (level-triggered). It is made at the
 * first call, and closed by dist_completions_destroy(). The host does not read it.
 *
 * Context  Any thread, concurrent.
 * Errors   INVALID_ARGUMENT    NULL.
 *          RESOURCE_EXHAUSTED  the system gives no further descriptor.
 *          UNIMPLEMENTED       this system has none.
 */
DIST_API DIST_NODISCARD dist_status dist_completions_descriptor(dist_completions *completions,
                                                                int32_t *out_descriptor);

/**
 * Gives up the queue; requests that would arrive there later end all the same, and those in it are released. NULL is fine.
 *
 * Context  Any thread; not while another one is in a call with it.
 * Owns     Takes the handle.
 */
DIST_API void dist_completions_destroy(dist_completions *completions);

#ifdef __cplusplus
}
#endif
#endif /* DIST_SERVE_EXPERIMENTAL_H */
