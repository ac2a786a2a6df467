/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The cross-replica context: reduce, broadcast, gather and update values from outside runs or in merge functions.
 *
 *     dist_value *losses = NULL, *mean = NULL;
 *     dist_run_values(strategy, step, model, batch, NULL, NULL, &losses);        // one loss per replica
 *     dist_reduce(strategy, DIST_REDUCE_MEAN, losses, NULL, 0, &mean);           // one tensor
 *
 * Inside a replica function, use the collectives of collective.h instead. With several workers, all workers must make
 * the same calls in the same order; see workers.h. dist_strategy_functions and dist_strategy_options.cross_device
 * replace the implementation of these functions.
 */
#ifndef DIST_CROSS_REPLICA_H
#define DIST_CROSS_REPLICA_H

#include "collective.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Reduces a per-replica value to one tensor. Without axes, a nest is reduced leaf by leaf.
 *
 *     axes NULL:   out[i]  = fold over r of value[r][i]
 *     with axes:   out[..] = fold over r of (fold over the axes of value[r]);  MEAN divides by the number of
 *                  elements along the axes over all replicas
 *
 * Special cases
 *
 *   - For a mirrored value or variable, MEAN returns its first component, and SUM is an error, as in TensorFlow.
 *   - For a value that is not distributed, MEAN returns the value, and SUM is an error. With axes, the value counts as
 *     if every replica had passed it.
 *   - With one replica and without axes, the value is returned as it is.
 *   - Indexed slices are concatenated instead of added: the rows and indices of replica 0, then those of replica 1, and
 *     so on. MEAN divides the rows by R.
 *   - For a variable that is synchronized on reading, every copy is a contribution.
 *
 * Shape    Without axes, all components have the same shape. With axes, sizes may differ only along those axes. A
 *          negative axis counts from the end. op is SUM or MEAN.
 * Order    Like dist_all_reduce(), by replica id, with the strategy's numerics. A user-defined operator is always
 *          called from left to right. With axes, the elements of a replica are added in row-major order and, except for
 *          f16 and bf16, rounded; then the sums of the replicas are added. MEAN of integers gives f64 (from i32, u32,
 *          i64, u64) or f32.
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   Until it is complete; oneTBB threads share the work.
 * Owns     The caller owns *out_value and releases it with dist_value_release().
 * Errors   INVALID_ARGUMENT     an argument is NULL; op is neither SUM nor MEAN; SUM of a value that is not
 *                               distributed; shapes or dtypes differ; an axis is out of range or occurs twice; a nest
 *                               with axes; a per-replica value of texts or other non-tensors.
 *          UNIMPLEMENTED        ragged and sparse values; indexed slices with axes; complex64 if the strategy's
 *                               numerics are REPRODUCIBLE.
 *          FAILED_PRECONDITION  called inside a replica function (use dist_all_reduce() or dist_merge_call()) or in
 *                               another strategy's scope; a variable of another strategy.
 *          DEADLINE_EXCEEDED    a part of the value is a variable, and a run was in progress for longer than the
 *                               strategy's timeout_ns; with several workers also: a worker did not make the call in
 *                               time.
 *          CANCELLED            the strategy was shut down while the call waited; with several workers also:
 *                               dist_strategy_cancel() was called.
 *          ABORTED              with several workers: a worker failed or made another call; the report names it.
 *          UNAVAILABLE          with several workers: a worker is lost.
 *          RESOURCE_EXHAUSTED   out of memory.
 *          any                  the status that a host function returned (dist_strategy_functions).
 */
DIST_API DIST_NODISCARD dist_status dist_reduce(dist_strategy *strategy, dist_reduce_op op, dist_value *value,
                                                const int32_t *axes, size_t num_axes, dist_value **out_value);

/**
 * The destination of a result. Exactly one field must be set. If the destination itself is NULL, the result goes to
 * every replica.
 */
typedef struct dist_destination {
  dist_variable *variable; /* the places of this variable's copies */
  dist_value *value;       /* the places of this value's components; a tensor is in one place */
  /* a device name, in short ("CPU:1") or full form; "replica:1" = the device of replica 1; "" = CPU:0 */
  const char *device;
} dist_destination;

/**
 * Reduces a per-replica value and places the result at a destination. Lists and dictionaries are reduced leaf by leaf.
 * Options that are set override the communication options of the strategy for this call. They matter with several
 * workers only: bytes_per_pack limits how many tensors one exchange between the workers reduces, and all workers must
 * pass the same bytes_per_pack.
 *
 *     *out_value = fold over r of value[r]
 *
 * The result is mirrored if the destination is on every replica, as a mirrored variable is. It is a tensor if the
 * destination is a device or a variable of central storage.
 *
 * All replicas share a value that is mirrored or not distributed: MEAN returns it, and SUM is an error. In
 * dist_batch_reduce_to() with central storage such a value counts as one contribution instead, as in TensorFlow. With
 * one replica, the value is returned as it is. Indexed slices are concatenated like in dist_reduce().
 *
 * Shape    All components have the same shape. op is SUM or MEAN.
 * Order    Like dist_reduce().
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   Until it is complete. With several workers, also until they have made the same call: up to
 *          options->timeout_ns if that is set, otherwise up to the strategy's timeout.
 * Owns     The caller owns *out_value and releases it with dist_value_release(). destination and options may be NULL.
 * Errors   Like dist_reduce(), and
 *          INVALID_ARGUMENT  the destination has no field set or several, is a list, was created for another strategy,
 *                            or has an invalid device name; an option is out of range.
 *          NOT_FOUND         "replica:r" names a replica that does not exist.
 */
