/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Functions for programs that are ported from tf.distribute and call its lesser-used functions: the thread's default
 * strategy, colocation, and cross-device operations as objects. New programs do not need them.
 *
 *     #include <dist/tf.h>                        // in addition to dist.h
 *
 *     dist_set_strategy(strategy);                // tf.distribute.experimental_set_strategy(strategy)
 *     dist_get_strategy();                        // returns strategy, also outside its scope
 *
 * This header is stable, like dist.h.
 */
#ifndef DIST_TF_H
#define DIST_TF_H

#include "cross_replica.h"
#include "scope.h"
#include "variable.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Sets the strategy that is current on this thread outside scopes (TensorFlow: experimental_set_strategy), until
 * another one is set. NULL or a default strategy removes it.
 *
 * Context  Any, outside scopes and functions of runs.
 * Owns     Nothing: set another strategy before this one is destroyed.
 * Errors   FAILED_PRECONDITION  called inside a scope, a replica function or a merge function, or in a forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_set_strategy(dist_strategy *strategy);

/**
 * Declares that variables which this thread creates next belong on the device of another variable (TensorFlow:
 * colocate_vars_with), until dist_colocate_exit(). This has no effect on placement, because copy r of every variable
 * always belongs to replica r; the function only checks that colocation is possible.
 *
 * Context  Any, inside the strategy's scope (dist_scope_enter()) or run; with a default strategy, anywhere.
 * Errors   INVALID_ARGUMENT     an argument is NULL, or the value is not a variable of this strategy. If variables have
 *                               one copy, that copy is accepted too; a default strategy accepts anything.
 *          FAILED_PRECONDITION  called outside the strategy's scope.
 */
DIST_API DIST_NODISCARD dist_status dist_colocate_enter(dist_strategy *strategy, const dist_value *variable);

/**
 * Undoes the latest dist_colocate_enter() of this thread.
 *
 * Context  Like dist_colocate_enter().
 * Errors   INVALID_ARGUMENT     strategy is NULL.
 *          FAILED_PRECONDITION  called outside the strategy's scope, or without a matching dist_colocate_enter().
 */
DIST_API DIST_NODISCARD dist_status dist_colocate_exit(dist_strategy *strategy);

/**
 * Determines whether this strategy created a variable. `variable` is a variable's value, or one of its copies as
 * dist_strategy_local_results() returns them.
 *
 * Errors   INVALID_ARGUMENT  an argument is NULL, or the value is neither a variable nor a copy of one.
 */
DIST_API DIST_NODISCARD dist_status dist_variable_created_in_scope(dist_strategy *strategy,
                                                                   const dist_value *variable,
                                                                   int32_t *out_created);

/**
 * Returns the variable that a value is, or of which it is a copy (as returned by dist_strategy_local_results()); NULL
 * for any other value.
 *
 * Owns     The result is borrowed.
 */
DIST_API dist_variable *dist_value_container(const dist_value *value);

/** Options of dist_cross_device_create(). */
typedef struct dist_cross_device_options {
  uint32_t struct_size;
  dist_cross_device_kind kind; /* 0 = DIST_CROSS_DEVICE_DEFAULT */
  /* REDUCTION_TO_ONE_DEVICE: a device name; NULL = any device; "" = CPU:0 */
  const char *reduce_to_device;
  /* REDUCTION_TO_ONE_DEVICE: replaces +; MEAN divides by n afterwards; may be NULL */
  dist_reduce_fn accumulate;
  void *accumulate_user_data; /* passed to accumulate */
  /* HOST: your functions; copied; `reduce` is required */
  const struct dist_cross_device_functions *functions;
  void *functions_user_data; /* passed to the functions */
  dist_allocator allocator;  /* all zero = malloc() and free() */
  /* size of one element of `accumulate`; 0 = the dtype's size */
  size_t accumulate_element_bytes;
} dist_cross_device_options;
#define DIST_CROSS_DEVICE_OPTIONS_INIT \
  { sizeof(dist_cross_device_options), DIST_CROSS_DEVICE_DEFAULT, 0, 0, 0, 0, 0, {0, 0, 0}, 0 }

