/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The cross-replica context: values that are reduced, broadcast, gathered and handed to updates from outside runs, or by
 * merge functions; and who does it.
 */
#ifndef DIST_CROSS_REPLICA_H
#define DIST_CROSS_REPLICA_H

#include "collective.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Reduces a per-replica value to one tensor (of a nest: each leaf, without axes).
 *
 *     axes NULL:   out[i]  = fold over r of value[r][i]
 *     with axes:   out[..] = fold over r of (fold over the axes of value[r]);  MEAN divides by the number of
 *                  elements along the axes over all replicas
 *
 * A mirrored value or variable: MEAN gives its first component, SUM is an error, as in TensorFlow. A value that is not
 * distributed: MEAN gives it back, SUM is an error; with axes it counts as given to every replica. One replica: as it
 * is, without axes. Indexed slices are joined, not added: the rows and indices of replica 0, then those of replica 1
 * ..., and MEAN divides the rows by R. Of a variable synchronized on reading every copy is a contribution.
 *
 * Shape    Without axes all components have one shape. With axes sizes may differ along those axes only; an
 *          axis counts from the end where it is negative. op is SUM or MEAN.
 * Order    As dist_all_reduce(), by replica id, in the strategy's numerics; a host's operator is called from left to
 *          right whatever these are. With axes, a replica's elements are added in row-major order and, but for f16 and
 *          bf16, rounded; then the replicas' sums are added. MEAN of integers gives f64 (from i32, u32, i64, u64) or f32.
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   Until it is done (oneTBB shares the work).
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   INVALID_ARGUMENT     NULL, op, SUM of a value that is not distributed, shapes or dtypes that differ, an
 *                               axis out of range or twice, a nest with axes, a per-replica value of texts and the
 *                               like.
 *          UNIMPLEMENTED        ragged and sparse values; indexed slices with axes; complex64 where the strategy's
 *                               numerics are REPRODUCIBLE.
 *          FAILED_PRECONDITION  inside a replica function: use dist_all_reduce() or dist_merge_call().
 *          RESOURCE_EXHAUSTED   no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_reduce(dist_strategy *strategy, dist_reduce_op op, dist_value *value,
                                                const int32_t *axes, size_t num_axes, dist_value **out_value);

/** Where a reduction's result is wanted: exactly one field is set. No destination at all (NULL): on every replica. */
typedef struct dist_destination {
  dist_variable *variable; /* where this variable's copies are */
  dist_value *value;       /* where this value's components are; a tensor is in one place */
  const char *device;      /* a device by name: "CPU:1", or longer; "replica:1": that of replica 1 */
} dist_destination;

/**
 * Reduces a per-replica value to where it is wanted (of a list or dictionary: each leaf).
 *
 *     *out_value = fold over r of value[r]:   a mirrored value where the destination is on every replica, as a mirrored
 *                  strategy's variables are; a tensor where it is a device, or central storage's variable
 *
 * What is not distributed, or mirrored already, every replica has in common: MEAN gives it back, SUM is an error. In
 * dist_batch_reduce_to() on central storage it counts as one contribution instead, as in TensorFlow. One replica:
 * everything as it is. Indexed slices are joined as by dist_reduce().
 *
 * Shape    All components have one shape. op is SUM or MEAN.
 * Order    As dist_reduce().
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   Until it is done.
 * Owns     *out_value is the caller's: dist_value_release(). destination and options may be NULL. The options are
 *          TensorFlow's, checked and of no consequence: values from outside runs travel nowhere.
 * Errors   As dist_reduce(); INVALID_ARGUMENT also for a destination that says nothing, says two things, is a list or
 *          has no device's name, and for an option that is out of its range; NOT_FOUND for "replica:r" of no replica.
 */
DIST_API DIST_NODISCARD dist_status dist_reduce_to(dist_strategy *strategy, dist_reduce_op op,
                                                   dist_value *value, const dist_destination *destination,
                                                   const dist_communication_options *options,
                                                   dist_value **out_value);

/**
 * n times dist_reduce_to() in one pass: out_values[k] is the result of values[k] at destinations[k]. An operator that
 * the strategy's cross-device operations have takes the place of SUM's.
 *
 * Shape    As dist_reduce_to(); n = 0 is legal.
 * Order    As dist_reduce().
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   Until all are done.
 * Owns     The out_values are the caller's. destinations and options may be NULL. On an error none is written.
 * Errors   As dist_reduce_to().
 */
DIST_API DIST_NODISCARD dist_status dist_batch_reduce_to(dist_strategy *strategy, dist_reduce_op op,
                                                         dist_value *const *values,
                                                         const dist_destination *destinations, size_t n,
                                                         const dist_communication_options *options,
                                                         dist_value **out_values);

