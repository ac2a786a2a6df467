/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Values: immutable, reference-counted data to pass into runs and to get out of them.
 *
 *     dist_value *x = NULL, *args = NULL, *result = NULL;
 *     dist_value_create_tensor(strategy, &tensor, &x);                     // copies the tensor
 *     dist_value_create_list(strategy, &x, 1, &args);                      // keeps a reference to x
 *     dist_run_values(strategy, step, NULL, args, NULL, NULL, &result);    // step() receives its component of args
 *     dist_value_release(result);
 *     dist_value_release(args);
 *     dist_value_release(x);
 *
 * A value is a tensor, a list, tuple or dictionary of values, a variable, or one value for each replica.
 * dist_value_kind_of() tells which; dist_value_size() and dist_value_item() access the items.
 */
#ifndef DIST_VALUE_H
#define DIST_VALUE_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Creates a value from a row-major copy of a tensor.
 *
 * Shape    Any; strides are allowed.
 * Order    Bits are copied.
 * Owns     The caller owns *out_value and releases it with dist_value_release().
 * Errors   INVALID_ARGUMENT    an argument is NULL, the dtype is invalid, a size is negative, or the product of the
 *                              sizes overflows.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_tensor(dist_strategy *strategy,
                                                             const dist_tensor *tensor,
                                                             dist_value **out_value);

/**
 * Creates a value that borrows the caller's memory until libdist calls `release`. If this function fails, `release` is
 * never called.
 *
 * Shape    Any; strides are allowed. libdist copies the shape and the strides, but not the data.
 * Order    –
 * Owns     tensor->data must stay valid until release(user_data) is called; release may be NULL. The caller owns
 *          *out_value.
 * Errors   Like dist_value_create_tensor().
 */
DIST_API DIST_NODISCARD dist_status dist_value_wrap_tensor(dist_strategy *strategy, const dist_tensor *tensor,
                                                           dist_release_fn release, void *user_data,
                                                           dist_value **out_value);

/**
 * Creates a value with R components, items[r] for replica r. Each replica that receives the value sees only its own
 * component.
 *
 * Owns     Keeps a reference to each item. The caller owns *out_value.
 * Errors   INVALID_ARGUMENT    an argument is NULL, n is not R, or an item itself contains per-replica values.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_per_replica(dist_strategy *strategy,
                                                                  dist_value *const *items, size_t n,
                                                                  dist_value **out_value);

/**
 * Creates a value with R components that the caller knows to be equal. Otherwise like dist_value_create_per_replica().
 *
 * Owns     Keeps a reference to each item. The caller owns *out_value.
 * Errors   Like dist_value_create_per_replica().
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_mirrored(dist_strategy *strategy,
                                                               dist_value *const *items, size_t n,
                                                               dist_value **out_value);

/**
 * Creates a list of n values.
 *
 * Owns     Keeps a reference to each item. The caller owns *out_value.
 * Errors   INVALID_ARGUMENT    an argument is NULL, or the nesting is deeper than 64.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_list(dist_strategy *strategy, dist_value *const *items,
                                                           size_t n, dist_value **out_value);

/**
 * Creates a tuple of n values. A tuple is like a list, but the two are different structures: replicas that return one
 * of each disagree.
 *
 * Owns     Keeps a reference to each item. The caller owns *out_value.
 * Errors   Like dist_value_create_list().
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_tuple(dist_strategy *strategy, dist_value *const *items,
                                                            size_t n, dist_value **out_value);

/**
 * Creates a dictionary of n values. Keys are distinct UTF-8 texts; the items are sorted by the bytes of their keys.
 *
 * Owns     Copies the keys and keeps a reference to each item. The caller owns *out_value.
 * Errors   INVALID_ARGUMENT    an argument is NULL, a key occurs twice, or the nesting is deeper than 64.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_dict(dist_strategy *strategy, const char *const *keys,
                                                           dist_value *const *items, size_t n,
                                                           dist_value **out_value);

/**
 * Creates a NONE value. If all replicas return NONE, the merged result is NONE too.
 *
 * Owns     The caller owns *out_value.
 * Errors   INVALID_ARGUMENT    an argument is NULL.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_none(dist_strategy *strategy, dist_value **out_value);

/**
 * Creates a value that refers to a variable, to pass the variable to a run.
 *
 * Owns     The caller owns *out_value. It keeps the variable's memory alive.
 * Errors   INVALID_ARGUMENT    an argument is NULL.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_variable(dist_variable *variable,
                                                               dist_value **out_value);

/** The replica for which a dist_value_fn creates a component. */
typedef struct dist_value_context {
  int32_t replica_id_in_sync_group;
  int32_t num_replicas_in_sync;
} dist_value_context;

