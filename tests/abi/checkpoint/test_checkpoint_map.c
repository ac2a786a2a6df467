/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors mapped from a file: they have the same bits as tensors that are read, and all users share the same
 * memory. Files that are replaced, truncated, changed, or laid out in an unusual way.
 */
#include "checkpoint_support.h"

#include <sys/stat.h>

enum { ROWS = 64, COLUMNS = 32, ELEMENTS = ROWS * COLUMNS, REPLICAS = 4 };

static float weights[ELEMENTS];

/* Saves "w", f32 [64, 32], and "b", f32 [32]. With `sharded`, saves an index and shards. */
static void save_weights(const char *path, float first, int32_t sharded) {
  static const int64_t shape[] = {ROWS, COLUMNS};
  for (int i = 0; i < ELEMENTS; i++) weights[i] = first + (float)i;
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_MIRRORED, 1);
  dist_variable *variables[2];
  variables[0] = variable_like(strategy, "w", (dist_tensor){weights, DIST_F32, 2, shape, NULL}, 0, 0);
  variables[1] = vector_variable(strategy, "b", DIST_F32, weights, COLUMNS);
  dist_checkpoint_options options = DIST_CHECKPOINT_OPTIONS_INIT;
  options.sharded = sharded;
  assert_ok(dist_checkpoint_save(strategy, path, variables, 2, &options));
  for (int i = 0; i < 2; i++) dist_variable_destroy(variables[i]);
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_checkpoint *open_file(const char *path) {
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_MIRRORED, 1);
  dist_checkpoint *file = NULL;
  assert_ok(dist_checkpoint_open(strategy, path, &file));
  assert_ok(dist_strategy_destroy(strategy));
  return file;
}

/* Maps one tensor, or all if `name` is NULL. */
static dist_value *mapped(dist_checkpoint *file, const char *name) {
  dist_value *value = NULL;
  if (name == NULL) {
    assert_ok(dist_checkpoint_map_all(file, NULL, &value));
  } else {
    assert_ok(dist_checkpoint_map(file, name, NULL, &value));
  }
  return value;
}

static const void *data_of(dist_value *value) {
  dist_tensor tensor;
  assert_ok(dist_value_tensor(value, &tensor));
  return tensor.data;
}

static void one_memory_for_all_who_ask(void **state) {
  (void)state;
  const file_path path = path_of("one");
  save_weights(path.text, 1, 0);
  static refusals counted;
  counted = (refusals){.refuse_at = -1};
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  host.allocator = refusing(&counted);
  dist_strategy *strategy = strategy_with(options);
  dist_checkpoint *file = NULL;
  assert_ok(dist_checkpoint_open(strategy, path.text, &file));
  const long before = atomic_load(&counted.live_bytes);
  dist_value *first = mapped(file, "w"), *second = mapped(file, "w"), *all = mapped(file, NULL);
  assert_true(atomic_load(&counted.live_bytes) - before < (long)sizeof weights / 2);
  assert_ptr_equal(data_of(first), data_of(second));
  assert_int_equal(dist_value_kind_of(all), DIST_VALUE_DICT);
  assert_ptr_equal(data_of(dist_value_get(all, "w")), data_of(first));
  assert_memory_equal(data_of(dist_value_get(all, "b")), weights, COLUMNS * sizeof(float));
  dist_checkpoint_destroy(file);
  assert_ok(dist_strategy_destroy(strategy));
  /* The values keep the file mapped. */
  dist_value_release(first);
  dist_value_release(all);
  assert_memory_equal(data_of(second), weights, sizeof weights);
  dist_value_release(second);
  assert_int_equal(atomic_load(&counted.live_blocks), 0);
}

typedef struct seen {
  const void *data[REPLICAS];
  dist_value *weights;
} seen;

static dist_status look(dist_replica *replica, dist_value *args, dist_value *kwargs, dist_value **out_result,
                        void *user_data) {
  (void)kwargs, (void)out_result;
  seen *s = user_data;
  dist_tensor tensor;
  const dist_status status = dist_value_tensor(dist_value_item(args, 0), &tensor);
  if (status == DIST_OK) s->data[dist_replica_id(replica)] = tensor.data;
  return status;
}

static void replicas_see_the_same(void **state) {
  (void)state;
  const file_path path = path_of("replicas");
  save_weights(path.text, 2, 0);
  dist_checkpoint *file = open_file(path.text);
  seen s = {.weights = mapped(file, "w")};
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_MIRRORED, REPLICAS);
  dist_value *args = NULL;
  assert_ok(dist_value_create_list(strategy, &s.weights, 1, &args));
  assert_ok(dist_run_values(strategy, look, &s, args, NULL, NULL, NULL));
  for (int r = 0; r < REPLICAS; r++) assert_ptr_equal(s.data[r], data_of(s.weights));
  dist_value_release(args);
  dist_value_release(s.weights);
  dist_checkpoint_destroy(file);
  assert_ok(dist_strategy_destroy(strategy));
}

