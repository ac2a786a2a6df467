/* SPDX-License-Identifier: Apache-2.0
 *
 * Random meshes with and without holes, random computations on them and random partitions, with invariants
 * that hold for all of them.
 *
 * DIST_TEST_SEED repeats one; DIST_TEST_PROGRAMS sets their number.
 */
#include "tests/abi/common.h"

#include "tests/abi/fold.h"

enum { MOST_POSITIONS = 512 };

typedef struct topology_case {
  int32_t mesh[4], tasks, per_task;
  int32_t devices[MOST_POSITIONS][4];
  dist_topology* topology;
} topology_case;

static uint64_t number_from(const char* name, uint64_t otherwise) {
  const char* text = getenv(name);
  return text == NULL ? otherwise : strtoull(text, NULL, 0);
}

static int32_t draw(uint64_t* seed, int32_t below) { return (int32_t)(next_random(seed) % (uint64_t)below); }

static int32_t product(const int32_t* numbers) { return numbers[0] * numbers[1] * numbers[2] * numbers[3]; }

static int32_t position(const int32_t* mesh, const int32_t* at) {
  int32_t place = 0;
  for (int i = 0; i < 4; i++) place = place * mesh[i] + at[i];
  return place;
}

/* Creates a topology whose devices are in random order at different positions. With `holes`, some positions
 * have no device. */
static void make_topology(uint64_t* seed, int holes, topology_case* c) {
  do {
    for (int i = 0; i < 4; i++) c->mesh[i] = 1 + draw(seed, 8);
  } while (product(c->mesh) > MOST_POSITIONS);
  const int32_t positions = product(c->mesh);
  for (int32_t i = 0; i < positions; i++) {
    int32_t rest = i;
    for (int axis = 3; axis >= 0; axis--, rest /= c->mesh[axis + 1])
      c->devices[i][axis] = rest % c->mesh[axis];
  }
  for (int32_t i = positions - 1; i > 0; i--) {
    const int32_t j = draw(seed, i + 1);
    int32_t kept[4];
    memcpy(kept, c->devices[i], sizeof kept);
    memcpy(c->devices[i], c->devices[j], sizeof kept);
    memcpy(c->devices[j], kept, sizeof kept);
  }
  const int32_t there = holes ? 1 + draw(seed, positions) : positions;
  do {
    c->per_task = 1 + draw(seed, there);
  } while (!holes && there % c->per_task != 0);
  c->tasks = there / c->per_task;
  assert_ok(dist_topology_create(c->mesh, 4, c->devices[0], c->tasks, c->per_task, NULL, &c->topology));
}

static void expect_places(const topology_case* c) {
  const int32_t devices = c->tasks * c->per_task;
  assert_int_equal(dist_topology_num_missing_devices(c->topology), product(c->mesh) - devices);
  for (int32_t i = 0; i < devices; i++) {
    int32_t task = -2, device = -2;
    assert_ok(dist_topology_task_at(c->topology, c->devices[i], &task));
    assert_ok(dist_topology_device_at(c->topology, c->devices[i], &device));
    assert_int_equal(task * c->per_task + device, i);
  }
  const int32_t* hole = dist_topology_missing_devices(c->topology);
  for (size_t i = 0; i < dist_topology_num_missing_devices(c->topology); i++, hole += 4) {
    int32_t task = -2;
    assert_ok(dist_topology_task_at(c->topology, hole, &task));
    assert_int_equal(task, -1);
    if (i > 0) assert_true(position(c->mesh, hole) > position(c->mesh, hole - 4));
  }
}

static void random_topologies(void** state) {
  (void)state;
  const uint64_t first = number_from("DIST_TEST_SEED", 20240607),
                 count = number_from("DIST_TEST_PROGRAMS", 1000);
  fprintf(stderr, "# seeds %llu to %llu\n", (unsigned long long)first,
          (unsigned long long)(first + count - 1));
  for (uint64_t n = first; n < first + count; n++) {
    static topology_case c;
    uint64_t seed = n;
    make_topology(&seed, (int)(n % 2), &c);
    expect_places(&c);
    dist_topology_destroy(c.topology);
  }
}

/* ---- Assignments ---- */

typedef struct computation {
  int32_t shape[4], stride[4], replicas, order;
} computation;

/* Makes a computation that fits at least once in most cases. Returns how often it fits. */
static int32_t make_computation(uint64_t* seed, const int32_t* mesh, computation* c) {
  int32_t most = 1;
  for (int i = 0; i < 4; i++) {
    const int32_t whole = draw(seed, 3) == 0;
    c->shape[i] = whole ? mesh[i] : 1 + draw(seed, mesh[i]);
    const int32_t room = mesh[i] / c->shape[i];
    c->stride[i] = draw(seed, 4) == 0 ? 1 + draw(seed, room) : 1;
    most *= mesh[i] / (c->shape[i] * c->stride[i]) * c->stride[i];
  }
  c->replicas = draw(seed, 2) == 0 ? most : 1 + draw(seed, most);
  c->order = DIST_DEVICE_ORDER_AUTO + draw(seed, 3);
  return most;
}

