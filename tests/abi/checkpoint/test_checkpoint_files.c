/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints as files: libdist reads files written by the safetensors library bit for bit, and its own files
 * match the format byte for byte. It rejects invalid paths and arguments without leaving files behind.
 *
 *   test_checkpoint_files data/library.safetensors      runs the tests
 *   test_checkpoint_files write|read FILE               for checkpoint.py, which does the same with the
 * library
 */
#include "checkpoint_support.h"

static const char *library_file;

/* A tensor [2, 3] of every dtype. Byte k of tensor i is 37 i + 11 k + 1, of bool k mod 2. */
typedef struct example {
  const char *name;
  dist_dtype dtype;
  size_t size;
} example;
/* @every dtype */
static const example examples[] = {
    {"f16", DIST_F16, 2},
    {"bf16", DIST_BF16, 2},
    {"f32", DIST_F32, 4},
    {"f64", DIST_F64, 8},
    {"i8", DIST_I8, 1},
    {"u8", DIST_U8, 1},
    {"i16", DIST_I16, 2},
    {"u16", DIST_U16, 2},
    {"i32", DIST_I32, 4},
    {"u32", DIST_U32, 4},
    {"i64", DIST_I64, 8},
    {"u64", DIST_U64, 8},
    {"complex64", DIST_COMPLEX64, 8},
    {"bool", DIST_BOOL, 1},
};
enum { NUM_EXAMPLES = COUNT_OF(examples), ELEMENTS = 6, MOST_BYTES = ELEMENTS * 8 };
static const int64_t two_by_three[] = {2, 3};

static void fill_example(size_t i, unsigned char *bytes) {
  for (size_t k = 0; k < ELEMENTS * examples[i].size; k++)
    bytes[k] = (unsigned char)(examples[i].dtype == DIST_BOOL ? k & 1 : 37 * i + 11 * k + 1);
}

static void make_examples(dist_strategy *strategy, int filled, dist_variable **out) {
  for (size_t i = 0; i < NUM_EXAMPLES; i++) {
    unsigned char bytes[MOST_BYTES] = {0};
    if (filled) fill_example(i, bytes);
    const dist_tensor initial = {bytes, examples[i].dtype, 2, two_by_three, NULL};
    out[i] = variable_like(strategy, examples[i].name, initial, 0, 0);
  }
}

static void destroy_examples(dist_variable **variables) {
  for (size_t i = 0; i < NUM_EXAMPLES; i++) dist_variable_destroy(variables[i]);
}

/* Fails the test, or the program, if the file does not contain the bits of the examples. */
static void load_examples(const char *path) {
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_MIRRORED, 2);
  dist_variable *variables[NUM_EXAMPLES];
  make_examples(strategy, 0, variables);
  assert_ok(dist_checkpoint_load(strategy, path, variables, NUM_EXAMPLES, NULL));
  for (size_t i = 0; i < NUM_EXAMPLES; i++) {
    unsigned char bytes[MOST_BYTES];
    fill_example(i, bytes);
    for (int32_t r = 0; r < 2; r++)
      assert_memory_equal(copy_of(variables[i], r), bytes, ELEMENTS * examples[i].size);
  }
  destroy_examples(variables);
  assert_ok(dist_strategy_destroy(strategy));
}

static void save_examples(const char *path) {
  static const char *const keys[] = {"made by", "note"}, *const texts[] = {"libdist", "\"quoted\"\n\xc3\xa9"};
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_ONE_DEVICE, 1);
  dist_variable *variables[NUM_EXAMPLES];
  make_examples(strategy, 1, variables);
  dist_checkpoint_options options = DIST_CHECKPOINT_OPTIONS_INIT;
  dist_position position = DIST_POSITION_INIT;
  position.pass = 3, position.elements = 1LL << 40;
  options.position = &position;
  options.metadata_keys = keys;
  options.metadata_texts = texts;
  options.num_metadata = 2;
  assert_ok(dist_checkpoint_save(strategy, path, variables, NUM_EXAMPLES, &options));
  destroy_examples(variables);
  assert_ok(dist_strategy_destroy(strategy));
}

