/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of several workers: all take part, worker 0 writes, and any layout of replicas reads.
 */
#include "../workers_support.h"

#include <unistd.h>

typedef struct files {
  char path[64];
  float values[MOST_WORKERS];
} files;

static dist_status count(dist_replica *replica, void *user_data) {
  const float one = 1;
  const dist_tensor tensor = {(void *)&one, DIST_F32, 0, NULL, NULL};
  return dist_replica_assign(replica, user_data, DIST_ASSIGN_ADD, &tensor, NULL);
}

static dist_status save_or_load(dist_strategy *strategy, int worker, files *kept, int saves) {
  float zero = 0;
  const dist_tensor initial = {&zero, DIST_F32, 0, NULL, NULL};
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.aggregation = DIST_AGGREGATION_SUM;
  options.synchronization = DIST_SYNCHRONIZATION_ON_READ;
  options.name = "steps";
  dist_variable *variable = NULL;
  dist_value *value = NULL;
  dist_tensor tensor;
  dist_status status = dist_variable_create(strategy, &initial, &options, &variable);
  if (status == DIST_OK && saves) status = dist_run(strategy, count, variable, NULL);
  if (status == DIST_OK) {
    status = saves ? dist_checkpoint_save(strategy, kept->path, &variable, 1, NULL)
                   : dist_checkpoint_load(strategy, kept->path, &variable, 1, NULL);
  }
  if (status == DIST_OK) status = dist_variable_read(strategy, variable, &value);
  if (status == DIST_OK) status = dist_value_tensor(value, &tensor);
  if (status == DIST_OK) memcpy(&kept->values[worker], tensor.data, sizeof(float));
  dist_value_release(value);
  dist_variable_destroy(variable);
  return status;
}

static dist_status save(dist_strategy *strategy, int worker, void *user_data) {
  return save_or_load(strategy, worker, user_data, 1);
}
static dist_status load(dist_strategy *strategy, int worker, void *user_data) {
  return save_or_load(strategy, worker, user_data, 0);
}

static void a_checkpoint_is_written_once_and_read_by_any_layout(void **state) {
  (void)state;
  files kept = {.path = "/tmp/dist-workers-XXXXXX"};
  const int file = mkstemp(kept.path);
  assert_true(file >= 0);
  close(file);
  const char *const layouts[] = {"2+2", "1+1+1+1", "4", "1+3"};
  for (size_t from = 0; from < COUNT_OF(layouts); ++from) {
    workers all = workers_of(layouts[from], (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
    all_workers(&all, save, &kept);
    for (int w = 0; w < all.n; ++w) assert_true(kept.values[w] == 4.0f);
    end_workers(&all);
    for (size_t to = 0; to < COUNT_OF(layouts); ++to) {
      memset(kept.values, 0, sizeof kept.values);
      all = workers_of(layouts[to], (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
      all_workers(&all, load, &kept);
      for (int w = 0; w < all.n; ++w) assert_true(kept.values[w] == 4.0f);
      end_workers(&all);
    }
  }
  /* Whoever cannot write tells the others. */
  workers all = workers_of("1+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  files nowhere = {.path = "/nowhere/at/all"};
  worker_thread threads[MOST_WORKERS];
  on_workers(&all, save, &nowhere, threads);
  for (int w = 0; w < 2; ++w) assert_int_not_equal(threads[w].status, DIST_OK);
  assert_has(threads[1].error.message, "/nowhere/at/all");
  end_workers(&all);
  remove(kept.path);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_checkpoint_is_written_once_and_read_by_any_layout)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
