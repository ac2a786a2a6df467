/* SPDX-License-Identifier: Apache-2.0
 *
 * A program as it is compiled today, with the declarations of 1.0 (dist-1.0.h) instead of the current
 * headers. Later libraries of the same soname have to run it, so it is not adapted to changes of the API: if
 * it does not work, the library is wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "dist-1.0.h"

enum { R = 2 };

static void ok(dist_status status) {
  if (status != DIST_OK) fail_msg("%s", dist_last_error());
}

static dist_tensor vector(float *numbers, const int64_t *length) {
  const dist_tensor tensor = {numbers, DIST_F32, 1, length, NULL};
  return tensor;
}

static dist_strategy *strategy_of(dist_strategy_kind kind) {
  dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  dist_communication_options communication = DIST_COMMUNICATION_OPTIONS_INIT;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_strategy *strategy = NULL;
  communication.bytes_per_pack = 64;
  options.kind = kind;
  options.num_replicas = R;
  options.threads = DIST_THREADS_LIBRARY;
  options.timeout_ns = DIST_NO_TIMEOUT;
  options.communication = &communication;
  options.cpu = &cpu;
  options.host = &host;
  ok(dist_strategy_create(&options, &strategy));
  assert_int_equal(dist_strategy_num_replicas(strategy), R);
  assert_int_equal(dist_strategy_kind_of(strategy), kind);
  return strategy;
}

/* ---- Runs and collectives ---- */

static dist_status collectives(dist_replica *replica, void *user_data) {
  const int64_t length = 3, both = 3 * R;
  float numbers[3], all[3 * R];
  const dist_tensor tensor = vector(numbers, &length), gathered = vector(all, &both);
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  dist_work *work = NULL;
  int i;
  for (i = 0; i < 3; i++) numbers[i] = (float)(dist_replica_id(replica) + i);
  options.tag = "sum";
  options.numerics = DIST_NUMERICS_ORDERED;
  ok(dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &options, &work));
  ok(dist_work_wait(work, DIST_NO_TIMEOUT));
  dist_work_destroy(work);
  for (i = 0; i < 3; i++) assert_true(numbers[i] == (float)(1 + 2 * i));
  ok(dist_all_gather(replica, &tensor, &gathered, 1, NULL, NULL));
  assert_true(all[3 * R - 1] == 5);
  ok(dist_barrier(replica, NULL, NULL));
  if (dist_replica_id(replica) == 0) *(float *)user_data = numbers[2];
  return DIST_OK;
}

static dist_status fails(dist_replica *replica, void *user_data) {
  (void)user_data;
  return dist_replica_id(replica) == 1 ? dist_fail(DIST_DATA_LOSS, "row 7 is broken")
                                       : dist_barrier(replica, NULL, NULL);
}

static void runs_and_errors(void **state) {
  dist_strategy *strategy = strategy_of(DIST_STRATEGY_MIRRORED);
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  dist_error_info info;
  float sum = 0;
  (void)state;
  ok(dist_run(strategy, collectives, &sum, &options));
  assert_true(sum == 5);
  assert_int_equal(dist_run(strategy, fails, NULL, NULL), DIST_DATA_LOSS);
  assert_non_null(strstr(dist_last_error(), "row 7 is broken"));
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  ok(dist_last_error_info(&info));
  assert_int_equal(info.code, DIST_DATA_LOSS);
  ok(dist_run(strategy, collectives, &sum, NULL)); /* it goes on */
  ok(dist_strategy_destroy(strategy));
}

/* ---- Values, variables and files ---- */

static dist_status numbered(dist_strategy *strategy, const dist_value_context *context,
                            dist_value **out_value, void *user_data) {
  float number = (float)(10 + context->replica_id_in_sync_group);
  const dist_tensor scalar = {&number, DIST_F32, 0, NULL, NULL};
  (void)user_data;
  return dist_value_create_tensor(strategy, &scalar, out_value);
}

static dist_status doubled(dist_strategy *strategy, const dist_update_place *place, dist_value *args,
                           dist_value *kwargs, dist_value **out_result, void *user_data) {
  (void)strategy, (void)args, (void)kwargs, (void)out_result, (void)user_data;
  *(float *)place->copy->data *= 2;
  return DIST_OK;
}

static float number_in(const dist_value *value) {
  dist_tensor tensor;
  ok(dist_value_tensor(value, &tensor));
  return *(const float *)tensor.data;
}