static void what_the_library_wrote(void **state) {
  (void)state;
  load_examples(library_file);
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_DEFAULT, 1);
  dist_checkpoint *file = NULL;
  dist_tensor tensor;
  dist_value *value = NULL;
  assert_ok(dist_checkpoint_open(strategy, library_file, &file));
  assert_int_equal(dist_checkpoint_size(file), NUM_EXAMPLES + 3);
  assert_string_equal(dist_checkpoint_name(file, 0), "u64"); /* the widest come first */
  assert_string_equal(dist_checkpoint_name(file, NUM_EXAMPLES + 2), "bool");
  assert_string_equal(dist_checkpoint_name(file, NUM_EXAMPLES + 3), "");
  for (size_t i = 0; i < NUM_EXAMPLES; i++) {
    assert_ok(dist_checkpoint_spec(file, examples[i].name, &tensor));
    assert_int_equal(tensor.dtype, examples[i].dtype);
    assert_int_equal(tensor.ndim, 2);
    assert_memory_equal(tensor.shape, two_by_three, sizeof two_by_three);
    assert_null(tensor.data);
    assert_null(tensor.strides);
  }
  assert_ok(dist_checkpoint_read(file, "scalar", &value));
  assert_ok(dist_value_tensor(value, &tensor));
  assert_int_equal(tensor.ndim, 0);
  assert_memory_equal(tensor.data, "\1\2\3\4", 4);
  dist_value_release(value);
  assert_ok(dist_checkpoint_read(file, "nothing", &value));
  assert_ok(dist_value_tensor(value, &tensor));
  assert_int_equal(tensor.shape[0], 3);
  assert_int_equal(tensor.shape[1], 0);
  dist_value_release(value);
  assert_ok(dist_checkpoint_spec(file, "eight bits", &tensor));
  assert_int_equal(tensor.dtype, 0);
  assert_int_equal(tensor.shape[0], 4);
  assert_ok(dist_checkpoint_read(file, "eight bits", &value)); /* read as bytes */
  assert_ok(dist_value_tensor(value, &tensor));
  assert_int_equal(tensor.dtype, DIST_U8);
  assert_int_equal(tensor.shape[0], 4);
  dist_value_release(value);
  assert_fails(dist_checkpoint_read(file, "i128", &value), DIST_NOT_FOUND,
               "no tensor \"i128\". It has 17: \"u64\"");
  assert_int_equal(dist_checkpoint_num_metadata(file), 2);
  assert_string_equal(dist_checkpoint_metadata_key(file, 0), "format");
  assert_string_equal(dist_checkpoint_metadata_key(file, 2), "");
  assert_string_equal(dist_checkpoint_metadata(file, "made by"), "safetensors 0.8.0 \xc3\xa9");
  assert_null(dist_checkpoint_metadata(file, "made"));
  assert_ok(dist_strategy_destroy(strategy));
  dist_checkpoint_destroy(file); /* the file outlives its strategy */

  float bits = 0;
  const int64_t four = 4;
  strategy = strategy_of_kind(DIST_STRATEGY_DEFAULT, 1);
  dist_variable *variable = vector_variable(strategy, "eight bits", DIST_U8, &bits, four);
  assert_fails(dist_checkpoint_load(strategy, library_file, &variable, 1, NULL), DIST_INVALID_ARGUMENT,
               "tensor \"eight bits\" is F8_E4M3");
  dist_checkpoint_options options = DIST_CHECKPOINT_OPTIONS_INIT;
  dist_position position = DIST_POSITION_INIT;
  options.position = &position;
  assert_fails(dist_checkpoint_load(strategy, library_file, NULL, 0, &options), DIST_NOT_FOUND,
               "no input position");
  dist_variable_destroy(variable);
  assert_ok(dist_strategy_destroy(strategy));
}

