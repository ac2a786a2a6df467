/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Variables: tensors that outlive runs, with a copy for each replica or one for all.
 *
 * What reads or writes variables from outside (read, assign, scatter, update, drift, checkpoints, metrics; reduce and gather
 * where a variable is part of the value) takes its turn among the strategy's runs, so that nobody sees half of a value: it
 * waits for the run that is under way, at most the strategy's timeout_ns (DEADLINE_EXCEEDED), and holds off the next. A
 * merge function goes ahead, since its run waits for it. Pointers to copies (dist_variable_component()) know no turns, nor
 * do descriptions (dist_variable_describe()) and another strategy's run that reads the variable.
 */
#ifndef DIST_VARIABLE_H
#define DIST_VARIABLE_H

#include "collective.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Gives a variable's first value, by dist_value_create_tensor() and its like. The reference is handed over. */
typedef dist_status (*dist_initial_fn)(dist_value **out_value, void *user_data);

typedef struct dist_variable_options {
  uint32_t struct_size;
  int32_t aggregation;        /* DIST_AGGREGATION_... */
  const char *name;           /* NULL: "Variable" */
  int32_t synchronization;    /* DIST_SYNCHRONIZATION_... */
  int32_t trainable;          /* 1: yes; -1: no; 0: yes, unless it is synchronized on reading */
  int32_t partitions;         /* 0 or 1: the variable is in one piece */
  int32_t reserved;           /* 0 */
  dist_initial_fn initial_fn; /* instead of an initial tensor: called once, on the calling thread */
  void *initial_user_data;
} dist_variable_options;
#define DIST_VARIABLE_OPTIONS_INIT \
  { sizeof(dist_variable_options), 0, 0, 0, 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_variable_options. */
DIST_API void dist_variable_options_init(dist_variable_options *options, uint32_t struct_size_bytes);

/**
 * A variable whose copies are all equal to `initial`. How many there are, and what the options mean, is the strategy's
 * affair; dist_variable_class() tells which of the four kinds it became:
 *
 *     mirrored, ON_WRITE or AUTO  MirroredVariable     a copy for each replica; assignments are aggregated, and all
 *                                                      copies stay equal (but for aggregation NONE)
 *     mirrored, ON_READ           SyncOnReadVariable   a copy for each replica, written by it alone; reads from outside
 *                                                      are aggregated
 *     central storage             AggregatingVariable  one copy; assignments are aggregated
 *     one device, default         Variable             one copy; nothing is to be aggregated
 *
 * Shape    Any; the copies are row-major.
 * Order    Bits are copied.
 * Context  Strategy, concurrent.
 * Blocks   Never, but for initial_fn. Of several workers until all of them make it, up to the strategy's time-out.
 * Owns     *out_variable is the caller's: dist_variable_destroy().
 * Errors   INVALID_ARGUMENT    NULL, or both an initial tensor and a function; a bad tensor or option. With a mirrored
 *                              strategy also synchronization NONE, and MEAN of a dtype that is not floating point.
 *          UNIMPLEMENTED       partitions > 1: variables in pieces live on parameter servers.
 *          RESOURCE_EXHAUSTED  no memory. Else what initial_fn returned; of several workers what a collective of all of
 *                              them can end with: INVALID_ARGUMENT where they make different ones.
 */
DIST_API DIST_NODISCARD dist_status dist_variable_create(dist_strategy *strategy, const dist_tensor *initial,
                                                         const dist_variable_options *options,
                                                         dist_variable **out_variable);

/**
 * Ends a variable; values made of it keep its memory until they end. NULL is fine.
 *
 * Context  Strategy, serialized; not while a run uses it.
 * Owns     Takes the variable.
 */
DIST_API void dist_variable_destroy(dist_variable *variable);

/**
 * The variable's name; "" for NULL.
 *
 * Owns     Borrowed.
 */
DIST_API const char *dist_variable_name(const dist_variable *variable);

/** How many copies the variable has: one for each replica, or one. 0 for NULL. */
DIST_API int32_t dist_variable_num_copies(const dist_variable *variable);

/**
 * A view of what replica `replica_id` has of the variable: its own copy, or the one that all share. A replica may write
 * to its own; that all copies stay equal is then its affair (the same all-reduced gradient on every replica does it).
 *
 * Shape    The variable's, row-major.
 * Order    –
 * Context  Any, concurrent; writing: by that replica alone, or outside runs.
 * Owns     Borrowed: valid while the variable is.
 * Errors   INVALID_ARGUMENT  NULL, or replica_id is not in 0 .. R-1.
 */
DIST_API DIST_NODISCARD dist_status dist_variable_component(const dist_variable *variable, int32_t replica_id,
                                                            dist_tensor *out_tensor);

/**
 * The variable's value as the cross-replica context sees it, as a new tensor. It is what a checkpoint saves;
 * dist_variable_assign() of it restores the variable, under any strategy and number of replicas.
 *
 *     SyncOnReadVariable:  SUM, MEAN            fold of copy[0 .. R-1], as dist_reduce()
 *                          ONLY_FIRST_REPLICA   copy[0]
 *     all others:          copy[0]
 *
 * Shape    The variable's.
 * Order    As dist_reduce().
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   While a run is under way.
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   INVALID_ARGUMENT     NULL; a SyncOnReadVariable with aggregation NONE, or SUM of bool.
 *          FAILED_PRECONDITION  inside a replica function (dist_replica_read()); another strategy's variable.
 *          RESOURCE_EXHAUSTED   no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_variable_read(dist_strategy *strategy, dist_variable *variable,
                                                       dist_value **out_value);

/**
 * Assigns to every copy: a tensor to all, a per-replica or mirrored value to each its own (to a single copy, the first).
 *
 *     every copy r:   copy[r] = value      (or copy[r] + value, copy[r] - value)
 *
 * A SyncOnReadVariable takes one value, not a per-replica one, so that reading it gives the value: with SUM
 * copy[r] = value / R, and no adding (of integers the first value mod R copies have one more); with MEAN and
 * ONLY_FIRST_REPLICA as above. dist_update() writes to the copies themselves.
 *
 * Shape    The variable's shape and dtype.
 * Order    One operation an element.
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   While a run is under way, then until all copies are written.
 * Errors   INVALID_ARGUMENT     NULL, an unknown `how`, another shape or dtype; for a SyncOnReadVariable also aggregation
 *                               NONE, a per-replica value, and adding with SUM.
 *          FAILED_PRECONDITION  inside a replica function; another strategy's variable. Nothing is written on an error.
 */
DIST_API DIST_NODISCARD dist_status dist_variable_assign(dist_strategy *strategy, dist_variable *variable,
                                                         int32_t how, dist_value *value);

/**
 * This replica's copy of a variable as a new tensor (dist_variable_component() gives a view of it).
 *
 * Shape    The variable's.
 * Order    Bits are copied.
 * Context  Replica.
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   INVALID_ARGUMENT     NULL.
 *          FAILED_PRECONDITION  not inside this replica's function; another strategy's variable, unless it is a "Variable".
 *          RESOURCE_EXHAUSTED   no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_replica_read(dist_replica *replica, dist_variable *variable,
                                                      dist_value **out_value);

/**
 * Assigns inside replicas, by the variable's aggregation.
 *
 *     NONE:                 copy[r] = value[r], and nobody waits (an AggregatingVariable refuses it)
 *     SUM, MEAN:            every copy r:   copy[r] = fold of value[0 .. R-1], as dist_all_reduce()
 *     ONLY_FIRST_REPLICA:   every copy r:   copy[r] = value[0]
 *     (or copy[r] + ..., copy[r] - ...)
 *
 * A SyncOnReadVariable and a strategy with one replica do as with NONE, whatever the aggregation.
 *
 * Shape    The variable's shape and dtype.
 * Order    As dist_all_reduce(), then one operation an element.
 * Context  Replica. Collective, unless each replica keeps to its own copy.
 * Blocks   As dist_all_reduce().
 * Errors   As dist_all_reduce(); INVALID_ARGUMENT also for another shape or dtype, and for an AggregatingVariable with
 *          NONE, or with the MEAN of integers; FAILED_PRECONDITION for another strategy's variable.
 */
DIST_API DIST_NODISCARD dist_status dist_replica_assign(dist_replica *replica, dist_variable *variable,
                                                        int32_t how, const dist_tensor *value,
                                                        const dist_collective_options *options);

#ifdef __cplusplus
}
#endif
#endif /* DIST_VARIABLE_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_VARIABLE_EXPERIMENTAL_H)
#define DIST_VARIABLE_EXPERIMENTAL_H

