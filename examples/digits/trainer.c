// SPDX-License-Identifier: Apache-2.0
//
// The two replica functions, train_replica() and evaluate_replica(), and the functions that run them.
#include "trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "machine.h"

int64_t trainer_now_ns(void) { return machine_clock_ns(CLOCK_MONOTONIC); }

static int64_t divide_up(int64_t n, int64_t by) { return (n + by - 1) / by; }

// Returns 0, or -1 if memory is exhausted.
static int create_replica(const trainer *t, trainer_replica *out) {
  const int64_t rows = divide_up(DATA_BATCH_ROWS, t->num_replicas);
  const int64_t max_rows = rows > DATA_MICRO_BATCH_ROWS ? rows : DATA_MICRO_BATCH_ROWS;
  if (network_create(&t->parameters, max_rows, &out->net)) return -1;
  out->gradients = calloc((size_t)t->most_parts, sizeof *out->gradients);
  int missing = !out->gradients;
  for (int64_t j = 0; j < t->most_parts && !missing; j++)
    missing = network_gradients_create(&t->parameters, &out->gradients[j]);
  return missing;
}

dist_status trainer_create(dist_strategy *strategy, int32_t first, int32_t local, int64_t features,
                           int64_t classes, uint64_t seed, dist_numerics numerics, trainer *out) {
  const int32_t num_replicas = dist_strategy_num_replicas(strategy);
  *out = (trainer){.strategy = strategy,
                   .num_replicas = num_replicas,
                   .first = first,
                   .local = local,
                   .numerics = numerics,
                   .most_parts = 1,
                   .rate = 0.1f};
  if (numerics == DIST_NUMERICS_REPRODUCIBLE) out->most_parts = divide_up(DATA_MICRO_BATCHES, num_replicas);
  dist_status status = model_create(strategy, features, classes, seed, &out->parameters);
  if (status) return status;
  out->replicas = calloc((size_t)num_replicas, sizeof *out->replicas);
  int missing = !out->replicas;
  for (int32_t r = first; r < first + local && !missing; r++)
    missing = create_replica(out, &out->replicas[r]);
  return missing ? dist_fail(DIST_RESOURCE_EXHAUSTED, "no memory for the networks") : DIST_OK;
}

void trainer_destroy(trainer *t) {
  for (int32_t r = 0; t->replicas && r < t->num_replicas; r++) {
    trainer_replica *own = &t->replicas[r];
    network_free(&own->net);
    for (int64_t j = 0; own->gradients && j < t->most_parts; j++) network_gradients_free(&own->gradients[j]);
    free(own->gradients);
  }
  free(t->replicas);
  model_destroy(&t->parameters);
}

// A replica's part of a batch, {features, labels, sources}. A part made of rows is one micro-batch of any
// size.
typedef struct {
  int64_t num_micro_batches; /* at least 1; if the replica received no rows, an empty one */
  int64_t micro_batch_rows;
  int64_t columns;
  const float *features;
  const int32_t *labels;
  const int32_t *sources;
} batch_part;

static dist_status open_part(dist_value *args, batch_part *out) {
  dist_tensor features, labels, sources;
  dist_status status = dist_value_tensor(dist_value_item(args, 0), &features);
  if (!status) status = dist_value_tensor(dist_value_item(args, 1), &labels);
  if (!status) status = dist_value_tensor(dist_value_item(args, 2), &sources);
  if (status) return status;
  const int64_t *shape = features.shape;
  *out = (batch_part){1, shape[0], shape[features.ndim - 1], features.data, labels.data, sources.data};
  if (features.ndim == 3 && shape[0] > 0) {
    out->num_micro_batches = shape[0];
    out->micro_batch_rows = shape[1];
  }
  return DIST_OK;
}

static network_batch micro_batch(const batch_part *part, int64_t j) {
  const int64_t first = j * part->micro_batch_rows;
  int64_t rows = part->micro_batch_rows;
  while (rows > 0 && part->labels[first + rows - 1] == DATA_NO_LABEL) rows--;
  return (network_batch){rows, part->features + first * part->columns, part->labels + first};
}

// Returns a replica's score as its result, for dist_reduce().
static dist_status return_score(dist_replica *replica, network_score score, dist_value **out_result) {
  int64_t numbers[] = {score.loss_sum, score.correct};
  const int64_t shape[] = {2};
  const dist_tensor tensor = {numbers, DIST_I64, 1, shape, NULL};
  return dist_value_create_tensor(dist_replica_strategy(replica), &tensor, out_result);
}

