/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Variables: tensors that outlive runs, with one copy for each replica or one copy for all.
 *
 *     dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
 *     options.name = "w";
 *     options.aggregation = DIST_AGGREGATION_MEAN;
 *     dist_variable *w = NULL;
 *     dist_variable_create(strategy, &initial, &options, &w);               // copies equal to `initial`
 *
 *     dist_replica_assign(replica, w, DIST_ASSIGN_SUB, &gradient, NULL);    // in a run: copy -= mean gradient
 *     dist_value *value = NULL;
 *     dist_variable_read(strategy, w, &value);                              // outside runs: a new tensor
 *
 * Functions that read or write variables from outside replicas wait for a turn between the strategy's runs, so that no
 * thread sees a half-written value. This applies to read, assign, scatter, update, drift checks, checkpoints and
 * metrics, and to reduce and gather if a variable is part of the value. Such a function waits for the run in progress
 * and holds back the next one. It fails with DEADLINE_EXCEEDED if the run does not end within the strategy's
 * timeout_ns, with CANCELLED if the strategy is shut down, and with FAILED_PRECONDITION if functions of a run that
 * returned at its deadline are still running, or if a dataset's source or a part of a parallel loop makes the call. A
 * call in a merge function does not wait, because its run waits for it.
 *
 * Some accesses do not wait for a turn: pointers to copies (dist_variable_component()), descriptions
 * (dist_variable_describe()), and runs of another strategy that read the variable.
 */
#ifndef DIST_VARIABLE_H
#define DIST_VARIABLE_H

#include "collective.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Creates a variable's initial value, for example with dist_value_create_tensor(), and transfers the reference to
 * libdist.
 */
typedef dist_status (*dist_initial_fn)(dist_strategy *strategy, dist_value **out_value, void *user_data);

/** Options of dist_variable_create() and dist_replica_variable(). */
typedef struct dist_variable_options {
  uint32_t struct_size;
  dist_aggregation aggregation;         /* how assigned values are combined; 0 = DIST_AGGREGATION_NONE */
  const char *name;                     /* name for messages and checkpoints; NULL = "Variable" */
  dist_synchronization synchronization; /* when the copies are combined; 0 = DIST_SYNCHRONIZATION_AUTO */
  int32_t reserved;                     /* must be 0 */
  dist_initial_fn initial_fn;           /* replaces the initial tensor; called once, on the calling thread */
  void *initial_user_data;
} dist_variable_options;
#define DIST_VARIABLE_OPTIONS_INIT \
  { sizeof(dist_variable_options), DIST_AGGREGATION_NONE, 0, DIST_SYNCHRONIZATION_AUTO, 0, 0, 0 }

/** Initializes a dist_variable_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_variable_options_init(dist_variable_options *options, uint32_t struct_size_bytes);

/**
 * Creates a variable whose copies all equal `initial`. The strategy decides how many copies to create and how to
 * interpret the options. The result is one of four classes, which dist_variable_class() returns:
 *
 *     mirrored, ON_WRITE or AUTO  MirroredVariable     one copy per replica; assignments are aggregated, and all copies
 *                                                      stay equal (except with aggregation NONE)
 *     mirrored, ON_READ           SyncOnReadVariable   one copy per replica, written only by that replica; reads from
 *                                                      outside aggregate the copies
 *     central storage             AggregatingVariable  one copy; assignments are aggregated
 *     one device, default         Variable             one copy; there is nothing to aggregate
 *
 * Shape    Any; the copies are row-major.
 * Order    Bits are copied.
 * Context  Strategy, concurrent.
 * Blocks   Only for initial_fn. Over several workers, until all of them have created it, up to the strategy's timeout.
 * Owns     The caller owns *out_variable and destroys it with dist_variable_destroy().
 * Errors   INVALID_ARGUMENT     a required argument is NULL; both an initial tensor and initial_fn are given, or none;
 *                               the tensor, the name or an option is invalid. For a mirrored strategy also:
 *                               synchronization NONE, or MEAN of a dtype that is not floating point. Over several
 *                               workers also: the workers create different variables.
 *          FAILED_PRECONDITION  called inside a replica function (use dist_replica_variable()), or inside another
 *                               strategy's scope.
 *          RESOURCE_EXHAUSTED   out of memory.
 *          any                  the status that initial_fn returned; over several workers, the errors of a collective.
 */