/** Initializes a dist_cross_device_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_cross_device_options_init(dist_cross_device_options *options, uint32_t struct_size_bytes);

/**
 * Creates cross-device operations (TensorFlow: CrossDeviceOps), for dist_strategy_options.cross_device or for use
 * without a strategy with dist_cross_device_reduce() and the related functions.
 *
 * Owns     The caller owns *out_cross_device and destroys it with dist_cross_device_destroy(). The user data in options
 *          must stay valid until it and the strategies that use it have been destroyed.
 * Errors   INVALID_ARGUMENT    out_cross_device is NULL; the kind is unknown; a field of another kind is set;
 *                              accumulate_element_bytes is set without accumulate; HOST without functions.reduce; or
 *                              the device name is invalid.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_cross_device_create(const dist_cross_device_options *options,
                                                             dist_cross_device **out_cross_device);

/**
 * Destroys the handle. Strategies that use the operations are not affected. Does nothing if `cross_device` is NULL.
 *
 * Context  Any, serialized.
 * Owns     Takes ownership of the object.
 */
DIST_API void dist_cross_device_destroy(dist_cross_device *cross_device);

/** Returns the kind of a cross-device object; 0 for NULL. */
DIST_API dist_cross_device_kind dist_cross_device_kind_of(const dist_cross_device *cross_device);

/**
 * Returns the full name of the reduce_to_device with which the operations were created; NULL if there is none, and for
 * NULL.
 *
 * Owns     The result is borrowed.
 */
DIST_API const char *dist_cross_device_device(const dist_cross_device *cross_device);

/** Your own cross-device functions, for dist_cross_device_options. */
typedef struct dist_cross_device_functions {
  uint32_t struct_size;
  int32_t reserved;                   /* must be 0 */
  dist_reduce_values_fn reduce;       /* required */
  dist_broadcast_values_fn broadcast; /* NULL = all replicas share the value, which does not change */
  dist_gather_values_fn gather;       /* NULL = libdist's own */
} dist_cross_device_functions;
#define DIST_CROSS_DEVICE_FUNCTIONS_INIT \
  { sizeof(dist_cross_device_functions), 0, 0, 0, 0 }

/** Initializes a dist_cross_device_functions to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_cross_device_functions_init(dist_cross_device_functions *functions,
                                               uint32_t struct_size_bytes);

/**
 * Reduces a value with cross-device operations, without a strategy. Otherwise like dist_reduce_to().
 *
 * Each component of the value is the contribution of one replica. A value that is not distributed is one contribution
 * and is returned as it is. The operator or the functions of the cross-device operations are used.
 *
 * Shape    Like dist_reduce_to().
 * Order    Like dist_reduce(), ORDERED.
 * Blocks   Until it is complete.
 * Owns     The caller owns *out_value and releases it with dist_value_release().
 * Errors   Like dist_reduce_to(); also INVALID_ARGUMENT if destination is NULL.
 */
DIST_API DIST_NODISCARD dist_status dist_cross_device_reduce(dist_cross_device *cross_device,
                                                             dist_reduce_op op, dist_value *value,
                                                             const dist_destination *destination,
                                                             dist_value **out_value);

/**
 * Reduces n values with cross-device operations, without a strategy; see dist_cross_device_reduce().
 *
 * Shape    Like dist_reduce_to(); all values have the same number of components. n = 0 is valid.
 * Order    Like dist_reduce(), ORDERED.
 * Blocks   Until all are complete.
 * Owns     The caller owns the out_values and releases each with dist_value_release(). After an error, none is written.
 * Errors   Like dist_cross_device_reduce().
 */
DIST_API DIST_NODISCARD dist_status dist_cross_device_batch_reduce(dist_cross_device *cross_device,
                                                                   dist_reduce_op op,
                                                                   dist_value *const *values,
                                                                   const dist_destination *destinations,
                                                                   size_t n, dist_value **out_values);

/**
 * Places a value at a destination, like dist_broadcast_to(), with cross-device operations and without a strategy. The
 * destination determines the number of replicas.
 *
 * Blocks   Until it is complete.
 * Owns     The caller owns *out_value and releases it with dist_value_release().
 * Errors   Like dist_broadcast_to(); also INVALID_ARGUMENT if destination is NULL.
 */
DIST_API DIST_NODISCARD dist_status dist_cross_device_broadcast(dist_cross_device *cross_device,
                                                                dist_value *value,
                                                                const dist_destination *destination,
                                                                dist_value **out_value);

/**
 * Concatenates the components of a value, like dist_gather(), with cross-device operations and without a strategy.
 *
 * Blocks   Until it is complete.
 * Owns     The caller owns *out_value and releases it with dist_value_release().
 * Errors   Like dist_gather().
 */
DIST_API DIST_NODISCARD dist_status dist_cross_device_gather(dist_cross_device *cross_device,
                                                             dist_value *value, int32_t axis,
                                                             dist_value **out_value);

#ifdef __cplusplus
}
#endif
#endif /* DIST_TF_H */
