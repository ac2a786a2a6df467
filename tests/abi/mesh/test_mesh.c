/* SPDX-License-Identifier: Apache-2.0
 *
 * The mesh strategy: how it is created, which arguments it rejects, and that it otherwise behaves like the
 * mirrored strategy.
 */
#include "tests/abi/mesh_support.h"

static dist_mesh_options the_mesh; /* used by the latest options_of() */

static dist_strategy_options options_of(const dist_device_assignment *assignment) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  the_mesh = (dist_mesh_options)DIST_MESH_OPTIONS_INIT;
  options.mesh = &the_mesh;
  options.kind = DIST_STRATEGY_MESH;
  the_mesh.device_assignment = assignment;
  return options;
}

static void assert_refused(const dist_strategy_options *options, const char *words) {
  dist_strategy *strategy = NULL;
  assert_fails(dist_strategy_create(options, &strategy), DIST_INVALID_ARGUMENT, words);
  assert_null(strategy);
}

static void an_assignment_says_how_many(void **state) {
  (void)state;
  const int32_t mesh[] = {2, 2, 2, 2}, block[] = {1, 2, 2, 2};
  const int before = count_threads();
  dist_device_assignment *assignment = block_assignment(mesh, block, 2);
  dist_strategy_options options = options_of(assignment);
  dist_strategy *strategy = strategy_with(options);
  dist_device_assignment_destroy(assignment); /* the strategy keeps it */
  assert_int_equal(dist_strategy_kind_of(strategy), DIST_STRATEGY_MESH);
  assert_int_equal(dist_strategy_num_replicas(strategy), 2);
  assert_int_equal(dist_strategy_num_logical_devices(strategy), 8);
  assert_int_equal(dist_device_assignment_num_logical_devices(dist_strategy_device_assignment(strategy)), 8);
  await_threads(before + 2 * 8 - 1); /* one thread per device, except the caller's own */
  assert_healthy(DIST_THREADS_CALLER, strategy);
  assert_ok(dist_strategy_destroy(strategy));
  await_threads(before);
}

static void without_one_replicas_have_one_device(void **state) {
  (void)state;
  dist_strategy_options options = options_of(NULL);
  options.num_replicas = 3;
  for (options.threads = DIST_THREADS_CALLER; options.threads <= DIST_THREADS_HOST; options.threads++) {
    dist_strategy *strategy = strategy_with(options);
    assert_int_equal(dist_strategy_num_logical_devices(strategy), 1);
    assert_null(dist_strategy_device_assignment(strategy));
    assert_healthy(options.threads, strategy);
    assert_ok(dist_strategy_destroy(strategy));
  }
  assert_int_equal(dist_strategy_num_logical_devices(NULL), 0);
  assert_null(dist_strategy_device_assignment(NULL));
}

static void what_cannot_be_is_refused(void **state) {
  (void)state;
  const int32_t mesh[] = {2, 2, 1, 1}, block[] = {1, 2, 1, 1};
  dist_device_assignment *assignment = block_assignment(mesh, block, 2);
  dist_strategy_options options = options_of(assignment);
  dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
  if (options.worker != NULL) worker = *options.worker;
  options.worker = &worker;
  options.num_replicas = 3;
  assert_refused(&options, "num_replicas is 3, but device_assignment has 2");
  options = options_of(assignment);
  options.threads = DIST_THREADS_HOST;
  assert_refused(&options, "DIST_THREADS_HOST");
  options = options_of(assignment);
  the_mesh.use_spmd_partitioning = 2;
  assert_refused(&options, "use_spmd_partitioning is 2");
  options = options_of(assignment);
  options.kind = DIST_STRATEGY_MIRRORED;
  assert_refused(&options, "are options of DIST_STRATEGY_MESH");
  options = options_of(assignment);
  options.worker = &worker;
  worker.reform = DIST_REFORM_AT_NEXT_RUN;
  assert_refused(&options, "reform are options of DIST_STRATEGY_MULTI_WORKER_MIRRORED");
  const dist_mesh_axis twice[] = {{"x", 1}, {"x", 2}}, unnamed[] = {{"", 2}}, null[] = {{NULL, 2}},
                       few[] = {{"x", 3}}, empty[] = {{"x", 0}},
                       huge[] = {{"x", INT32_MAX}, {"y", INT32_MAX}, {"z", INT32_MAX}};
#define AXES(array, words)             \
  options = options_of(assignment);    \
  the_mesh.axes = array;               \
  the_mesh.num_axes = COUNT_OF(array); \
  assert_refused(&options, words)
  AXES(twice, "the same name, \"x\"");
  AXES(unnamed, "has no name");
  AXES(null, "has no name");
  AXES(few, "must be 2");
  AXES(empty, "but must be at least 1");
  AXES(huge, "must be 2");
  the_mesh.num_axes = 100;
  assert_refused(&options, "num_axes is 100");
  the_mesh.axes = NULL;
  assert_refused(&options, "axes is NULL");
  dist_device_assignment_destroy(assignment);
}

