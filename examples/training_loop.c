// SPDX-License-Identifier: Apache-2.0
//
// The custom training loop from the tf.distribute documentation, in C. Run it as `training_loop [REPLICAS]`
// (default 2). It learns on which side of a line a point lies (squared hinge loss). It prints the loss and
// accuracy of each epoch, which depend only slightly on the number of replicas, and finally the bits of the
// weights. It computes only with +, - and *, so the ports to other languages (bindings/*/examples) learn the
// same bits.
//
//     strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
//     with strategy.scope():
//       weights = tf.Variable(tf.zeros([3]), aggregation=tf.VariableAggregation.SUM)
//       accuracy = tf.keras.metrics.Accuracy()
//     dist_dataset = strategy.experimental_distribute_dataset(dataset.shuffle(1000).batch(GLOBAL_BATCH))
//
//     for epoch in range(EPOCHS):
//       total_loss, steps = 0.0, 0
//       for batch in dist_dataset:
//         losses = strategy.run(train_step, args=batch)
//         total_loss += strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)
//         steps += 1
//       print(epoch, total_loss / steps, accuracy.result())
//       accuracy.reset_state()
#include <dist/dist.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXAMPLES = 1000, GLOBAL_BATCH = 64, EPOCHS = 8 };
static const float kLearningRate = 2.0f;

typedef struct model {
  dist_variable *weights;  // for x, y and the bias
  dist_metric *accuracy;
} model;

// Runs on every replica with its part of the batch. args is the list (points [n, 2], labels [n]).
static dist_status train_step(dist_replica *replica, dist_value *args, dist_value *kwargs,
                              dist_value **out_result, void *user_data) {
  (void)kwargs;
  const model *m = user_data;
  dist_tensor points, labels, weights;
  dist_status status = dist_value_tensor(dist_value_item(args, 0), &points);
  if (!status) status = dist_value_tensor(dist_value_item(args, 1), &labels);
  if (!status) status = dist_variable_component(m->weights, dist_replica_id(replica), &weights);
  if (status) return status;

  // Forward and backward pass: the loss of each example, and the gradient of the mean loss over the global
  // batch.
  const int64_t n = labels.shape[0], three = 3;
  const float *w = weights.data;
  float losses[GLOBAL_BATCH], step[3] = {0, 0, 0};
  int32_t predictions[GLOBAL_BATCH];
  for (int64_t i = 0; i < n; i++) {
    const float *point = (const float *)points.data + 2 * i;
    const int32_t label = ((const int32_t *)labels.data)[i];
    const float z = w[0] * point[0] + w[1] * point[1] + w[2];
    const float side = label ? 1.0f : -1.0f;
    const float missing = side * z < 1.0f ? 1.0f - side * z : 0.0f;  // squared hinge loss
    losses[i] = missing * missing;
    predictions[i] = z > 0;
    const float slope = kLearningRate / GLOBAL_BATCH * (-side * missing);
    step[0] += slope * point[0];
    step[1] += slope * point[1];
    step[2] += slope;
  }

  // The variable's aggregation is SUM: libdist adds the changes of all replicas and applies the sum to every
  // copy.
  const dist_tensor change = {step, DIST_F32, 1, &three, NULL};
  status = dist_replica_assign(replica, m->weights, DIST_ASSIGN_SUB, &change, NULL);

  const dist_tensor predicted = {predictions, DIST_I32, 1, &n, NULL};
  if (!status) status = dist_metric_update(replica, m->accuracy, &predicted, &labels, NULL);

  float loss = 0;
  const dist_tensor per_example = {losses, DIST_F32, 1, &n, NULL};
  dist_tensor average = {&loss, DIST_F32, 0, NULL, NULL};
  if (!status) status = dist_average_loss(replica, &per_example, NULL, GLOBAL_BATCH, &average);
  if (!status) status = dist_value_create_tensor(dist_replica_strategy(replica), &average, out_result);
  return status;
}

// total += reduce(SUM, losses, axis=None)
static dist_status add_loss(dist_strategy *strategy, dist_value *losses, double *total) {
  dist_value *sum = NULL;
  dist_tensor tensor;
  dist_status status = dist_reduce(strategy, DIST_REDUCE_SUM, losses, NULL, 0, &sum);
  if (!status) status = dist_value_tensor(sum, &tensor);
  if (!status) *total += *(const float *)tensor.data;
  dist_value_release(sum);
  return status;
}

