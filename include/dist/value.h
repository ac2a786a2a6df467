/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Values: tensors, lists and dictionaries of values, one value for each replica. They are immutable and counted.
 */
#ifndef DIST_VALUE_H
#define DIST_VALUE_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A copy of a tensor, row-major.
 *
 * Shape    Any, strided too.
 * Order    Bits are copied.
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   INVALID_ARGUMENT    NULL, a bad dtype, a negative size, a product that overflows.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_tensor(dist_strategy *strategy,
                                                             const dist_tensor *tensor,
                                                             dist_value **out_value);

/**
 * A value that borrows the caller's memory until `release` is called (at once, if this fails: never).
 *
 * Shape    Any, strided too. The shape and strides are copied, the data are not.
 * Order    –
 * Owns     tensor->data stays the caller's until release(user_data); release may be NULL.
 * Errors   As dist_value_create_tensor().
 */
DIST_API DIST_NODISCARD dist_status dist_value_wrap_tensor(dist_strategy *strategy, const dist_tensor *tensor,
                                                           dist_release_fn release, void *user_data,
                                                           dist_value **out_value);

/**
 * A value of R components, items[r] for replica r; wherever a replica receives it, it finds its own.
 *
 * Owns     Keeps a reference to each item. *out_value is the caller's.
 * Errors   INVALID_ARGUMENT    NULL, n is not R, or an item holds per-replica values itself.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_per_replica(dist_strategy *strategy,
                                                                  dist_value *const *items, size_t n,
                                                                  dist_value **out_value);

/**
 * As dist_value_create_per_replica(), for components that the caller knows to be equal.
 *
 * Owns     Keeps a reference to each item. *out_value is the caller's.
 * Errors   As dist_value_create_per_replica().
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_mirrored(dist_strategy *strategy,
                                                               dist_value *const *items, size_t n,
                                                               dist_value **out_value);

/**
 * A list of n values.
 *
 * Owns     Keeps a reference to each item. *out_value is the caller's.
 * Errors   INVALID_ARGUMENT NULL; nested deeper than 64. RESOURCE_EXHAUSTED no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_list(dist_strategy *strategy, dist_value *const *items,
                                                           size_t n, dist_value **out_value);

/**
 * As dist_value_create_list(), of the other kind of sequence: replicas that give a list and a tuple do not agree.
 *
 * Owns     Keeps a reference to each item. *out_value is the caller's.
 * Errors   As dist_value_create_list().
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_tuple(dist_strategy *strategy, dist_value *const *items,
                                                            size_t n, dist_value **out_value);

/**
 * A dictionary of n values; keys are different UTF-8 texts and come back sorted by their bytes.
 *
 * Owns     Copies the keys, keeps a reference to each item. *out_value is the caller's.
 * Errors   INVALID_ARGUMENT NULL, a key twice; nested deeper than 64. RESOURCE_EXHAUSTED no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_dict(dist_strategy *strategy, const char *const *keys,
                                                           dist_value *const *items, size_t n,
                                                           dist_value **out_value);

/**
 * Nothing, as a value of its own: as the result of every replica it merges to itself.
 *
 * Owns     *out_value is the caller's.
 * Errors   INVALID_ARGUMENT NULL. RESOURCE_EXHAUSTED no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_none(dist_strategy *strategy, dist_value **out_value);

/**
 * A variable as a value, to pass it to a run.
 *
 * Owns     *out_value is the caller's; it keeps the variable's memory.
 * Errors   INVALID_ARGUMENT NULL. RESOURCE_EXHAUSTED no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_variable(dist_variable *variable,
                                                               dist_value **out_value);

/** For whom a component is made. */
typedef struct dist_value_context {
  int32_t replica_id_in_sync_group;
  int32_t num_replicas_in_sync;
} dist_value_context;

/** Makes one replica's component and hands it over; NULL is nothing. *context is there during the call. */
typedef dist_status (*dist_value_fn)(const dist_value_context *context, dist_value **out_value,
                                     void *user_data);

/**
 * A value of what a function makes for each replica (TensorFlow: experimental_distribute_values_from_function).
 *
 *     for r in 0 .. R-1, one after another:   value[r] = fn({r, R})
 *     *out_value = the structure of value[0], with a per-replica value at each leaf
 *
 * A leaf is a per-replica value also where all components are the same dist_value. The one-device and default
 * strategies have nothing to distribute: *out_value is value[0].
 *
 * Context  Strategy, concurrent; of the one-device and default strategies also inside a replica. fn is called on this
 *          thread, in the context that the thread is in.
 * Blocks   As fn does.
 * Owns     *out_value is the caller's: dist_value_release(). fn and user_data are used until return.
 * Errors   INVALID_ARGUMENT     NULL; the components differ in structure (the message has the path).
 *          FAILED_PRECONDITION  inside a replica function; inside another strategy's scope; a forked child.
 *          RESOURCE_EXHAUSTED   no memory.
 *          any                  what fn returned.
 */
DIST_API DIST_NODISCARD dist_status dist_values_from_function(dist_strategy *strategy, dist_value_fn fn,
                                                              void *user_data, dist_value **out_value);

/**
 * One more reference; returns its argument. NULL is fine.
 *
 * Owns     The caller owes one dist_value_release() more.
 */
