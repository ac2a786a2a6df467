/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares topology.h with JAX: the part of an array that each of eight devices has under a NamedSharding.
 * data/record_jax_layouts.py recorded the parts and describes the file format.
 *
 *   test_jax_layouts data/jax_layouts.txt
 *
 * In libdist's terms, a NamedSharding partitions each dimension into as many parts as its axes have devices,
 * and a device with the positions t along these axes has tile t. Axes that split no dimension have no effect:
 * all devices along them have the same part.
 */
#include "tests/abi/mesh_support.h"

enum { DEVICES = 8, MOST_AXES = 3, MOST_DIMENSIONS = 4 };

typedef struct {
  int32_t num_axes;
  char names[MOST_AXES][32];
  dist_mesh_axis axes[MOST_AXES];
  dist_strategy *strategy;
  /* As each logical device reports: its device in the topology, and its positions. */
  int32_t ids[DEVICES], places[DEVICES][MOST_AXES];
} mesh;

typedef struct {
  int32_t ndim;
  int64_t shape[MOST_DIMENSIONS], parts[MOST_DIMENSIONS];
  int32_t tiles[DEVICES]; /* for each logical device, the row-major number of its tile */
} layout;

typedef struct {
  int64_t begin[MOST_DIMENSIONS], size[MOST_DIMENSIONS];
} part;

static const char *recorded;

static const char *word(FILE *file) {
  static char text[32];
  return fscanf(file, "%31s", text) == 1 ? text : "";
}
static void expect(FILE *file, const char *text) { assert_string_equal(word(file), text); }
static int64_t number(FILE *file) {
  char *end = NULL;
  const int64_t value = strtoll(word(file), &end, 10);
  assert_true(*end == '\0');
  return value;
}
static void read_numbers(FILE *file, int64_t *out, int32_t n) {
  for (int32_t i = 0; i < n; i++) out[i] = number(file);
}

static dist_status see_places(dist_replica *device, dist_value *args, dist_value *kwargs,
                              dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)out_result;
  mesh *m = user_data;
  const int32_t d = dist_replica_id(device);
  int32_t coordinates[4];
  TRY(dist_device_coordinates(device, coordinates));
  m->ids[d] = coordinates[0];
  for (int32_t a = 0; a < m->num_axes; a++)
    TRY(dist_device_axis(device, m->names[a], &m->places[d][a], NULL));
  return DIST_OK;
}
static dist_status see_all_places(dist_replica *replica, void *user_data) {
  return dist_run_on_devices(replica, see_places, user_data, NULL, NULL, NULL, NULL);
}

/* Eight devices in a row, in the order of the mesh. */
static void read_mesh(FILE *file, mesh *m) {
  m->num_axes = (int32_t)number(file);
  assert_in_range(m->num_axes, 1, MOST_AXES);
  for (int32_t a = 0; a < m->num_axes; a++) {
    snprintf(m->names[a], sizeof m->names[a], "%s", word(file));
    m->axes[a] = (dist_mesh_axis){m->names[a], (int32_t)number(file)};
  }
  expect(file, "devices");
  int32_t order[DEVICES][4] = {{0}};
  for (int32_t d = 0; d < DEVICES; d++) order[d][0] = (int32_t)number(file);
  dist_topology *topology = full_topology((const int32_t[4]){DEVICES, 1, 1, 1});
  dist_device_assignment *assignment = NULL;
  assert_ok(dist_device_assignment_create(topology, order[0], 1, DEVICES, 4, &assignment));
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_mesh_options mesh = DIST_MESH_OPTIONS_INIT;
  options.mesh = &mesh;
  options.kind = DIST_STRATEGY_MESH;
  mesh.device_assignment = assignment;
  mesh.axes = m->axes;
  mesh.num_axes = (size_t)m->num_axes;
  m->strategy = strategy_with(options);
  dist_device_assignment_destroy(assignment);
  dist_topology_destroy(topology);
  assert_ok(dist_run(m->strategy, see_all_places, m, NULL));
}

/* The axes of one dimension, "x,y". The last one varies fastest in its tiles. */
static void split_over(const mesh *m, const char *axes, layout *out, int32_t dimension) {
  int32_t places[DEVICES] = {0};
  out->parts[dimension] = 1;
  for (const char *axis = axes; *axis != '\0' && *axis != '-'; axis += strspn(axis, ",")) {
    const size_t length = strcspn(axis, ",");
    int32_t a = 0;
    while (a < m->num_axes && (strlen(m->names[a]) != length || strncmp(m->names[a], axis, length) != 0)) a++;
    assert_in_range(a, 0, m->num_axes - 1);
    out->parts[dimension] *= m->axes[a].size;
    for (int32_t d = 0; d < DEVICES; d++) places[d] = places[d] * m->axes[a].size + m->places[d][a];
    axis += length;
  }
  for (int32_t d = 0; d < DEVICES; d++)
    out->tiles[d] = out->tiles[d] * (int32_t)out->parts[dimension] + places[d];
}

