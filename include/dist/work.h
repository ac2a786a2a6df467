/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Work: collectives that do not wait, and plans; and requests (serve.h) and items of batches (batch.h), of which this says
 * what becomes of them at the end.
 *
 * With dist_collective_options.out_work a collective returns at once: it is under way, and its tensors are the library's
 * until it has ended. It begins when all members have come. Every member makes its asynchronous collectives of a group in the
 * same order; blocking ones are counted by themselves. Descriptions of tensors, options and splits are copied.
 *
 * Who does the work: the last member to come, where it is up to 64 KiB; else oneTBB's threads beside the replicas, and
 * members that wait for it or ask after it. With DIST_THREADS_HOST libdist has no threads: then members alone do it, in
 * dist_work_test(), dist_work_wait(), dist_work_wait_any() and dist_work_destroy(), as they arrive at a blocking
 * collective, and when their function has returned. Nobody who does a part of it waits for a peer meanwhile.
 *
 * Any number may be under way: one that waits for a late member is queued, and costs the others nothing. What is queued
 * in a strategy takes at most dist_strategy_options.async_bytes (default: 64 MiB, or 2 MiB a replica where that is
 * more): one collective of R members 1.2 KiB + R * 1.3 KiB, handles and copies included, and for a list whose
 * description is above 512 bytes a member, that too (64 bytes a tensor and 16 a dimension). So by default there is room
 * for 17,000 with 2 replicas, and 10,000 with 4. Memory is taken in steps of 8 collectives and serves again; 8 of each
 * group are always granted. Where it is used up, the call that issues one more waits until this member's oldest is done,
 * takes part in that, and can end as dist_work_wait() of the oldest can: within options->timeout_ns, with a report that
 * names who has not come. What is complete is no longer queued: its handle is the host's until dist_work_destroy().
 *
 * With options->planned too, nothing begins: the call, which is collective and blocks, makes a plan, and each
 * dist_work_start() on all members is one round of it, without any further check or allocation:
 *
 *     options.out_work = &plan;   options.planned = 1;   options.bytes_per_pack = 4 << 20;
 *     dist_all_reduce(replica, DIST_REDUCE_SUM, gradients, gradients, n, &options);
 *     every step:   for t in n-1 .. 0:  (compute gradient t)   dist_work_ready(plan, t);
 *                   dist_work_wait(plan, 0);
 *
 * A pack of the list (tensors in a row, of bytes_per_pack together) begins when all its tensors are ready on all members.
 * A run whose collectives failed, on any worker, ends the plans made before it: all members plan again. Work that a function leaves under way is brought to its
 * end before the replica is; its failure is the replica's. dist_reduce_apply() always blocks.
 *
 * The work of a request or an item is its promise alone, and holds nobody's tensors. It belongs to no replica: any thread may
 * use it, several at a time, but wait for it only outside the replicas' functions of its strategy. It has ended as its function
 * returned, or its step said, or by its deadline, its cancel object, dist_work_cancel(), or the end of the instances; that is how
 * dist_work_test() and dist_work_wait() end from then on, as often as they are called. A failure of dist_work_test() says that it
 * has ended. An item with completions has ended for the host when it has arrived there for the last time.
 */
#ifndef DIST_WORK_H
#define DIST_WORK_H

#include "collective.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Whether the work has ended: *out_done is 1 or 0. Does a part of it where there is one to do.
 *
 * Context  Replica, the one that began it. Any thread, of a request or an item.
 * Blocks   Never waits for a peer.
 * Errors   INVALID_ARGUMENT NULL. FAILED_PRECONDITION it is another replica's. How the work failed, once it has: but
 *          that a peer does not come in time is seen by dist_work_wait() alone. *out_done is not written then, and it
 *          has ended.
 */
DIST_API DIST_NODISCARD dist_status dist_work_test(dist_work *work, int32_t *out_done);

/**
 * Waits until the work has ended, and says how. Work that is not under way ended before.
 *
 * Context  Replica, the one that began it. Any thread, of a request or an item; inside the replicas of its strategy only one
 *          that has ended.
 * Blocks   Until every member has come, at most timeout_ns (0: that of the collective's options; < 0: no limit), and
 *          the work is done; or a failure of one. Of a request or an item until it has ended (0: at most the strategy's
 *          timeout_ns).
 * Owns     Afterwards no peer touches the tensors.
 * Errors   INVALID_ARGUMENT NULL. Else as dist_all_reduce(). Of a request or an item: how it ended; DEADLINE_EXCEEDED too
 *          where it goes on: dist_work_test() tells them apart. FAILED_PRECONDITION inside a replica, where it would wait.
 */
DIST_API DIST_NODISCARD dist_status dist_work_wait(dist_work *work, int64_t timeout_ns);

/**
 * Waits until one of n works has ended: works[*out_index], and says how.
 *
 * Context  Replica, the one that began them. Requests and items of one strategy as in dist_work_wait().
 * Blocks   As dist_work_wait().
 * Owns     As dist_work_wait(), of that work.
 * Errors   INVALID_ARGUMENT NULL or n = 0; works of several kinds or strategies. How that work failed; *out_index is written
 *          then too.
 */
DIST_API DIST_NODISCARD dist_status dist_work_wait_any(dist_work *const *works, size_t n, int64_t timeout_ns,
                                                       size_t *out_index);

/**
 * Ends the work that is under way, and with it all rounds of its group in this run, on every member: CANCELLED. Work
 * that has ended: nothing happens.
 *
 * A request, or an item, that is queued ends at once: CANCELLED. One whose function runs is told by dist_replica_check(), and
 * ends as that returns; an item that is in a step ends after it.
 *
 * Context  Replica, the one that began it. Any thread, of a request or an item.
 * Errors   INVALID_ARGUMENT NULL.
 */
DIST_API DIST_NODISCARD dist_status dist_work_cancel(dist_work *work);

/**
 * Gives up the handle, before dist_strategy_destroy(). NULL is fine.
 *
 * A request or an item that is under way goes on.
 *
 * Context  Replica, the one that began it; or, where it has ended, or is a request's or an item's, any, serialized.
 * Blocks   As dist_work_wait(work, 0) where a collective is under way.
 * Owns     Takes the work.
 */
DIST_API void dist_work_destroy(dist_work *work);

#ifdef __cplusplus
}
#endif
#endif /* DIST_WORK_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_WORK_EXPERIMENTAL_H)
#define DIST_WORK_EXPERIMENTAL_H

#include "collective.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Begins a round of planned work: all tensors that are not ready yet are from now on.
 *
 * Context  Replica, the one that planned it.
 * Owns     The tensors are the library's until the round has ended.
 * Errors   INVALID_ARGUMENT NULL. FAILED_PRECONDITION the round is under way, it was not planned, or a run has failed
 *          since. Else the run's trouble, as dist_all_reduce().
 */
DIST_API DIST_NODISCARD dist_status dist_work_start(dist_work *work);

/**
 * One tensor of the planned list is ready; the first of a round begins it.
 *
 * Context  Replica, the one that planned it.
 * Owns     The tensor is the library's until the round has ended.
 * Errors   As dist_work_start(); INVALID_ARGUMENT no such tensor; FAILED_PRECONDITION it is ready already.
 */
DIST_API DIST_NODISCARD dist_status dist_work_ready(dist_work *work, size_t tensor);

#ifdef __cplusplus
}
#endif
#endif /* DIST_WORK_EXPERIMENTAL_H */