DIST_API DIST_NODISCARD dist_status dist_variable_create(dist_strategy *strategy, const dist_tensor *initial,
                                                         const dist_variable_options *options,
                                                         dist_variable **out_variable);

/**
 * Destroys a variable. Values that refer to it keep its memory alive until they are released. Does nothing if
 * `variable` is NULL.
 *
 * Context  Strategy, serialized; not while a run uses the variable.
 * Owns     Takes ownership of the variable.
 */
DIST_API void dist_variable_destroy(dist_variable *variable);

/**
 * Returns the variable's name; "" for NULL.
 *
 * Owns     The result is borrowed.
 */
DIST_API const char *dist_variable_name(const dist_variable *variable);

/** Returns the number of copies of the variable: one per replica, or one. 0 for NULL. */
DIST_API int32_t dist_variable_num_copies(const dist_variable *variable);

/**
 * Returns a view of the copy that replica `replica_id` uses: its own copy, or the one that all replicas share. A
 * replica may write to its own copy. It is then responsible for keeping all copies equal, for example by applying the
 * same all-reduced gradient on every replica.
 *
 * Shape    That of the variable, row-major.
 * Order    –
 * Context  Any, concurrent. Writing: only that replica, or outside runs.
 * Owns     The view is borrowed: valid while the variable exists.
 * Errors   INVALID_ARGUMENT  an argument is NULL, or replica_id is not in 0 .. R-1.
 */
DIST_API DIST_NODISCARD dist_status dist_variable_component(const dist_variable *variable, int32_t replica_id,
                                                            dist_tensor *out_tensor);

/**
 * Reads the variable's value in cross-replica context, as a new tensor. Checkpoints save this value. Assigning it with
 * dist_variable_assign() restores the variable, under any strategy and with any number of replicas.
 *
 *     SyncOnReadVariable:  SUM, MEAN            fold of copy[0 .. R-1], as in dist_reduce()
 *                          ONLY_FIRST_REPLICA   copy[0]
 *     all others:          copy[0]
 *
 * Shape    That of the variable.
 * Order    Like dist_reduce().
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   While a run is in progress.
 * Owns     The caller owns *out_value and releases it with dist_value_release().
 * Errors   INVALID_ARGUMENT     an argument is NULL; the variable is a SyncOnReadVariable with aggregation NONE, or
 *                               with SUM of bool.
 *          FAILED_PRECONDITION  called inside a replica function (use dist_replica_read()), or the variable belongs to
 *                               another strategy.
 *          DEADLINE_EXCEEDED    a run was in progress for longer than the strategy's timeout_ns.
 *          CANCELLED            the strategy was shut down.
 *          RESOURCE_EXHAUSTED   out of memory.
 *          any                  a SyncOnReadVariable over several workers: the errors of a collective.
 */
DIST_API DIST_NODISCARD dist_status dist_variable_read(dist_strategy *strategy, dist_variable *variable,
                                                       dist_value **out_value);

/**
 * Assigns to every copy. A tensor is assigned to all copies; a per-replica or mirrored value assigns component r to
 * copy r (component 0 if there is only one copy).
 *
 *     every copy r:   copy[r] = value      (or copy[r] + value, copy[r] - value)
 *
 * A SyncOnReadVariable accepts one value, not a per-replica one, and stores it so that reading returns it. With SUM,
 * copy[r] = value / R, and adding is not allowed; for integers, the first (value mod R) copies get one more. With MEAN
 * and ONLY_FIRST_REPLICA, every copy gets the value. To write different values to the copies, use dist_update().
 *
 * Shape    The variable's shape and dtype.
 * Order    One operation per element.
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   While a run is in progress, then until all copies are written.
 * Errors   No copy is changed on an error.
 *          INVALID_ARGUMENT     an argument is NULL, `how` is unknown, or the shape or dtype differs. For a
 *                               SyncOnReadVariable also: aggregation NONE, a per-replica value, or adding with SUM.
 *          FAILED_PRECONDITION  called inside a replica function, or the variable belongs to another strategy.
 *          DEADLINE_EXCEEDED    a run was in progress for longer than the strategy's timeout_ns.
 *          CANCELLED            the strategy was shut down.
 */