static void a_replaced_file_stays_as_it_was(void **state) {
  (void)state;
  const file_path path = path_of("replaced");
  save_weights(path.text, 3, 0);
  dist_checkpoint *file = open_file(path.text);
  dist_value *before = mapped(file, "w");
  save_weights(path.text, 1000, 0);
  /* Mapped before and after the file was replaced. */
  dist_value *after = mapped(file, "w");
  for (int i = 0; i < ELEMENTS; i++) assert_true(((const float *)data_of(before))[i] == 3.0F + (float)i);
  assert_ptr_equal(data_of(before), data_of(after));
  dist_value_release(before);
  dist_value_release(after);
  dist_checkpoint_destroy(file);
  file = open_file(path.text);
  after = mapped(file, "w");
  assert_memory_equal(data_of(after), weights, sizeof weights);
  dist_value_release(after);
  dist_checkpoint_destroy(file);
}

static void a_file_that_was_cut_is_refused(void **state) {
  (void)state;
  const file_path path = path_of("cut");
  save_weights(path.text, 4, 0);
  dist_checkpoint *file = open_file(path.text);
  struct stat about;
  assert_int_equal(stat(path.text, &about), 0);
  assert_int_equal(truncate(path.text, about.st_size - 1), 0);
  dist_value *none = NULL;
  assert_fails(dist_checkpoint_map(file, "w", NULL, &none), DIST_DATA_LOSS, "it was truncated");
  assert_null(none);
  dist_checkpoint_destroy(file);
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_MIRRORED, 1);
  file = NULL;
  assert_int_equal(dist_checkpoint_open(strategy, path.text, &file), DIST_DATA_LOSS);
  assert_null(file);
  assert_ok(dist_strategy_destroy(strategy));
}

static void checksums_are_compared_where_asked(void **state) {
  (void)state;
  const file_path path = path_of("changed");
  save_weights(path.text, 5, 0);
  size_t size = 0;
  unsigned char *bytes = read_file(path.text, &size);
  bytes[size - 1] ^= 1; /* in the last byte of "b" or "w" */
  write_file(path.text, bytes, size);
  free(bytes);
  dist_checkpoint *file = open_file(path.text);
  dist_checkpoint_map_options options = DIST_CHECKPOINT_MAP_OPTIONS_INIT;
  dist_value *value = mapped(file, NULL);
  dist_value_release(value);
  value = NULL;
  options.verify = 1;
  assert_fails(dist_checkpoint_map_all(file, &options, &value), DIST_DATA_LOSS, "checksum");
  options.verify = 0;
  options.copy = 1;
  assert_fails(dist_checkpoint_map_all(file, &options, &value), DIST_DATA_LOSS, "checksum");
  assert_null(value);
  dist_checkpoint_destroy(file);
}

static void who_writes_does_not_reach_the_file(void **state) {
  (void)state;
  const file_path path = path_of("written");
  save_weights(path.text, 6, 0);
  dist_checkpoint *file = open_file(path.text);
  dist_value *value = mapped(file, "w");
  dist_tensor tensor;
  assert_ok(dist_value_tensor(value, &tensor));
  *(volatile float *)tensor.data = 77;
  dist_value *read = NULL;
  assert_ok(dist_checkpoint_read(file, "w", &read));
  assert_memory_equal(data_of(read), weights, sizeof weights);
  dist_value_release(read);
  dist_value_release(value);
  dist_checkpoint_destroy(file);
}

