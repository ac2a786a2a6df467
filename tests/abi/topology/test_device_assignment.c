/* SPDX-License-Identifier: Apache-2.0
 *
 * Device assignments: the documented ones and invalid ones. tests/golden compares others with recordings of
 * TensorFlow; tests/property uses random meshes.
 */
#include "tests/abi/common.h"

/* A topology with one task that has all positions in row-major order. */
static dist_topology *full(int32_t x, int32_t y, int32_t z, int32_t cores) {
  const int32_t mesh[] = {x, y, z, cores}, n = x * y * z * cores;
  int32_t(*at)[4] = malloc(sizeof(int32_t[4]) * (size_t)n);
  assert_non_null(at);
  for (int32_t i = 0; i < n; i++) {
    at[i][0] = i / (cores * z * y), at[i][1] = i / (cores * z) % y;
    at[i][2] = i / cores % z, at[i][3] = i % cores;
  }
  dist_topology *topology = NULL;
  assert_ok(dist_topology_create(mesh, 4, at[0], 1, n, NULL, &topology));
  free(at);
  return topology;
}

static dist_device_assignment *built(dist_topology *topology, const int32_t *shape, const int32_t *stride,
                                     int32_t replicas, int32_t order) {
  dist_device_assignment *assignment = NULL;
  assert_ok(dist_device_assignment_build(topology, shape, stride, 4, replicas, order, &assignment));
  return assignment;
}

static void expect(dist_device_assignment *assignment, int32_t replicas, int32_t logical,
                   const int32_t (*expected)[4]) {
  assert_int_equal(dist_device_assignment_num_replicas(assignment), replicas);
  assert_int_equal(dist_device_assignment_num_logical_devices(assignment), logical);
  assert_memory_equal(dist_device_assignment_core_assignment(assignment), expected,
                      sizeof *expected * (size_t)(replicas * logical));
  dist_device_assignment_destroy(assignment);
}

/* The program in TPUStrategy's documentation: computation_shape=[1, 2, 2, 2], one replica with eight logical
 * devices. */
static void the_documented_block(void **state) {
  (void)state;
  static const int32_t shape[] = {1, 2, 2, 2};
  static const int32_t block[8][4] = {{0, 0, 0, 0}, {0, 0, 0, 1}, {0, 0, 1, 0}, {0, 0, 1, 1},
                                      {0, 1, 0, 0}, {0, 1, 0, 1}, {0, 1, 1, 0}, {0, 1, 1, 1}};
  static const int32_t rings[16][4] = {{0, 0, 0, 0}, {0, 0, 0, 1}, {0, 1, 0, 0}, {0, 1, 0, 1},
                                       {0, 1, 1, 0}, {0, 1, 1, 1}, {0, 0, 1, 0}, {0, 0, 1, 1},
                                       {1, 0, 0, 0}, {1, 0, 0, 1}, {1, 1, 0, 0}, {1, 1, 0, 1},
                                       {1, 1, 1, 0}, {1, 1, 1, 1}, {1, 0, 1, 0}, {1, 0, 1, 1}};
  dist_topology *topology = full(2, 2, 2, 2);
  expect(built(topology, shape, NULL, 1, DIST_DEVICE_ORDER_AUTO), 1, 8, block);
  expect(built(topology, shape, NULL, 2, DIST_DEVICE_ORDER_AUTO), 2, 8, rings);
  expect(built(topology, shape, NULL, 2, DIST_DEVICE_ORDER_RING), 2, 8, rings);
  expect(built(topology, shape, NULL, 1, DIST_DEVICE_ORDER_MESH), 1, 8, block);
  dist_topology_destroy(topology);
}