DIST_API DIST_NODISCARD dist_status dist_reduce_to(dist_strategy *strategy, dist_reduce_op op,
                                                   dist_value *value, const dist_destination *destination,
                                                   const dist_communication_options *options,
                                                   dist_value **out_value);

/**
 * Performs n calls of dist_reduce_to() in one pass: out_values[k] is the result of values[k] at destinations[k]. If the
 * strategy's cross-device operations have their own operator, it replaces that of SUM.
 *
 * Shape    Like dist_reduce_to(); n = 0 is valid.
 * Order    Like dist_reduce().
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   Like dist_reduce_to(), until all are complete.
 * Owns     The caller owns the out_values and releases each with dist_value_release(). destinations and options may be
 *          NULL. After an error, none is written.
 * Errors   Like dist_reduce_to().
 */
DIST_API DIST_NODISCARD dist_status dist_batch_reduce_to(dist_strategy *strategy, dist_reduce_op op,
                                                         dist_value *const *values,
                                                         const dist_destination *destinations, size_t n,
                                                         const dist_communication_options *options,
                                                         dist_value **out_values);

/**
 * Concatenates the components of a per-replica value to one tensor. Lists and dictionaries are gathered leaf by leaf.
 *
 *     out = value[0], ..., value[R-1], one after another along `axis`
 *
 * The copies of a variable are concatenated. Any other value that is not distributed is returned as it is. With one
 * replica, the value is returned as it is.
 *
 * Shape    Sizes may differ only along the axis. A negative axis counts from the end.
 * Order    By replica id; bits are copied.
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   Until it is complete.
 * Owns     The caller owns *out_value and releases it with dist_value_release().
 * Errors   INVALID_ARGUMENT     an argument is NULL; the axis is out of range; a component is a scalar or not a tensor;
 *                               shapes or dtypes differ.
 *          UNIMPLEMENTED        indexed slices.
 *          FAILED_PRECONDITION  called inside a replica function: use dist_all_gather_value().
 *          any                  another error of dist_reduce().
 */
DIST_API DIST_NODISCARD dist_status dist_gather(dist_strategy *strategy, dist_value *value, int32_t axis,
                                                dist_value **out_value);

/** Describes the copy for which an update function is called. */
typedef struct dist_update_place {
  uint32_t struct_size;
  int32_t replica; /* replica that owns the copy; -1 = no single replica, as with central storage */
  /* name of the copy's device, like dist_strategy_parameter_device(); "" for the default strategy */
  const char *device;
  dist_tensor *copy; /* the copy to change; NULL in dist_update_non_slot() */
} dist_update_place;

/**
 * Changes one copy of a variable.
 *
 * It is called in the cross-replica context, in the strategy's scope. args and kwargs hold this copy's components and
 * are borrowed. *out_result is NULL before the call; libdist takes over the reference that the function stores there.
 */
typedef dist_status (*dist_update_fn)(dist_strategy *strategy, const dist_update_place *place,
                                      dist_value *args, dist_value *kwargs, dist_value **out_result,
                                      void *user_data);

/** Options of the update functions. */
typedef struct dist_update_options {
  uint32_t struct_size;
  /* 1 = each leaf of the result is a tuple of the results of all calls, or a single result if all calls returned
   * the same object */
  int32_t ungrouped;
  /* 1 = if the variable is large, calls for several copies run at the same time, on oneTBB's threads; fn must then
   * neither reduce nor start a run. 0 = one call after another, on this thread */
  int32_t parallel;
  int32_t reserved; /* must be 0 */
} dist_update_options;
#define DIST_UPDATE_OPTIONS_INIT \
  { sizeof(dist_update_options), 0, 0, 0 }

