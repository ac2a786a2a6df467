/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Budgets: how many threads of several strategies work at the same time.
 *
 *     dist_budget_create(NULL, 8, &budget);
 *     options.budget = budget;
 *     dist_strategy_create(&options, &small);      any number of strategies
 *     dist_strategy_create(&options, &large);
 *     dist_budget_destroy(budget);                 the strategies have it as long as they need it
 *
 * A run takes as many threads of the budget as it has replicas that work side by side, min(R, usable CPUs of the strategy),
 * and all at once; a request (dist_submit(), a step of a batcher) takes one. Whoever wants more than the budget has takes all
 * of it. They take them last, when their strategy's replicas are theirs, and wait where too few are free: within their own
 * deadline, and until their cancel object, dist_strategy_cancel() or dist_strategy_shutdown() ends that. All strategies stand
 * in one line, first come, first served, so that a large run gets its turn. What was taken is given back when the run or
 * request has ended, however it did; also where a run has returned at its deadline, or an instance's thread was replaced, and
 * functions are still inside.
 *
 * What begins inside a function that libdist has called (a replica's, a request's, a merge or an update function) takes
 * nothing: that function's thread is counted where its strategy has a budget, and waits. While somebody inside waits for a
 * run, a request or a variable of a strategy, or has a request there that has not ended, what stands in line for that
 * strategy begins without taking any, since it may be what is waited for. So nothing waits for itself, whatever the nesting.
 * What libdist cannot see are waits of the host's own: a function must not wait, by a lock or a condition of the host's, for
 * a run or request that somebody else has begun with a budget.
 *
 * Not counted are oneTBB's threads in loops, reductions from outside and datasets, of which there are at most as many as the
 * process has CPUs, whatever the number of strategies.
 */
#ifndef DIST_BUDGET_H
#define DIST_BUDGET_H

#include "types.h"

#endif /* DIST_BUDGET_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_BUDGET_EXPERIMENTAL_H)
#define DIST_BUDGET_EXPERIMENTAL_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes a budget of `threads` threads, for dist_strategy_options.budget. `allocator` may be NULL: malloc() and free().
 *
 * Owns     *out_budget is the caller's: dist_budget_destroy().
 * Errors   INVALID_ARGUMENT    out_budget is NULL; threads is not in 1 .. 65536; one of the allocator's functions is there
 *                              without the other.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_budget_create(const dist_allocator *allocator, int32_t threads,
                                                       dist_budget **out_budget);

/**
 * Gives up the handle; strategies that have the budget keep it until they end. NULL is fine. In a forked child nothing is
 * done.
 *
 * Context  Any thread.
 * Owns     Takes the handle.
 */
DIST_API void dist_budget_destroy(dist_budget *budget);

#ifdef __cplusplus
}
#endif
#endif /* DIST_BUDGET_EXPERIMENTAL_H */