static void replicas_prefer_the_cores_of_a_chip(void **state) {
  (void)state;
  static const int32_t four[4][4] = {{0, 0, 0, 0}, {0, 0, 0, 1}, {1, 0, 0, 0}, {1, 0, 0, 1}};
  static const int32_t stride[] = {1, 1, 1, 2}, shape[] = {2, 1, 1, 1}, wide[] = {2, 1, 1, 1};
  static const int32_t strided[4][4] = {{0, 0, 0, 0}, {2, 0, 0, 0}, {0, 0, 0, 1}, {2, 0, 0, 1}};
  dist_topology *topology = full(4, 4, 1, 2);
  expect(built(topology, NULL, NULL, 4, DIST_DEVICE_ORDER_AUTO), 4, 1, four);
  expect(built(topology, NULL, stride, 4, DIST_DEVICE_ORDER_AUTO), 4, 1, four);
  expect(built(topology, shape, wide, 2, DIST_DEVICE_ORDER_MESH), 2, 2, strided);
  dist_device_assignment *none = built(topology, shape, NULL, 0, DIST_DEVICE_ORDER_AUTO);
  assert_int_equal(dist_device_assignment_num_replicas(none), 0);
  assert_int_equal(dist_device_assignment_num_logical_devices(none), 2);
  assert_null(dist_device_assignment_core_assignment(none));
  dist_device_assignment_destroy(none);
  dist_topology_destroy(topology);
  topology = full(2, 2, 2, 2); /* equally much room along all axes: the cores come first, then x */
  expect(built(topology, NULL, NULL, 4, DIST_DEVICE_ORDER_AUTO), 4, 1, four);
  dist_topology_destroy(topology);
}

static void where_devices_are_missing_tasks_go_in_order(void **state) {
  (void)state;
  static const int32_t mesh[] = {2, 2, 1, 1}, shape[] = {2, 1, 1, 1}, stride[] = {1, 2, 1, 1};
  static const int32_t three[3][4] = {{1, 1, 0, 0}, {0, 0, 0, 0}, {1, 0, 0, 0}};
  dist_topology *topology = NULL;
  dist_device_assignment *assignment = NULL;
  assert_ok(dist_topology_create(mesh, 4, three[0], 3, 1, NULL, &topology));
  expect(built(topology, NULL, NULL, 3, DIST_DEVICE_ORDER_RING), 3, 1, three);
  expect(built(topology, shape, NULL, 1, DIST_DEVICE_ORDER_AUTO), 1, 2, three);
  static const struct {
    const int32_t *shape, *stride;
    int32_t replicas;
    const char *words;
  } cases[] = {
      {NULL, NULL, 4, "4 replicas of 1 devices need 4 devices, but the topology has 3"},
      {shape, NULL, 2, "need 4 devices, but the topology has 3"},
      {NULL, stride, 1, "computation_stride must be 1"},
      {NULL, NULL, 0, "num_replicas must be at least 1"},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++)
    assert_fails(dist_device_assignment_build(topology, cases[i].shape, cases[i].stride, 4, cases[i].replicas,
                                              DIST_DEVICE_ORDER_AUTO, &assignment),
                 DIST_INVALID_ARGUMENT, cases[i].words);
  assert_null(assignment);
  dist_topology_destroy(topology);
}