static int may_be_rings(const int32_t* mesh, const computation* c, int32_t most) {
  return c->shape[3] == mesh[3] && product(c->stride) == 1 && c->replicas == most;
}

static void expect_each_device_once(const topology_case* c, const dist_device_assignment* made) {
  int8_t used[MOST_POSITIONS] = {0};
  const int32_t* at = dist_device_assignment_core_assignment(made);
  const int32_t n =
      dist_device_assignment_num_replicas(made) * dist_device_assignment_num_logical_devices(made);
  for (int32_t i = 0; i < n; i++, at += 4) {
    int32_t task = -1;
    assert_ok(dist_topology_task_at(c->topology, at, &task));
    assert_true(task >= 0);
    assert_int_equal(used[position(c->mesh, at)]++, 0);
  }
}

/* Checks that the logical devices of each replica form a block, in row-major order and `stride` apart. */
static void expect_blocks(const dist_device_assignment* made, const computation* c) {
  for (int32_t r = 0; r < c->replicas; r++) {
    int32_t first[4], at[4];
    assert_ok(dist_device_assignment_coordinates(made, r, 0, first));
    for (int32_t i = 0; i < product(c->shape); i++) {
      assert_ok(dist_device_assignment_coordinates(made, r, i, at));
      int32_t rest = i;
      for (int axis = 3; axis >= 0; axis--, rest /= c->shape[axis + 1])
        assert_int_equal(at[axis], first[axis] + rest % c->shape[axis] * c->stride[axis]);
    }
  }
}

static int32_t distance(const int32_t* a, const int32_t* b) {
  int32_t sum = 0;
  for (int axis = 0; axis < 3; axis++) sum += abs(a[axis] - b[axis]);
  return sum;
}

/* Returns 2 if the chips of a box can form a ring, 1 for a line, which has ends, and 0 for neither. */
static int ring_of(const int32_t* box) {
  int wide = 0;
  for (int axis = 0; axis < 3; axis++) wide += box[axis] > 1;
  if (wide <= 1) return 1;
  for (int axis = 0; axis < 3; axis++) {
    if (box[axis] > 1 && box[axis] % 2 != 0) return 0;
  }
  return 2;
}

/* The blocks of consecutive replicas must be neighbours, too. Positions are divided by the block's shape. */
static void expect_ring_of_replicas(const int32_t* mesh, const dist_device_assignment* made,
                                    const computation* c) {
  int32_t box[4], places[2][4];
  for (int axis = 0; axis < 3; axis++) box[axis] = mesh[axis] / c->shape[axis];
  const int ring = ring_of(box);
  for (int32_t r = 0; r < c->replicas; r++) {
    const int last = r == c->replicas - 1;
    assert_ok(dist_device_assignment_coordinates(made, r, 0, places[0]));
    assert_ok(dist_device_assignment_coordinates(made, last ? 0 : r + 1, 0, places[1]));
    for (int axis = 0; axis < 3; axis++) {
      for (int end = 0; end < 2; end++) places[end][axis] /= c->shape[axis];
    }
    if (ring == 2 || (ring == 1 && !last)) assert_int_equal(distance(places[0], places[1]), 1);
  }
}

/* Consecutive chips must be neighbours, and in a ring also the last and the first one. */
static void expect_rings(const dist_device_assignment* made, const computation* c) {
  const int32_t cores = c->shape[3], chips = product(c->shape) / cores;
  const int ring = ring_of(c->shape);
  for (int32_t r = 0; r < c->replicas; r++) {
    for (int32_t i = 0; i < product(c->shape); i++) {
      int32_t at[4], next[4];
      assert_ok(dist_device_assignment_coordinates(made, r, i, at));
      assert_int_equal(at[3], i % cores);
      const int last = i / cores == chips - 1;
      assert_ok(dist_device_assignment_coordinates(made, r, last ? i % cores : i + cores, next));
      if (ring == 2 || (ring == 1 && !last)) assert_int_equal(distance(at, next), 1);
    }
  }
}

static void expect_replicas_by_task(const topology_case* c, const dist_device_assignment* made) {
  const int32_t logical = dist_device_assignment_num_logical_devices(made);
  int32_t found[MOST_POSITIONS];
  size_t total = 0;
  for (int32_t task = 0; task < c->tasks; task++) {
    size_t n = 0;
    if (dist_device_assignment_lookup_replicas(made, task, logical - 1, found, MOST_POSITIONS, &n) != DIST_OK)
      continue;
    for (size_t i = 0; i < n; i++) {
      int32_t at[4], there = -1;
      assert_ok(dist_device_assignment_coordinates(made, found[i], -1, at));
      assert_ok(dist_topology_task_at(c->topology, at, &there));
      assert_int_equal(there, task);
      if (i > 0) assert_true(found[i] > found[i - 1]);
    }
    total += n;
  }
  assert_int_equal(total, dist_device_assignment_num_replicas(made));
}