// The steady clock and the CPU time of the calling thread.
typedef struct {
  int64_t wall_ns, cpu_ns;
} moment;

static moment now(void) { return (moment){trainer_now_ns(), machine_clock_ns(CLOCK_THREAD_CPUTIME_ID)}; }

static void record(trainer_replica *own, int64_t step, int32_t kind, moment start, moment end) {
  const int64_t cpu_ns = end.cpu_ns - start.cpu_ns;
  own->events[own->num_events++ % TRAINER_EVENTS] =
      (trainer_event){step, kind, start.wall_ns, end.wall_ns, cpu_ns};
  own->total_ns[kind] += end.wall_ns - start.wall_ns;
  own->cpu_ns[kind] += cpu_ns;
}

// Computes the gradients of the batch's mean loss for each micro-batch of the part.
static dist_status compute_gradients(dist_replica *replica, const trainer *t, const batch_part *part,
                                     trainer_replica *own, network_score *out_score) {
  *out_score = (network_score){0, 0};
  for (int64_t j = 0; j < part->num_micro_batches; j++) {
    const network_batch batch = micro_batch(part, j);
    dist_status status = network_forward(replica, &t->parameters, &own->net, &batch);
    if (status) return status;
    const network_score score = network_judge(&t->parameters, &own->net, &batch, NULL);
    out_score->loss_sum += score.loss_sum;
    out_score->correct += score.correct;
    const float scale = 1.0f / (float)t->batch_rows;
    status = network_backward(replica, &t->parameters, &own->net, &batch, scale, &own->gradients[j]);
    if (status) return status;
  }
  return DIST_OK;
}

// Sums the gradients of all micro-batches of all replicas into this replica's first one. A replica without
// rows contributes zeros, which do not change the sum.
static dist_status all_reduce_gradients(dist_replica *replica, const trainer *t, trainer_replica *own,
                                        int64_t num_micro_batches) {
  dist_tensor lists[DATA_MICRO_BATCHES * MODEL_TENSORS]; /* one list per micro-batch, concatenated */
  for (int64_t j = 0; j < num_micro_batches; j++)
    for (int i = 0; i < MODEL_TENSORS; i++)
      lists[j * MODEL_TENSORS + i] = model_tensor(&t->parameters, i, own->gradients[j].of[i]);
  dist_collective_options how = DIST_COLLECTIVE_OPTIONS_INIT;
  how.tag = "gradients";
  how.numerics = t->numerics;
  how.contributions = (size_t)num_micro_batches;
  return dist_all_reduce(replica, DIST_REDUCE_SUM, lists, lists, MODEL_TENSORS, &how, NULL);
}

static dist_status train_replica(dist_replica *replica, dist_value *args, dist_value *kwargs,
                                 dist_value **out_result, void *user_data) {
  (void)kwargs;
  const trainer *t = user_data;
  const int32_t id = dist_replica_id(replica);
  trainer_replica *own = &t->replicas[id];
  const moment started = now();
  batch_part part;
  network_score score;
  dist_status status = open_part(args, &part);
  if (!status) status = compute_gradients(replica, t, &part, own, &score);
  if (status) return status;
  const moment computed = now();
  record(own, t->step, TRAINER_COMPUTE, started, computed);
  if (t->step == t->fault_step && id == t->fault_replica) {
    char message[96];
    snprintf(message, sizeof message, "replica %d fails in step %lld, as --fault asked", (int)id,
             (long long)t->step);
    return dist_fail(DIST_UNAVAILABLE, message);
  }
  own->told = all_reduce_gradients(replica, t, own, part.num_micro_batches);
  if (own->told) {
    snprintf(own->report, sizeof own->report, "%s", dist_last_error());
    return own->told;
  }
  const moment reduced = now();
  record(own, t->step, TRAINER_ALL_REDUCE, computed, reduced);
  if ((status = network_descend(replica, &t->parameters, &own->gradients[0], t->rate))) return status;
  record(own, t->step, TRAINER_UPDATE, reduced, now());
  return return_score(replica, score, out_result);
}