/**
 * Creates the component of one replica and transfers it to libdist; NULL stands for NONE. *context is valid only during
 * the call.
 */
typedef dist_status (*dist_value_fn)(dist_strategy *strategy, const dist_value_context *context,
                                     dist_value **out_value, void *user_data);

/**
 * Creates a distributed value by calling a function for each replica (TensorFlow:
 * experimental_distribute_values_from_function).
 *
 *     for r in 0 .. R-1, one after another:   value[r] = fn({r, R})
 *     *out_value = the structure of value[0], with a per-replica value at each leaf
 *
 * A leaf becomes a per-replica value even if all its components are the same dist_value. The one-device and default
 * strategies do not distribute anything: *out_value is value[0].
 *
 * Context  Strategy, concurrent; for one-device and default strategies also inside a replica. fn runs on the calling
 *          thread, in the context of that thread.
 * Blocks   As long as fn does.
 * Owns     The caller owns *out_value and releases it with dist_value_release(). fn and user_data are used until the
 *          call returns.
 * Errors   INVALID_ARGUMENT     an argument is NULL, or the components differ in structure (the message contains the
 *                               path).
 *          FAILED_PRECONDITION  called inside a replica function or inside another strategy's scope, or in a forked
 *                               child.
 *          RESOURCE_EXHAUSTED   out of memory.
 *          any                  the status that fn returned.
 */
DIST_API DIST_NODISCARD dist_status dist_values_from_function(dist_strategy *strategy, dist_value_fn fn,
                                                              void *user_data, dist_value **out_value);

/**
 * Adds a reference and returns its argument. Does nothing for NULL.
 *
 * Owns     The caller must call dist_value_release() once more.
 */
DIST_API dist_value *dist_value_retain(dist_value *value);

/**
 * Removes a reference; the last one frees the value. Does nothing for NULL.
 *
 * Owns     Takes a reference.
 */
DIST_API void dist_value_release(dist_value *value);

/** Returns the kind of a value; 0 for NULL. */
DIST_API dist_value_kind dist_value_kind_of(const dist_value *value);

/**
 * Returns the number of items: components, list, tuple or dictionary entries, or parts of a composite; 0 for other
 * kinds.
 */
DIST_API size_t dist_value_size(const dist_value *value);

/**
 * Returns item `index`, or NULL if there is no such item.
 *
 * Owns     The result is borrowed from `value`.
 */
DIST_API dist_value *dist_value_item(const dist_value *value, size_t index);

/**
 * Returns the key of a dictionary's item `index`, or NULL if there is no such item.
 *
 * Owns     The result is borrowed from `value`.
 */
DIST_API const char *dist_value_key(const dist_value *value, size_t index);

/**
 * Returns the item of a dictionary with the given key, or NULL if there is no such item.
 *
 * Owns     The result is borrowed from `value`.
 */
DIST_API dist_value *dist_value_get(const dist_value *value, const char *key);

/**
 * Returns a view of a value's tensor. For a variable this is replica 0's copy; for a sharded tensor it is the whole.
 *
 * Shape    The shape and strides of the view are borrowed from the value.
 * Order    –
 * Owns     The view is borrowed: valid while the value exists.
 * Errors   INVALID_ARGUMENT  an argument is NULL, or the value is not a tensor; the message states its kind.
 */
DIST_API DIST_NODISCARD dist_status dist_value_tensor(const dist_value *value, dist_tensor *out_tensor);

