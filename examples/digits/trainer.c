// SPDX-License-Identifier: Apache-2.0
//
// The two replica functions, train_replica() and evaluate_replica(), and what calls them.
#include "trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t trainer_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

dist_status trainer_create(dist_strategy *strategy, int64_t features, int64_t classes, uint64_t seed,
                           int64_t global_batch_size, trainer *out) {
  *out = (trainer){.strategy = strategy, .num_replicas = dist_strategy_num_replicas(strategy), .rate = 0.1f};
  dist_status status = model_create(strategy, features, classes, seed, &out->parameters);
  if (status) return status;
  out->replicas = calloc((size_t)out->num_replicas, sizeof *out->replicas);
  const int64_t largest_part = (global_batch_size + out->num_replicas - 1) / out->num_replicas;
  for (int32_t r = 0; r < out->num_replicas && out->replicas && !status; r++)
    if (network_create(&out->parameters, largest_part, &out->replicas[r].net))
      status = DIST_RESOURCE_EXHAUSTED;
  return out->replicas && !status ? DIST_OK
                                  : dist_fail(DIST_RESOURCE_EXHAUSTED, "no memory for the networks");
}

void trainer_destroy(trainer *t) {
  for (int32_t r = 0; t->replicas && r < t->num_replicas; r++) network_free(&t->replicas[r].net);
  free(t->replicas);
  model_destroy(&t->parameters);
}

// Sees this replica's part of a batch: {features [rows, features], labels [rows], sources [rows]}.
static dist_status open_batch(dist_value *args, network_batch *out, const int32_t **out_sources) {
  dist_tensor features, labels, sources;
  dist_status status = dist_value_tensor(dist_value_item(args, 0), &features);
  if (!status) status = dist_value_tensor(dist_value_item(args, 1), &labels);
  if (!status) status = dist_value_tensor(dist_value_item(args, 2), &sources);
  if (status) return status;
  *out = (network_batch){features.shape[0], features.data, labels.data};
  if (out_sources) *out_sources = sources.data;
  return DIST_OK;
}

// A replica's score as its result, for dist_reduce().
static dist_status return_score(dist_replica *replica, network_score score, dist_value **out_result) {
  double numbers[] = {score.loss_sum, score.correct};
  const int64_t shape[] = {2};
  const dist_tensor tensor = {numbers, DIST_F64, 1, shape, NULL};
  return dist_value_create_tensor(dist_replica_strategy(replica), &tensor, out_result);
}

static void record(trainer_replica *own, int64_t step, int32_t kind, int64_t start_ns, int64_t end_ns) {
  own->events[own->num_events++ % TRAINER_EVENTS] = (trainer_event){step, kind, start_ns, end_ns};
  own->total_ns[kind] += end_ns - start_ns;
}

static dist_status all_reduce_gradients(dist_replica *replica, const trainer *t, network *net) {
  dist_tensor gradients[MODEL_TENSORS];
  for (int i = 0; i < MODEL_TENSORS; i++) gradients[i] = model_tensor(&t->parameters, i, net->gradients[i]);
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.tag = "gradients";
  return dist_all_reduce(replica, DIST_REDUCE_SUM, gradients, gradients, MODEL_TENSORS, &options);
}

