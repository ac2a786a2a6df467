/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Budgets: limit how many threads several strategies use at the same time.
 *
 *     dist_budget *budget = NULL;
 *     dist_budget_create(NULL, 8, &budget);           // 8 threads
 *     dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
 *     cpu.budget = budget;
 *     dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
 *     options.cpu = &cpu;
 *     dist_strategy_create(&options, &small);         // any number of strategies
 *     dist_strategy_create(&options, &large);
 *     dist_budget_destroy(budget);                    // the strategies keep it as long as they need it
 *
 * A run acquires min(R, CPUs available to the strategy) threads of the budget, all at once. A request (dist_submit(),
 * or a step of a batcher) acquires one. A call that needs more threads than the budget has acquires all of them.
 * Threads are acquired last, after the strategy's replicas. If too few are free, the call waits until its own deadline
 * expires, its cancel object is signalled, or dist_strategy_cancel() or dist_strategy_shutdown() is called. All
 * strategies share one queue in order of arrival, so large runs are not starved. A run or request releases its threads
 * when it ends, however it ends. This includes a run that returns at its deadline and an instance whose thread is
 * replaced, even if functions are still running.
 *
 * A call from inside a callback (of a replica, a request, a merge or an update function) acquires no threads. If the
 * callback's strategy has a budget, the callback's own thread is already counted, and it waits meanwhile. While a call
 * from inside a callback waits for a run, a request or a variable of a strategy, or has an unfinished request there,
 * everything that is queued for that strategy starts without acquiring threads. Budgets therefore cannot deadlock,
 * however calls are nested. libdist cannot see waits of your own code: a callback must not wait, with your own locks or
 * condition variables, for a run or request that another thread has started with a budget.
 *
 * The threads that oneTBB uses in loops, reductions from outside and datasets are not counted. There are at most as
 * many of them as CPUs available to the process, for any number of strategies.
 */
#ifndef DIST_BUDGET_H
#define DIST_BUDGET_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Creates a budget of `threads` threads, for dist_cpu_options.budget. `allocator` may be NULL: malloc() and
 * free().
 *
 * Owns     The caller owns *out_budget and destroys it with dist_budget_destroy().
 * Errors   INVALID_ARGUMENT    out_budget is NULL, threads is not in 1 .. 65536, or only one of the allocator's
 *                              functions is set.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_budget_create(const dist_allocator *allocator, int32_t threads,
                                                       dist_budget **out_budget);

/**
 * Destroys the handle. Strategies keep the budget until they are destroyed. Does nothing if `budget` is NULL. In a
 * forked child this does nothing.
 *
 * Context  Any, serialized.
 * Owns     Takes ownership of the handle.
 */
DIST_API void dist_budget_destroy(dist_budget *budget);

#ifdef __cplusplus
}
#endif
#endif /* DIST_BUDGET_H */