/**
 * Returns the variable that a value refers to, or NULL if it is not a variable.
 *
 * Owns     The result is borrowed.
 */
DIST_API dist_variable *dist_value_variable(const dist_value *value);

/**
 * Creates a text value. Texts are passed through runs and merged, but never computed with.
 *
 * Owns     Copies the text. The caller owns *out_value.
 * Errors   INVALID_ARGUMENT    an argument is NULL.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_text(dist_strategy *strategy, const char *text,
                                                           dist_value **out_value);

/**
 * Creates a value that holds a host pointer, for data of a kind that libdist does not have. It is passed through runs
 * and merging. The pointer must not be NULL.
 *
 * Owns     *object must stay valid until release(object) is called; release may be NULL, and is not called if this
 *          function fails. The caller owns *out_value.
 * Errors   INVALID_ARGUMENT    an argument is NULL.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_value_wrap_object(dist_strategy *strategy, void *object,
                                                           dist_release_fn release, dist_value **out_value);

/**
 * Creates one value that consists of several tensors. Runs, merging and local results treat it as a unit;
 * dist_value_item() returns its parts:
 *
 *     DIST_VALUE_INDEXED_SLICES  values [k, ...], indices [k], dense shape [values.ndim] or a NONE value
 *     DIST_VALUE_RAGGED          values [k, ...], one or more row splits, outermost first
 *     DIST_VALUE_SPARSE          indices [k, d], values [k], dense shape [d]
 *
 * Indices, shapes and splits are I32 or I64.
 *
 * Owns     Keeps a reference to each part. The caller owns *out_value.
 * Errors   INVALID_ARGUMENT    an argument is NULL, the kind is not listed above, or the parts do not fit together; the
 *                              message names the part.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_value_create_composite(dist_strategy *strategy, dist_value_kind kind,
                                                                dist_value *const *parts, size_t n,
                                                                dist_value **out_value);

/**
 * Returns the text of a text value, or NULL if the value is of another kind.
 *
 * Owns     The result is borrowed: valid while the value exists.
 */
DIST_API const char *dist_value_text(const dist_value *value);

/**
 * Returns the host pointer that a value holds, or NULL if the value is of another kind.
 *
 * Owns     The result is borrowed: valid while the value exists.
 */
DIST_API void *dist_value_object(const dist_value *value);

struct DLManagedTensor;

/**
 * Creates a value from a DLPack tensor in host memory, without copying. The tensor is the unversioned DLManagedTensor
 * of dlpack.h 0.x and 1.x.
 *
 * Shape    That of the DLPack tensor, including strides.
 * Order    Bits are shared.
 * Owns     On DIST_OK the value takes the tensor and calls its deleter at the end; on an error the caller keeps it. The
 *          caller owns *out_value.
 * Errors   INVALID_ARGUMENT    an argument is NULL, or the tensor has more than DIST_MAX_NDIM dimensions.
 *          UNIMPLEMENTED       the tensor is not in host memory, or libdist does not have its element type.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_value_from_dlpack(dist_strategy *strategy,
                                                           struct DLManagedTensor *managed,
                                                           dist_value **out_value);

/**
 * Shares a value's tensor as a DLPack tensor, without copying.
 *
 * Shape    That of the value; strides are always set.
 * Order    Bits are shared.
 * Owns     The caller owns *out_managed and calls (*out_managed)->deleter at the end. Until then it holds a reference
 *          to the value.
 * Errors   INVALID_ARGUMENT    an argument is NULL, or the value is not a tensor.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_value_to_dlpack(dist_value *value,
                                                         struct DLManagedTensor **out_managed);

/** Returns the size of an element in bytes; 0 for an unknown dtype. */
DIST_API size_t dist_dtype_size(dist_dtype dtype);

/**
 * Returns the number of elements of a tensor, the product of its sizes; -1 if the tensor is NULL, has a negative size
 * or number of dimensions, or its number of elements exceeds 2^63 - 1.
 *
 * Shape    Any.
 * Order    –
 */
DIST_API int64_t dist_tensor_num_elements(const dist_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif /* DIST_VALUE_H */