static void every_byte_is_as_the_format_says(void **state) {
  (void)state;
  static const char header[] =
      "{\"__metadata__\":{\"k\\n\":\"v\",\"libdist.crc32:e\":\"00000000\",\"libdist.crc32:w\":\"2e3fa576\","
      "\"libdist.crc32:\xc3\xbc\\\"\":\"a505df1b\",\"libdist.crc32\":\"8b5813d9\"},"
      "\"e\":{\"dtype\":\"I64\",\"shape\":[0,3],\"data_offsets\":[0,0]},"
      "\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
      "\"\xc3\xbc\\\"\":{\"dtype\":\"BOOL\",\"shape\":[],\"data_offsets\":[8,9]}}";
  static const char *const keys[] = {"k\n"}, *const texts[] = {"v"};
  unsigned char expected[8 + 312 + 9] = {312 & 0xff, 312 >> 8};
  memset(expected + 8, ' ', 312); /* spaces at the end of the header align the data */
  memcpy(expected + 8, header, sizeof header - 1);
  const float numbers[2] = {1, 2};
  memcpy(expected + 8 + 312, numbers, sizeof numbers);
  expected[8 + 312 + 8] = 1;

  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_MIRRORED, 2);
  const int64_t none[] = {0, 3};
  unsigned char yes = 1;
  dist_variable *variables[] = {
      variable_like(strategy, "\xc3\xbc\"", (dist_tensor){&yes, DIST_BOOL, 0, NULL, NULL}, 0, 0),
      vector_variable(strategy, "w", DIST_F32, numbers, 2),
      variable_like(strategy, "e", (dist_tensor){NULL, DIST_I64, 2, none, NULL}, 0, 0)};
  dist_checkpoint_options options = DIST_CHECKPOINT_OPTIONS_INIT;
  options.metadata_keys = keys;
  options.metadata_texts = texts;
  options.num_metadata = 1;
  const file_path path = path_of("bytes.safetensors");
  assert_ok(dist_checkpoint_save(strategy, path.text, variables, 3, &options));
  size_t size = 0;
  unsigned char *data = read_file(path.text, &size);
  assert_int_equal(size, sizeof expected);
  assert_memory_equal(data, expected, size);
  free(data);
  for (int i = 0; i < 3; i++) dist_variable_destroy(variables[i]);
  assert_ok(dist_strategy_destroy(strategy));
}

static void every_dtype_comes_back(void **state) {
  (void)state;
  const file_path path = path_of("dtypes.safetensors");
  save_examples(path.text);
  load_examples(path.text);
}

static void a_file_is_replaced_as_a_whole(void **state) {
  (void)state;
  const file_path path = path_of("replaced.safetensors"), link_path = path_of("link");
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_ONE_DEVICE, 1);
  float numbers[2] = {1, 2};
  dist_variable *variable = vector_variable(strategy, "w", DIST_F32, numbers, 2);
  const mode_t before = umask(027);
  assert_ok(dist_checkpoint_save(strategy, path.text, &variable, 1, NULL));
  umask(before);
  struct stat about;
  assert_int_equal(stat(path.text, &about), 0);
  assert_int_equal(about.st_mode & 0777, 0640);

  dist_checkpoint *old = NULL;
  dist_value *value = NULL;
  dist_tensor tensor;
  assert_ok(dist_checkpoint_open(strategy, path.text, &old));
  *(float *)copy_of(variable, 0) = 9;
  assert_int_equal(symlink("replaced.safetensors", link_path.text), 0);
  assert_ok(dist_checkpoint_save(strategy, link_path.text, &variable, 1, NULL)); /* replaces the link */
  assert_int_equal(lstat(link_path.text, &about), 0);
  assert_true(S_ISREG(about.st_mode));
  assert_ok(dist_checkpoint_save(strategy, path.text, &variable, 1, NULL));
  assert_ok(dist_checkpoint_read(old, "w", &value)); /* the old file can still be read */
  assert_ok(dist_value_tensor(value, &tensor));
  assert_true(*(float *)tensor.data == 1);
  dist_value_release(value);
  dist_checkpoint_destroy(old);
  assert_int_equal(count_names(".dist-", 0), 0);

  assert_int_equal(chdir(folder()), 0); /* a name without a folder refers to the current folder */
  assert_ok(dist_checkpoint_save(strategy, "here.safetensors", &variable, 1, NULL));
  assert_ok(dist_checkpoint_load(strategy, "here.safetensors", &variable, 1, NULL));
  assert_int_equal(chdir("/"), 0);
  dist_variable_destroy(variable);
  assert_ok(dist_strategy_destroy(strategy));
}

