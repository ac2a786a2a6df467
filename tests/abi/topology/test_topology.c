/* SPDX-License-Identifier: Apache-2.0
 *
 * Topologies from coordinates, from bytes and from the host, and queries on them.
 */
#include "tests/abi/common.h"

/* Two tasks with four devices. x varies fastest after the core. The second task begins with position (1, 1,
 * 0, *). */
static const int32_t mesh[] = {2, 2, 1, 2};
static const int32_t devices[2][4][4] = {
    {{0, 0, 0, 0}, {0, 0, 0, 1}, {1, 0, 0, 0}, {1, 0, 0, 1}},
    {{1, 1, 0, 0}, {1, 1, 0, 1}, {0, 1, 0, 0}, {0, 1, 0, 1}},
};

static dist_topology *topology_of(const int32_t *shape, const int32_t *coordinates, int32_t tasks,
                                  int32_t per_task) {
  dist_topology *topology = NULL;
  assert_ok(dist_topology_create(shape, 4, coordinates, tasks, per_task, NULL, &topology));
  return topology;
}

static void expect_at(const dist_topology *topology, const int32_t *at, int32_t task, int32_t device) {
  int32_t got = -7;
  assert_ok(dist_topology_task_at(topology, at, &got));
  assert_int_equal(got, task);
  assert_ok(dist_topology_device_at(topology, at, &got));
  assert_int_equal(got, device);
}

static void what_was_given_is_there(void **state) {
  (void)state;
  dist_topology *topology = topology_of(mesh, &devices[0][0][0], 2, 4);
  assert_int_equal(dist_topology_mesh_rank(topology), 4);
  assert_memory_equal(dist_topology_mesh_shape(topology), mesh, sizeof mesh);
  assert_int_equal(dist_topology_num_tasks(topology), 2);
  assert_int_equal(dist_topology_num_devices_per_task(topology), 4);
  assert_memory_equal(dist_topology_device_coordinates(topology), devices, sizeof devices);
  assert_int_equal(dist_topology_num_missing_devices(topology), 0);
  assert_null(dist_topology_missing_devices(topology));
  for (int32_t task = 0; task < 2; task++) {
    for (int32_t device = 0; device < 4; device++) expect_at(topology, devices[task][device], task, device);
  }
  expect_at(topology, (const int32_t[]){-1, -2, -1, 0}, 0, 2); /* (1, 0, 0, 0) */
  int32_t nowhere = 5;
  static const int32_t outside[][4] = {{2, 0, 0, 0}, {0, -3, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, INT32_MIN}};
  for (size_t i = 0; i < COUNT_OF(outside); i++)
    assert_fails(dist_topology_task_at(topology, outside[i], &nowhere), DIST_INVALID_ARGUMENT,
                 "outside the mesh, whose shape is [2 2 1 2]");
  assert_fails(dist_topology_cpu_at(topology, devices[0][0], &nowhere), DIST_FAILED_PRECONDITION,
               "not the CPUs");
  assert_int_equal(nowhere, 5);
  dist_topology_destroy(topology);
}

static void names(void **state) {
  (void)state;
  dist_topology *topology = topology_of(mesh, &devices[0][0][0], 1, 4);
  char name[64];
  assert_ok(dist_topology_device_name_at(topology, devices[0][3], NULL, name, sizeof name));
  assert_string_equal(name, "/task:0/device:TPU:3");
  assert_ok(dist_topology_device_name_at(topology, devices[0][3], "worker", name, sizeof name));
  assert_string_equal(name, "/job:worker/task:0/device:TPU:3");
  assert_ok(dist_topology_host_name_at(topology, devices[0][3], "worker", name, sizeof name));
  assert_string_equal(name, "/job:worker/task:0/device:CPU:0");
  assert_ok(dist_topology_device_name_at(topology, devices[1][0], "", name, sizeof name)); /* missing */
  assert_string_equal(name, "/job:/task:-1/device:TPU:-1");
  assert_ok(dist_topology_host_name_at(topology, devices[0][0], NULL, name, 21));
  assert_string_equal(name, "/task:0/device:CPU:0");
  strcpy(name, "untouched");
  assert_fails(dist_topology_host_name_at(topology, devices[0][0], NULL, name, 20), DIST_INVALID_ARGUMENT,
               "room for 20 bytes, but the name needs 21");
  assert_fails(dist_topology_host_name_at(topology, devices[0][0], NULL, name, 0), DIST_INVALID_ARGUMENT,
               "room for 0");
  assert_string_equal(name, "untouched");
  dist_topology_destroy(topology);
}