static void values_and_variables(void **state) {
  dist_strategy *strategy = strategy_of(DIST_STRATEGY_MIRRORED);
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  dist_update_options update = DIST_UPDATE_OPTIONS_INIT;
  dist_checkpoint_options checkpoint = DIST_CHECKPOINT_OPTIONS_INIT;
  float three = 3;
  const dist_tensor scalar = {&three, DIST_F32, 0, NULL, NULL};
  dist_value *spread = NULL, *mean = NULL, *sums[1] = {NULL};
  dist_destination destination = {NULL, NULL, "CPU:0"};
  dist_variable *variable = NULL;
  char path[64];
  (void)state;
  ok(dist_values_from_function(strategy, numbered, NULL, &spread));
  ok(dist_reduce(strategy, DIST_REDUCE_MEAN, spread, NULL, 0, &mean));
  assert_true(number_in(mean) == 10.5f);
  ok(dist_batch_reduce_to(strategy, DIST_REDUCE_SUM, &spread, &destination, 1, NULL, sums));
  assert_true(number_in(sums[0]) == 21);
  dist_value_release(sums[0]);
  dist_value_release(mean);
  dist_value_release(spread);

  options.name = "w";
  options.aggregation = DIST_AGGREGATION_MEAN;
  ok(dist_variable_create(strategy, &scalar, &options, &variable));
  update.parallel = 1;
  ok(dist_update(strategy, variable, doubled, NULL, NULL, NULL, &update, NULL));
  snprintf(path, sizeof path, "frozen-%ld.safetensors", (long)getpid());
  ok(dist_checkpoint_save(strategy, path, &variable, 1, &checkpoint));
  ok(dist_value_create_tensor(strategy, &scalar, &mean));
  ok(dist_variable_assign(strategy, variable, DIST_ASSIGN_ADD, mean));
  dist_value_release(mean);
  ok(dist_checkpoint_load(strategy, path, &variable, 1, NULL));
  remove(path);
  ok(dist_variable_read(strategy, variable, &mean));
  assert_true(number_in(mean) == 6);
  dist_value_release(mean);
  dist_variable_destroy(variable);
  ok(dist_strategy_destroy(strategy));
}

static dist_status count(dist_dataset *dataset, dist_value *before, dist_value *batch, dist_value **out_state,
                         void *user_data) {
  (void)dataset, (void)before, (void)batch;
  *out_state = NULL;
  ++*(int *)user_data;
  return DIST_OK;
}

static void datasets(void **state) {
  dist_strategy *strategy = strategy_of(DIST_STRATEGY_MIRRORED);
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  const int64_t eight = 8;
  float rows[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  const dist_tensor tensor = vector(rows, &eight);
  dist_dataset *dataset = NULL;
  dist_iterator *iterator = NULL;
  dist_value *batch = NULL, *folded = NULL;
  int batches = 0;
  (void)state;
  options.global_batch_size = 4;
  ok(dist_dataset_create_from_tensors(strategy, &tensor, 1, &options, &dataset));
  ok(dist_dataset_reduce(dataset, NULL, count, &batches, &folded));
  assert_int_equal(batches, 2);
  ok(dist_iterator_create(dataset, &iterator));
  for (;; batches--) {
    ok(dist_iterator_next(iterator, &batch));
    if (batch == NULL) break;
    dist_value_release(batch);
  }
  assert_int_equal(batches, 0);
  dist_iterator_destroy(iterator);
  dist_dataset_destroy(dataset);
  ok(dist_strategy_destroy(strategy));
}

/* ---- Logical devices ---- */

static dist_status tiles(dist_replica *replica, dist_value *args, dist_value *kwargs, dist_value **out_result,
                         void *user_data) {
  const int64_t dimensions[] = {2};
  dist_split_options options = DIST_SPLIT_OPTIONS_INIT;
  (void)kwargs, (void)user_data;
  return dist_split_to_logical_devices(replica, dist_value_item(args, 0), dimensions, 1, &options,
                                       out_result);
}

static void logical_devices(void **state) {
  const int32_t mesh[] = {2, 1, 1, 2}, shape[] = {1, 1, 1, 2};
  int32_t places[] = {0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1};
  const int64_t four = 4;
  float numbers[4] = {1, 2, 3, 4};
  const dist_tensor tensor = vector(numbers, &four);
  dist_topology *topology = NULL;
  dist_device_assignment *assignment = NULL;
  dist_mesh_options on = DIST_MESH_OPTIONS_INIT;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_strategy *strategy = NULL;
  dist_value *value = NULL, *args = NULL, *result = NULL;
  (void)state;
  ok(dist_topology_create(mesh, 4, places, 1, 4, NULL, &topology));
  ok(dist_device_assignment_build(topology, shape, NULL, 4, R, DIST_DEVICE_ORDER_AUTO, &assignment));
  on.device_assignment = assignment;
  options.kind = DIST_STRATEGY_MESH;
  options.mesh = &on;
  ok(dist_strategy_create(&options, &strategy));
  assert_int_equal(dist_strategy_num_replicas(strategy), R);
  ok(dist_value_create_tensor(strategy, &tensor, &value));
  ok(dist_value_create_list(strategy, &value, 1, &args));
  ok(dist_run_values(strategy, tiles, NULL, args, NULL, NULL, &result));
  assert_int_equal(dist_value_size(result), R);
  dist_value_release(result);
  dist_value_release(args);
  dist_value_release(value);
  ok(dist_strategy_destroy(strategy));
  dist_device_assignment_destroy(assignment);
  dist_topology_destroy(topology);
}

/* ---- Requests ---- */

static dist_status numbers_itself(dist_replica *replica, void *user_data) {
  *(int32_t *)user_data = dist_replica_id(replica);
  return DIST_OK;
}

static void requests(void **state) {
  dist_strategy *strategy = strategy_of(DIST_STRATEGY_MIRRORED);
  dist_instances_options instances = DIST_INSTANCES_OPTIONS_INIT;
  dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
  dist_request *request = NULL;
  int32_t number = -1;
  (void)state;
  instances.max_queued = 4;
  ok(dist_instances_open(strategy, &instances));
  ok(dist_submit(strategy, numbers_itself, &number, &options, &request));
  ok(dist_request_wait(request, DIST_NO_TIMEOUT));
  dist_request_destroy(request);
  assert_in_range(number, 0, R - 1);
  ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_and_errors), cmocka_unit_test(values_and_variables),
      cmocka_unit_test(datasets),        cmocka_unit_test(logical_devices),
      cmocka_unit_test(requests),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