static void what_is_no_path_for_a_file(void **state) {
  (void)state;
  const file_path fifo = path_of("fifo"), missing = path_of("missing/w"), inside = path_of("plain/w");
  const file_path slash = path_of(""), plain = path_of("plain"), shut = path_of("shut");
  file_path shut_inside = path_of("shut/w");
  char longest[5000];
  memset(longest, 'a', sizeof longest - 1), longest[sizeof longest - 1] = '\0';
  assert_int_equal(mkfifo(fifo.text, 0600), 0);
  assert_int_equal(mkdir(shut.text, 0500), 0);
  write_file(plain.text, "", 0);
  const struct {
    const char *path;
    dist_status saving, loading;
    const char *words;
  } rows[] = {
      {folder(), DIST_INVALID_ARGUMENT, DIST_INVALID_ARGUMENT, "is a folder, but must be a regular file"},
      {fifo.text, DIST_INVALID_ARGUMENT, DIST_INVALID_ARGUMENT, "is a FIFO"},
      {"/dev/null", DIST_INVALID_ARGUMENT, DIST_INVALID_ARGUMENT, "is a device"},
      {missing.text, DIST_NOT_FOUND, DIST_NOT_FOUND, "No such file or directory"},
      {inside.text, DIST_NOT_FOUND, DIST_NOT_FOUND, "Not a directory"},
      {slash.text, DIST_INVALID_ARGUMENT, DIST_INVALID_ARGUMENT, ""},
      {"", DIST_INVALID_ARGUMENT, DIST_NOT_FOUND, ""},
      {longest, DIST_INVALID_ARGUMENT, DIST_INVALID_ARGUMENT, "File name too long"},
      {shut_inside.text, DIST_PERMISSION_DENIED, DIST_NOT_FOUND, ""},
      {NULL, DIST_INVALID_ARGUMENT, DIST_INVALID_ARGUMENT, "path is NULL"},
  };
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_ONE_DEVICE, 1);
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    if (geteuid() == 0 && rows[i].saving == DIST_PERMISSION_DENIED) continue; /* root has all permissions */
    assert_fails(dist_checkpoint_save(strategy, rows[i].path, NULL, 0, NULL), rows[i].saving, rows[i].words);
    assert_fails(dist_checkpoint_load(strategy, rows[i].path, NULL, 0, NULL), rows[i].loading, rows[i].words);
  }
  assert_int_equal(count_names(".dist-", 0), 0);
  assert_int_equal(rmdir(shut.text), 0);
  assert_ok(dist_strategy_destroy(strategy));
}

static void arguments_of_saving_are_checked(void **state) {
  (void)state;
  const file_path path = path_of("arguments.safetensors");
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_ONE_DEVICE, 1);
  const float number[1] = {1};
  dist_variable *w = vector_variable(strategy, "w", DIST_F32, number, 1);
  dist_variable *metadata = vector_variable(strategy, "__metadata__", DIST_F32, number, 1);
  dist_variable *twice[] = {w, w}, *null[] = {w, NULL};
  static const char *const no_names[] = {"first", NULL};
  static const char *const keys[] = {"a", "a"}, *const own[] = {"libdist.x"}, *const no_text[] = {NULL};
  static const char *const not_utf8[] = {"\xc3"};
  const dist_checkpoint_options init = DIST_CHECKPOINT_OPTIONS_INIT;
  const uint32_t size = sizeof init;
  dist_position no_position = {0};
  const struct {
    dist_variable **variables;
    size_t n;
    dist_checkpoint_options options;
    const char *words;
  } rows[] = {
      {twice, 2, init, "two variables have the name \"w\""},
      {null, 2, init, "variables[1] is NULL"},
      {NULL, 1, init, "variables is NULL"},
      {&w, 1, {size, 0, not_utf8, 0, 0, 0, 0}, "the name \"\xEF\xBF\xBD\" is not UTF-8"},
      {&metadata, 1, init, "cannot have the name \"__metadata__\""},
      {twice, 2, {size, 2, 0, 0, 0, 0, 0}, "dist_checkpoint_options.sharded is 2, but must be 0 or 1"},
      {twice, 2, {size, 0, no_names, 0, 0, 0, 0}, "names[1] is NULL"},
      {&w, 1, {size, 0, 0, 0, keys, keys, 2}, "metadata key \"a\" is set twice"},
      {&w, 1, {size, 0, 0, 0, own, keys, 1}, "keys that start with \"libdist.\""},
      {&w, 1, {size, 0, 0, 0, keys, NULL, 1}, "metadata_texts is NULL"},
      {&w, 1, {size, 0, 0, 0, keys, no_text, 1}, "or its text is NULL"},
      {&w, 1, {size, 0, 0, 0, keys, not_utf8, 1}, "the text \"\xEF\xBF\xBD\" is not UTF-8"},
      {&w, 1, {size, 0, 0, &no_position, 0, 0, 0}, "dist_position.struct_size is 0"},
      {&w, 1, {2, 0, 0, 0, 0, 0, 0}, "dist_checkpoint_options.struct_size is 2"},
  };
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    dist_checkpoint_options options = rows[i].options;
    for (int sharded = 0; sharded < 2; sharded++) {
      assert_fails(dist_checkpoint_save(strategy, path.text, rows[i].variables, rows[i].n, &options),
                   DIST_INVALID_ARGUMENT, rows[i].words);
      if (options.sharded == 0) options.sharded = 1;
    }
  }
  assert_fails(dist_checkpoint_save(NULL, path.text, &w, 1, NULL), DIST_INVALID_ARGUMENT, "strategy is NULL");
  assert_fails(dist_checkpoint_load(NULL, path.text, &w, 1, NULL), DIST_INVALID_ARGUMENT, "strategy is NULL");
  assert_int_equal(access(path.text, F_OK), -1);
  dist_variable_destroy(w);
  dist_variable_destroy(metadata);
  assert_ok(dist_strategy_destroy(strategy));
}