/* Data may begin at any offset, be empty, or have a dtype that libdist does not support. */
static void files_of_others(void **state) {
  (void)state;
  const file_path path = path_of("others");
  write_with_header(path.text,
                    "{\"byte\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                    "\"f\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[1,9]},"
                    "\"g\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[9,17]},"
                    "\"none\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[17,17]},"
                    "\"small\":{\"dtype\":\"F8_E4M3\",\"shape\":[3,1],\"data_offsets\":[17,20]},"
                    "\"half\":{\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[20,23]}}",
                    23);
  dist_checkpoint *file = open_file(path.text);
  static const char *const names[] = {"byte", "f", "g", "none"};
  for (size_t i = 0; i < COUNT_OF(names); i++) {
    dist_value *value = mapped(file, names[i]), *read = NULL;
    assert_ok(dist_checkpoint_read(file, names[i], &read));
    dist_tensor one, other;
    assert_ok(dist_value_tensor(value, &one));
    assert_ok(dist_value_tensor(read, &other));
    assert_int_equal(one.dtype, other.dtype);
    assert_int_equal(one.shape[0], other.shape[0]);
    const size_t bytes = i == 0 ? 1 : i == 3 ? 0 : 8;
    assert_memory_equal(one.data, other.data, bytes);
    assert_int_equal((uintptr_t)one.data % (i == 0 ? 1 : sizeof(float)), 0);
    dist_value_release(value);
    dist_value_release(read);
  }
  /* Dtypes that libdist does not support are read as bytes: one per element, or all in a row. */
  static const unsigned char sevens[] = {7, 7, 7};
  dist_value *all = mapped(file, NULL);
  for (int i = 0; i < 6; i++) {
    const char *const name = i % 2 == 0 ? "small" : "half";
    dist_value *value = NULL;
    if (i / 2 == 0) value = mapped(file, name);
    if (i / 2 == 1) assert_ok(dist_checkpoint_read(file, name, &value));
    if (i / 2 == 2) value = dist_value_retain(dist_value_get(all, name));
    dist_tensor bytes, spec;
    assert_ok(dist_value_tensor(value, &bytes));
    assert_ok(dist_checkpoint_spec(file, name, &spec));
    assert_int_equal(spec.dtype, 0);
    assert_int_equal(spec.ndim, 2);
    assert_int_equal(bytes.dtype, DIST_U8);
    assert_int_equal(bytes.ndim, i % 2 == 0 ? 2 : 1);
    assert_int_equal(bytes.shape[0], 3);
    assert_memory_equal(bytes.data, sevens, sizeof sevens);
    dist_value_release(value);
  }
  dist_value_release(all);
  dist_checkpoint_destroy(file);
}

static void shards_are_mapped_too(void **state) {
  (void)state;
  const file_path path = path_of("index");
  save_weights(path.text, 7, 1);
  dist_checkpoint *file = open_file(path.text);
  dist_value *all = mapped(file, NULL);
  assert_memory_equal(data_of(dist_value_get(all, "w")), weights, sizeof weights);
  dist_value_release(all);
  dist_checkpoint_destroy(file);
}

static void arguments_are_checked(void **state) {
  (void)state;
  const file_path path = path_of("arguments");
  save_weights(path.text, 8, 0);
  dist_checkpoint *file = open_file(path.text);
  dist_value *none = NULL;
  assert_fails(dist_checkpoint_map(NULL, "w", NULL, &none), DIST_INVALID_ARGUMENT, "checkpoint is NULL");
  assert_fails(dist_checkpoint_map(file, NULL, NULL, &none), DIST_INVALID_ARGUMENT, "name is NULL");
  assert_fails(dist_checkpoint_map(file, "w", NULL, NULL), DIST_INVALID_ARGUMENT, "out_value is NULL");
  assert_fails(dist_checkpoint_map(file, "x", NULL, &none), DIST_NOT_FOUND, "no tensor \"x\"");
  dist_checkpoint_map_options options = DIST_CHECKPOINT_MAP_OPTIONS_INIT;
  options.copy = 2;
  assert_fails(dist_checkpoint_map(file, "w", &options, &none), DIST_INVALID_ARGUMENT, ".copy is 2");
  options.copy = 0;
  options.verify = -1;
  assert_fails(dist_checkpoint_map(file, "w", &options, &none), DIST_INVALID_ARGUMENT, ".verify is -1");
  assert_null(none);
  dist_checkpoint_destroy(file);
}

static file_path refused_path;
static dist_status map_all(dist_strategy *strategy) {
  dist_checkpoint *file = NULL;
  dist_value *all = NULL;
  dist_status status = dist_checkpoint_open(strategy, refused_path.text, &file);
  if (status == DIST_OK) status = dist_checkpoint_map_all(file, NULL, &all);
  dist_value_release(all);
  dist_checkpoint_destroy(file);
  return status;
}
static void every_request_may_be_refused(void **state) {
  (void)state;
  refused_path = path_of("memory");
  save_weights(refused_path.text, 9, 0);
  assert_true(refuse_every_request(1, map_all) > 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_memory_for_all_who_ask),
      cmocka_unit_test(replicas_see_the_same),
      cmocka_unit_test(a_replaced_file_stays_as_it_was),
      cmocka_unit_test(a_file_that_was_cut_is_refused),
      cmocka_unit_test(checksums_are_compared_where_asked),
      cmocka_unit_test(who_writes_does_not_reach_the_file),
      cmocka_unit_test(files_of_others),
      cmocka_unit_test(shards_are_mapped_too),
      cmocka_unit_test(arguments_are_checked),
      cmocka_unit_test(every_request_may_be_refused),
  };
  return cmocka_run_group_tests_name("checkpoint_map", tests, NULL, leave_folder);
}