/**
 * Joins the components of a per-replica value (of a list or dictionary: each leaf) to one tensor.
 *
 *     out = value[0], ..., value[R-1], one after another along `axis`
 *
 * Of a variable the copies are joined. What else is not distributed is given back as it is. One replica: as it is.
 *
 * Shape    Sizes may differ along the axis only; it counts from the end where it is negative.
 * Order    By replica id; bits are copied.
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   Until it is done.
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   INVALID_ARGUMENT     NULL, an axis out of range, scalars, shapes or dtypes that differ, what is no tensor.
 *          UNIMPLEMENTED        indexed slices.
 *          FAILED_PRECONDITION  inside a replica function: use dist_all_gather_value().
 *          RESOURCE_EXHAUSTED   no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_gather(dist_strategy *strategy, dist_value *value, int32_t axis,
                                                dist_value **out_value);

/** Changes one copy of a variable. `args` is a list that holds this copy's components; borrowed. */
typedef dist_status (*dist_update_fn)(dist_tensor *copy, dist_value *args, void *user_data);

/**
 * Calls `fn` on every copy of a variable, with that replica's components of `args`, some at the same time.
 *
 *     every replica r:   fn(copy[r], component(args, r), user_data)
 *
 * Context  Strategy, concurrent; also inside a merge function. fn may read variables, and begins no run.
 * Blocks   While a run is under way, then until all calls have returned.
 * Owns     args (a list, a tuple, or NULL) is borrowed.
 * Errors   INVALID_ARGUMENT NULL or args is no list or tuple. Else what fn returned for the lowest replica that failed.
 */
DIST_API DIST_NODISCARD dist_status dist_update(dist_strategy *strategy, dist_variable *variable,
                                                dist_update_fn fn, void *user_data, dist_value *args);

/** What one call of an update function is for. */
typedef struct dist_update_place {
  uint32_t struct_size;
  int32_t replica;    /* whose copy it is; -1: no replica's in particular, as central storage's */
  const char *device; /* its name, as dist_strategy_parameter_device(); "" for the default strategy */
  dist_tensor *copy;  /* to be changed; NULL in dist_update_non_slot() */
} dist_update_place;

/**
 * Changes one copy of a variable, as dist_update_fn, with named arguments and a result. It is called in the
 * cross-replica context, in the strategy's scope, and may reduce and run there. args and kwargs hold this copy's
 * components, and are borrowed; *out_result is NULL before the call and is taken over with its reference.
 */
typedef dist_status (*dist_update_values_fn)(const dist_update_place *place, dist_value *args,
                                             dist_value *kwargs, dist_value **out_result, void *user_data);

typedef struct dist_update_options {
  uint32_t struct_size;
  /* 1: each leaf of the result becomes a tuple of what the calls gave, one where all gave one object */
  int32_t ungrouped;
} dist_update_options;
#define DIST_UPDATE_OPTIONS_INIT \
  { sizeof(dist_update_options), 0 }

/**
 * dist_update_values() from inside replicas: all of them meet, as in dist_merge_call(), and what they give as arguments
 * is merged; replica 0's function is used. *out_result is this replica's component of the result.
 *
 * Context  Replica. Collective.
 * Blocks   As dist_merge_call().
 * Owns     As dist_update_values().
 * Errors   As dist_merge_call() and dist_update_values().
 */
DIST_API DIST_NODISCARD dist_status dist_replica_update(dist_replica *replica, dist_variable *variable,
                                                        dist_update_values_fn fn, void *user_data,
                                                        dist_value *args, dist_value *kwargs,
                                                        const dist_update_options *options,
                                                        dist_value **out_result);

/**
 * A tuple of a value's components in this process, in replica order; of a variable its copies; of a list, tuple or
 * dictionary what each replica would find of it; of any other value a tuple of itself.
 *
 * Owns     *out_list is the caller's: dist_value_release().
 * Errors   INVALID_ARGUMENT NULL. RESOURCE_EXHAUSTED no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_local_results(dist_strategy *strategy, dist_value *value,
                                                       dist_value **out_list);

#ifdef __cplusplus
}
#endif
#endif /* DIST_CROSS_REPLICA_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_CROSS_REPLICA_EXPERIMENTAL_H)
#define DIST_CROSS_REPLICA_EXPERIMENTAL_H

#include "collective.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * One value where it is wanted: mirrored where that is on every replica, else as it is. The replicas share it.
 *
 * Context  Strategy, concurrent; also inside a merge function.
 * Owns     *out_value is the caller's: dist_value_release(). destination may be NULL: every replica.
 * Errors   INVALID_ARGUMENT     NULL, a per-replica or mirrored value, a bad destination (see dist_reduce_to()).
 *          FAILED_PRECONDITION  inside a replica function: use dist_broadcast().
 *          RESOURCE_EXHAUSTED   no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_broadcast_to(dist_strategy *strategy, dist_value *value,
                                                      const dist_destination *destination,
                                                      dist_value **out_value);

/**
 * Writes the name, in full, of the device that a destination is on. One replica: always that replica's.
 *
 * Errors   INVALID_ARGUMENT  NULL, a bad destination, one on every replica, or size_bytes is too small.
 *          NOT_FOUND         "replica:r" of no replica.
 */
