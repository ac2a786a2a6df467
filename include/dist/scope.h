/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Scopes: which strategy and replica a thread is with.
 *
 * Every function of libdist is told its strategy or replica. For programs that would rather not hand them around, a
 * thread knows which it is with: tf.distribute's current strategy. All of it is the calling thread's alone, and a
 * strategy is in force on the threads that have entered its scope, no others.
 *
 * Outside of scopes and functions a thread is replica 0 of a default strategy of its own, made at the first question
 * and ended with the thread. Being with a default strategy is no different from being outside.
 */
#include "types.h"

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_SCOPE_EXPERIMENTAL_H)
#define DIST_SCOPE_EXPERIMENTAL_H

#ifdef __cplusplus
extern "C" {
#endif

/**
 * From now on this thread is in the strategy's scope, and in the cross-replica context. The same strategy's scope may
 * be entered again; each entry has its exit. Inside, functions of other strategies are refused.
 *
 * Context  Strategy; inside a replica function only scopes of, and in those of, default strategies.
 * Owns     Nothing: exit before the strategy is destroyed. A function of a run or merge that returns inside a scope
 *          has left it.
 * Errors   INVALID_ARGUMENT     NULL.
 *          FAILED_PRECONDITION  inside another strategy's scope or function; inside a replica function; a forked
 *                               child.
 */
DIST_API DIST_NODISCARD dist_status dist_scope_enter(dist_strategy *strategy);

/**
 * Leaves the scope that this thread has entered last.
 *
 * Context  The thread that entered, in the same function.
 * Errors   INVALID_ARGUMENT     NULL.
 *          FAILED_PRECONDITION  the scope entered last is not this strategy's.
 */
DIST_API DIST_NODISCARD dist_status dist_scope_exit(dist_strategy *strategy);

/**
 * Makes a strategy this thread's own outside scopes (TensorFlow: experimental_set_strategy): as in its scope, until
 * another is set. NULL, or a default strategy: none any more.
 *
 * Context  Outside scopes and functions of runs.
 * Owns     Nothing: set another before the strategy is destroyed.
 * Errors   FAILED_PRECONDITION  inside a scope, a replica function or a merge function; a forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_set_strategy(dist_strategy *strategy);

/**
 * The strategy of the scope or function that this thread is in, else that of dist_set_strategy(), else the thread's
 * default one.
 *
 * Owns     Borrowed. The default one ends with the thread, and cannot be destroyed; values made from it live on.
 * Errors   NULL where the thread's default strategy could not be made: dist_last_error().
 */
DIST_API dist_strategy *dist_get_strategy(void);

/** 1 where dist_get_strategy() is not a default strategy, else 0. */
DIST_API int32_t dist_has_strategy(void);

/** 1 in a merge function, in a scope, and after dist_set_strategy(); 0 in a replica function and outside of all. */
DIST_API int32_t dist_in_cross_replica_context(void);

/**
 * The replica whose function this thread is in; outside of all, the thread's default strategy's replica 0, which meets
 * nobody; NULL in the cross-replica context.
 *
 * Owns     Borrowed: valid inside the function; the default one's until the thread ends.
 * Errors   NULL also where the thread's default strategy could not be made: dist_last_error().
 */
DIST_API dist_replica *dist_get_replica(void);

/**
 * Variables that this thread makes next are placed with another (TensorFlow: colocate_vars_with), until
 * dist_colocate_exit(). They always are: copy r of every variable of a strategy is replica r's. What is checked is that
 * they could be.
 *
 * Context  A thread that is in the strategy's scope (dist_scope_enter()) or run; with a default strategy, any.
 * Errors   INVALID_ARGUMENT     NULL; not a variable of this strategy (where variables have one copy, that copy will do;
 *                               a default strategy takes anything).
 *          FAILED_PRECONDITION  outside the strategy's scope.
 */
DIST_API DIST_NODISCARD dist_status dist_colocate_enter(dist_strategy *strategy, const dist_value *variable);

/**
 * Ends what this thread's latest dist_colocate_enter() began.
 *
 * Context  As dist_colocate_enter().
 * Errors   INVALID_ARGUMENT     NULL.
 *          FAILED_PRECONDITION  outside the strategy's scope; this thread has begun none.
 */
DIST_API DIST_NODISCARD dist_status dist_colocate_exit(dist_strategy *strategy);

#ifdef __cplusplus
}
#endif
#endif /* DIST_SCOPE_EXPERIMENTAL_H */