static void wrong_computations_are_refused(void **state) {
  (void)state;
  static const struct {
    int32_t shape[4], stride[4];
    size_t rank;
    int32_t replicas, order;
    const char *words;
  } cases[] = {
      {{1, 1, 1, 1}, {1, 1, 1, 1}, 3, 1, DIST_DEVICE_ORDER_AUTO, "computation_shape has 3 numbers"},
      {{0, 1, 1, 1}, {1, 1, 1, 1}, 4, 1, DIST_DEVICE_ORDER_AUTO, "computation_shape is [0 1 1 1]"},
      {{1, 1, 1, -1}, {1, 1, 1, 1}, 4, 1, DIST_DEVICE_ORDER_AUTO, "must be at least 1"},
      {{1, 1, 1, 1}, {1, 0, 1, 1}, 4, 1, DIST_DEVICE_ORDER_AUTO, "computation_stride is [1 0 1 1]"},
      {{5, 1, 1, 1}, {1, 1, 1, 1}, 4, 1, DIST_DEVICE_ORDER_AUTO, "does not fit the mesh [4 2 1 2]"},
      {{2, 1, 1, 1}, {3, 1, 1, 1}, 4, 1, DIST_DEVICE_ORDER_AUTO, "does not fit the mesh"},
      {{1 << 16, 1, 1, 1},
       {1 << 16, 1, 1, 1},
       4,
       1,
       DIST_DEVICE_ORDER_AUTO,
       "does not fit the mesh"}, /* 0 in 32 bits */
      {{INT32_MAX, INT32_MAX, 1, 1},
       {INT32_MAX, 1, 1, 1},
       4,
       1,
       DIST_DEVICE_ORDER_AUTO,
       "does not fit the mesh"},
      {{2, 2, 1, 2}, {1, 1, 1, 1}, 4, 3, DIST_DEVICE_ORDER_AUTO, "num_replicas is 3, but only 2 replicas"},
      {{1, 1, 1, 1}, {1, 1, 1, 1}, 4, INT32_MAX, DIST_DEVICE_ORDER_AUTO, ", but only 16 replicas"},
      {{1, 1, 1, 1}, {1, 1, 1, 1}, 4, -1, DIST_DEVICE_ORDER_AUTO, "num_replicas is -1"},
      {{1, 1, 1, 2}, {1, 1, 1, 1}, 4, 7, DIST_DEVICE_ORDER_RING, "as many replicas as fit (8)"},
      {{1, 1, 1, 1}, {1, 1, 1, 1}, 4, 16, DIST_DEVICE_ORDER_RING, "all 2 cores"},
      {{1, 1, 1, 2}, {2, 1, 1, 1}, 4, 8, DIST_DEVICE_ORDER_RING, "without a stride"},
  };
  dist_topology *topology = full(4, 2, 1, 2);
  dist_device_assignment *assignment = NULL;
  assert_fails(dist_device_assignment_build(topology, NULL, NULL, 4, 1, 0, &assignment),
               DIST_INVALID_ARGUMENT, "device_order is 0: use DIST_DEVICE_ORDER_");
  for (size_t i = 0; i < COUNT_OF(cases); i++)
    assert_fails(dist_device_assignment_build(topology, cases[i].shape, cases[i].stride, cases[i].rank,
                                              cases[i].replicas, cases[i].order, &assignment),
                 DIST_INVALID_ARGUMENT, cases[i].words);
  assert_fails(dist_device_assignment_build(NULL, NULL, NULL, 4, 1, DIST_DEVICE_ORDER_AUTO, &assignment),
               DIST_INVALID_ARGUMENT, "topology is NULL");
  assert_fails(dist_device_assignment_build(topology, NULL, NULL, 4, 1, DIST_DEVICE_ORDER_AUTO, NULL),
               DIST_INVALID_ARGUMENT, "out_assignment is NULL");
  assert_null(assignment);
  dist_topology_destroy(topology);
}

