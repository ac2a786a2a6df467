/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints: a checkpoint saved under one strategy can be loaded under any other, bit for bit.
 */
#include "checkpoint_support.h"

typedef struct home {
  int32_t kind, num_replicas;
} home;
static const home homes[] = {{DIST_STRATEGY_MIRRORED, 1},   {DIST_STRATEGY_MIRRORED, 2},
                             {DIST_STRATEGY_MIRRORED, 5},   {DIST_STRATEGY_CENTRAL_STORAGE, 3},
                             {DIST_STRATEGY_ONE_DEVICE, 1}, {DIST_STRATEGY_DEFAULT, 1}};

/* A weight with all kinds of bits, a counter, a tensor without elements. */
enum { NUM_VARIABLES = 3 };
static const uint32_t weight_bits[6] = {0x3f800000, 0x80000000, 0x7fc12345,
                                        0xff812345, 0x00000001, 0x7f800000};
static const int64_t weight_shape[] = {2, 3}, empty_shape[] = {0, 4};
static const int64_t count_bits = INT64_MIN + 7;

static void make_variables(dist_strategy *strategy, int filled, dist_variable **out) {
  static uint32_t zeros[6];
  static int64_t zero;
  void *const weight = filled ? (void *)weight_bits : zeros, *const count =
                                                                 filled ? (void *)&count_bits : &zero;
  out[0] = variable_like(strategy, "dense/w", (dist_tensor){weight, DIST_F32, 2, weight_shape, NULL}, 0, 0);
  out[1] = variable_like(strategy, "count", (dist_tensor){count, DIST_I64, 0, NULL, NULL}, 0, 0);
  out[2] = variable_like(strategy, "none", (dist_tensor){NULL, DIST_F16, 2, empty_shape, NULL}, 0, 0);
}

static void destroy_variables(dist_variable **variables, size_t n) {
  for (size_t i = 0; i < n; i++) dist_variable_destroy(variables[i]);
}

static void any_strategy_to_any(void **state) {
  (void)state;
  const file_path path = path_of("any.safetensors");
  for (size_t from = 0; from < COUNT_OF(homes); from++) {
    dist_strategy *strategy = strategy_of_kind(homes[from].kind, homes[from].num_replicas);
    dist_variable *variables[NUM_VARIABLES];
    make_variables(strategy, 1, variables);
    assert_ok(dist_checkpoint_save(strategy, path.text, variables, NUM_VARIABLES, NULL));
    destroy_variables(variables, NUM_VARIABLES);
    assert_ok(dist_strategy_destroy(strategy));
    for (size_t to = 0; to < COUNT_OF(homes); to++) {
      strategy = strategy_of_kind(homes[to].kind, homes[to].num_replicas);
      make_variables(strategy, 0, variables);
      assert_ok(dist_checkpoint_load(strategy, path.text, variables, NUM_VARIABLES, NULL));
      for (int32_t r = 0; r < homes[to].num_replicas; r++) {
        assert_memory_equal(copy_of(variables[0], r), weight_bits, sizeof weight_bits);
        assert_memory_equal(copy_of(variables[1], r), &count_bits, sizeof count_bits);
      }
      destroy_variables(variables, NUM_VARIABLES);
      assert_ok(dist_strategy_destroy(strategy));
    }
  }
  assert_int_equal(count_names("", 0), 1); /* only the file itself */
}

static void large_copies_are_equal_too(void **state) {
  (void)state;
  enum { N = 900001 };
  const file_path path = path_of("large.safetensors");
  int32_t *numbers = malloc(N * sizeof *numbers);
  for (int32_t i = 0; i < N; i++) numbers[i] = i * 2654435761u;
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_MIRRORED, 3);
  dist_variable *variable = vector_variable(strategy, "w", DIST_I32, numbers, N);
  assert_ok(dist_checkpoint_save(strategy, path.text, &variable, 1, NULL));
  for (int32_t r = 0; r < 3; r++) memset(copy_of(variable, r), r, N * sizeof *numbers);
  assert_ok(dist_checkpoint_load(strategy, path.text, &variable, 1, NULL));
  for (int32_t r = 0; r < 3; r++) assert_memory_equal(copy_of(variable, r), numbers, N * sizeof *numbers);
  dist_variable_destroy(variable);
  assert_ok(dist_strategy_destroy(strategy));
  free(numbers);
}

/* ---- Variables whose value is computed from their copies ---- */

static const int32_t aggregations[] = {DIST_AGGREGATION_SUM, DIST_AGGREGATION_MEAN,
                                       DIST_AGGREGATION_ONLY_FIRST_REPLICA};