DIST_API DIST_NODISCARD dist_status dist_destination_device(dist_strategy *strategy,
                                                            const dist_destination *destination,
                                                            char *out_name, size_t size_bytes);

/** As dist_strategy_options_init(), of dist_update_options. */
DIST_API void dist_update_options_init(dist_update_options *options, uint32_t struct_size_bytes);

/**
 * dist_update() with named arguments and results: one call after another, on the caller's thread.
 *
 *     for c in 0 .. copies-1:   result[c] = fn(copy[c], component(args, c), component(kwargs, c))
 *     *out_result = merge(result[0], ..., result[copies-1]), mirrored where they differ
 *
 * Context  Strategy, serialized for a variable; also inside a merge function. Inside replicas: dist_replica_update().
 * Blocks   Until all calls have returned.
 * Owns     args (a list or tuple, or NULL) and kwargs (a dictionary, or NULL) are borrowed. *out_result is the caller's:
 *          dist_value_release(); NULL if no call gave a result. out_result may be NULL: results are dropped.
 * Errors   INVALID_ARGUMENT     NULL; args or kwargs of another kind; a variable made outside a mirrored strategy, which
 *                               has no copies of it; results that differ in structure.
 *          FAILED_PRECONDITION  inside a replica function; another strategy's variable.
 *          RESOURCE_EXHAUSTED   no memory.
 *          any                  what fn returned: the first failure ends the update.
 */
DIST_API DIST_NODISCARD dist_status dist_update_values(dist_strategy *strategy, dist_variable *variable,
                                                       dist_update_values_fn fn, void *user_data,
                                                       dist_value *args, dist_value *kwargs,
                                                       const dist_update_options *options,
                                                       dist_value **out_result);

/**
 * As dist_update_values(), of what is no variable: once for each device that variables are on.
 *
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   Until all calls have returned.
 * Owns     As dist_update_values().
 * Errors   As dist_update_values().
 */
DIST_API DIST_NODISCARD dist_status dist_update_non_slot(dist_strategy *strategy, dist_update_values_fn fn,
                                                         void *user_data, dist_value *args,
                                                         dist_value *kwargs,
                                                         const dist_update_options *options,
                                                         dist_value **out_result);

/**
 * The variable that a value is, or is a copy of (as dist_local_results() gives them); NULL for other values.
 *
 * Owns     Borrowed.
 */
DIST_API dist_variable *dist_value_container(const dist_value *value);

/**
 * dist_reduce_to() by cross-device operations without a strategy: there are as many replicas as the value has
 * components. What is not distributed is one contribution, and is given back. The operator, or the functions, that the
 * operations were made with are used.
 *
 * Shape    As dist_reduce_to().
 * Order    As dist_reduce(), ORDERED.
 * Blocks   Until it is done.
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   As dist_reduce_to(); INVALID_ARGUMENT also where destination is NULL.
 */
DIST_API DIST_NODISCARD dist_status dist_cross_device_reduce(dist_cross_device *cross_device,
                                                             dist_reduce_op op, dist_value *value,
                                                             const dist_destination *destination,
                                                             dist_value **out_value);

/**
 * dist_batch_reduce_to() by cross-device operations without a strategy; see dist_cross_device_reduce().
 *
 * Shape    As dist_reduce_to(); all values have as many components. n = 0 is legal.
 * Order    As dist_reduce(), ORDERED.
 * Blocks   Until all are done.
 * Owns     The out_values are the caller's. On an error none is written.
 * Errors   As dist_cross_device_reduce().
 */
DIST_API DIST_NODISCARD dist_status dist_cross_device_batch_reduce(dist_cross_device *cross_device,
                                                                   dist_reduce_op op,
                                                                   dist_value *const *values,
                                                                   const dist_destination *destinations,
                                                                   size_t n, dist_value **out_values);