DIST_API dist_value *dist_value_retain(dist_value *value);

/**
 * One reference fewer; with the last one the value ends. NULL is fine.
 *
 * Owns     Takes a reference.
 */
DIST_API void dist_value_release(dist_value *value);

/** A DIST_VALUE_...; 0 for NULL. */
DIST_API int32_t dist_value_kind(const dist_value *value);

/** How many items: components, entries of a list, tuple or dictionary, parts of a composite; 0 for all else. */
DIST_API size_t dist_value_size(const dist_value *value);

/**
 * Item `index`, or NULL where there is none.
 *
 * Owns     Borrowed from `value`.
 */
DIST_API dist_value *dist_value_item(const dist_value *value, size_t index);

/**
 * The key of item `index` of a dictionary, or NULL where there is none.
 *
 * Owns     Borrowed from `value`.
 */
DIST_API const char *dist_value_key(const dist_value *value, size_t index);

/**
 * The item of a dictionary under `key`, or NULL where there is none.
 *
 * Owns     Borrowed from `value`.
 */
DIST_API dist_value *dist_value_get(const dist_value *value, const char *key);

/**
 * The tensor that a value is; of a variable, replica 0's copy; of a sharded tensor, the whole.
 *
 * Shape    The view's shape and strides are borrowed from the value.
 * Order    –
 * Owns     Borrowed: valid while the value is.
 * Errors   INVALID_ARGUMENT  NULL, or not a tensor; the message says what it is.
 */
DIST_API DIST_NODISCARD dist_status dist_value_tensor(const dist_value *value, dist_tensor *out_tensor);

/**
 * The variable behind a variable's value, or NULL.
 *
 * Owns     Borrowed.
 */
DIST_API dist_variable *dist_value_variable(const dist_value *value);

#ifdef __cplusplus
}
#endif
#endif /* DIST_VALUE_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_VALUE_EXPERIMENTAL_H)
#define DIST_VALUE_EXPERIMENTAL_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A text: passed through runs and merging, never computed with.
 *
 * Owns     Copies the text. *out_value is the caller's.
 * Errors   INVALID_ARGUMENT NULL. RESOURCE_EXHAUSTED no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_text(dist_strategy *strategy, const char *text,
                                                           dist_value **out_value);

/**
 * A pointer of the host's (not NULL), passed through runs and merging: what libdist has no kind for.
 *
 * Owns     *object stays the caller's until release(object), which is never called on an error; release may be
 *          NULL. *out_value is the caller's.
 * Errors   INVALID_ARGUMENT NULL. RESOURCE_EXHAUSTED no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_value_wrap_object(dist_strategy *strategy, void *object,
                                                           dist_release_fn release, dist_value **out_value);

/**
 * One thing made of several tensors. Runs, merging and local results pass it whole; dist_value_item() gives
 * its parts:
 *
 *     DIST_VALUE_INDEXED_SLICES  values [k, ...], indices [k], dense shape [values.ndim] or a NONE value
 *     DIST_VALUE_RAGGED          values [k, ...], row splits from the outside in (one or several)
 *     DIST_VALUE_SPARSE          indices [k, d], values [k], dense shape [d]
 *
 * Indices, shapes and splits are I32 or I64.
 *
 * Owns     Keeps a reference to each part. *out_value is the caller's.
 * Errors   INVALID_ARGUMENT    NULL, another kind, or parts that do not fit each other; the message says which.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_composite(dist_strategy *strategy, int32_t kind,
                                                                dist_value *const *parts, size_t n,
                                                                dist_value **out_value);

/**
 * The text that a value is, or NULL.
 *
 * Owns     Borrowed: valid while the value is.
 */
DIST_API const char *dist_value_text(const dist_value *value);

/**
 * The host's pointer that a value wraps, or NULL.
 *
 * Owns     Borrowed: valid while the value is.
 */
DIST_API void *dist_value_object(const dist_value *value);

struct DLManagedTensor;

/**
 * Takes over a DLPack tensor (dlpack.h, version 0.x/1.x unversioned struct) in host memory, without a copy.
 *
 * Shape    As the DLPack tensor says, strides too.
 * Order    Bits are shared.
 * Owns     On DIST_OK the value calls the tensor's deleter at its end; on an error the caller keeps it.
 * Errors   INVALID_ARGUMENT  NULL; more than DIST_MAX_NDIM dimensions.
 *          UNIMPLEMENTED     not host memory, or a type that libdist has not.
 *          RESOURCE_EXHAUSTED no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_value_from_dlpack(dist_strategy *strategy,
                                                           struct DLManagedTensor *managed,
                                                           dist_value **out_value);

/**
 * Shares a tensor's memory as a DLPack tensor.
 *
 * Shape    The value's; strides are always given.
 * Order    Bits are shared.
 * Owns     The caller calls (*out_managed)->deleter at the end; until then it holds a reference to the value.
 * Errors   INVALID_ARGUMENT NULL or no tensor. RESOURCE_EXHAUSTED no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_value_to_dlpack(dist_value *value,
                                                         struct DLManagedTensor **out_managed);

#ifdef __cplusplus
}
#endif
#endif /* DIST_VALUE_EXPERIMENTAL_H */
