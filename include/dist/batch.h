/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Batches: requests that an instance (serve.h) answers together, step by step.
 *
 *     options.max_items = 8;
 *     options.max_delay_ns = 2 * 1000 * 1000;
 *     dist_batcher_create(strategy, step, model, &options, &batcher);
 *
 *     on a request:   item_options.completions = completions;
 *                     dist_batcher_submit(batcher, request, &item_options, NULL);
 *
 *     dist_status step(dist_replica *replica, dist_batch *batch, void *model) {
 *       for (size_t i = 0; i < dist_batch_size(batch); i++) gather(dist_batch_user_data(batch, i));
 *       return compute(model);                                     each item has ended with what this returns
 *     }
 *
 * A *item* is a request in a batcher. A *step* is one call of the host's function on one instance, with up to max_items of
 * them. An item ends with the first step that it is in; in a *continuous* batcher it is in one step after another, on one
 * instance, until a step says that it has ended, and others join and leave between the steps:
 *
 *     for (size_t i = 0; i < dist_batch_size(batch); i++) {
 *       if (dist_batch_state(batch, i) == NULL) dist_batch_set_state(batch, i, new_cache(dist_batch_user_data(batch, i)));
 *       token = decode(dist_batch_state(batch, i));
 *       dist_batch_emit(batch, i, token);                          the host takes it by dist_work_take()
 *       if (token == the_last) dist_batch_end(batch, i, DIST_OK);
 *     }
 *
 * Who is in a step: items that the instance has already, who joined it first before the others; then those that wait, by
 * priority, and by arrival within a priority. All are of one bucket: of an item's `length`, the smallest bucket that holds it.
 * Where items of several buckets are there, the buckets take turns, and who joins is of the bucket whose first one comes before
 * the others'. A step begins as soon as an instance is free and
 * max_items of a bucket are there, or the one that came first has waited for max_delay_ns, or the instance has an item of it
 * already. Nobody passes the one that is first in its bucket, also where that one has no room yet (max_bytes).
 *
 * Steps stand in the strategy's queue, each with the greatest priority of its items, as requests do: runs and requests have
 * their turn between them.
 *
 * A step that goes on for dist_instances_options.stuck_ns after one of its items was to end is stuck, as a request's function
 * may be (serve.h): its replica gets another thread. All items end that this instance has, in the step or between two: who was
 * to end as it was to, with CANCELLED where everything was cancelled, and the others with UNAVAILABLE, to be submitted again. All
 * name the replica. From then on dist_batch_check() and dist_batch_emit() are CANCELLED in that step, and what it returns, or
 * says by dist_batch_end(), is dropped. What the items have set is its own until it returns: then free_state gets it, before the
 * instance's state ends. Where a request's function is stuck, the items of its instance end alike.
 *
 * An item with completions arrives there when it has results, and once more when it has ended: dist_work_test() says so from that
 * arrival on, and it does not come again. A failure of dist_work_test() is such an end too.
 *
 *     while (dist_completions_next(completions, 0, &work) == DIST_OK && work != NULL) {
 *       while (dist_work_take(work, 0, &token) == DIST_OK && token != NULL) send(dist_work_user_data(work), token);
 *       if (dist_work_test(work, &done) != DIST_OK || done) finish(dist_work_user_data(work));
 *       dist_work_destroy(work);
 *     }
 *
 * Results that nobody can take, since the item has neither completions nor a handle, are given to free_result at once. One whose
 * results are not taken keeps its place on its instance, and ends by its deadline, a cancel, or a close with a time-out.
 *
 * A deadline, a cancel object and dist_work_cancel() end an item that waits at once, and one that has been in a step before
 * the next one; a step that is under way is not cut short for one of its items. dist_batch_check() asks for one.
 */
#ifndef DIST_BATCH_H
#define DIST_BATCH_H

#include "serve.h"

#endif /* DIST_BATCH_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_BATCH_EXPERIMENTAL_H)
#define DIST_BATCH_EXPERIMENTAL_H

#include "serve.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Who waits for steps, and who is in them. */
typedef struct dist_batcher dist_batcher;