static const dist_dtype part_dtypes[] = {DIST_F32, DIST_F64, DIST_I32, DIST_U8, DIST_BF16};
enum { PARTS = 5 };

static dist_variable *parts_variable(dist_strategy *strategy, size_t a, size_t d) {
  static const unsigned char zeros[PARTS * 8];
  static const int64_t length = PARTS;
  const dist_tensor initial = {(void *)zeros, part_dtypes[d], 1, &length, NULL};
  return variable_like(strategy, "parts", initial, DIST_SYNCHRONIZATION_ON_READ, aggregations[a]);
}

/* After loading, the copies are those that dist_variable_assign() would make of the saved value. */
static void check_parts(const char *path, int32_t num_replicas, size_t a, size_t d,
                        const dist_tensor *saved) {
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_MIRRORED, num_replicas);
  dist_variable *loaded = parts_variable(strategy, a, d), *assigned = parts_variable(strategy, a, d);
  dist_value *value = NULL;
  assert_ok(dist_value_create_tensor(strategy, saved, &value));
  assert_ok(dist_variable_assign(strategy, assigned, DIST_ASSIGN, value));
  assert_ok(dist_checkpoint_load(strategy, path, &loaded, 1, NULL));
  const size_t size = part_dtypes[d] == DIST_U8     ? 1
                      : part_dtypes[d] == DIST_BF16 ? 2
                      : part_dtypes[d] == DIST_F64  ? 8
                                                    : 4;
  for (int32_t r = 0; r < num_replicas; r++)
    assert_memory_equal(copy_of(loaded, r), copy_of(assigned, r), PARTS * size);
  dist_value_release(value);
  dist_variable_destroy(loaded);
  dist_variable_destroy(assigned);
  assert_ok(dist_strategy_destroy(strategy));
}

static void sums_and_means_of_copies(void **state) {
  (void)state;
  const file_path path = path_of("parts.safetensors");
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_MIRRORED, 3);
  for (size_t a = 0; a < COUNT_OF(aggregations); a++) {
    for (size_t d = 0; d < COUNT_OF(part_dtypes); d++) {
      const int integer = part_dtypes[d] == DIST_I32 || part_dtypes[d] == DIST_U8;
      if (integer && aggregations[a] == DIST_AGGREGATION_MEAN) continue;
      dist_variable *variable = parts_variable(strategy, a, d);
      for (int32_t r = 0; r < 3; r++) {
        unsigned char *copy = copy_of(variable, r);
        for (int i = 0; i < PARTS * (part_dtypes[d] == DIST_U8 ? 1 : 2); i++)
          copy[i] = (unsigned char)(i % 2 != 0 ? 0x3f : 16 * i + r);
      }
      dist_value *value = NULL;
      dist_tensor is, wanted;
      assert_ok(dist_variable_read(strategy, variable, &value));
      assert_ok(dist_value_tensor(value, &wanted));
      assert_ok(dist_checkpoint_save(strategy, path.text, &variable, 1, NULL));
      dist_checkpoint *file = NULL;
      dist_value *stored = NULL;
      assert_ok(dist_checkpoint_open(strategy, path.text, &file));
      assert_ok(dist_checkpoint_read(file, "parts", &stored));
      assert_ok(dist_value_tensor(stored, &is));
      assert_int_equal(is.dtype, wanted.dtype);
      assert_memory_equal(is.data, wanted.data, PARTS);
      for (int32_t n = 1; n <= 4; n++) check_parts(path.text, n, a, d, &wanted);
      dist_value_release(stored);
      dist_value_release(value);
      dist_checkpoint_destroy(file);
      dist_variable_destroy(variable);
    }
  }
  assert_ok(dist_strategy_destroy(strategy));
}

static void a_variable_without_one_value_is_refused(void **state) {
  (void)state;
  const file_path path = path_of("none.safetensors");
  float number = 1;
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_MIRRORED, 2);
  const dist_tensor one = {&number, DIST_F32, 0, NULL, NULL};
  dist_variable *plain = variable_like(strategy, "own", one, 0, 0);
  dist_variable *none =
      variable_like(strategy, "own", one, DIST_SYNCHRONIZATION_ON_READ, DIST_AGGREGATION_NONE);
  assert_fails(dist_checkpoint_save(strategy, path.text, &none, 1, NULL), DIST_INVALID_ARGUMENT, "\"own\"");
  assert_int_equal(access(path.text, F_OK), -1);
  assert_ok(dist_checkpoint_save(strategy, path.text, &plain, 1, NULL));
  assert_fails(dist_checkpoint_load(strategy, path.text, &none, 1, NULL), DIST_INVALID_ARGUMENT,
               "aggregation NONE");
  dist_variable_destroy(plain);
  dist_variable_destroy(none);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Position in the input ---- */

