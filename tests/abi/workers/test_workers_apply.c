/* SPDX-License-Identifier: Apache-2.0
 *
 * Fused steps of strategies with several workers equal those of a single process.
 */
#include "../workers_support.h"

enum { SIZE = 1000 };

static float element(int32_t rank, int i) { return (float)(rank + 1) / (float)(3 + i); }

typedef struct steps {
  float parameters[MOST][SIZE]; /* by replica */
  double norms[MOST];
  int32_t numerics;
} steps;

/* Replica r adds r % 3 + 1 contributions to the sum of two tensors, whose norm is clipped. */
static dist_status take_steps(dist_replica *replica, void *user_data) {
  steps *out = user_data;
  const int32_t rank = dist_replica_id(replica);
  const size_t contributions = (size_t)rank % 3 + 1;
  static const int64_t shapes[2][1] = {{SIZE - 300}, {300}};
  float gradients[3][SIZE];
  float momenta[SIZE] = {0};
  dist_tensor lists[6];
  dist_tensor parameters[2];
  dist_tensor states[2];
  for (int i = 0; i < SIZE; ++i) out->parameters[rank][i] = 1.0f / (float)(i + 1);
  for (int t = 0; t < 2; ++t) {
    const int from = t == 0 ? 0 : SIZE - 300;
    parameters[t] = (dist_tensor){out->parameters[rank] + from, DIST_F32, 1, shapes[t], NULL};
    states[t] = (dist_tensor){momenta + from, DIST_F32, 1, shapes[t], NULL};
    for (int j = 0; j < 3; ++j)
      lists[2 * j + t] = (dist_tensor){gradients[j] + from, DIST_F32, 1, shapes[t], NULL};
  }
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.contributions = contributions;
  options.numerics = out->numerics;
  dist_apply_options apply = DIST_APPLY_OPTIONS_INIT;
  apply.kind = DIST_APPLY_SGD;
  apply.learning_rate = 0.125;
  apply.momentum = 0.9;
  apply.states = states;
  apply.num_states = 1;
  apply.clip_norm = 0.5;
  dist_status status = DIST_OK;
  for (int step = 0; step < 3 && status == DIST_OK; ++step) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < SIZE; ++i) gradients[j][i] = element(rank + j, i + step) - 0.1f;
    }
    if (step == 2) apply.clip_norm = 0;
    status = dist_reduce_apply(replica, DIST_REDUCE_MEAN, lists, parameters, 2, &apply, &options,
                               &out->norms[rank]);
  }
  return status;
}

static dist_status run_steps(dist_strategy *strategy, int worker, void *user_data) {
  (void)worker;
  return dist_run(strategy, take_steps, user_data, NULL);
}

static void steps_are_those_of_one_process(void **state) {
  (void)state;
  static steps wanted;
  static steps found;
  for (int32_t numerics = DIST_NUMERICS_ORDERED; numerics <= DIST_NUMERICS_TREE; ++numerics) {
    memset(&wanted, 0, sizeof wanted);
    wanted.numerics = numerics;
    dist_strategy *alone = strategy_of(4, DIST_THREADS_CALLER);
    assert_ok(dist_run(alone, take_steps, &wanted, NULL));
    assert_ok(dist_strategy_destroy(alone));
    const char *const layouts[] = {"2+2", "1+1+1+1", "1+3"};
    for (size_t k = 0; k < COUNT_OF(layouts); ++k) {
      workers all = workers_of(layouts[k], (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
      memset(&found, 0, sizeof found);
      found.numerics = numerics;
      all_workers(&all, run_steps, &found);
      assert_memory_equal(&found, &wanted, sizeof found);
      end_workers(&all);
    }
  }
}

static void add_block(const dist_block *block, void *user_data) {
  (void)user_data;
  const float *gradient = block->gradient;
  float *parameter = block->parameter;
  for (int64_t i = 0; i < 2 * block->count; ++i) parameter[i] += gradient[i];
}

/* With complex numbers, which cannot be compared. */
static dist_status step_by_callback(dist_replica *replica, void *user_data) {
  float(*parameters)[2] = user_data;
  const int32_t rank = dist_replica_id(replica);
  float gradient[2] = {(float)(rank + 1), (float)(-2 * rank)};
  parameters[rank][0] = parameters[rank][1] = 0.5f;
  dist_tensor in = {gradient, DIST_COMPLEX64, 0, NULL, NULL};
  dist_tensor parameter = {parameters[rank], DIST_COMPLEX64, 0, NULL, NULL};
  dist_apply_options apply = DIST_APPLY_OPTIONS_INIT;
  apply.kind = DIST_APPLY_CALLBACK;
  apply.fn = add_block;
  return dist_reduce_apply(replica, DIST_REDUCE_SUM, &in, &parameter, 1, &apply, NULL, NULL);
}

static dist_status run_callback(dist_strategy *strategy, int worker, void *user_data) {
  (void)worker;
  return dist_run(strategy, step_by_callback, user_data, NULL);
}

static void steps_take_numbers_without_order(void **state) {
  (void)state;
  workers all = workers_of("2+1+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  float parameters[4][2] = {{0}};
  all_workers(&all, run_callback, parameters);
  for (int r = 0; r < 4; ++r) assert_true(parameters[r][0] == 10.5f && parameters[r][1] == -11.5f);
  end_workers(&all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_are_those_of_one_process),
      cmocka_unit_test(steps_take_numbers_without_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