#include "collective.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The strategy's variable of this name: made by the first run whose replicas ask for it, with replica 0's initial value,
 * and found again by later ones.
 *
 * Shape    As dist_variable_create(); an initial tensor has the variable's shape and dtype also where it is not used.
 * Order    Bits are copied.
 * Context  Replica. Collective: all replicas ask for the same name, with the same options (options->name is not read).
 * Blocks   As dist_merge_call().
 * Owns     *out_variable is the strategy's and ends with it, or by dist_variable_destroy().
 * Errors   As dist_variable_create(); INVALID_ARGUMENT also where the variable is there and of another shape, dtype or
 *          options; those of dist_merge_call().
 */
DIST_API DIST_NODISCARD dist_status dist_replica_variable(dist_replica *replica, const char *name,
                                                          const dist_tensor *initial,
                                                          const dist_variable_options *options,
                                                          dist_variable **out_variable);

/**
 * "MirroredVariable", "SyncOnReadVariable", "AggregatingVariable" or "Variable": see dist_variable_create(). "" for NULL.
 *
 * Owns     Borrowed; it never ends.
 */
DIST_API const char *dist_variable_class(const dist_variable *variable);

/**
 * The DIST_SYNCHRONIZATION_... that the variable has: AUTO has become what the strategy chose, where it had a choice.
 * -1 for NULL.
 */
