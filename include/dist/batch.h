/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Batches: requests that an instance (serve.h) processes together, step by step.
 *
 *     static dist_status step(dist_replica *replica, dist_batch *batch, void *model) {
 *       for (size_t i = 0; i < dist_batch_size(batch); i++) gather(dist_batch_user_data(batch, i));
 *       return compute(model);                                       // the result of every item in the step
 *     }
 *
 *     dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
 *     options.max_items = 8;
 *     options.max_delay_ns = 2 * 1000 * 1000;                        // wait up to 2 ms for a full batch
 *     dist_batcher *batcher = NULL;
 *     dist_batcher_create(strategy, step, model, &options, &batcher);
 *
 *     // on a request
 *     dist_item_options item_options = DIST_ITEM_OPTIONS_INIT;
 *     item_options.completions = completions;
 *     dist_batcher_submit(batcher, request, &item_options, NULL);
 *
 * An *item* is a request in a batcher. A *step* is one call of your step function on one instance, with up to max_items
 * items. By default an item completes with the first step that includes it. In a *continuous* batcher an item takes
 * part in consecutive steps on the same instance until a step ends it, and other items join and leave between the
 * steps:
 *
 *     for (size_t i = 0; i < dist_batch_size(batch); i++) {
 *       if (dist_batch_state(batch, i) == NULL)
 *         dist_batch_set_state(batch, i, new_cache(dist_batch_user_data(batch, i)));
 *       token = decode(dist_batch_state(batch, i));
 *       dist_batch_emit(batch, i, token);                            // dist_request_take() returns it
 *       if (token == the_last) dist_batch_end(batch, i, DIST_OK);
 *     }
 *
 * Which items are in a step
 *
 *   - First come the items that the instance already has, in the order in which they joined it. Then waiting items
 *     join, by priority and, within a priority, by arrival.
 *   - All items of a step belong to one bucket: the smallest bucket that is not below the item's `length`. If an
 *     instance has items of several buckets, the buckets take turns. New items come from the bucket whose first waiting
 *     item precedes those of the other buckets.
 *   - A step starts when an instance is idle and either max_items items of a bucket are available, the oldest one has
 *     waited for max_delay_ns, or the instance already has an item of that bucket.
 *   - No item overtakes the first item of its bucket, even if that item does not fit yet (max_bytes).
 *
 * Steps share the strategy's queue with requests and runs. The priority of a step is the highest priority of its items.
 *
 * An item with completions arrives there whenever it has new results, and once more when it has completed. Each arrival
 * has a handle of its own. dist_request_test() reports completion, which includes an error, only for the handle of that
 * last arrival, and for the handle from dist_batcher_submit() once the last arrival has been taken. So the loop below
 * finishes each item exactly once, however many threads run it.
 *
 *     while (dist_completions_next(completions, 0, &item) == DIST_OK && item != NULL) {
 *       while (dist_request_take(item, 0, &token) == DIST_OK && token != NULL)
 *         send(dist_request_user_data(item), token);
 *       if (dist_request_test(item, &done) != DIST_OK || done) finish(dist_request_user_data(item));
 *       dist_request_destroy(item);
 *     }
 *
 * If several threads run the loop, one of them may still handle an earlier arrival while another one finishes the item.
 * Free what both use when neither needs it any more, for example by counting references.
 *
 * If an item has neither completions nor a handle, its results cannot be taken and go to free_result at once. An item
 * with max_results untaken results takes part in no further step until one is taken, but keeps its place on its
 * instance, until its deadline expires, it is cancelled, or the instances are closed with a timeout.
 *
 * A deadline, a cancel object or dist_request_cancel() completes a waiting item immediately, and an item that has taken
 * part in a step before its next step. It does not interrupt a running step; the step function can check with
 * dist_batch_check().
 *
 * Stuck steps
 *
 * A step is stuck if it runs for dist_instances_options.stuck_ns after one of its items should have completed. Its
 * replica then gets another thread, as with a stuck request (serve.h), and all items of the instance complete: those
 * that were due with their own error, with CANCELLED if everything was cancelled, and the others with UNAVAILABLE, so
 * that they can be submitted again. All errors name the replica. In the stuck step, dist_batch_check() and
 * dist_batch_emit() return CANCELLED from then on, and its return value and calls of dist_batch_end() are ignored. The
 * items' states stay valid until the step returns; then they go to free_state, before the state of the instance is
 * destroyed. If the function of a request is stuck, the items of its instance complete in the same way.
 */
#ifndef DIST_BATCH_H
#define DIST_BATCH_H

#include "serve.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A queue of items and the steps that process them. */
typedef struct dist_batcher dist_batcher;

