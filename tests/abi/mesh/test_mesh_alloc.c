/* SPDX-License-Identifier: Apache-2.0
 *
 * A host allocator without memory: every request in the life of a mesh strategy is rejected once. Nothing
 * leaks or hangs.
 */
#include "tests/abi/alloc_support.h"
#include "tests/abi/mesh_support.h"

static dist_status add_up(dist_replica *device, dist_value *args, dist_value *kwargs, dist_value **out_result,
                          void *user_data) {
  (void)kwargs, (void)user_data;
  dist_tensor shard;
  TRY(dist_value_tensor(dist_value_item(args, 0), &shard));
  int64_t sum = 0, one = 1;
  for (int64_t i = 0; i < product_of(shard.shape, shard.ndim); i++) sum += element(&shard, i);
  dist_tensor tensor = vector_of(&sum, DIST_I64, &one);
  TRY(dist_barrier(device, NULL, NULL));
  return dist_value_create_tensor(dist_replica_strategy(device), &tensor, out_result);
}

static dist_status divide_and_run(dist_replica *replica, void *user_data) {
  (void)user_data;
  const int64_t shape[] = {4}, parts[] = {2};
  int64_t data[] = {1, 2, 3, 4};
  const dist_tensor tensor = {data, DIST_I64, 1, shape, NULL};
  dist_strategy *strategy = dist_replica_strategy(replica);
  dist_value *whole = NULL, *sharded = NULL, *args = NULL, *result = NULL;
  dist_status status = dist_value_create_tensor(strategy, &tensor, &whole);
  if (!status) status = dist_split_to_logical_devices(replica, whole, parts, 1, NULL, &sharded);
  if (!status) status = dist_value_create_list(strategy, &sharded, 1, &args);
  if (!status) status = dist_run_on_devices(replica, add_up, NULL, args, NULL, NULL, &result);
  if (!status && dist_value_size(result) != 2) status = dist_fail(DIST_INTERNAL, "no two shards");
  dist_value_release(whole), dist_value_release(sharded);
  dist_value_release(args), dist_value_release(result);
  return status;
}

static dist_status live(const dist_strategy_options *options) {
  dist_strategy *strategy = NULL;
  dist_status status = dist_strategy_create(options, &strategy);
  if (!status) status = dist_run(strategy, divide_and_run, NULL, NULL);
  const dist_status ended = dist_strategy_destroy(strategy);
  return status ? status : ended;
}

static void every_request_is_refused_once(void **state) {
  (void)state;
  static refusals a;
  const int32_t mesh[] = {2, 2, 1, 1}, block[] = {1, 2, 1, 1};
  const int threads = count_threads();
  dist_device_assignment *assignment = block_assignment(mesh, block, 2);
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_mesh_options mesh_options = DIST_MESH_OPTIONS_INIT;
  options.mesh = &mesh_options;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.kind = DIST_STRATEGY_MESH;
  mesh_options.device_assignment = assignment;
  host.allocator = refusing(&a);
  long refused = 0;
  for (long k = 0, asked = 1; asked; k++) {
    atomic_store(&a.requests, 0);
    atomic_store(&a.refuse_at, k);
    const dist_status status = live(&options);
    asked = atomic_load(&a.requests) > k;
    refused += asked;
    if (status != DIST_OK && !(asked && status == DIST_RESOURCE_EXHAUSTED)) {
      fail_msg("request %ld: %s: %s", k, dist_status_name(status), dist_last_error());
    }
    assert_int_equal(atomic_load(&a.live_bytes), 0);
  }
  assert_true(refused > 50);
  await_threads(threads);
  dist_device_assignment_destroy(assignment);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_request_is_refused_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