static dist_dataset *numbers_dataset(dist_strategy *strategy, int64_t batch) {
  static int64_t numbers[24];
  for (int64_t i = 0; i < 24; i++) numbers[i] = i;
  const int64_t length = 24;
  const dist_tensor rows = {numbers, DIST_I64, 1, &length, NULL};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = batch;
  options.shuffle = 1;
  options.seed = 5;
  dist_dataset *dataset = NULL;
  assert_ok(dist_dataset_create_from_tensors(strategy, &rows, 1, &options, &dataset));
  return dataset;
}

/* Returns the next number, if one replica reads one number at a time. */
static int64_t next_number(dist_iterator *iterator) {
  dist_value *batch = NULL;
  dist_tensor tensor;
  assert_ok(dist_iterator_next(iterator, &batch));
  assert_ok(dist_value_tensor(batch, &tensor));
  const int64_t number = *(const int64_t *)tensor.data;
  dist_value_release(batch);
  return number;
}

static void the_input_goes_on_where_it_was(void **state) {
  (void)state;
  const file_path path = path_of("position.safetensors");
  dist_strategy *two = strategy_of_kind(DIST_STRATEGY_MIRRORED, 2);
  dist_dataset *dataset = numbers_dataset(two, 4);
  dist_iterator *iterator = NULL;
  assert_ok(dist_iterator_create(dataset, &iterator));
  for (int i = 0; i < 3; i++) {
    dist_value *batch = NULL;
    assert_ok(dist_iterator_next(iterator, &batch));
    dist_value_release(batch);
  }
  dist_position saved = DIST_POSITION_INIT, loaded = DIST_POSITION_INIT;
  assert_ok(dist_iterator_position(iterator, &saved));
  dist_checkpoint_options options = DIST_CHECKPOINT_OPTIONS_INIT;
  options.position = &saved;
  assert_ok(dist_checkpoint_save(two, path.text, NULL, 0, &options));
  dist_iterator_destroy(iterator);
  dist_dataset_destroy(dataset);
  assert_ok(dist_strategy_destroy(two));

  dist_strategy *one = strategy_of_kind(DIST_STRATEGY_ONE_DEVICE, 1);
  options.position = &loaded;
  assert_ok(dist_checkpoint_load(one, path.text, NULL, 0, &options));
  assert_memory_equal(&loaded, &saved, sizeof saved);
  dataset = numbers_dataset(one, 1);
  dist_iterator *whole = NULL;
  assert_ok(dist_iterator_create(dataset, &whole));
  for (int i = 0; i < 12; i++) next_number(whole);
  assert_ok(dist_iterator_create_at(dataset, &loaded, &iterator));
  for (int i = 12; i < 24; i++) assert_int_equal(next_number(iterator), next_number(whole));
  dist_iterator_destroy(iterator);
  dist_iterator_destroy(whole);
  dist_dataset_destroy(dataset);

  dist_position older = {.struct_size = offsetof(dist_position, elements), .elements = 99};
  options.position = &older;
  assert_ok(dist_checkpoint_load(one, path.text, NULL, 0, &options));
  assert_int_equal(older.pass, saved.pass);
  assert_int_equal(older.elements, 99);
  assert_int_equal(older.struct_size, offsetof(dist_position, elements));
  /* A struct without the field is rejected before the file is opened. */
  older.struct_size = sizeof older.struct_size;
  assert_int_equal(dist_checkpoint_load(one, "/none", NULL, 0, &options), DIST_INVALID_ARGUMENT);
  assert_ok(dist_strategy_destroy(one));
}

/* ---- Contexts ---- */

typedef struct job {
  const char *path;
  dist_variable *variable;
  dist_status inside[4];
  char words[200];
} job;

static dist_status merge_saves(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                               dist_value **out_result, void *user_data) {
  (void)args, (void)out_result, (void)kwargs;
  job *j = user_data;
  dist_status status = dist_checkpoint_save(strategy, j->path, &j->variable, 1, NULL);
  return status == DIST_OK ? dist_checkpoint_load(strategy, j->path, &j->variable, 1, NULL) : status;
}

static dist_status replica_saves(dist_replica *replica, void *user_data) {
  job *j = user_data;
  dist_strategy *strategy = dist_replica_strategy(replica);
  if (dist_replica_id(replica) == 0) {
    dist_checkpoint *file = NULL;
    j->inside[0] = dist_checkpoint_save(strategy, j->path, &j->variable, 1, NULL);
    snprintf(j->words, sizeof j->words, "%s", dist_last_error());
    j->inside[1] = dist_checkpoint_load(strategy, j->path, &j->variable, 1, NULL);
    j->inside[2] = dist_checkpoint_open(strategy, j->path, &file);
  }
  return dist_merge_call(replica, merge_saves, j, NULL, NULL, NULL, NULL);
}