/** A step. The handle is valid only during the call of the step function, and on its thread. */
typedef struct dist_batch dist_batch;

/**
 * Processes a step. If it returns an error, all items of the step complete with that error, except those for which
 * dist_batch_end() was called.
 */
typedef dist_status (*dist_batch_fn)(dist_replica *replica, dist_batch *batch, void *user_data);

/**
 * Frees an item's state or a partial result that was not taken. Called on the item's instance, or on a thread that
 * completes the item, but never while a step with this item runs. Calls that wait for runs, and the end of a strategy,
 * fail there with FAILED_PRECONDITION.
 */
typedef void (*dist_batch_free_fn)(void *what, void *user_data);

/** Options of a batcher. */
typedef struct dist_batcher_options {
  uint32_t struct_size;
  /* maximum number of items per step and per instance; 0 = default (32), at most 4096 */
  int32_t max_items;
  /* how long an item waits for others although an instance is idle; 0 = not at all */
  int64_t max_delay_ns;
  int64_t max_waiting; /* maximum number of waiting items; 0 = default (1024), at most 2^24 */
  size_t max_bytes;    /* maximum sum of dist_item_options.bytes per instance; 0 = no limit */
  /* lengths in ascending order, from 1; NULL = one bucket for all items. Copied */
  const int64_t *buckets;
  size_t num_buckets; /* at most 64 */
  int32_t continuous; /* 1 = an item stays until dist_batch_end(); 0 = for one step */
  /* maximum number of untaken results per item; 0 = default (16), at most 65,536 */
  int32_t max_results;
  dist_batch_free_fn free_state;  /* may be NULL */
  dist_batch_free_fn free_result; /* may be NULL */
} dist_batcher_options;
#define DIST_BATCHER_OPTIONS_INIT \
  { sizeof(dist_batcher_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** Initializes a dist_batcher_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_batcher_options_init(dist_batcher_options *options, uint32_t struct_size_bytes);

/**
 * Creates a batcher whose steps run on the strategy's instances. If the instances have never been opened, this opens
 * them with the default options.
 *
 * Blocks   Like dist_instances_open(), if it opens the instances.
 * Owns     The caller owns *out_batcher and destroys it with dist_batcher_destroy() before dist_strategy_destroy().
 *          `step`, the functions in options and user_data must stay valid until then and until stuck steps have
 *          returned. The buckets are copied. options may be NULL.
 * Errors   INVALID_ARGUMENT    strategy, step or out_batcher is NULL, an option is out of range, or the buckets are not
 *                              ascending.
 *          RESOURCE_EXHAUSTED  out of memory.
 *          any                 like dist_instances_open(), if it opens the instances.
 */
DIST_API DIST_NODISCARD dist_status dist_batcher_create(dist_strategy *strategy, dist_batch_fn step,
                                                        void *user_data, const dist_batcher_options *options,
                                                        dist_batcher **out_batcher);

/** Options of an item. */
typedef struct dist_item_options {
  uint32_t struct_size;
  int32_t priority;              /* like dist_submit_options.priority */
  int64_t timeout_ns;            /* time limit from now to completion; 0 = no limit */
  dist_cancel *cancel;           /* cancels the item; may be NULL */
  dist_completions *completions; /* where the item arrives with results, or completed; may be NULL */
  /* called when the item has completed; may be NULL; not together with completions */
  dist_done_fn done;
  int64_t length; /* length that selects the bucket, from 0 to the last of dist_batcher_options.buckets */
  size_t bytes;   /* size in bytes that counts towards dist_batcher_options.max_bytes */
} dist_item_options;
#define DIST_ITEM_OPTIONS_INIT \
  { sizeof(dist_item_options), 0, 0, 0, 0, 0, 0, 0 }

/** Initializes a dist_item_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_item_options_init(dist_item_options *options, uint32_t struct_size_bytes);

/**
 * Enqueues an item and returns immediately. *out_request is used like that of dist_submit().
 *
 * Context  Any, concurrent; also inside a replica, a step, and a dist_done_fn.
 * Owns     user_data must stay valid until the item has completed and its step has returned (stuck_ns). The caller owns
 *          *out_request and destroys it with dist_request_destroy(). out_request and options may be NULL.
 * Errors   INVALID_ARGUMENT     batcher is NULL, an option is out of range, `length` exceeds the last bucket, or
 *                               `bytes` exceeds max_bytes.
 *          RESOURCE_EXHAUSTED   max_waiting items are waiting, or libdist is out of memory.
 *          UNAVAILABLE          the instances are closing, closed, or being reopened.
 *          CANCELLED            options->cancel was already signalled, or the strategy has been shut down.
 *          FAILED_PRECONDITION  the strategy has DIST_THREADS_HOST, and the item needs a library thread (`done`, a
 *                               timeout, or max_delay_ns) without dist_instances_options.helper_threads; or called in a
 *                               forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_batcher_submit(dist_batcher *batcher, void *user_data,
                                                        const dist_item_options *options,
                                                        dist_request **out_request);

/**
 * Returns the number of waiting items and of items on instances; 0 and 0 for NULL. out_waiting and out_active may be
 * NULL.
 */
DIST_API void dist_batcher_count(dist_batcher *batcher, int64_t *out_waiting, int64_t *out_active);

/**
 * Destroys a batcher that has no items. Does nothing if `batcher` is NULL, or in a forked child.
 *
 * Context  Any, serialized; not inside a replica.
 * Blocks   Briefly, while a completed step is cleaned up.
 * Owns     Takes ownership of the handle if it returns DIST_OK.
 * Errors   FAILED_PRECONDITION  items have not completed, or their handles have not been destroyed.
 *                               dist_instances_close() completes all items.
 */
DIST_API DIST_NODISCARD dist_status dist_batcher_destroy(dist_batcher *batcher);

/* ---- Inside a step ----
 * With an index that is out of range, or of another step, these functions do nothing, or return NULL or
 * INVALID_ARGUMENT. */

/** Returns the number of items in the step, 1 .. max_items; 0 for NULL. */
DIST_API size_t dist_batch_size(const dist_batch *batch);

/**
 * Returns the bucket of the items, as given in the options. No item has a greater `length`. 0 if there are no buckets.
 */
DIST_API int64_t dist_batch_bucket(const dist_batch *batch);

/**
 * Returns the user_data that was passed to dist_batcher_submit() for item i.
 *
 * Owns     libdist never frees it.
 */
DIST_API void *dist_batch_user_data(const dist_batch *batch, size_t i);

/**
 * Returns the state that a step has set for item i; NULL if none has been set.
 *
 * Owns     The result is borrowed: it goes to free_state when the item completes.
 */
DIST_API void *dist_batch_state(const dist_batch *batch, size_t i);

/**
 * Stores a state with item i, for dist_batch_state().
 *
 * Owns     libdist takes ownership of `state` and passes it to free_state when the item completes. The caller again
 *          owns a state that this call replaces.
 */
DIST_API void dist_batch_set_state(dist_batch *batch, size_t i, void *state);

/**
 * Checks whether item i is still wanted.
 *
 * Errors   INVALID_ARGUMENT     batch is NULL, or i is out of range.
 *          CANCELLED            the item was cancelled, and completes with this error after the step; or the step was
 *                               stuck, and its items have completed.
 *          DEADLINE_EXCEEDED    the item's deadline has expired; it completes with this error after the step.
 *          FAILED_PRECONDITION  called in a forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_batch_check(dist_batch *batch, size_t i);

/**
 * Emits a partial result of item i. dist_request_take() returns the results in this order. The item arrives in its
 * completions unless it is already there.
 *
 * Owns     Takes ownership of `result` if it returns DIST_OK: dist_request_take() passes it on, or free_result frees
 *          it.
 * Errors   INVALID_ARGUMENT     batch or result is NULL, or i is out of range.
 *          RESOURCE_EXHAUSTED   max_results results of the item have not been taken, or libdist is out of memory. The
 *                               caller still owns the result. max_results is never exceeded in a step that emits one
 *                               result per item, since an item with max_results untaken results is in no step.
 *          CANCELLED            the step was stuck, and its items have completed. The caller still owns the result.
 *          FAILED_PRECONDITION  called in a forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_batch_emit(dist_batch *batch, size_t i, void *result);

/**
 * Completes item i with `status` after this step. If `status` is an error, the item's error is this thread's latest
 * error, provided that it has the same code. The last call for an item counts.
 */
DIST_API void dist_batch_end(dist_batch *batch, size_t i, dist_status status);

/* ---- Results of an item ---- */

/**
 * Takes the next partial result of an item: *out_result, or NULL if there is none yet or the item has completed and has
 * no more (dist_request_test()).
 *
 * Context  Any, concurrent; if it waits, outside replica functions.
 * Blocks   Up to timeout_ns, for a result or the completion (0: does not wait).
 * Owns     The caller owns *out_result.
 * Errors   INVALID_ARGUMENT     an argument is NULL, or timeout_ns is below DIST_NO_TIMEOUT.
 *          FAILED_PRECONDITION  the request is not an item; a forked child; called inside a replica with a
 *                               timeout_ns other than 0.
 */
DIST_API DIST_NODISCARD dist_status dist_request_take(dist_request *request, int64_t timeout_ns,
                                                      void **out_result);

#ifdef __cplusplus
}
#endif
#endif /* DIST_BATCH_H */