/**
 * dist_broadcast_to() by cross-device operations without a strategy: to as many replicas as the destination has.
 *
 * Blocks   Until it is done.
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   As dist_broadcast_to(); INVALID_ARGUMENT also where destination is NULL.
 */
DIST_API DIST_NODISCARD dist_status dist_cross_device_broadcast(dist_cross_device *cross_device,
                                                                dist_value *value,
                                                                const dist_destination *destination,
                                                                dist_value **out_value);

/**
 * dist_gather() by cross-device operations without a strategy.
 *
 * Blocks   Until it is done.
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   As dist_gather().
 */
DIST_API DIST_NODISCARD dist_status dist_cross_device_gather(dist_cross_device *cross_device,
                                                             dist_value *value, int32_t axis,
                                                             dist_value **out_value);

/**
 * The operator by which a variable of this aggregation is reduced.
 *
 * Shape    –
 * Order    –
 * Errors   INVALID_ARGUMENT  NULL, or an aggregation that is no reduction: NONE, ONLY_FIRST_REPLICA.
 */
DIST_API DIST_NODISCARD dist_status dist_reduce_op_from_aggregation(int32_t aggregation,
                                                                    dist_reduce_op *out_op);

typedef struct dist_cross_device_options {
  uint32_t struct_size;
  int32_t kind;                 /* DIST_CROSS_DEVICE_... */
  int32_t num_packs;            /* taken, and of no consequence: values from outside runs travel nowhere */
  int32_t reserved;             /* 0 */
  const char *reduce_to_device; /* REDUCTION_TO_ONE_DEVICE: a device's name; NULL: any */
  dist_reduce_fn accumulate;    /* REDUCTION_TO_ONE_DEVICE: instead of +; MEAN divides by n afterwards */
  void *accumulate_user_data;
  const struct dist_cross_device_functions *functions; /* HOST: copied; `reduce` is required */
  void *functions_user_data;
  dist_allocator allocator;        /* all zero: malloc and free */
  size_t accumulate_element_bytes; /* of one element of `accumulate`; 0: the dtype's */
} dist_cross_device_options;
#define DIST_CROSS_DEVICE_OPTIONS_INIT \
  { sizeof(dist_cross_device_options), 0, 0, 0, 0, 0, 0, 0, 0, {0, 0, 0}, 0 }

/** As dist_strategy_options_init(), of dist_cross_device_options. */
DIST_API void dist_cross_device_options_init(dist_cross_device_options *options, uint32_t struct_size_bytes);

/**
 * Makes cross-device operations (TensorFlow: CrossDeviceOps), for a strategy's options or for use without one:
 * dist_cross_device_reduce() and its like. TensorFlow's kinds are names for what libdist does anyway, to the bit.
 *
 * Owns     *out_cross_device is the caller's: dist_cross_device_destroy(). user_data is used until it has ended, and the
 *          strategies that were made with it.
 * Errors   INVALID_ARGUMENT    NULL, an unknown kind, num_packs < 0, a field that is another kind's, no device's name.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_cross_device_create(const dist_cross_device_options *options,
                                                             dist_cross_device **out_cross_device);

/**
 * Ends them for the caller; strategies made with them go on. NULL is fine.
 *
 * Context  Any, serialized.
 * Owns     Takes the object.
 */
DIST_API void dist_cross_device_destroy(dist_cross_device *cross_device);

/** A DIST_CROSS_DEVICE_...; 0 for NULL. */
DIST_API int32_t dist_cross_device_kind(const dist_cross_device *cross_device);

/** The num_packs that they were made with; 0 for NULL. */
DIST_API int32_t dist_cross_device_num_packs(const dist_cross_device *cross_device);

/**
 * The full name of the reduce_to_device that they were made with; NULL where there is none, or for NULL.
 *
 * Owns     Borrowed.
 */
DIST_API const char *dist_cross_device_device(const dist_cross_device *cross_device);

/** The host's own functions for dist_cross_device_options. */
typedef struct dist_cross_device_functions {
  uint32_t struct_size;
  int32_t reserved;                   /* 0 */
  dist_reduce_values_fn reduce;       /* required */
  dist_broadcast_values_fn broadcast; /* NULL: all replicas share the value, which does not change */
  dist_gather_values_fn gather;       /* NULL: libdist's */
} dist_cross_device_functions;
#define DIST_CROSS_DEVICE_FUNCTIONS_INIT \
  { sizeof(dist_cross_device_functions), 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_cross_device_functions. */
DIST_API void dist_cross_device_functions_init(dist_cross_device_functions *functions,
                                               uint32_t struct_size_bytes);

#ifdef __cplusplus
}
#endif
#endif /* DIST_CROSS_REPLICA_EXPERIMENTAL_H */
