/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Work: handles of asynchronous collectives and of plans (collectives that are prepared once and repeated).
 *
 *     // asynchronous: start, compute something else, wait
 *     dist_work *work = NULL;
 *     dist_all_reduce(replica, DIST_REDUCE_SUM, &gradient, &gradient, 1, NULL, &work);
 *     ...
 *     status = dist_work_wait(work, DIST_NO_TIMEOUT);
 *     dist_work_destroy(work);
 *
 *     // planned: prepare once, then one round per step
 *     dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
 *     options.planned = 1;
 *     options.bytes_per_pack = 4 << 20;
 *     dist_work *plan = NULL;
 *     dist_all_reduce(replica, DIST_REDUCE_SUM, gradients, gradients, n, &options, &plan);
 *     for (int step = 0; step < steps; step++) {
 *       for (size_t t = n; t-- > 0;) {
 *         compute_gradient(t);
 *         dist_work_ready(plan, t);                   // a pack starts when its tensors are ready on all members
 *       }
 *       status = dist_work_wait(plan, DIST_NO_TIMEOUT);
 *     }
 *
 * **Asynchronous collectives.** With `out_work`, a collective returns at once. Its tensors belong
 * to libdist until it has completed; descriptions of tensors, options and splits are copied. It starts when all members
 * have arrived. Every member must start its asynchronous collectives of a group in the same order; blocking ones are
 * counted separately.
 *
 * The last member to arrive does the work of a collective of up to 64 KiB. Larger ones are done by oneTBB threads
 * beside the replicas, and by members that wait for the collective or test it. With DIST_THREADS_HOST and no helper
 * threads, only members do the work: in dist_work_test(), dist_work_wait(), dist_work_wait_any() and
 * dist_work_destroy(), when they arrive at a blocking collective, and when their function has returned. A thread that
 * does a part of the work never waits for a peer meanwhile. A replica's function may return while work is in progress:
 * libdist completes it before the replica ends, and its failure is the replica's failure. dist_reduce_apply() always
 * blocks.
 *
 * **Memory.** Any number of collectives can be in progress. One that waits for a late member is queued and does not
 * delay others. Queued collectives of a strategy use at most dist_strategy_options.async_bytes (default: 64 MiB, or 2
 * MiB per replica if that is more). One collective of R members takes 1.2 KiB + R * 1.3 KiB, including handles and
 * copies; a list whose description exceeds 512 bytes per member takes that in addition (64 bytes per tensor and 16 per
 * dimension). The default has room for about 17,000 collectives with 2 replicas and 10,000 with 4. Memory is allocated
 * in steps of 8 collectives and reused; 8 per group are always available. When the limit is reached, the next call
 * first waits until this member's oldest collective has completed, and helps with it. It can fail as dist_work_wait()
 * of that collective can: within options->timeout_ns, with a report that names the missing members. Completed
 * collectives are not counted; their handles belong to the host until dist_work_destroy().
 *
 * **Plans.** With options->planned as well, the call starts nothing: it is collective, blocks, and makes a plan. After
 * that, each dist_work_start() on all members is one round, without further checks or allocations. The list is divided
 * into packs of consecutive tensors, bytes_per_pack together; a pack starts when all its tensors are ready on all
 * members. If the collectives of a run fail, on any worker, plans made before that run end, and all members must plan
 * again.
 */
#ifndef DIST_WORK_H
#define DIST_WORK_H

#include "collective.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Tests whether the work has completed and stores 1 or 0 in *out_done. If there is a part of the work to do, it does
 * it.
 *
 * Context  Replica, the one that started the work.
 * Blocks   Never for a peer.
 * Errors   If the work has failed, its status; *out_done is then not written, and the work has completed. An expired
 *          deadline for a peer is reported only by dist_work_wait().
 *          INVALID_ARGUMENT     an argument is NULL.
 *          FAILED_PRECONDITION  the work belongs to another replica.
 */