DIST_API DIST_NODISCARD dist_status dist_variable_assign(dist_strategy *strategy, dist_variable *variable,
                                                         dist_assign_op how, dist_value *value);

/**
 * Reads this replica's copy of a variable, as a new tensor. dist_variable_component() returns a view instead.
 *
 * Shape    That of the variable.
 * Order    Bits are copied.
 * Context  Replica.
 * Owns     The caller owns *out_value and releases it with dist_value_release().
 * Errors   INVALID_ARGUMENT     an argument is NULL.
 *          FAILED_PRECONDITION  not inside this replica's function; or the variable belongs to another strategy and is
 *                               not of class "Variable".
 *          RESOURCE_EXHAUSTED   out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_replica_read(dist_replica *replica, dist_variable *variable,
                                                      dist_value **out_value);

/**
 * Assigns to a variable inside replicas, according to its aggregation.
 *
 *     NONE:                 copy[r] = value[r], without waiting (an error for an AggregatingVariable)
 *     SUM, MEAN:            every copy r:   copy[r] = fold of value[0 .. R-1], as in dist_all_reduce()
 *     ONLY_FIRST_REPLICA:   every copy r:   copy[r] = value[0]
 *     (or copy[r] + ..., copy[r] - ...)
 *
 * A SyncOnReadVariable, and a strategy with one replica, behave as with NONE, whatever the aggregation is.
 *
 * Shape    The variable's shape and dtype.
 * Order    Like dist_all_reduce(), then one operation per element.
 * Context  Replica. Collective, unless each replica writes only its own copy.
 * Blocks   Like dist_all_reduce().
 * Errors   Like dist_all_reduce(), and
 *          INVALID_ARGUMENT     `how` is unknown; the shape or dtype differs; options->group is set or options->planned
 *                               is 1; or the variable is an AggregatingVariable with aggregation NONE, or with MEAN of
 *                               integers.
 *          FAILED_PRECONDITION  the variable belongs to another strategy, or called on a logical device.
 */
DIST_API DIST_NODISCARD dist_status dist_replica_assign(dist_replica *replica, dist_variable *variable,
                                                        dist_assign_op how, const dist_tensor *value,
                                                        const dist_collective_options *options);

/**
 * Returns the strategy's variable with the given name. The first run whose replicas ask for the name creates it with
 * replica 0's initial value; later calls return the existing variable.
 *
 * Shape    Like dist_variable_create(). An initial tensor must have the variable's shape and dtype even if it is not
 *          used.
 * Order    Bits are copied.
 * Context  Replica. Collective: all replicas pass the same name and the same options (options->name is ignored).
 * Blocks   Like dist_merge_call().
 * Owns     The strategy owns *out_variable, until the strategy is destroyed or dist_variable_destroy() is called.
 * Errors   Like dist_variable_create() and dist_merge_call(), and
 *          INVALID_ARGUMENT  the name is invalid, or the variable exists with another shape, dtype or options.
 */
DIST_API DIST_NODISCARD dist_status dist_replica_variable(dist_replica *replica, const char *name,
                                                          const dist_tensor *initial,
                                                          const dist_variable_options *options,
                                                          dist_variable **out_variable);

/**
 * Returns "MirroredVariable", "SyncOnReadVariable", "AggregatingVariable" or "Variable", see dist_variable_create(); ""
 * for NULL.
 *
 * Owns     The result is a static string.
 */
DIST_API const char *dist_variable_class(const dist_variable *variable);

/**
 * Returns a variable's synchronization; 0 for NULL. AUTO has been replaced by the strategy's choice, if it had one.
 */
DIST_API dist_synchronization dist_variable_synchronization(const dist_variable *variable);

/** Returns a variable's aggregation; 0 for NULL. */
DIST_API dist_aggregation dist_variable_aggregation(const dist_variable *variable);

/**
 * Returns the name of a copy: "w", "w/replica_1", "w/replica_2" and so on; "" for NULL, or if there is no such copy.
 *
 * Owns     The result is borrowed.
 */
DIST_API const char *dist_variable_copy_name(const dist_variable *variable, int32_t copy);