static dist_status train_replica(dist_replica *replica, dist_value *args, dist_value *kwargs,
                                 dist_value **out_result, void *user_data) {
  (void)kwargs;
  const trainer *t = user_data;
  const int32_t id = dist_replica_id(replica);
  trainer_replica *own = &t->replicas[id];
  const int64_t started = trainer_now_ns();
  network_batch batch;
  dist_status status = open_batch(args, &batch, NULL);
  if (!status) status = network_forward(replica, &t->parameters, &own->net, &batch);
  if (status) return status;
  const network_score score = network_judge(&t->parameters, &own->net, &batch, NULL);
  status = network_backward(replica, &t->parameters, &own->net, &batch, 1.0f / (float)t->batch_rows);
  if (status) return status;
  const int64_t computed = trainer_now_ns();
  record(own, t->step, TRAINER_COMPUTE, started, computed);
  if (t->step == t->fault_step && id == t->fault_replica) {
    char message[96];
    snprintf(message, sizeof message, "replica %d fails in step %lld, as --fault asked", (int)id,
             (long long)t->step);
    return dist_fail(DIST_UNKNOWN, message);
  }
  if ((status = all_reduce_gradients(replica, t, &own->net))) return status;
  const int64_t reduced = trainer_now_ns();
  record(own, t->step, TRAINER_ALL_REDUCE, computed, reduced);
  if ((status = network_descend(replica, &t->parameters, &own->net, t->rate))) return status;
  record(own, t->step, TRAINER_UPDATE, reduced, trainer_now_ns());
  return return_score(replica, score, out_result);
}

static dist_status evaluate_replica(dist_replica *replica, dist_value *args, dist_value *kwargs,
                                    dist_value **out_result, void *user_data) {
  (void)kwargs;
  const trainer *t = user_data;
  network *net = &t->replicas[dist_replica_id(replica)].net;
  network_batch batch;
  const int32_t *sources;
  dist_status status = open_batch(args, &batch, &sources);
  if (!status) status = network_forward(replica, &t->parameters, net, &batch);
  if (status) return status;
  int32_t *predicted = malloc((size_t)(batch.rows + 1) * sizeof *predicted);
  if (!predicted) return dist_fail(DIST_RESOURCE_EXHAUSTED, "no memory for the predictions");
  const network_score score = network_judge(&t->parameters, net, &batch, predicted);
  for (int64_t i = 0; i < batch.rows && t->predictions; i++) t->predictions[sources[i]] = predicted[i];
  free(predicted);
  return return_score(replica, score, out_result);
}

// Runs `fn` on a batch, split over the replicas, and adds their scores up in replica order.
static dist_status run_and_add(trainer *t, dist_values_fn fn, dist_value *batch, network_score *score) {
  dist_value *scores = NULL;
  dist_value *sum = NULL;
  dist_tensor numbers;
  dist_status status = dist_run_values(t->strategy, fn, t, batch, NULL, NULL, &scores);
  if (!status) status = dist_reduce(t->strategy, DIST_REDUCE_SUM, scores, NULL, 0, &sum);
  if (!status) status = dist_value_tensor(sum, &numbers);
  if (!status) {
    const double *added = numbers.data;
    score->loss_sum += added[0];
    score->correct += added[1];
  }
  dist_value_release(sum);
  dist_value_release(scores);
  return status;
}

// Rows of a batch over all replicas: of its first tensor, or of that one's components.
static dist_status count_rows(dist_value *batch, int64_t *out_rows) {
  dist_value *features = dist_value_item(batch, 0);
  const size_t components = dist_value_size(features);
  dist_status status = DIST_OK;
  *out_rows = 0;
  for (size_t i = 0; i < (components ? components : 1) && !status; i++) {
    dist_tensor tensor;
    status = dist_value_tensor(components ? dist_value_item(features, i) : features, &tensor);
    if (!status) *out_rows += tensor.shape[0];
  }
  return status;
}

dist_status trainer_step(trainer *t, dist_value *batch, network_score *score) {
  const dist_status status = count_rows(batch, &t->batch_rows);
  return status ? status : run_and_add(t, train_replica, batch, score);
}

dist_status trainer_evaluate(trainer *t, dist_dataset *dataset, network_score *score) {
  dist_iterator *iterator;
  dist_status status = dist_iterator_create(dataset, &iterator);
  if (status) return status;
  dist_value *batch;
  while (!(status = dist_iterator_next(iterator, &batch))) {
    status = run_and_add(t, evaluate_replica, batch, score);
    dist_value_release(batch);
    if (status) break;
  }
  dist_iterator_destroy(iterator);
  return status == DIST_OUT_OF_RANGE ? DIST_OK : status;
}