DIST_API DIST_NODISCARD dist_status dist_work_test(dist_work *work, int32_t *out_done);

/**
 * Waits until the work has completed and returns its status. If the work is not in progress, it returns the status of
 * the last completion. If `timeout_ns` expires first, the work continues, and you can wait for it again.
 *
 * Context  Replica, the one that started the work.
 * Blocks   Up to timeout_ns (0: does not wait). The timeout in the options of the collective also limits how long its
 *          members may take to arrive, counted from the first wait; when it expires, the collective fails.
 * Owns     Afterwards, no peer accesses the tensors.
 * Errors   Like dist_all_reduce(), and
 *          INVALID_ARGUMENT     work is NULL, or timeout_ns is below DIST_NO_TIMEOUT.
 *          FAILED_PRECONDITION  the work belongs to another replica.
 *          DEADLINE_EXCEEDED    timeout_ns has expired. It can also be the result of the work itself: dist_work_test()
 *                               shows whether the work is still in progress.
 */
DIST_API DIST_NODISCARD dist_status dist_work_wait(dist_work *work, int64_t timeout_ns);

/**
 * Waits until one of n works has completed, stores its index in *out_index, and returns its status.
 *
 * Context  Replica, the one that started them.
 * Blocks   Like dist_work_wait().
 * Owns     Afterwards, no peer accesses the tensors of that work.
 * Errors   The status of that work; *out_index is written in this case too.
 *          INVALID_ARGUMENT     an argument is NULL, n is 0, or timeout_ns is below DIST_NO_TIMEOUT.
 *          FAILED_PRECONDITION  a work belongs to another replica.
 *          DEADLINE_EXCEEDED    timeout_ns has expired, and no work has completed; *out_index is not written.
 */
DIST_API DIST_NODISCARD dist_status dist_work_wait_any(dist_work *const *works, size_t n, int64_t timeout_ns,
                                                       size_t *out_index);

/**
 * Cancels work in progress, and with it all rounds of its group in this run, on every member: they end with CANCELLED.
 * If the work has completed, nothing happens.
 *
 * Context  Replica, the one that started the work.
 * Errors   INVALID_ARGUMENT     work is NULL.
 *          FAILED_PRECONDITION  the work belongs to another replica.
 */
DIST_API DIST_NODISCARD dist_status dist_work_cancel(dist_work *work);

/**
 * Destroys the handle. Does nothing if `work` is NULL. Must be called before dist_strategy_destroy(), which fails
 * otherwise; after dist_strategy_shutdown() it may follow, and the work keeps the strategy's memory until then.
 *
 * Context  Replica, the one that started the work. If it has completed: any, serialized.
 * Blocks   Like dist_work_wait() does without a limit, if the collective is in progress.
 * Owns     Takes ownership of the work.
 */
DIST_API void dist_work_destroy(dist_work *work);

/**
 * Starts a round of planned work. All tensors that are not ready yet become ready.
 *
 * Context  Replica, the one that planned the work.
 * Owns     The tensors belong to libdist until the round has completed.
 * Errors   If the run has failed, the errors of dist_all_reduce().
 *          INVALID_ARGUMENT     work is NULL.
 *          FAILED_PRECONDITION  the round is in progress, the work is not planned, or a run has failed since.
 */
DIST_API DIST_NODISCARD dist_status dist_work_start(dist_work *work);

/**
 * Declares one tensor of the planned list ready. The first call of a round starts it.
 *
 * Context  Replica, the one that planned the work.
 * Owns     The tensor belongs to libdist until the round has completed.
 * Errors   Like dist_work_start(), and
 *          INVALID_ARGUMENT     there is no such tensor.
 *          FAILED_PRECONDITION  the tensor is already ready.
 */
DIST_API DIST_NODISCARD dist_status dist_work_ready(dist_work *work, size_t tensor);

#ifdef __cplusplus
}
#endif
#endif /* DIST_WORK_H */