static void devices_may_be_missing(void **state) {
  (void)state;
  dist_topology *topology = topology_of(mesh, &devices[0][0][0], 1, 4);
  static const int32_t holes[4][4] = {{0, 1, 0, 0}, {0, 1, 0, 1}, {1, 1, 0, 0}, {1, 1, 0, 1}};
  assert_int_equal(dist_topology_num_missing_devices(topology), 4);
  assert_memory_equal(dist_topology_missing_devices(topology), holes, sizeof holes);
  expect_at(topology, holes[2], -1, -1);
  dist_topology_destroy(topology);

  topology = topology_of(mesh, NULL, 0, 3); /* no position has a device */
  assert_null(dist_topology_device_coordinates(topology));
  assert_int_equal(dist_topology_num_missing_devices(topology), 8);
  dist_topology_destroy(topology);

  static const int32_t twice[2][4] = {{0, 0, 0, 0},
                                      {0, -2, 0, -2}}; /* twice the same position: the later one counts */
  topology = topology_of(mesh, &twice[0][0], 2, 1);
  expect_at(topology, twice[0], 1, 0);
  assert_int_equal(dist_topology_num_missing_devices(topology), 7);
  dist_topology_destroy(topology);
}

static void wrong_topologies_are_refused(void **state) {
  (void)state;
  static const struct {
    int32_t mesh[5];
    size_t rank;
    int32_t tasks, devices;
    const char *words;
  } cases[] = {
      {{2, 2, 1}, 3, 1, 1, "mesh_shape is [2 2 1], but must be 4 numbers"},
      {{2, 2, 1, 1, 1}, 5, 1, 1, "mesh_shape is [2 2 1 1 1]"},
      {{0}, 0, 1, 1, "mesh_shape is []"},
      {{2, 0, 1, 1}, 4, 1, 1, "each at least 1"},
      {{2, INT32_MIN, 1, 1}, 4, 1, 1, "each at least 1"},
      {{INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX}, 4, 0, 0, "at most 1048576 positions"},
      {{1 << 16, 1 << 16, 1, 1}, 4, 0, 0, "at most 1048576 positions"},
      {{1 << 20, 2, 1, 1}, 4, 0, 0, "at most 1048576 positions"},
      {{2, 2, 1, 2}, 4, -1, 1, "num_tasks is -1"},
      {{2, 2, 1, 2}, 4, 1, -1, "num_devices_per_task is -1"},
      {{2, 2, 1, 2}, 4, INT32_MAX, INT32_MAX, "a topology can have at most 1048576"},
      {{1, 1, 1, 1}, 4, 1, 4, "outside the mesh"},
  };
  dist_topology *topology = NULL;
  for (size_t i = 0; i < COUNT_OF(cases); i++)
    assert_fails(dist_topology_create(cases[i].mesh, cases[i].rank, &devices[0][0][0], cases[i].tasks,
                                      cases[i].devices, NULL, &topology),
                 DIST_INVALID_ARGUMENT, cases[i].words);
  assert_fails(dist_topology_create(NULL, 4, NULL, 0, 0, NULL, &topology), DIST_INVALID_ARGUMENT,
               "mesh_shape");
  assert_fails(dist_topology_create(mesh, 4, NULL, 1, 1, NULL, &topology), DIST_INVALID_ARGUMENT,
               "device_coordinates is NULL");
  assert_fails(dist_topology_create(mesh, 4, NULL, 0, 0, NULL, NULL), DIST_INVALID_ARGUMENT, "out_topology");
  dist_topology_options options = DIST_TOPOLOGY_OPTIONS_INIT;
  options.reserved = 1;
  assert_fails(dist_topology_create(mesh, 4, NULL, 0, 0, &options, &topology), DIST_INVALID_ARGUMENT,
               "reserved");
  assert_null(topology);
  /* The largest valid meshes. */
  static const int32_t longest[] = {1, 1 << 20, 1, 1};
  topology = topology_of(longest, NULL, 0, 0);
  assert_int_equal(dist_topology_num_missing_devices(topology), 1 << 20);
  dist_topology_destroy(topology);
  topology = topology_of(mesh, NULL, INT32_MAX, 0);
  dist_topology_destroy(topology);
}

static void nothing_is_asked_of_null(void **state) {
  (void)state;
  int32_t number = 7;
  char name[8];
  assert_null(dist_topology_mesh_shape(NULL));
  assert_null(dist_topology_device_coordinates(NULL));
  assert_null(dist_topology_missing_devices(NULL));
  assert_int_equal(dist_topology_mesh_rank(NULL) + dist_topology_num_tasks(NULL) +
                       dist_topology_num_devices_per_task(NULL) +
                       (int)dist_topology_num_missing_devices(NULL),
                   0);
  assert_fails(dist_topology_task_at(NULL, mesh, &number), DIST_INVALID_ARGUMENT, "topology is NULL");
  assert_fails(dist_topology_explain(NULL, NULL, NULL), DIST_INVALID_ARGUMENT, "topology is NULL");
  dist_topology *topology = topology_of(mesh, NULL, 0, 0);
  assert_fails(dist_topology_device_at(topology, NULL, &number), DIST_INVALID_ARGUMENT,
               "coordinates is NULL");
  assert_fails(dist_topology_device_at(topology, mesh, NULL), DIST_INVALID_ARGUMENT, "out_device is NULL");
  assert_fails(dist_topology_device_name_at(topology, mesh, NULL, NULL, 9), DIST_INVALID_ARGUMENT,
               "out_name");
  assert_fails(dist_topology_host_name_at(NULL, mesh, NULL, name, 8), DIST_INVALID_ARGUMENT, "topology");
  assert_fails(dist_topology_explain(topology, NULL, NULL), DIST_INVALID_ARGUMENT, "fn is NULL");
  dist_topology_destroy(topology);
  dist_topology_destroy(NULL);
}