static void arguments_of_reading_are_checked(void **state) {
  (void)state;
  const file_path path = path_of("arguments.safetensors");
  dist_strategy *strategy = strategy_of_kind(DIST_STRATEGY_ONE_DEVICE, 1);
  const float number[1] = {1};
  dist_variable *w = vector_variable(strategy, "w", DIST_F32, number, 1), *twice[] = {w, w};
  static const char *const names[] = {"first", "second"};
  dist_checkpoint_options options = DIST_CHECKPOINT_OPTIONS_INIT;
  options.names = names;
  assert_ok(dist_checkpoint_save(strategy, path.text, twice, 2, &options)); /* one variable under two names */
  dist_checkpoint *file = NULL;
  dist_tensor tensor;
  dist_value *value = NULL;
  assert_fails(dist_checkpoint_open(strategy, path.text, NULL), DIST_INVALID_ARGUMENT,
               "out_checkpoint is NULL");
  assert_ok(dist_checkpoint_open(strategy, path.text, &file));
  assert_int_equal(dist_checkpoint_size(file), 2);
  assert_fails(dist_checkpoint_spec(file, NULL, &tensor), DIST_INVALID_ARGUMENT, "name is NULL");
  assert_fails(dist_checkpoint_spec(file, "first", NULL), DIST_INVALID_ARGUMENT, "out_spec is NULL");
  assert_fails(dist_checkpoint_spec(NULL, "first", &tensor), DIST_INVALID_ARGUMENT, "checkpoint is NULL");
  assert_fails(dist_checkpoint_spec(file, "w", &tensor), DIST_NOT_FOUND, "no tensor \"w\"");
  assert_fails(dist_checkpoint_read(file, "first", NULL), DIST_INVALID_ARGUMENT, "out_value is NULL");
  assert_fails(dist_checkpoint_read(NULL, "first", &value), DIST_INVALID_ARGUMENT, "checkpoint is NULL");
  dist_checkpoint_destroy(file);
  dist_checkpoint_destroy(NULL);
  assert_int_equal(dist_checkpoint_size(NULL), 0);
  assert_int_equal(dist_checkpoint_num_metadata(NULL), 0);
  assert_string_equal(dist_checkpoint_name(NULL, 0), "");
  assert_string_equal(dist_checkpoint_metadata_key(NULL, 0), "");
  assert_null(dist_checkpoint_metadata(NULL, "k"));
  dist_variable_destroy(w);
  assert_ok(dist_strategy_destroy(strategy));
}

int main(int argc, char **argv) {
  if (argc == 3) { /* if an assertion fails outside a test, the program ends with a status of its own */
    (strcmp(argv[1], "write") == 0 ? save_examples : load_examples)(argv[2]);
    return 0;
  }
  if (argc != 2) return 2;
  library_file = argv[1];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_the_library_wrote),           cmocka_unit_test(every_byte_is_as_the_format_says),
      cmocka_unit_test(every_dtype_comes_back),           cmocka_unit_test(a_file_is_replaced_as_a_whole),
      cmocka_unit_test(what_is_no_path_for_a_file),       cmocka_unit_test(arguments_of_saving_are_checked),
      cmocka_unit_test(arguments_of_reading_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, leave_folder);
}
