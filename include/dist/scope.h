/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Scopes: the current strategy and replica of a thread.
 *
 *     dist_scope_enter(strategy);
 *     train();                                    // anywhere in it, dist_get_strategy() returns strategy
 *     dist_scope_exit(strategy);
 *
 * Functions of libdist take the strategy or replica as an argument. Programs that do not want to pass these through all
 * their functions can use the thread's current strategy, as in tf.distribute. This state belongs to the calling thread
 * only: a strategy is current only on threads that have entered its scope.
 *
 * Outside scopes and functions of runs, a thread is replica 0 of a default strategy of its own. libdist creates that
 * strategy when it is first asked for and destroys it with the thread. Being inside a default strategy is the same as
 * being outside all strategies.
 */
#ifndef DIST_SCOPE_H
#define DIST_SCOPE_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Enters the strategy's scope on this thread, in cross-replica context. Scopes of the same strategy can be nested; each
 * entry needs its own exit. Inside a scope, functions of other strategies are rejected.
 *
 * Context  Strategy, concurrent. Inside a replica function, only default strategies can be entered, and only if the
 *          function belongs to a default strategy.
 * Owns     Nothing: exit the scope before the strategy is destroyed. If a function of a run or a merge function returns
 *          inside a scope, libdist exits the scope.
 * Errors   INVALID_ARGUMENT     strategy is NULL.
 *          FAILED_PRECONDITION  called inside another strategy's scope or function, inside a replica function, or in a
 *                               forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_scope_enter(dist_strategy *strategy);

/**
 * Exits the scope that this thread entered last.
 *
 * Context  Strategy, on the thread that entered, in the same function.
 * Errors   INVALID_ARGUMENT     strategy is NULL.
 *          FAILED_PRECONDITION  the scope that was entered last is not that of this strategy.
 */
DIST_API DIST_NODISCARD dist_status dist_scope_exit(dist_strategy *strategy);

/**
 * Returns the current strategy of this thread: that of the scope or function that it is in; otherwise the one set with
 * dist_set_strategy(); otherwise the thread's default strategy.
 *
 * Owns     The result is borrowed. The default strategy is destroyed with the thread and cannot be destroyed
 *          explicitly; values created with it stay valid.
 * Errors   NULL if the thread's default strategy could not be created: see dist_last_error().
 */
DIST_API dist_strategy *dist_get_strategy(void);

/** Returns 1 if dist_get_strategy() is not a default strategy, else 0. */
DIST_API int32_t dist_has_strategy(void);

/**
 * Returns 1 in a merge function, in a scope, and after dist_set_strategy(); returns 0 in a replica function and outside
 * all of these.
 */
DIST_API int32_t dist_in_cross_replica_context(void);

/**
 * Returns the replica whose function this thread is in. Outside all functions, it returns replica 0 of the thread's
 * default strategy, which has no peers; in cross-replica context, it returns NULL.
 *
 * Owns     The result is borrowed: valid inside the function, or for a default strategy until the thread ends.
 * Errors   NULL also if the thread's default strategy could not be created: see dist_last_error().
 */
DIST_API dist_replica *dist_get_replica(void);

#ifdef __cplusplus
}
#endif
#endif /* DIST_SCOPE_H */
