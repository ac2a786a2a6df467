/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Metrics and losses.
 *
 *     dist_metric *metric = NULL;
 *     double loss = 0;
 *     dist_metric_create(strategy, DIST_METRIC_MEAN, "loss", &metric);
 *     dist_metric_update(replica, metric, &losses, NULL, NULL);          // on each replica, as often as needed
 *     dist_metric_result(strategy, metric, &loss);                       // after the run: the mean over all replicas
 *
 * A metric accumulates a number over the updates of all replicas. Its state is synchronized on reading: each replica
 * adds to its own copy without waiting, and the result combines all copies. A metric has one copy per replica under
 * every strategy, including central storage.
 */
#ifndef DIST_METRIC_H
#define DIST_METRIC_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Creates a metric without updates.
 *
 *     DIST_METRIC_SUM       sum of w * x over all updates, all replicas and all elements
 *     DIST_METRIC_MEAN      the same, divided by the sum of w
 *     DIST_METRIC_ACCURACY  MEAN of x, which is 1 if prediction and label are equal and 0 otherwise
 *
 * Context  Strategy, concurrent.
 * Owns     The name is copied. It is used in messages; NULL selects the name of the kind, such as "mean". The caller
 *          owns *out_metric and destroys it with dist_metric_destroy().
 * Errors   INVALID_ARGUMENT     strategy or out_metric is NULL, or the kind does not exist.
 *          FAILED_PRECONDITION  called inside a replica function, or in a forked child.
 *          RESOURCE_EXHAUSTED   out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_metric_create(dist_strategy *strategy, dist_metric_kind kind,
                                                       const char *name, dist_metric **out_metric);

/**
 * Adds a batch to this replica's copy of a metric.
 *
 * Shape    values: any, also without elements. labels: NULL except for ACCURACY. There, labels have the shape of the
 *          predictions; or values has one more dimension, with a score for each class, and the prediction is the index
 *          of the largest score (the first one of equal scores; never a NaN). weights: NULL (all 1), a scalar, or of
 *          the shape of the weighted elements; a dimension may be 1 or the last one missing, and one weight then
 *          applies to all elements along it. Numbers of any dtype except complex64.
 * Order    None: elements and products w * x are converted to f64 and added exactly.
 * Context  Replica. Not collective: each replica updates as often as it likes.
 * Errors   Nothing is added on an error.
 *          INVALID_ARGUMENT     a required argument is NULL, shapes do not match, the dtype is complex64, labels are
 *                               missing or not allowed, or the metric belongs to another strategy.
 *          FAILED_PRECONDITION  not inside this replica's function.
 */
DIST_API DIST_NODISCARD dist_status dist_metric_update(dist_replica *replica, dist_metric *metric,
                                                       const dist_tensor *values, const dist_tensor *labels,
                                                       const dist_tensor *weights);

/**
 * Computes the metric over all updates of all replicas since it was created or reset. A MEAN or ACCURACY without any
 * weight is 0.
 *
 *     *out_result = round(exact sum over r of total[r])      (divided by round(exact sum over r of weight[r]))
 *
 * The bits depend only on the numbers that were added, not on their order or on the replicas that added them.
 *
 * Context  Strategy, one call at a time per metric: after a run, or inside a merge function.
 * Blocks   While a run is in progress; with several workers, until all of them make the call.
 * Errors   INVALID_ARGUMENT     an argument is NULL, or the metric belongs to another strategy.
 *          FAILED_PRECONDITION  called inside a replica function, or in a forked child.
 *          DEADLINE_EXCEEDED    a run was in progress for longer than the strategy's timeout_ns.
 *          CANCELLED            the strategy was shut down.
 *          any                  with several workers: the errors of a collective.
 */
DIST_API DIST_NODISCARD dist_status dist_metric_result(dist_strategy *strategy, dist_metric *metric,
                                                       double *out_result);

/**
 * Discards all updates of all replicas.
 *
 * Context  Strategy, one call at a time per metric: between runs, or inside a merge function.
 * Blocks   While a run is in progress.
 * Errors   Like dist_metric_result(), without those of workers.
 */
DIST_API DIST_NODISCARD dist_status dist_metric_reset(dist_strategy *strategy, dist_metric *metric);

/** Returns the kind of a metric; 0 for NULL. */
DIST_API dist_metric_kind dist_metric_kind_of(const dist_metric *metric);

/**
 * Returns the name of a metric; "" for NULL.
 *
 * Owns     The result is borrowed.
 */
DIST_API const char *dist_metric_name(const dist_metric *metric);

/**
 * Returns the variable that holds a metric's state, for checkpoints. If it is loaded with any number of replicas and
 * any strategy, the metric has the same result, to the bit, and can be updated further. The meaning of its elements is
 * internal. NULL for NULL.
 *
 * Owns     The result is borrowed: valid while the metric exists.
 */
DIST_API dist_variable *dist_metric_variable(const dist_metric *metric);

/**
 * Destroys a metric. Does nothing if `metric` is NULL.
 *
 * Context  Any, serialized; not while a run uses the metric.
 * Owns     Takes ownership of the metric.
 */
DIST_API void dist_metric_destroy(dist_metric *metric);

/**
 * Computes a replica's share of the loss (TensorFlow: tf.nn.compute_average_loss). The sum over all replicas is the
 * average over the global batch.
 *
 *     *out = sum over i of w[i] * loss[i]  / global_batch_size
 *
 * If global_batch_size is 0, it is the size of the loss's first dimension times R. The result for an empty batch is 0.
 *
 * Shape    per_example_loss: one or more dimensions, of f16, bf16, f32 or f64. sample_weight: NULL, or as weights in
 *          dist_metric_update(). out: a scalar of the dtype of the loss.
 * Order    None: w * loss is converted to f64 and added exactly; the sum is rounded to f64, divided, and rounded to the
 *          dtype.
 * Context  Replica. With a global_batch_size, replica may be NULL: then anywhere.
 * Errors   INVALID_ARGUMENT     a required argument is NULL, the loss is a scalar or of another dtype, shapes do not
 *                               match, or the size is negative.
 *          FAILED_PRECONDITION  not inside this replica's function. Also: global_batch_size is 0, and replica is NULL
 *                               because dist_get_replica() was called in cross-replica context.
 */
DIST_API DIST_NODISCARD dist_status dist_average_loss(dist_replica *replica,
                                                      const dist_tensor *per_example_loss,
                                                      const dist_tensor *sample_weight,
                                                      int64_t global_batch_size, const dist_tensor *out);

/**
 * Computes a replica's share of a loss that is the same on all replicas (TensorFlow: tf.nn.scale_regularization_loss).
 *
 *     *out = sum over i of loss[i]  / R
 *
 * Shape    loss: any, of f16, bf16, f32 or f64. out: a scalar of the same dtype.
 * Order    Like dist_average_loss().
 * Context  Replica.
 * Errors   INVALID_ARGUMENT     loss or out is NULL, or the dtype is another one.
 *          FAILED_PRECONDITION  not inside this replica's function. Also: replica is NULL because dist_get_replica()
 *                               was called in cross-replica context.
 */
DIST_API DIST_NODISCARD dist_status dist_scale_regularization_loss(dist_replica *replica,
                                                                   const dist_tensor *loss,
                                                                   const dist_tensor *out);

#ifdef __cplusplus
}
#endif
#endif /* DIST_METRIC_H */