/** Initializes a dist_update_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_update_options_init(dist_update_options *options, uint32_t struct_size_bytes);

/**
 * Calls `fn` for every copy of a variable, with that copy's components of the arguments. The calls are one after
 * another on the calling thread, and fn may reduce and start runs, unless options->parallel is 1.
 *
 *     for c in 0 .. copies-1:   result[c] = fn(copy[c], component(args, c), component(kwargs, c))
 *     *out_result = merge(result[0], ..., result[copies-1]), mirrored if they differ
 *
 * Context  Strategy, serialized for a variable; also inside a merge function. Inside replicas, use
 *          dist_replica_update().
 * Blocks   While a run is in progress, then until all calls have returned.
 * Owns     args (a list or tuple, or NULL) and kwargs (a dictionary, or NULL) are borrowed. The caller owns *out_result
 *          and releases it with dist_value_release(); it is NULL if no call returned a result. out_result may be NULL
 *          to discard the results.
 * Errors   INVALID_ARGUMENT     an argument is NULL; args or kwargs have another kind; the variable was created outside
 *                               the mirrored strategy, which then has no copies of it; the results differ in structure.
 *          FAILED_PRECONDITION  called inside a replica function; a variable of another strategy.
 *          DEADLINE_EXCEEDED    a run was in progress for longer than the strategy's timeout_ns.
 *          CANCELLED            the strategy was shut down.
 *          RESOURCE_EXHAUSTED   out of memory.
 *          any                  the status that fn returned; the first failure ends the update. With options->parallel,
 *                               all calls are made, and the lowest copy that failed decides.
 */
DIST_API DIST_NODISCARD dist_status dist_update(dist_strategy *strategy, dist_variable *variable,
                                                dist_update_fn fn, void *user_data, dist_value *args,
                                                dist_value *kwargs, const dist_update_options *options,
                                                dist_value **out_result);

/**
 * Calls a function once for each device that has variables. The arguments and the result are those of dist_update(),
 * but there is no variable, place->copy is NULL, and options->parallel must be 0.
 *
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   Until all calls have returned.
 * Owns     Like dist_update().
 * Errors   Like dist_update().
 */
DIST_API DIST_NODISCARD dist_status dist_update_non_slot(dist_strategy *strategy, dist_update_fn fn,
                                                         void *user_data, dist_value *args,
                                                         dist_value *kwargs,
                                                         const dist_update_options *options,
                                                         dist_value **out_result);

/**
 * Updates a variable from inside replicas: all replicas call this together, as with dist_merge_call(). Their arguments
 * are merged, and replica 0's function is called like in dist_update(). *out_result is this replica's component of the
 * result.
 *
 * Context  Replica. Collective.
 * Blocks   Like dist_merge_call().
 * Owns     Like dist_update().
 * Errors   Like dist_merge_call() and dist_update().
 */
DIST_API DIST_NODISCARD dist_status dist_replica_update(dist_replica *replica, dist_variable *variable,
                                                        dist_update_fn fn, void *user_data, dist_value *args,
                                                        dist_value *kwargs,
                                                        const dist_update_options *options,
                                                        dist_value **out_result);

/**
 * Returns a tuple of a value's components in this process, in replica order.
 *
 * For a variable, these are its copies. For a list, tuple or dictionary, each item is what the corresponding replica
 * would find. For any other value, the tuple has that value as its only item.
 *
 * Owns     The caller owns *out_list and releases it with dist_value_release().
 * Errors   INVALID_ARGUMENT     an argument is NULL.
 *          FAILED_PRECONDITION  called in a forked child.
 *          RESOURCE_EXHAUSTED   out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_local_results(dist_strategy *strategy, dist_value *value,
                                                                dist_value **out_list);

/**
 * Places a value at a destination: the result is mirrored if the destination is on every replica, and the value itself
 * otherwise. The replicas share the memory of the value.
 *
 * Context  Strategy, concurrent; also inside a merge function.
 * Owns     The caller owns *out_value and releases it with dist_value_release(). destination may be NULL: every
 *          replica.
 * Errors   INVALID_ARGUMENT     an argument is NULL, the value is per-replica or mirrored, or the destination is
 *                               invalid (dist_reduce_to()).
 *          NOT_FOUND            "replica:r" names a replica that does not exist.
 *          FAILED_PRECONDITION  called inside a replica function: use dist_broadcast().
 *          any                  another error of dist_reduce().
 */
DIST_API DIST_NODISCARD dist_status dist_broadcast_to(dist_strategy *strategy, dist_value *value,
                                                      const dist_destination *destination,
                                                      dist_value **out_value);

/**
 * Writes the full name of the device of a destination. With one replica, this is always that replica's device.
 *
 * Errors   INVALID_ARGUMENT  an argument is NULL, the destination is invalid or is on every replica, or size_bytes is
 *                            too small.
 *          NOT_FOUND         "replica:r" names a replica that does not exist.
 */
DIST_API DIST_NODISCARD dist_status dist_destination_device(dist_strategy *strategy,
                                                            const dist_destination *destination,
                                                            char *out_name, size_t size_bytes);

/**
 * Returns the operator that reduces a variable with this aggregation (DIST_AGGREGATION_...).
 *
 * Shape    –
 * Order    –
 * Errors   INVALID_ARGUMENT  out_op is NULL, or the aggregation is not a reduction (NONE, ONLY_FIRST_REPLICA).
 */
DIST_API DIST_NODISCARD dist_status dist_reduce_op_from_aggregation(dist_aggregation aggregation,
                                                                    dist_reduce_op *out_op);

#ifdef __cplusplus
}
#endif
#endif /* DIST_CROSS_REPLICA_H */