static void read_layout(FILE *file, const mesh *m, layout *out) {
  memset(out, 0, sizeof *out);
  out->ndim = (int32_t)number(file);
  assert_in_range(out->ndim, 1, MOST_DIMENSIONS);
  read_numbers(file, out->shape, out->ndim);
  expect(file, "over");
  for (int32_t i = 0; i < out->ndim; i++) split_over(m, word(file), out, i);
}

/* Reads the parts by device in JAX's numbering. Returns false if JAX rejected the layout. */
static int read_parts(FILE *file, int32_t ndim, part *parts) {
  for (int32_t id = 0; id < DEVICES; id++) {
    if (strcmp(word(file), "shard") != 0) return 0;
    assert_int_equal(number(file), id);
    expect(file, "begin");
    read_numbers(file, parts[id].begin, ndim);
    expect(file, "size");
    read_numbers(file, parts[id].size, ndim);
  }
  return 1;
}

static dist_partition partition_of(const layout *l) {
  dist_partition partition = DIST_PARTITION_INIT;
  partition.shape = l->shape;
  partition.ndim = partition.num_dimensions = (size_t)l->ndim;
  partition.dimensions = l->parts;
  partition.num_logical_devices = (int32_t)product_of(l->parts, l->ndim);
  return partition;
}

static void assert_same_parts(const mesh *m, const layout *l, const part *expected) {
  const dist_partition partition = partition_of(l);
  for (int32_t d = 0; d < DEVICES; d++) {
    const size_t bytes = (size_t)l->ndim * sizeof(int64_t);
    part got;
    assert_ok(dist_partition_shard(&partition, l->tiles[d], NULL, got.begin, got.size, NULL));
    assert_memory_equal(got.begin, expected[m->ids[d]].begin, bytes);
    assert_memory_equal(got.size, expected[m->ids[d]].size, bytes);
  }
}

typedef struct {
  const mesh *m;
  const layout *l;
  const part *expected;
} splitting;

/* The strategy's own split, if the axes of the dimensions are all axes in the order of the mesh. */
static dist_status split_by_strategy(dist_replica *replica, void *user_data) {
  const splitting *s = user_data;
  dist_value *whole = numbers(s->m->strategy, 0, s->l->shape, s->l->ndim), *split = NULL;
  EXPECT(whole != NULL);
  TRY(dist_split_to_logical_devices(replica, whole, s->l->parts, (size_t)s->l->ndim, NULL, &split));
  for (int32_t d = 0; d < DEVICES; d++) {
    const part *expected = &s->expected[s->m->ids[d]];
    part got;
    dist_tensor shard;
    TRY(dist_value_shard(split, d, got.begin, &shard));
    for (int32_t i = 0; i < s->l->ndim; i++)
      EXPECT(got.begin[i] == expected->begin[i] && shard.shape[i] == expected->size[i]);
  }
  dist_value_release(split);
  dist_value_release(whole);
  return DIST_OK;
}

static int is_in_device_order(const layout *l) {
  for (int32_t d = 0; d < DEVICES; d++)
    if (l->tiles[d] != d) return 0;
  return 1;
}

static void layouts_are_those_of_jax(void **state) {
  (void)state;
  FILE *file = fopen(recorded, "r");
  assert_non_null(file);
  expect(file, "jax");
  print_message("# recorded with jax %s\n", word(file));
  int by_shards = 0, by_strategy = 0, refused = 0;
  mesh m = {.strategy = NULL};
  for (const char *what = word(file); *what != '\0'; what = word(file)) {
    if (strcmp(what, "mesh") == 0) {
      if (m.strategy != NULL) assert_ok(dist_strategy_destroy(m.strategy));
      read_mesh(file, &m);
      continue;
    }
    assert_string_equal(what, "array");
    layout l;
    part expected[DEVICES];
    read_layout(file, &m, &l);
    const dist_partition partition = partition_of(&l);
    if (!read_parts(file, l.ndim, expected)) {
      assert_fails(dist_partition_check(&partition), DIST_INVALID_ARGUMENT, "not divisible");
      refused++;
      continue;
    }
    assert_same_parts(&m, &l, expected);
    by_shards++;
    if (!is_in_device_order(&l)) continue;
    assert_ok(dist_run(m.strategy, split_by_strategy, &(splitting){&m, &l, expected}, NULL));
    by_strategy++;
  }
  assert_ok(dist_strategy_destroy(m.strategy));
  fclose(file);
  print_message("# %d layouts, %d of them also by a strategy; %d refused\n", by_shards, by_strategy, refused);
  assert_true(by_shards >= 20 && by_strategy >= 8 && refused >= 4);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s data/jax_layouts.txt\n", argv[0]);
    return 2;
  }
  recorded = argv[1];
  const struct CMUnitTest tests[] = {cmocka_unit_test(layouts_are_those_of_jax)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