static void by_hand(void **state) {
  (void)state;
  static const int32_t cores[2][2][4] = {{{0, 0, 0, 0}, {-1, 0, 0, -1}}, {{0, 0, 0, 0}, {0, 1, 0, 0}}};
  dist_topology *topology = full(2, 2, 1, 2);
  dist_device_assignment *assignment = NULL;
  assert_ok(dist_device_assignment_create(topology, cores[0][0], 2, 2, 4, &assignment));
  assert_ptr_equal(dist_device_assignment_topology(assignment), topology);
  int32_t at[4], device = -1, replicas[2] = {9, 9};
  size_t n = 0;
  char name[64];
  assert_ok(dist_device_assignment_coordinates(assignment, -2, 1, at)); /* returned as passed */
  assert_memory_equal(at, cores[0][1], sizeof at);
  assert_ok(dist_device_assignment_device(assignment, 0, -1, &device));
  assert_int_equal(device, 5); /* (1, 0, 0, 1) */
  assert_ok(dist_device_assignment_device_name(assignment, 1, 1, "w", name, sizeof name));
  assert_string_equal(name, "/job:w/task:0/device:TPU:2");
  assert_ok(dist_device_assignment_host_name(assignment, 1, 1, NULL, name, sizeof name));
  assert_string_equal(name, "/task:0/device:CPU:0");
  assert_ok(dist_device_assignment_lookup_replicas(assignment, 0, 1, replicas, 1, &n));
  assert_true(n == 2 && replicas[0] == 0 && replicas[1] == 9); /* the array had room for one */
  assert_ok(dist_device_assignment_lookup_replicas(assignment, 0, 0, replicas, 2, &n));
  assert_true(n == 2 && replicas[0] == 0 && replicas[1] == 1);
  static const int32_t nobody[][2] = {{1, 0}, {-1, 0}, {0, 2}, {0, -1}, {INT32_MIN, INT32_MIN}};
  for (size_t i = 0; i < COUNT_OF(nobody); i++)
    assert_fails(
        dist_device_assignment_lookup_replicas(assignment, nobody[i][0], nobody[i][1], replicas, 2, &n),
        DIST_INVALID_ARGUMENT, "no replica has logical device");
  static const int32_t none[][2] = {{2, 0}, {-3, 0}, {0, 2}, {0, -3}, {INT32_MIN, 0}, {0, INT32_MAX}};
  for (size_t i = 0; i < COUNT_OF(none); i++)
    assert_fails(dist_device_assignment_coordinates(assignment, none[i][0], none[i][1], at),
                 DIST_INVALID_ARGUMENT, "there is no ");
  assert_fails(dist_device_assignment_device_name(assignment, 0, 0, NULL, name, 3), DIST_INVALID_ARGUMENT,
               "room");
  dist_device_assignment_destroy(assignment);

  assert_ok(dist_device_assignment_create_single(topology, &assignment));
  expect(assignment, 1, 1, cores[0]);
  dist_topology_destroy(topology);
}

static void wrong_hands(void **state) {
  (void)state;
  static const int32_t outside[] = {5, 0, 0, 0};
  dist_topology *topology = full(2, 2, 1, 2);
  dist_device_assignment *assignment = NULL;
  assert_fails(dist_device_assignment_create(topology, outside, 1, 1, 4, &assignment), DIST_INVALID_ARGUMENT,
               "[5 0 0 0] lie outside the mesh");
  assert_fails(dist_device_assignment_create(topology, outside, 1, 1, 3, &assignment), DIST_INVALID_ARGUMENT,
               "3 coordinates, but the mesh has 4");
  assert_fails(dist_device_assignment_create(topology, outside, -1, 1, 4, &assignment), DIST_INVALID_ARGUMENT,
               "both must be at least 0");
  assert_fails(dist_device_assignment_create(topology, outside, INT32_MAX, INT32_MAX, 4, &assignment),
               DIST_INVALID_ARGUMENT, "at most 1048576");
  assert_fails(dist_device_assignment_create(topology, NULL, 1, 1, 4, &assignment), DIST_INVALID_ARGUMENT,
               "core_assignment is NULL");
  assert_fails(dist_device_assignment_create_single(NULL, &assignment), DIST_INVALID_ARGUMENT, "topology");
  assert_null(assignment);
  assert_ok(dist_device_assignment_create(topology, NULL, 0, 1, 4, &assignment));
  assert_int_equal(dist_device_assignment_num_logical_devices(assignment), 1);
  dist_device_assignment_destroy(assignment);
  dist_device_assignment_destroy(NULL);
  assert_null(dist_device_assignment_topology(NULL));
  assert_null(dist_device_assignment_core_assignment(NULL));
  assert_int_equal(dist_device_assignment_num_replicas(NULL), 0);
  assert_int_equal(dist_device_assignment_num_logical_devices(NULL), 0);
  int32_t at[4];
  size_t n;
  assert_fails(dist_device_assignment_coordinates(NULL, 0, 0, at), DIST_INVALID_ARGUMENT,
               "assignment is NULL");
  assert_fails(dist_device_assignment_lookup_replicas(NULL, 0, 0, at, 4, &n), DIST_INVALID_ARGUMENT, "NULL");
  dist_topology_destroy(topology);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_documented_block),
      cmocka_unit_test(replicas_prefer_the_cores_of_a_chip),
      cmocka_unit_test(where_devices_are_missing_tasks_go_in_order),
      cmocka_unit_test(wrong_computations_are_refused),
      cmocka_unit_test(by_hand),
      cmocka_unit_test(wrong_hands),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