static void only_from_outside_the_replicas(void **state) {
  (void)state;
  const file_path path = path_of("contexts.safetensors");
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_MIRRORED, 2);
  dist_strategy *other = strategy_of_kind(DIST_STRATEGY_MIRRORED, 2);
  const float numbers[2] = {1, 2};
  job j = {.path = path.text, .variable = vector_variable(strategy, "w", DIST_F32, numbers, 2)};
  assert_ok(dist_run(strategy, replica_saves, &j, NULL));
  for (int i = 0; i < 3; i++) assert_int_equal(j.inside[i], DIST_FAILED_PRECONDITION);
  assert_has(j.words, "dist_checkpoint_save()");
  assert_fails(dist_checkpoint_save(other, path.text, &j.variable, 1, NULL), DIST_FAILED_PRECONDITION,
               "variable \"w\" belongs to another strategy");
  assert_fails(dist_checkpoint_load(other, path.text, &j.variable, 1, NULL), DIST_FAILED_PRECONDITION,
               "another strategy");
  dist_variable_destroy(j.variable);
  assert_ok(dist_strategy_destroy(other));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Memory ---- */

static dist_status save_load_and_read_as(dist_strategy *strategy, const char *name, int32_t sharded) {
  const file_path path = path_of(name);
  const int64_t length = PARTS;
  unsigned char zeros[PARTS * 8] = {0};
  const dist_tensor initial = {zeros, DIST_F32, 1, &length, NULL};
  static const char *const keys[] = {"host"}, *const texts[] = {
                                                  "a text that is longer than any small string"};
  dist_position position = DIST_POSITION_INIT;
  dist_variable_options variable_options = DIST_VARIABLE_OPTIONS_INIT;
  dist_checkpoint_options options = DIST_CHECKPOINT_OPTIONS_INIT;
  options.sharded = sharded;
  options.position = &position;
  options.metadata_keys = keys;
  options.metadata_texts = texts;
  options.num_metadata = 1;
  dist_variable *variables[2] = {NULL};
  dist_checkpoint *file = NULL;
  dist_value *value = NULL;
  variable_options.name = "a name that is longer than any small string";
  dist_status status = dist_variable_create(strategy, &initial, &variable_options, &variables[0]);
  variable_options.name = "parts";
  variable_options.synchronization = DIST_SYNCHRONIZATION_ON_READ;
  variable_options.aggregation = DIST_AGGREGATION_SUM;
  if (status == DIST_OK) status = dist_variable_create(strategy, &initial, &variable_options, &variables[1]);
  if (status == DIST_OK) status = dist_checkpoint_save(strategy, path.text, variables, 2, &options);
  if (status == DIST_OK) status = dist_checkpoint_load(strategy, path.text, variables, 2, &options);
  if (status == DIST_OK) status = dist_checkpoint_open(strategy, path.text, &file);
  if (status == DIST_OK) status = dist_checkpoint_read(file, "parts", &value);
  dist_value_release(value);
  dist_checkpoint_destroy(file);
  for (int i = 0; i < 2; i++) dist_variable_destroy(variables[i]);
  return status;
}

static dist_status save_load_and_read(dist_strategy *strategy) {
  return save_load_and_read_as(strategy, "alloc.safetensors", 0);
}

static dist_status save_load_and_read_shards(dist_strategy *strategy) {
  const dist_status status = save_load_and_read_as(strategy, "alloc.index", 1);
  assert_true(count_names("alloc.index.", 0) <= 1); /* only the shard of the index */
  return status;
}

static void every_allocation_fails_once(void **state) {
  (void)state;
  assert_true(refuse_every_request(3, save_load_and_read) > 20);
  assert_true(refuse_every_request(3, save_load_and_read_shards) > 30);
  assert_int_equal(count_names(".dist-", 0), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_strategy_to_any),
      cmocka_unit_test(large_copies_are_equal_too),
      cmocka_unit_test(sums_and_means_of_copies),
      cmocka_unit_test(a_variable_without_one_value_is_refused),
      cmocka_unit_test(the_input_goes_on_where_it_was),
      cmocka_unit_test(only_from_outside_the_replicas),
      cmocka_unit_test(every_allocation_fails_once),
  };
  return cmocka_run_group_tests(tests, NULL, leave_folder);
}