static dist_status evaluate_replica(dist_replica *replica, dist_value *args, dist_value *kwargs,
                                    dist_value **out_result, void *user_data) {
  (void)kwargs;
  const trainer *t = user_data;
  network *net = &t->replicas[dist_replica_id(replica)].net;
  batch_part part;
  dist_status status = open_part(args, &part);
  if (status) return status;
  const network_batch batch = micro_batch(&part, 0);
  status = network_forward(replica, &t->parameters, net, &batch);
  if (status) return status;
  int32_t *predicted = malloc((size_t)(batch.rows + 1) * sizeof *predicted);
  if (!predicted) return dist_fail(DIST_RESOURCE_EXHAUSTED, "no memory for the predictions");
  const network_score score = network_judge(&t->parameters, net, &batch, predicted);
  for (int64_t i = 0; i < batch.rows; i++) t->predictions[part.sources[i]] = predicted[i];
  free(predicted);
  return return_score(replica, score, out_result);
}

// Runs `fn` on a batch that is split over the replicas, and adds their scores to *score.
static dist_status run_and_add(trainer *t, dist_values_fn fn, dist_value *batch, network_score *score) {
  dist_value *scores = NULL;
  dist_value *sum = NULL;
  dist_tensor numbers;
  dist_status status = dist_run_values(t->strategy, fn, t, batch, NULL, NULL, &scores);
  if (!status) status = dist_reduce(t->strategy, DIST_REDUCE_SUM, scores, NULL, 0, &sum);
  if (!status) status = dist_value_tensor(sum, &numbers);
  if (!status) {
    const int64_t *added = numbers.data;
    score->loss_sum += added[0];
    score->correct += added[1];
  }
  dist_value_release(sum);
  dist_value_release(scores);
  return status;
}

// Sums two numbers over all workers.
static dist_status add_up(const trainer *t, int64_t numbers[2]) {
  if (t->local == t->num_replicas) return DIST_OK;
  const int64_t shape[] = {2};
  dist_tensor tensor = {numbers, DIST_I64, 1, shape, NULL};
  dist_value *mine = NULL;
  dist_value *all = NULL;
  dist_status status = dist_value_create_tensor(t->strategy, &tensor, &mine);
  if (!status) status = dist_reduce(t->strategy, DIST_REDUCE_SUM, mine, NULL, 0, &all);
  if (!status) status = dist_value_tensor(all, &tensor);
  if (!status) memcpy(numbers, tensor.data, 2 * sizeof *numbers);
  dist_value_release(all);
  dist_value_release(mine);
  return status;
}

// Counts the rows in this worker's part of a batch. The labels are one tensor or have one component per
// replica.
static dist_status count_rows(dist_value *batch, int64_t *out_rows) {
  dist_value *labels = dist_value_item(batch, 1);
  const size_t components = dist_value_size(labels);
  *out_rows = 0;
  for (size_t c = 0; c < (components ? components : 1); c++) {
    dist_tensor tensor;
    const dist_status status = dist_value_tensor(components ? dist_value_item(labels, c) : labels, &tensor);
    if (status) return status;
    const int64_t count = tensor.shape[0] * (tensor.ndim == 2 ? tensor.shape[1] : 1);
    const int32_t *label = tensor.data;
    for (int64_t i = 0; i < count; i++) *out_rows += label[i] != DATA_NO_LABEL;
  }
  return DIST_OK;
}

dist_status trainer_open_batch(trainer *t, dist_value *batch, int32_t *stop) {
  int64_t numbers[] = {0, *stop};
  dist_status status = count_rows(batch, &numbers[0]);
  if (!status) status = add_up(t, numbers);
  if (status) return status;
  t->batch_rows = numbers[0];
  *stop = numbers[1] > 0;
  return DIST_OK;
}

dist_status trainer_step(trainer *t, dist_value *batch, network_score *score) {
  return run_and_add(t, train_replica, batch, score);
}

dist_status trainer_evaluate(trainer *t, dist_dataset *dataset, network_score *score) {
  dist_iterator *iterator;
  dist_status status = dist_iterator_create(dataset, &iterator);
  if (status) return status;
  dist_value *batch;
  while (!(status = dist_iterator_next(iterator, &batch)) && batch) {
    status = run_and_add(t, evaluate_replica, batch, score);
    dist_value_release(batch);
    if (status) break;
  }
  dist_iterator_destroy(iterator);
  return status;
}
