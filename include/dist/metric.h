/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Metrics and losses.
 *
 * A metric's state is synchronized on reading: each replica adds to its own copy and waits for nobody; the result is
 * made of all copies. It has one copy a replica under every strategy, central storage too.
 */
#include "types.h"

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_METRIC_EXPERIMENTAL_H)
#define DIST_METRIC_EXPERIMENTAL_H

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes a metric without any update.
 *
 *     DIST_METRIC_SUM       sum of w * x over all updates, all replicas and all elements
 *     DIST_METRIC_MEAN      that, divided by the sum of w
 *     DIST_METRIC_ACCURACY  MEAN of x = 1 where prediction and label are equal, else x = 0
 *
 * Context  Strategy, concurrent.
 * Owns     The name (for messages; NULL: that of the kind, "mean") is copied. *out_metric is the caller's:
 *          dist_metric_destroy().
 * Errors   INVALID_ARGUMENT     NULL, no such kind.
 *          FAILED_PRECONDITION  inside a replica function; a forked child.
 *          RESOURCE_EXHAUSTED   no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_metric_create(dist_strategy *strategy, int32_t kind,
                                                       const char *name, dist_metric **out_metric);

/**
 * Adds a batch to this replica's copy.
 *
 * Shape    values: any; no element is fine. labels: NULL but for ACCURACY; there the predictions' shape, or values has
 *          one dimension more, which holds a score for each class: then the prediction is the index of the largest (the
 *          first of equals; a NaN is never it). weights: NULL (all 1), a scalar, or of the shape of what is weighted,
 *          where a dimension may be 1 or the last one missing: one weight for all elements along it. Numbers of any
 *          dtype but complex64.
 * Order    None: elements and products w * x are taken as f64 and added exactly.
 * Context  Replica; no round: replicas may update as often as they like.
 * Errors   INVALID_ARGUMENT     NULL, shapes that do not fit, complex64, a label that is missing or too much,
 *                               another strategy's metric. Nothing is added then.
 *          FAILED_PRECONDITION  not inside this replica's function.
 */
DIST_API DIST_NODISCARD dist_status dist_metric_update(dist_replica *replica, dist_metric *metric,
                                                       const dist_tensor *values, const dist_tensor *labels,
                                                       const dist_tensor *weights);

/**
 * The metric over all updates of all replicas since it was made or reset; 0 for a MEAN or ACCURACY without weight.
 *
 *     *out_result = round(exact sum over r of total[r])      (divided by round(exact sum over r of weight[r]))
 *
 * The bits depend on what was added alone, not on who added it, in which order, or on how many replicas there are.
 *
 * Context  Strategy, serialized for a metric: after a run, or inside a merge function.
 * Errors   INVALID_ARGUMENT     NULL, another strategy's metric.
 *          FAILED_PRECONDITION  inside a replica function; a forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_metric_result(dist_strategy *strategy, dist_metric *metric,
                                                       double *out_result);

/**
 * Forgets all updates of all replicas.
 *
 * Context  Strategy, serialized for a metric: between runs, or inside a merge function.
 * Errors   As dist_metric_result().
 */
DIST_API DIST_NODISCARD dist_status dist_metric_reset(dist_strategy *strategy, dist_metric *metric);

/** A DIST_METRIC_...; 0 for NULL. */
DIST_API int32_t dist_metric_kind(const dist_metric *metric);

/**
 * The metric's name; "" for NULL.
 *
 * Owns     Borrowed.
 */
DIST_API const char *dist_metric_name(const dist_metric *metric);

/**
 * The variable that holds a metric's state, for checkpoints: loaded with any number of replicas and any strategy, it gives
 * the same result to the bit, and goes on from there. Its elements are libdist's affair. NULL for NULL.
 *
 * Owns     Borrowed: valid while the metric is.
 */
DIST_API dist_variable *dist_metric_variable(const dist_metric *metric);

/**
 * Ends a metric. NULL is fine.
 *
 * Context  Any, serialized; not while a run uses it.
 * Owns     Takes the metric.
 */
DIST_API void dist_metric_destroy(dist_metric *metric);

/**
 * A replica's share of the loss (TensorFlow: tf.nn.compute_average_loss); the sum over the replicas is the average over
 * the global batch.
 *
 *     *out = sum over i of w[i] * loss[i]  / global_batch_size
 *
 * Where global_batch_size is 0 it is the size of the loss's first dimension times R; an empty batch gives 0.
 *
 * Shape    per_example_loss: one dimension or more, of f16, bf16, f32 or f64. sample_weight: NULL or as in
 *          dist_metric_update(). out: a scalar of the loss's dtype.
 * Order    None: w * loss is taken as f64 and added exactly; the sum is rounded to f64, divided, rounded to the dtype.
 * Context  Replica. With a global_batch_size replica may be NULL: then anywhere.
 * Errors   INVALID_ARGUMENT     NULL, a scalar loss, another dtype, shapes that do not fit, a negative size.
 *          FAILED_PRECONDITION  not inside this replica's function; also where replica is NULL, the cross-replica
 *                               context's dist_get_replica(), and there is no global_batch_size.
 */
DIST_API DIST_NODISCARD dist_status dist_average_loss(dist_replica *replica,
                                                      const dist_tensor *per_example_loss,
                                                      const dist_tensor *sample_weight,
                                                      int64_t global_batch_size, dist_tensor *out);

/**
 * A replica's share of a loss that every replica has whole (TensorFlow: tf.nn.scale_regularization_loss).
 *
 *     *out = sum over i of loss[i]  / R
 *
 * Shape    loss: any, of f16, bf16, f32 or f64. out: a scalar of its dtype.
 * Order    As dist_average_loss().
 * Context  Replica.
 * Errors   INVALID_ARGUMENT     NULL loss or out, another dtype.
 *          FAILED_PRECONDITION  not inside this replica's function; also where replica is NULL, the cross-replica
 *                               context's dist_get_replica().
 */
DIST_API DIST_NODISCARD dist_status dist_scale_regularization_loss(dist_replica *replica,
                                                                   const dist_tensor *loss, dist_tensor *out);

#ifdef __cplusplus
}
#endif
#endif /* DIST_METRIC_EXPERIMENTAL_H */