DIST_API int32_t dist_variable_synchronization(const dist_variable *variable);

/** The variable's DIST_AGGREGATION_...; -1 for NULL. */
DIST_API int32_t dist_variable_aggregation(const dist_variable *variable);

/** Whether the variable is for training to change: 1 or 0; 0 for NULL. libdist makes no difference. */
DIST_API int32_t dist_variable_trainable(const dist_variable *variable);

/**
 * The name of a copy: "w", "w/replica_1", "w/replica_2" ... ; "" for NULL, and where there is no such copy.
 *
 * Owns     Borrowed.
 */
DIST_API const char *dist_variable_copy_name(const dist_variable *variable, int32_t copy);

/**
 * The device that a copy is on, as dist_strategy_parameter_device() names it: that of copy r is replica r's. With a
 * default strategy, which names none, it is CPU:0.
 *
 * Owns     *out_name is the strategy's.
 * Errors   INVALID_ARGUMENT     NULL, or there is no such copy.
 *          FAILED_PRECONDITION  another strategy's variable.
 */
DIST_API DIST_NODISCARD dist_status dist_variable_device(const dist_strategy *strategy,
                                                         const dist_variable *variable, int32_t copy,
                                                         const char **out_name);

/**
 * Whether this strategy made a variable: of a variable's value, or of one of its copies as dist_local_results() gives
 * them.
 *
 * Errors   INVALID_ARGUMENT NULL, or neither a variable nor a copy of one.
 */
DIST_API DIST_NODISCARD dist_status dist_variable_created_in_scope(dist_strategy *strategy,
                                                                   const dist_value *variable,
                                                                   int32_t *out_created);

/**
 * Changes rows of every copy: indexed slices for all, or per-replica ones, each replica's for its own copy (of a single
 * copy, the first).
 *
 *     every copy c, k = 0, 1, ...:   c[indices[k]] = op(c[indices[k]], values[k])
 *
 * Shape    values [k, rest], indices [k], the variable [n, rest] and of the values' dtype. BATCH_UPDATE also takes a list
 *          {values [b, k, rest], indices [b, k]} for a variable [b, n, rest], where b is any number of dimensions.
 * Order    Row by row as given: of an index that comes twice both count, one after the other.
 * Context  Strategy, concurrent; also inside a merge function.
 * Blocks   While a run is under way, then until all copies are written.
 * Errors   INVALID_ARGUMENT     NULL, an unknown `how`, shapes or dtypes that do not fit, an index outside the variable,
 *                               an integer division by 0, min or max of complex64.
 *          UNIMPLEMENTED        of a SyncOnReadVariable; BATCH_UPDATE of a MirroredVariable; UPDATE, MIN, MAX of one with
 *                               aggregation SUM or MEAN.
 *          FAILED_PRECONDITION  inside a replica function; another strategy's variable. Nothing is written on an error.
 */
DIST_API DIST_NODISCARD dist_status dist_variable_scatter(dist_strategy *strategy, dist_variable *variable,
                                                          int32_t how, dist_value *slices);

/**
 * As dist_replica_assign(), of a value, whose identity counts as in TensorFlow: where all replicas give the same
 * dist_value it is one number for all of them, which MEAN and ONLY_FIRST_REPLICA assign, and of which SUM is an error.
 *
 * Shape    The variable's shape and dtype.
 * Order    As dist_reduce(), then one operation an element.
 * Context  Replica. Collective, unless each replica keeps to its own copy.
 * Blocks   As dist_merge_call(): replica 0's thread reduces for all.
 * Errors   As dist_replica_assign().
 */
DIST_API DIST_NODISCARD dist_status dist_replica_assign_value(dist_replica *replica, dist_variable *variable,
                                                              int32_t how, dist_value *value,
                                                              const dist_collective_options *options);

/**
 * Changes rows inside replicas, by the variable's aggregation: dist_variable_scatter() of
 *
 *     NONE:                 copy[r] by slices[r], and nobody waits
 *     SUM:                  every copy by slices[0], slices[1], ... slices[R-1], one after the other
 *     MEAN:                 the same, of values / R
 *     ONLY_FIRST_REPLICA:   every copy by slices[0]
 *     AggregatingVariable:  its copy by slices[0], slices[1], ... slices[R-1], whatever the aggregation
 *
 * Where all replicas give the same dist_value, SUM is an error, and MEAN does as ONLY_FIRST_REPLICA.
 *
 * Shape    As dist_variable_scatter().
 * Order    By replica id, then row by row as given.
 * Context  Replica. Collective, unless each replica keeps to its own copy.
 * Blocks   As dist_merge_call().
 * Errors   As dist_variable_scatter(), and those of dist_merge_call().
 */
DIST_API DIST_NODISCARD dist_status dist_replica_scatter(dist_replica *replica, dist_variable *variable,
                                                         int32_t how, dist_value *slices,
                                                         const dist_collective_options *options);

#ifdef __cplusplus
}
#endif
#endif /* DIST_VARIABLE_EXPERIMENTAL_H */