static void one_assignment(uint64_t* seed, const topology_case* c) {
  computation wanted;
  const int32_t most = make_computation(seed, c->mesh, &wanted);
  const int holes = dist_topology_num_missing_devices(c->topology) != 0;
  const int rings = may_be_rings(c->mesh, &wanted, most);
  const int fits = !holes ? wanted.order != DIST_DEVICE_ORDER_RING || rings
                          : product(wanted.stride) == 1 &&
                                wanted.replicas * product(wanted.shape) <= c->tasks * c->per_task;
  dist_device_assignment* made = NULL;
  const dist_status status = dist_device_assignment_build(c->topology, wanted.shape, wanted.stride, 4,
                                                          wanted.replicas, wanted.order, &made);
  assert_int_equal(status, fits ? DIST_OK : DIST_INVALID_ARGUMENT);
  if (!fits) return;
  assert_int_equal(dist_device_assignment_num_replicas(made), wanted.replicas);
  assert_int_equal(dist_device_assignment_num_logical_devices(made), product(wanted.shape));
  expect_each_device_once(c, made);
  expect_replicas_by_task(c, made);
  if (!holes && rings && wanted.order != DIST_DEVICE_ORDER_MESH) {
    expect_rings(made, &wanted);
    expect_ring_of_replicas(c->mesh, made, &wanted);
  } else if (!holes) {
    expect_blocks(made, &wanted);
  }
  dist_device_assignment_destroy(made);
  made = NULL;
  assert_int_equal(dist_device_assignment_build(c->topology, wanted.shape, wanted.stride, 4, most + 1,
                                                wanted.order, &made),
                   DIST_INVALID_ARGUMENT);
  assert_null(made);
}

static void random_assignments(void** state) {
  (void)state;
  const uint64_t first = number_from("DIST_TEST_SEED", 20240607),
                 count = number_from("DIST_TEST_PROGRAMS", 1000);
  fprintf(stderr, "# seeds %llu to %llu\n", (unsigned long long)first,
          (unsigned long long)(first + count - 1));
  for (uint64_t n = first; n < first + count; n++) {
    static topology_case c;
    uint64_t seed = n;
    make_topology(&seed, n % 4 == 0, &c);
    for (int k = 0; k < 8; k++) one_assignment(&seed, &c);
    dist_topology_destroy(c.topology);
  }
}

/* ---- Partitions ---- */

/* Increments the counts of the shard's elements in a tensor of `shape`. */
static void count_elements(const int64_t* shape, size_t ndim, const int64_t* begin, const int64_t* size,
                           int64_t elements, int8_t* counts) {
  for (int64_t k = 0; k < elements; k++) {
    int64_t rest = k, place = 0, step = 1;
    for (size_t i = ndim; i-- > 0;) {
      place += (begin[i] + rest % size[i]) * step;
      rest /= size[i];
      step *= shape[i];
    }
    counts[place]++;
  }
}

static void one_partition(uint64_t* seed) {
  int64_t shape[4], parts[4], total = 1;
  int32_t devices = 1, divides = 1;
  const size_t ndim = 1 + (size_t)draw(seed, 4);
  for (size_t i = 0; i < ndim; i++) {
    shape[i] = draw(seed, 9);
    parts[i] = 1 + draw(seed, 4);
    if (draw(seed, 3) != 0) shape[i] *= parts[i];
    divides = divides && shape[i] % parts[i] == 0;
    devices *= (int32_t)parts[i];
    total *= shape[i];
  }
  dist_partition partition = DIST_PARTITION_INIT;
  partition.shape = shape, partition.ndim = ndim;
  partition.dimensions = parts, partition.num_dimensions = ndim;
  partition.num_logical_devices = devices;
  assert_int_equal(dist_partition_check(&partition), divides ? DIST_OK : DIST_INVALID_ARGUMENT);
  partition.uneven = 1;
  int8_t* counts = calloc((size_t)total + 1, 1);
  assert_non_null(counts);
  for (int32_t d = 0; d < devices; d++) {
    int64_t tile[4], begin[4], size[4], elements = -1, index = 0;
    assert_ok(dist_partition_shard(&partition, d, tile, begin, size, &elements));
    for (size_t i = 0; i < ndim; i++) {
      index = index * parts[i] + tile[i];
      assert_true(size[i] == shape[i] / parts[i] || (!divides && size[i] == shape[i] / parts[i] + 1));
    }
    assert_int_equal(index, d);
    count_elements(shape, ndim, begin, size, elements, counts);
  }
  for (int64_t i = 0; i < total; i++) assert_int_equal(counts[i], 1); /* each is in one shard */
  free(counts);
}

static void random_partitions(void** state) {
  (void)state;
  uint64_t seed = number_from("DIST_TEST_SEED", 20240607);
  const uint64_t count = number_from("DIST_TEST_PROGRAMS", 1000);
  fprintf(stderr, "# %llu from seed %llu\n", (unsigned long long)count, (unsigned long long)seed);
  for (uint64_t n = 0; n < count; n++) one_partition(&seed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_topologies),
      cmocka_unit_test(random_assignments),
      cmocka_unit_test(random_partitions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