/**
 * Returns the device of a copy, in the form of dist_strategy_parameter_device(). Copy r is on replica r's device. With
 * a default strategy, which names no devices, the result is CPU:0.
 *
 * Owns     *out_name is borrowed: valid while the strategy exists.
 * Errors   INVALID_ARGUMENT     an argument is NULL, or there is no such copy.
 *          FAILED_PRECONDITION  the variable belongs to another strategy.
 */
DIST_API DIST_NODISCARD dist_status dist_variable_device(const dist_strategy *strategy,
                                                         const dist_variable *variable, int32_t copy,
                                                         const char **out_name);

/**
 * Changes rows of every copy. Indexed slices apply to all copies; of a per-replica value, component r applies to copy r
 * (component 0 if there is only one copy).
 *
 *     every copy c, k = 0, 1, ...:   c[indices[k]] = op(c[indices[k]], values[k])
 *
 * Shape    values [k, rest], indices [k], variable [n, rest]; values and variable have the same dtype. BATCH_UPDATE
 *          also accepts a list {values [b, k, rest], indices [b, k]} for a variable [b, n, rest], where b is any number
 *          of dimensions.
 * Order    Row by row, in the given order. If an index occurs twice, both rows apply, one after the other.
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   While a run is in progress, then until all copies are written.
 * Errors   No copy is changed on an error.
 *          INVALID_ARGUMENT     an argument is NULL, `how` is unknown, shapes or dtypes do not match, an index is
 *                               outside the variable, an integer is divided by 0, or MIN or MAX is applied to
 *                               complex64.
 *          UNIMPLEMENTED        the variable is a SyncOnReadVariable; BATCH_UPDATE of a MirroredVariable; or UPDATE,
 *                               MIN or MAX of one with aggregation SUM or MEAN.
 *          FAILED_PRECONDITION  called inside a replica function, or the variable belongs to another strategy.
 *          DEADLINE_EXCEEDED    a run was in progress for longer than the strategy's timeout_ns.
 *          CANCELLED            the strategy was shut down.
 */
DIST_API DIST_NODISCARD dist_status dist_variable_scatter(dist_strategy *strategy, dist_variable *variable,
                                                          dist_scatter_op how, dist_value *slices);

/**
 * Assigns a value to a variable inside replicas, like dist_replica_assign(). As in TensorFlow, the identity of the
 * value matters: if all replicas pass the same dist_value, it counts as one number for all of them. MEAN and
 * ONLY_FIRST_REPLICA then assign that value, and SUM is an error.
 *
 * Shape    The variable's shape and dtype.
 * Order    Like dist_reduce(), then one operation per element.
 * Context  Replica. Collective, unless each replica writes only its own copy.
 * Blocks   Like dist_merge_call(): replica 0's thread reduces for all.
 * Errors   Like dist_replica_assign().
 */
DIST_API DIST_NODISCARD dist_status dist_replica_assign_value(dist_replica *replica, dist_variable *variable,
                                                              dist_assign_op how, dist_value *value,
                                                              const dist_collective_options *options);

/**
 * Changes rows of a variable inside replicas, like dist_variable_scatter(), according to the variable's aggregation:
 *
 *     NONE:                 copy[r] by slices[r], without waiting
 *     SUM:                  every copy by slices[0], slices[1], ... slices[R-1], one after the other
 *     MEAN:                 the same, with values / R
 *     ONLY_FIRST_REPLICA:   every copy by slices[0]
 *     AggregatingVariable:  its copy by slices[0], slices[1], ... slices[R-1], whatever the aggregation is
 *
 * If all replicas pass the same dist_value, SUM is an error, and MEAN works like ONLY_FIRST_REPLICA.
 *
 * Shape    Like dist_variable_scatter().
 * Order    By replica id, then row by row in the given order.
 * Context  Replica. Collective, unless each replica writes only its own copy.
 * Blocks   Like dist_merge_call().
 * Errors   Like dist_variable_scatter() and dist_merge_call().
 */
DIST_API DIST_NODISCARD dist_status dist_replica_scatter(dist_replica *replica, dist_variable *variable,
                                                         dist_scatter_op how, dist_value *slices,
                                                         const dist_collective_options *options);

#ifdef __cplusplus
}
#endif
#endif /* DIST_VARIABLE_H */