static void append(const char *text, size_t size, void *user_data) {
  char *all = user_data;
  const size_t used = strlen(all);
  assert_true(used + size < 65536);
  memcpy(all + used, text, size);
  all[used + size] = '\0';
}

static void the_host_is_a_mesh(void **state) {
  (void)state;
  static char words[65536];
  cpu_set_t mask, seen;
  assert_int_equal(sched_getaffinity(0, sizeof mask, &mask), 0);
  CPU_ZERO(&seen);
  dist_topology *topology = NULL;
  assert_ok(dist_topology_from_host(NULL, &topology));
  const int32_t cpus = dist_topology_num_devices_per_task(topology);
  assert_int_equal(cpus, CPU_COUNT(&mask));
  assert_int_equal(dist_topology_num_tasks(topology), 1);
  const int32_t *at = dist_topology_device_coordinates(topology);
  for (int32_t device = 0; device < cpus; device++, at += 4) {
    int32_t cpu = -1;
    expect_at(topology, at, 0, device);
    assert_ok(dist_topology_cpu_at(topology, at, &cpu));
    assert_true(cpu >= 0 && CPU_ISSET((unsigned)cpu, &mask) && !CPU_ISSET((unsigned)cpu, &seen));
    CPU_SET((unsigned)cpu, &seen);
    if (device > 0) { /* all positions in row-major order */
      int axis = 0;
      while (axis < 3 && at[axis] == at[axis - 4]) axis++;
      assert_true(at[axis] > at[axis - 4]);
    }
  }
  const int32_t *hole = dist_topology_missing_devices(topology);
  for (size_t i = 0; i < dist_topology_num_missing_devices(topology); i++, hole += 4) {
    int32_t cpu = 0;
    assert_ok(dist_topology_cpu_at(topology, hole, &cpu));
    assert_int_equal(cpu, -1);
  }
  assert_ok(dist_topology_explain(topology, append, words));
  assert_has(words, "packages x NUMA domains x cores x hardware threads");
  assert_has(words, dist_has_feature("numa") ? "found by: hwloc" : "packages and caches are unknown");
  assert_has(words, "device 0: CPU ");
  dist_topology_destroy(topology);
}

static void other_topologies_are_explained_too(void **state) {
  (void)state;
  char words[65536] = "";
  dist_topology *topology = topology_of(mesh, &devices[0][0][0], 1, 4);
  assert_ok(dist_topology_explain(topology, append, words));
  assert_string_equal(words,
                      "mesh: 2 x 2 x 1 x 2\ntasks: 1, with 4 devices each\nmissing: 4 of 8 positions\n");
  dist_topology_destroy(topology);
}

static atomic_long live;
static void *counted(size_t size, size_t align, void *user_data) {
  (void)user_data, (void)align;
  atomic_fetch_add(&live, (long)size);
  return malloc(size);
}
static void uncounted(void *memory, size_t size, size_t align, void *user_data) {
  (void)user_data, (void)align;
  atomic_fetch_sub(&live, (long)size);
  free(memory);
}

static void memory_is_the_hosts(void **state) {
  (void)state;
  dist_topology_options options = DIST_TOPOLOGY_OPTIONS_INIT;
  options.allocator = (dist_allocator){counted, uncounted, NULL};
  dist_topology *topology = NULL;
  dist_device_assignment *assignment = NULL;
  assert_ok(dist_topology_create(mesh, 4, &devices[0][0][0], 2, 4, &options, &topology));
  const long alone = atomic_load(&live);
  assert_true(alone > 0);
  assert_ok(dist_device_assignment_build(topology, NULL, NULL, 0, 8, DIST_DEVICE_ORDER_AUTO, &assignment));
  assert_true(atomic_load(&live) > alone);
  dist_topology_destroy(topology); /* the assignment keeps it */
  assert_int_equal(dist_topology_num_tasks(dist_device_assignment_topology(assignment)), 2);
  dist_device_assignment_destroy(assignment);
  assert_int_equal(atomic_load(&live), 0);
  options.allocator.free = NULL;
  topology = NULL;
  assert_fails(dist_topology_from_host(&options, &topology), DIST_INVALID_ARGUMENT, "alloc and free");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_was_given_is_there),
      cmocka_unit_test(names),
      cmocka_unit_test(devices_may_be_missing),
      cmocka_unit_test(wrong_topologies_are_refused),
      cmocka_unit_test(nothing_is_asked_of_null),
      cmocka_unit_test(the_host_is_a_mesh),
      cmocka_unit_test(other_topologies_are_explained_too),
      cmocka_unit_test(memory_is_the_hosts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
