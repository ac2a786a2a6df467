/* SPDX-License-Identifier: Apache-2.0
 *
 * Fits y = 3 x on two replicas.
 */
#include <dist/dist.h>
#include <stdio.h>

enum { POINTS = 64, BATCH = 16, EPOCHS = 3 };

/* Runs on each replica with its part of the batch: the list (x, y). */
static dist_status step(dist_replica *replica, dist_value *args, dist_value *kwargs, dist_value **out_result,
                        void *user_data) {
  (void)kwargs;
  dist_variable *variable = user_data;
  dist_tensor x, y, w;
  dist_status status = dist_value_tensor(dist_value_item(args, 0), &x);
  if (!status) status = dist_value_tensor(dist_value_item(args, 1), &y);
  if (!status) status = dist_variable_component(variable, dist_replica_id(replica), &w);
  if (status) return status;

  float loss = 0, change = 0;
  for (int64_t i = 0; i < x.shape[0]; i++) {
    const float at = ((const float *)x.data)[i],
                error = *(const float *)w.data * at - ((const float *)y.data)[i];
    change += 0.5f / BATCH * error * at;
    loss += error * error;
  }
  const dist_tensor changes = {&change, DIST_F32, 0, NULL, NULL}, losses = {&loss, DIST_F32, 0, NULL, NULL};
  status = dist_replica_assign(replica, variable, DIST_ASSIGN_SUB, &changes, NULL);
  if (!status) status = dist_value_create_tensor(dist_replica_strategy(replica), &losses, out_result);
  return status;
}

/* Adds the losses of the replicas to *total. */
static dist_status add_losses(dist_strategy *strategy, dist_value *losses, double *total) {
  dist_value *sum = NULL;
  dist_tensor tensor;
  dist_status status = dist_reduce(strategy, DIST_REDUCE_SUM, losses, NULL, 0, &sum);
  if (!status) status = dist_value_tensor(sum, &tensor);
  if (!status) *total += *(const float *)tensor.data;
  dist_value_release(sum);
  return status;
}

static dist_status train_epoch(dist_strategy *strategy, dist_dataset *dataset, dist_variable *w, int epoch) {
  double loss = 0;
  dist_iterator *batches = NULL;
  dist_value *batch = NULL;
  dist_status status = dist_iterator_create(dataset, &batches);
  while (!status && !(status = dist_iterator_next(batches, &batch)) && batch != NULL) {
    dist_value *losses = NULL;
    status = dist_run_values(strategy, step, w, batch, NULL, NULL, &losses);
    if (!status) status = add_losses(strategy, losses, &loss);
    dist_value_release(losses);
    dist_value_release(batch);
  }
  dist_iterator_destroy(batches);
  if (!status) printf("epoch %d: loss %.4f\n", epoch, loss / POINTS);
  return status;
}

static dist_status fit(dist_strategy *strategy) {
  float x[POINTS], y[POINTS], zero = 0;
  for (int i = 0; i < POINTS; i++) x[i] = (float)i / 32 - 1, y[i] = 3 * x[i];
  const int64_t shape[] = {POINTS};
  const dist_tensor rows[] = {{x, DIST_F32, 1, shape, NULL}, {y, DIST_F32, 1, shape, NULL}};
  const dist_tensor initial = {&zero, DIST_F32, 0, NULL, NULL};
  dist_variable_options variable_options = DIST_VARIABLE_OPTIONS_INIT;
  variable_options.name = "w";
  variable_options.aggregation = DIST_AGGREGATION_SUM;
  dist_dataset_options dataset_options = DIST_DATASET_OPTIONS_INIT;
  dataset_options.global_batch_size = BATCH;

  dist_variable *w = NULL;
  dist_dataset *dataset = NULL;
  dist_tensor copy;
  dist_status status = dist_variable_create(strategy, &initial, &variable_options, &w);
  if (!status) status = dist_dataset_create_from_tensors(strategy, rows, 2, &dataset_options, &dataset);
  for (int epoch = 1; epoch <= EPOCHS && !status; epoch++) status = train_epoch(strategy, dataset, w, epoch);
  if (!status) status = dist_variable_component(w, 0, &copy); /* all copies are equal */
  if (!status) printf("w = %.4f\n", *(const float *)copy.data);
  dist_dataset_destroy(dataset);
  dist_variable_destroy(w);
  return status;
}

int main(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  dist_strategy *strategy = NULL;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (!status) status = fit(strategy);
  if (status) fprintf(stderr, "fit: %s\n", dist_last_error());
  return dist_strategy_destroy(strategy) || status;
}
