/* SPDX-License-Identifier: Apache-2.0
 *
 * Two replicas learn w in y = w * x. The last batch of each epoch has one row, so that replica 1 has none.
 *
 *     cc training.c $(pkg-config --cflags --libs dist) -o training && ./training
 */
#include <dist/dist.h>
#include <stdio.h>

enum { ROWS = 9, BATCH = 4, EPOCHS = 5 };

typedef struct model {
  dist_variable *w;
  dist_metric *loss;
} model;

/* Runs on each replica with its rows of the batch: args is the list (x, y). */
static dist_status train_step(dist_replica *replica, dist_value *args, dist_value *kwargs,
                              dist_value **out_result, void *user_data) {
  (void)kwargs, (void)out_result;
  const model *m = user_data;
  dist_tensor x, y, w;
  dist_status status = dist_value_tensor(dist_value_item(args, 0), &x);
  if (!status) status = dist_value_tensor(dist_value_item(args, 1), &y);
  if (!status) status = dist_variable_component(m->w, dist_replica_id(replica), &w); /* this replica's copy */
  if (status) return status;

  const int64_t rows = x.shape[0]; /* can be 0 */
  double losses[BATCH], sums[2] = {0, (double)rows};
  for (int64_t i = 0; i < rows; i++) {
    const double input = ((const double *)x.data)[i];
    const double error = *(const double *)w.data * input - ((const double *)y.data)[i];
    losses[i] = error * error;
    sums[0] += 2 * error * input;
  }

  /* Add up the gradients and the numbers of rows of all replicas, in one call. */
  const int64_t two = 2;
  const dist_tensor all = {sums, DIST_F64, 1, &two, NULL};
  status = dist_all_reduce(replica, DIST_REDUCE_SUM, &all, &all, 1, NULL, NULL);

  /* Every replica has the same sums, so each changes its own copy, and the copies stay equal. */
  double change = 0.2 * sums[0] / sums[1];
  const dist_tensor step = {&change, DIST_F64, 0, NULL, NULL};
  if (!status) status = dist_replica_assign(replica, m->w, DIST_ASSIGN_SUB, &step, NULL);

  const dist_tensor per_row = {losses, DIST_F64, 1, &rows, NULL};
  if (!status) status = dist_metric_update(replica, m->loss, &per_row, NULL, NULL);
  return status;
}

static dist_status train_epoch(dist_strategy *strategy, dist_dataset *dataset, model *m, int epoch) {
  dist_iterator *pass = NULL;
  dist_value *batch = NULL;
  double loss = 0;
  dist_status status = dist_iterator_create(dataset, &pass);
  while (!status) {
    status = dist_iterator_next(pass, &batch);
    if (status || batch == NULL) break; /* NULL: the end of the dataset */
    status = dist_run_values(strategy, train_step, m, batch, NULL, NULL, NULL);
    dist_value_release(batch);
  }
  dist_iterator_destroy(pass);
  if (!status) status = dist_metric_result(strategy, m->loss, &loss); /* over all rows of all replicas */
  if (!status) status = dist_metric_reset(strategy, m->loss);
  if (!status) printf("epoch %d: loss %.4f\n", epoch, loss);
  return status;
}

static dist_status print_w(dist_strategy *strategy, dist_variable *w) {
  dist_value *value = NULL;
  dist_tensor tensor;
  dist_status status = dist_variable_read(strategy, w, &value);
  if (!status) status = dist_value_tensor(value, &tensor);
  if (!status) printf("w = %.3f\n", *(const double *)tensor.data);
  dist_value_release(value);
  return status;
}

static dist_status train(dist_strategy *strategy) {
  double x[ROWS], y[ROWS], zero = 0;
  for (int i = 0; i < ROWS; i++) {
    x[i] = (i + 1) / 8.0;
    y[i] = 3 * x[i];
  }
  const int64_t shape[] = {ROWS};
  const dist_tensor rows[] = {{x, DIST_F64, 1, shape, NULL}, {y, DIST_F64, 1, shape, NULL}};
  const dist_tensor initial = {&zero, DIST_F64, 0, NULL, NULL};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = BATCH;
  dist_dataset *dataset = NULL;
  model m = {NULL, NULL};
  dist_status status = dist_dataset_create_from_tensors(strategy, rows, 2, &options, &dataset);
  if (!status) status = dist_variable_create(strategy, &initial, NULL, &m.w);
  if (!status) status = dist_metric_create(strategy, DIST_METRIC_MEAN, "loss", &m.loss);
  for (int epoch = 1; epoch <= EPOCHS && !status; epoch++) status = train_epoch(strategy, dataset, &m, epoch);
  if (!status) status = print_w(strategy, m.w);
  dist_metric_destroy(m.loss);
  dist_variable_destroy(m.w);
  dist_dataset_destroy(dataset);
  return status;
}

int main(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  dist_strategy *strategy = NULL;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (!status) status = train(strategy);
  if (status) fprintf(stderr, "training: %s\n", dist_last_error());
  return dist_strategy_destroy(strategy) != DIST_OK || status != DIST_OK;
}