/* A mesh with a hole, and one device that is assigned twice. */
static void every_logical_device_is_one_device(void **state) {
  (void)state;
  const int32_t mesh[] = {2, 2, 1, 1}, there[] = {0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0};
  const int32_t hole[] = {0, 0, 0, 0, 1, 1, 0, 0}, same[] = {0, 1, 0, 0, 0, -1, 0, 0};
  dist_topology *topology = NULL;
  dist_device_assignment *assignment = NULL;
  assert_ok(dist_topology_create(mesh, 4, there, 1, 3, NULL, &topology));
  assert_ok(dist_device_assignment_create(topology, hole, 1, 2, 4, &assignment));
  dist_strategy_options options = options_of(assignment);
  assert_refused(&options, "logical device 1 of replica 0 is at");
  dist_device_assignment_destroy(assignment);
  assert_ok(dist_device_assignment_create(topology, same, 2, 1, 4, &assignment));
  options = options_of(assignment);
  assert_refused(&options, "is used twice");
  dist_device_assignment_destroy(assignment);
  assert_ok(dist_device_assignment_create(topology, NULL, 0, 0, 4, &assignment));
  options = options_of(assignment);
  assert_refused(&options, "0 replicas of 0 logical devices");
  dist_device_assignment_destroy(assignment);
  dist_topology_destroy(topology);
}

/* ---- Axes that every mesh strategy has ---- */

typedef struct axes_seen {
  const char *name;
  int32_t index[16], size;
} axes_seen;

static dist_status see_axis(dist_replica *device, dist_value *args, dist_value *kwargs,
                            dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)out_result;
  axes_seen *seen = user_data;
  int32_t size = 0;
  if (dist_device_replica(device) != 0) return DIST_OK;
  TRY(dist_device_axis(device, seen->name, &seen->index[dist_replica_id(device)], &size));
  if (dist_replica_id(device) == 0) seen->size = size;
  return DIST_OK;
}
static dist_status see_axis_of(dist_replica *replica, void *user_data) {
  return dist_run_on_devices(replica, see_axis, user_data, NULL, NULL, NULL, NULL);
}