/** A step, for the length of the function's call, and on its thread. */
typedef struct dist_batch dist_batch;

/** A step: anything but DIST_OK ends all its items with that, but for those that dist_batch_end() has ended. */
typedef dist_status (*dist_batch_fn)(dist_replica *replica, dist_batch *batch, void *user_data);

/**
 * Ends what the host gave: an item's state, or a partial result that nobody took. On the item's instance, or on a thread that
 * ends the item, never beside a step that the item is in.
 */
typedef void (*dist_batch_free_fn)(void *what, void *user_data);

typedef struct dist_batcher_options {
  uint32_t struct_size;
  int32_t max_items;    /* of a step, and of an instance; 0: 32; at most 4096 */
  int64_t max_delay_ns;   /* how long an item waits for others while an instance is free; 0: not at all */
  int64_t max_waiting;    /* items that no step has had; one more is refused; 0: 1024 */
  int64_t max_bytes;      /* of the items that an instance has, as dist_item_options.bytes says; 0: any number */
  const int64_t *buckets; /* lengths, ascending, from 1; NULL: all items are of one bucket */
  size_t num_buckets;     /* at most 64 */
  int32_t continuous;     /* 1: an item stays until dist_batch_end(); 0: for one step */
  int32_t max_results;    /* partial results of an item that nobody has taken; one with as many is in no step; 0: 16 */
  dist_batch_free_fn free_state;  /* NULL: nothing is done */
  dist_batch_free_fn free_result; /* NULL: nothing is done */
} dist_batcher_options;
#define DIST_BATCHER_OPTIONS_INIT \
  { sizeof(dist_batcher_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_batcher_options. */
DIST_API void dist_batcher_options_init(dist_batcher_options *options, uint32_t struct_size_bytes);

/**
 * Makes a batcher, whose steps are on the strategy's instances. It opens these, where nobody has.
 *
 * Blocks   As dist_instances_open(), where it opens them.
 * Owns     *out_batcher is the caller's: dist_batcher_destroy(), before dist_strategy_destroy(). `step`, the functions in
 *          options and user_data are used until then, and until stuck steps have returned. The buckets are copied. options may
 *          be NULL.
 * Errors   INVALID_ARGUMENT     strategy, step or out_batcher is NULL; an option is out of its range, or the buckets do not
 *                               ascend.
 *          RESOURCE_EXHAUSTED   no memory.
 *          any                  as dist_instances_open(), where it opens them.
 */
DIST_API DIST_NODISCARD dist_status dist_batcher_create(dist_strategy *strategy, dist_batch_fn step, void *user_data,
                                                        const dist_batcher_options *options,
                                                        dist_batcher **out_batcher);

typedef struct dist_item_options {
  uint32_t struct_size;
  int32_t priority;              /* as dist_submit_options has it */
  int64_t timeout_ns;            /* until its end, from now; 0: none */
  dist_cancel *cancel;           /* ends it; NULL: none */
  dist_completions *completions; /* where it arrives when it has ended, or has results; NULL: nowhere */
  dist_done_fn done;             /* called when it has ended; NULL: nothing. Not with completions */
  int64_t length;                /* decides the bucket; 0 .. the last bucket */
  int64_t bytes;                 /* that it counts for in max_bytes */
} dist_item_options;
#define DIST_ITEM_OPTIONS_INIT \
  { sizeof(dist_item_options), 0, 0, 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_item_options. */
DIST_API void dist_item_options_init(dist_item_options *options, uint32_t struct_size_bytes);

/**
 * Has an item wait for a step, and returns at once. *out_work is as dist_submit() gives it.
 *
 * Context  Any thread, concurrent; also inside a replica, a step, and a dist_done_fn.
 * Owns     user_data is used until the item has ended, and its step has returned (stuck_ns). *out_work is the caller's: dist_work_destroy(). out_work and options
 *          may be NULL.
 * Errors   INVALID_ARGUMENT     batcher is NULL; an option is out of its range; `length` is beyond the last bucket; `bytes` is
 *                               more than max_bytes.
 *          RESOURCE_EXHAUSTED   max_waiting items wait; no memory.
 *          UNAVAILABLE          the instances close, or have been closed, or are being opened again.
 *          FAILED_PRECONDITION  as dist_submit().
 */
DIST_API DIST_NODISCARD dist_status dist_batcher_submit(dist_batcher *batcher, void *user_data,
                                                        const dist_item_options *options, dist_work **out_work);

/** How many items wait, and how many are on instances. out_waiting and out_active may be NULL. Any thread. */
DIST_API void dist_batcher_count(dist_batcher *batcher, int64_t *out_waiting, int64_t *out_active);

/**
 * Ends a batcher that has no items. NULL is fine. In a forked child nothing is done.
 *
 * Context  Any thread; not while another one is in a call with it, nor inside a replica.
 * Blocks   For the moment in which a step that is over is put away.
 * Owns     Takes the handle, where it returns DIST_OK.
 * Errors   FAILED_PRECONDITION  items have not ended, or works of them are left: dist_instances_close() ends them.
 */
DIST_API DIST_NODISCARD dist_status dist_batcher_destroy(dist_batcher *batcher);

/* ---- Inside a step ----
 * With an item's index of another step, or out of range, they do nothing, or give NULL or INVALID_ARGUMENT. */

/** How many items the step has: 1 .. max_items. 0 for NULL. */
DIST_API size_t dist_batch_size(const dist_batch *batch);

/** The items' bucket, as it is in the options: none of them has a greater `length`. 0: there are no buckets. */
DIST_API int64_t dist_batch_bucket(const dist_batch *batch);

/** What dist_batcher_submit() got for item i. */
DIST_API void *dist_batch_user_data(const dist_batch *batch, size_t i);

/** What a step has set for item i; NULL: nothing yet. */
DIST_API void *dist_batch_state(const dist_batch *batch, size_t i);

/** Keeps a state with item i, until it ends: then free_state gets it. What was set before is the host's. */
DIST_API void dist_batch_set_state(dist_batch *batch, size_t i, void *state);

/**
 * Whether item i is still wanted.
 *
 * Errors   INVALID_ARGUMENT              batch is NULL, or i is out of range.
 *          CANCELLED, DEADLINE_EXCEEDED  nobody waits for it any more: it ends with this after the step.
 *          CANCELLED                     the step was stuck, and its items have ended.
 *          FAILED_PRECONDITION           a forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_batch_check(dist_batch *batch, size_t i);

/**
 * Gives a partial result of item i to the host: dist_work_take() takes them in their order. The work arrives in the item's
 * completions, if it does not lie there already.
 *
 * Owns     result, until it is taken, or free_result gets it.
 * Errors   INVALID_ARGUMENT     batch or result is NULL; i is out of range.
 *          RESOURCE_EXHAUSTED   max_results of it have not been taken. The result stays the caller's. A step that emits one
 *                               result for each item never sees this.
 *          CANCELLED            the step was stuck, and its items have ended. The result stays the caller's.
 *          FAILED_PRECONDITION  a forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_batch_emit(dist_batch *batch, size_t i, void *result);

/**
 * Item i ends with `status` after this step. Not DIST_OK: with this thread's latest error, where that has the same code. The
 * last call for an item counts.
 */
DIST_API void dist_batch_end(dist_batch *batch, size_t i, dist_status status);

/* ---- What an item has emitted ---- */

/**
 * Takes the next partial result: *out_result; NULL: there is none yet, or none any more, where the work has ended
 * (dist_work_test()).
 *
 * Context  Any thread, concurrent; outside the replicas' functions where it waits.
 * Blocks   At most timeout_ns for a result or the end (0: not at all; < 0: no limit).
 * Owns     *out_result is the caller's.
 * Errors   INVALID_ARGUMENT     NULL.
 *          FAILED_PRECONDITION  the work is no item's; a forked child; inside a replica, where timeout_ns is not 0.
 */
DIST_API DIST_NODISCARD dist_status dist_work_take(dist_work *work, int64_t timeout_ns, void **out_result);

#ifdef __cplusplus
}
#endif
#endif /* DIST_BATCH_EXPERIMENTAL_H */