static dist_status train_epoch(dist_strategy *strategy, dist_dataset *dataset, model *m, int epoch) {
  double total_loss = 0, accuracy = 0;
  int steps = 0;
  dist_iterator *batches = NULL;
  dist_status status = dist_iterator_create(dataset, &batches);
  while (!status) {
    dist_value *batch = NULL, *losses = NULL;
    status = dist_iterator_next(batches, &batch);
    if (!status && !batch) break;  // the end of the dataset
    if (!status) status = dist_run_values(strategy, train_step, m, batch, NULL, NULL, &losses);
    if (!status) status = add_loss(strategy, losses, &total_loss);
    if (!status) steps++;
    dist_value_release(losses);
    dist_value_release(batch);
  }
  dist_iterator_destroy(batches);
  if (status) return status;
  status = dist_metric_result(strategy, m->accuracy, &accuracy);
  if (status) return status;
  printf("epoch %d: loss %.4f, accuracy %.1f%%\n", epoch, total_loss / steps, 100 * accuracy);
  return dist_metric_reset(strategy, m->accuracy);
}

// Points in the square [-1, 1) x [-1, 1). The label tells which side of the line a point is on.
static dist_status make_dataset(dist_strategy *strategy, dist_dataset **out_dataset) {
  static float points[EXAMPLES][2];
  static int32_t labels[EXAMPLES];
  uint32_t random = 1;
  for (int i = 0; i < EXAMPLES; i++) {
    for (int k = 0; k < 2; k++) {
      random = random * 1664525u + 1013904223u;
      points[i][k] = (float)(random >> 8) / (1 << 23) - 1;
    }
    labels[i] = points[i][0] + 2 * points[i][1] > 0.25f;
  }
  const int64_t shape[] = {EXAMPLES, 2};
  const dist_tensor tensors[] = {{points, DIST_F32, 2, shape, NULL}, {labels, DIST_I32, 1, shape, NULL}};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = GLOBAL_BATCH;
  options.shuffle = 1;
  return dist_dataset_create_from_tensors(strategy, tensors, 2, &options, out_dataset);
}

// Prints the bits of replica 0's copy. All copies are equal.
static dist_status print_weights(dist_strategy *strategy, const model *m) {
  dist_tensor weights;
  uint32_t bits[3];
  dist_status status = dist_variable_check_drift(strategy, m->weights, NULL);
  if (!status) status = dist_variable_component(m->weights, 0, &weights);
  if (status) return status;
  memcpy(bits, weights.data, sizeof bits);
  printf("weights %08x %08x %08x\n", bits[0], bits[1], bits[2]);
  return DIST_OK;
}

static dist_status make_model(dist_strategy *strategy, model *m) {
  float zeros[3] = {0, 0, 0};
  const int64_t three = 3;
  const dist_tensor initial = {zeros, DIST_F32, 1, &three, NULL};
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.name = "weights";
  options.aggregation = DIST_AGGREGATION_SUM;
  dist_status status = dist_scope_enter(strategy);
  if (status) return status;
  status = dist_variable_create(strategy, &initial, &options, &m->weights);
  if (!status) status = dist_metric_create(strategy, DIST_METRIC_ACCURACY, "accuracy", &m->accuracy);
  const dist_status left = dist_scope_exit(strategy);
  return status ? status : left;
}

int main(int argc, char **argv) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = argc > 1 ? atoi(argv[1]) : 2;
  dist_strategy *strategy = NULL;
  dist_dataset *dataset = NULL;
  model m = {NULL, NULL};
  dist_status status = dist_strategy_create(&options, &strategy);
  if (!status) status = make_model(strategy, &m);
  if (!status) status = make_dataset(strategy, &dataset);
  for (int epoch = 1; epoch <= EPOCHS && !status; epoch++) status = train_epoch(strategy, dataset, &m, epoch);
  if (!status) status = print_weights(strategy, &m);
  if (status) fprintf(stderr, "training_loop: %s\n", dist_last_error());
  dist_dataset_destroy(dataset);
  dist_metric_destroy(m.accuracy);
  dist_variable_destroy(m.weights);
  if (dist_strategy_destroy(strategy)) status = DIST_INTERNAL;
  return status ? EXIT_FAILURE : EXIT_SUCCESS;
}