static void blocks_have_the_axes_of_the_mesh(void **state) {
  (void)state;
  const int32_t mesh[] = {2, 2, 2, 2}, block[] = {1, 2, 2, 2};
  dist_device_assignment *assignment = block_assignment(mesh, block, 1);
  dist_strategy *strategy = strategy_with(options_of(assignment));
  dist_device_assignment_destroy(assignment);
  static const char *const names[] = {"x", "y", "z", "core"};
  for (int axis = 0; axis < 4; axis++) {
    axes_seen seen = {.name = names[axis]};
    assert_ok(dist_run(strategy, see_axis_of, &seen, NULL));
    assert_int_equal(seen.size, axis == 0 ? 1 : 2);
    for (int d = 0; d < 8; d++) assert_int_equal(seen.index[d], axis == 0 ? 0 : d >> (3 - axis) & 1);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

static void blocks_may_have_any_size(void **state) {
  (void)state;
  for (int32_t y = 1; y <= 3; y++)
    for (int32_t core = 1; core <= 5; core += 2) {
      const int32_t mesh[] = {2, 2 * y, 1, core}, block[] = {1, y, 1, core};
      dist_device_assignment *assignment = block_assignment(mesh, block, 4);
      dist_strategy *strategy = strategy_with(options_of(assignment));
      dist_device_assignment_destroy(assignment);
      axes_seen rows = {.name = "y"}, cores = {.name = "core"};
      assert_ok(dist_run(strategy, see_axis_of, &rows, NULL));
      assert_ok(dist_run(strategy, see_axis_of, &cores, NULL));
      assert_int_equal(rows.size, y);
      assert_int_equal(cores.size, core);
      for (int32_t d = 0; d < y * core; d++) {
        assert_int_equal(rows.index[d], d / core);
        assert_int_equal(cores.index[d], d % core);
      }
      assert_ok(dist_strategy_destroy(strategy));
    }
}

static void rings_have_one_axis(void **state) {
  (void)state;
  const int32_t mesh[] = {2, 2, 1, 1};
  dist_topology *topology = full_topology(mesh);
  dist_device_assignment *assignment = NULL;
  assert_ok(dist_device_assignment_build(topology, mesh, NULL, 4, 1, DIST_DEVICE_ORDER_RING, &assignment));
  dist_topology_destroy(topology);
  dist_strategy *strategy = strategy_with(options_of(assignment));
  dist_device_assignment_destroy(assignment);
  axes_seen seen = {.name = "device"};
  assert_ok(dist_run(strategy, see_axis_of, &seen, NULL));
  assert_int_equal(seen.size, 4);
  for (int d = 0; d < 4; d++) assert_int_equal(seen.index[d], d);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Everything else is as in the mirrored strategy ---- */

static dist_status add_own_id(dist_replica *replica, void *user_data) {
  int64_t number = dist_replica_id(replica) + 1;
  const dist_tensor tensor = {&number, DIST_I64, 0, NULL, NULL};
  return dist_replica_assign(replica, user_data, DIST_ASSIGN_ADD, &tensor, NULL);
}

static dist_status read_on_device(dist_replica *device, dist_value *args, dist_value *kwargs,
                                  dist_value **out_result, void *user_data) {
  (void)kwargs, (void)user_data;
  dist_variable *variable = dist_value_variable(dist_value_item(args, 0));
  int64_t zero = 0;
  const dist_tensor tensor = {&zero, DIST_I64, 0, NULL, NULL};
  EXPECT_FAILS(dist_replica_assign(device, variable, DIST_ASSIGN, &tensor, NULL), DIST_FAILED_PRECONDITION,
               "is for whole replicas");
  EXPECT_FAILS(dist_run(dist_replica_strategy(device), healthy, NULL, NULL), DIST_FAILED_PRECONDITION,
               "runs do not nest");
  EXPECT_FAILS(dist_run_on_devices(device, read_on_device, NULL, args, NULL, NULL, NULL),
               DIST_FAILED_PRECONDITION, "is for whole replicas");
  return dist_replica_read(device, variable, out_result);
}

/* A sync-on-read variable: each replica has its own copy, which its devices read. */
static dist_status read_on_devices(dist_replica *replica, void *user_data) {
  dist_value *items[1] = {NULL}, *result = NULL;
  TRY(dist_value_create_variable(user_data, &items[0]));
  dist_value *args = list_of(dist_replica_strategy(replica), items, 1);
  TRY(dist_run_on_devices(replica, read_on_device, NULL, args, NULL, NULL, &result));
  dist_value_release(args);
  dist_tensor tensor;
  TRY(dist_value_tensor(result, &tensor));
  EXPECT(element(&tensor, 0) == dist_replica_id(replica) + 1);
  dist_value_release(result);
  return DIST_OK;
}

static void variables_are_mirrored(void **state) {
  (void)state;
  dist_strategy *strategy = mesh_of(2, 2);
  int64_t zero = 0;
  const dist_tensor tensor = {&zero, DIST_I64, 0, NULL, NULL};
  dist_variable *mirrored = NULL, *on_read = NULL;
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.aggregation = DIST_AGGREGATION_SUM;
  assert_ok(dist_variable_create(strategy, &tensor, &options, &mirrored));
  options.synchronization = DIST_SYNCHRONIZATION_ON_READ;
  assert_ok(dist_variable_create(strategy, &tensor, &options, &on_read));
  assert_string_equal(dist_variable_class(mirrored), "MirroredVariable");
  assert_string_equal(dist_variable_class(on_read), "SyncOnReadVariable");
  assert_ok(dist_run(strategy, add_own_id, mirrored, NULL));
  assert_ok(dist_run(strategy, add_own_id, on_read, NULL));
  dist_tensor copy;
  for (int32_t r = 0; r < 2; r++) {
    assert_ok(dist_variable_component(mirrored, r, &copy));
    assert_int_equal(*(int64_t *)copy.data, 3);
    assert_ok(dist_variable_component(on_read, r, &copy));
    assert_int_equal(*(int64_t *)copy.data, r + 1);
  }
  assert_ok(dist_run(strategy, read_on_devices, on_read, NULL));
  dist_variable_destroy(mirrored), dist_variable_destroy(on_read);
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_status sum_inside(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                              dist_value **out_result, void *user_data) {
  (void)args, (void)out_result, (void)kwargs;
  return dist_run(strategy, user_data == NULL ? healthy : see_axis_of, user_data, NULL);
}
static dist_status run_in_merge(dist_replica *replica, void *user_data) {
  return dist_merge_call(replica, sum_inside, user_data, NULL, NULL, NULL, NULL);
}

static void replicas_of_inner_runs_have_devices(void **state) {
  (void)state;
  dist_strategy *strategy = mesh_of(2, 2);
  assert_ok(dist_run(strategy, run_in_merge, NULL, NULL));
  axes_seen seen = {.name = "y"};
  assert_ok(dist_run(strategy, run_in_merge, &seen, NULL));
  assert_int_equal(seen.size, 2);
  assert_ok(dist_strategy_destroy(strategy));
}

static void collect(const char *text, size_t length, void *user_data) {
  char *all = user_data;
  const size_t used = strlen(all);
  if (used + length < 8192) memcpy(all + used, text, length), all[used + length] = '\0';
}

static void it_explains_itself(void **state) {
  (void)state;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
  options.cpu = &cpu;
  cpu.placement = DIST_PLACEMENT_CORES;
  dist_strategy *strategy = mesh_with(2, 2, options);
  static char text[8192];
  assert_ok(dist_strategy_explain(strategy, collect, text));
  assert_has(text, "logical devices: 2 per replica, axes x 1, y 2, z 1, core 1");
  assert_ok(dist_run(strategy, see_axis_of, &(axes_seen){.name = "y"}, NULL));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- The replica's handle while its devices run ---- */

static dist_status nothing(dist_replica *device, dist_value *args, dist_value *kwargs,
                           dist_value **out_result, void *user_data) {
  (void)device, (void)args, (void)kwargs, (void)out_result, (void)user_data;
  return DIST_OK;
}

static dist_status refused(dist_status status) {
  EXPECT(status == DIST_FAILED_PRECONDITION);
  EXPECT(strstr(dist_last_error(), "is inside dist_run_on_devices()") != NULL);
  return DIST_OK;
}

static dist_status use_the_replica(dist_replica *device, dist_value *args, dist_value *kwargs,
                                   dist_value **out_result, void *user_data) {
  (void)device, (void)args, (void)kwargs, (void)out_result;
  dist_replica *replica = user_data;
  TRY(refused(dist_run_on_devices(replica, nothing, NULL, NULL, NULL, NULL, NULL)));
  return refused(dist_barrier(replica, NULL, NULL));
}

static dist_status replica_waits_for_its_devices(dist_replica *replica, void *user_data) {
  (void)user_data;
  TRY(dist_run_on_devices(replica, use_the_replica, replica, NULL, NULL, NULL, NULL));
  return dist_barrier(replica, NULL, NULL);
}

static void a_replica_is_not_used_while_its_devices_run(void **state) {
  (void)state;
  dist_strategy *strategy = mesh_of(2, 2);
  assert_ok(dist_run(strategy, replica_waits_for_its_devices, NULL, NULL));
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_assignment_says_how_many),
      cmocka_unit_test(without_one_replicas_have_one_device),
      cmocka_unit_test(what_cannot_be_is_refused),
      cmocka_unit_test(every_logical_device_is_one_device),
      cmocka_unit_test(blocks_have_the_axes_of_the_mesh),
      cmocka_unit_test(blocks_may_have_any_size),
      cmocka_unit_test(rings_have_one_axis),
      cmocka_unit_test(variables_are_mirrored),
      cmocka_unit_test(replicas_of_inner_runs_have_devices),
      cmocka_unit_test(it_explains_itself),
      cmocka_unit_test(a_replica_is_not_used_while_its_devices_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
