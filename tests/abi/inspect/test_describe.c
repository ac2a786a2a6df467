/* SPDX-License-Identifier: Apache-2.0
 *
 * The text form of values and variables: every kind and dtype, numbers that can be parsed back to the same
 * bits, truncation of long values, and the same text in every locale.
 */
#include "tests/abi/common.h"

#include <locale.h>
#include <math.h>

#include "tests/abi/fold.h"

enum { R = 2, ROOM = 1 << 16 };

typedef struct text {
  size_t used;
  char data[ROOM];
} text;

static void collect(const char *piece, size_t size, void *user_data) {
  text *t = user_data;
  if (t->used + size >= ROOM) size = ROOM - 1 - t->used;
  memcpy(t->data + t->used, piece, size);
  t->used += size;
  t->data[t->used] = '\0';
}

static const char *text_of(const dist_value *value) {
  static text t;
  t.used = 0;
  assert_ok(dist_value_describe(value, collect, &t));
  return t.data;
}

static const char *text_of_variable(const dist_variable *variable) {
  static text t;
  t.used = 0;
  assert_ok(dist_variable_describe(variable, collect, &t));
  return t.data;
}

static dist_value *tensor_value(dist_strategy *strategy, dist_dtype dtype, int32_t ndim, const int64_t *shape,
                                void *data) {
  const dist_tensor tensor = {data, dtype, ndim, shape, NULL};
  dist_value *value = NULL;
  assert_ok(dist_value_wrap_tensor(strategy, &tensor, NULL, NULL, &value));
  return value;
}

/* Checks the text and releases the value. */
static void assert_text(dist_value *value, const char *expected) {
  assert_string_equal(text_of(value), expected);
  dist_value_release(value);
}

static void elements_of_every_dtype(void **state) {
  const int64_t four = 4, three = 3, two = 2;
  uint16_t f16[] = {0x2E66, 0x7BFF, 0xFC00, 0x8000}, bf16[] = {0x3DCD, 0x7F7F, 0x7FC0, 0x0001};
  float f32[] = {0.1f, 16777216, -INFINITY, -0.0f};
  double f64[] = {0.1, 1e300, NAN, 123456789.25};
  int8_t i8[] = {-128, 127};
  uint8_t u8[] = {0, 255}, boolean[] = {0, 1, 9};
  int16_t i16[] = {-32768, 32767};
  uint16_t u16[] = {0, 65535};
  int32_t i32[] = {INT32_MIN, INT32_MAX};
  uint32_t u32[] = {0, UINT32_MAX};
  int64_t i64[] = {INT64_MIN, INT64_MAX};
  uint64_t u64[] = {0, UINT64_MAX};
  float complex64[] = {1.5f, -2, -0.0f, INFINITY};
  typedef struct row {
    dist_dtype dtype;
    const int64_t *shape;
    void *data;
    const char *expected;
  } row;
  /* @every dtype */
  const row rows[] = {
      {DIST_F16, &four, f16, "f16[4] [0.1, 65500, -inf, -0]"},
      {DIST_BF16, &four, bf16, "bf16[4] [0.1, 3.39e+38, nan, 9e-41]"},
      {DIST_F32, &four, f32, "f32[4] [0.1, 1.6777216e+07, -inf, -0]"},
      {DIST_F64, &four, f64, "f64[4] [0.1, 1e+300, nan, 123456789.25]"},
      {DIST_I8, &two, i8, "i8[2] [-128, 127]"},
      {DIST_U8, &two, u8, "u8[2] [0, 255]"},
      {DIST_BOOL, &three, boolean, "bool[3] [false, true, true]"},
      {DIST_I16, &two, i16, "i16[2] [-32768, 32767]"},
      {DIST_U16, &two, u16, "u16[2] [0, 65535]"},
      {DIST_I32, &two, i32, "i32[2] [-2147483648, 2147483647]"},
      {DIST_U32, &two, u32, "u32[2] [0, 4294967295]"},
      {DIST_I64, &two, i64, "i64[2] [-9223372036854775808, 9223372036854775807]"},
      {DIST_U64, &two, u64, "u64[2] [0, 18446744073709551615]"},
      {DIST_COMPLEX64, &two, complex64, "complex64[2] [1.5-2i, -0+infi]"},
  };
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    assert_text(tensor_value(*state, rows[i].dtype, 1, rows[i].shape, rows[i].data), rows[i].expected);
  }
}

/* Converts random bits to text and back. */
static void numbers_read_back_as_the_same_bits(void **state) {
  uint64_t seed = 77;
  print_message("# seed %llu\n", (unsigned long long)seed);
  for (int i = 0; i < 20000; i++) {
    const uint64_t random = next_random(&seed);
    double wide;
    memcpy(&wide, &random, sizeof wide);
    dist_value *value = tensor_value(*state, DIST_F64, 0, NULL, &wide);
    if (!isnan(wide)) assert_true(strtod(text_of(value) + 4, NULL) == wide);
    assert_true(strlen(text_of(value)) <= strlen("f64 -1.7976931348623157e+308"));
    dist_value_release(value);
    float narrow = bits_as_float((uint32_t)random);
    value = tensor_value(*state, DIST_F32, 0, NULL, &narrow);
    if (!isnan(narrow)) assert_true(strtof(text_of(value) + 4, NULL) == narrow);
    assert_true(strlen(text_of(value)) <= strlen("f32 -1.17549435e-38"));
    dist_value_release(value);
  }
  for (uint32_t bits = 0; bits < 0x10000; bits += 7) {
    uint16_t half = (uint16_t)bits;
    if (!isnan(from_f16(half))) {
      dist_value *value = tensor_value(*state, DIST_F16, 0, NULL, &half);
      assert_int_equal(to_f16(strtof(text_of(value) + 4, NULL)), half);
      dist_value_release(value);
    }
    if (!isnan(from_bf16(half))) {
      dist_value *value = tensor_value(*state, DIST_BF16, 0, NULL, &half);
      assert_int_equal(to_bf16(strtof(text_of(value) + 5, NULL)), half);
      dist_value_release(value);
    }
  }
}

static void shapes_show_in_brackets(void **state) {
  int32_t data[24];
  for (int i = 0; i < 24; i++) data[i] = i;
  const int64_t two_three[] = {2, 3}, cube[] = {2, 1, 2}, none[] = {2, 0}, vast[] = {INT64_MAX, 4, 0};
  const int64_t backwards[] = {-4, 1};
  assert_text(tensor_value(*state, DIST_I32, 0, NULL, data + 7), "i32 7");
  assert_text(tensor_value(*state, DIST_I32, 2, two_three, data), "i32[2, 3] [[0, 1, 2], [3, 4, 5]]");
  assert_text(tensor_value(*state, DIST_I32, 3, cube, data), "i32[2, 1, 2] [[[0, 1]], [[2, 3]]]");
  assert_text(tensor_value(*state, DIST_I32, 2, none, NULL), "i32[2, 0] []");
  assert_text(tensor_value(*state, DIST_I32, 3, vast, NULL), "i32[9223372036854775807, 4, 0] []");
  const dist_tensor view = {data + 4, DIST_I32, 2, two_three, backwards};
  dist_value *value = NULL;
  assert_ok(dist_value_wrap_tensor(*state, &view, NULL, NULL, &value));
  assert_text(value, "i32[2, 3] [[4, 5, 6], [0, 1, 2]]");
}

static void long_ones_show_their_ends(void **state) {
  static int32_t data[1001];
  for (int i = 0; i < 1001; i++) data[i] = i;
  const int64_t thousand = 1000, more = 1001, grid[] = {7, 143}, narrow[] = {501, 2};
  dist_value *value = tensor_value(*state, DIST_I32, 1, &thousand, data);
  assert_has(text_of(value), "499, 500, 501");
  dist_value_release(value);
  assert_text(tensor_value(*state, DIST_I32, 1, &more, data), "i32[1001] [0, 1, 2, ..., 998, 999, 1000]");
  assert_text(tensor_value(*state, DIST_I32, 2, grid, data),
              "i32[7, 143] [[0, 1, 2, ..., 140, 141, 142], [143, 144, 145, ..., 283, 284, 285], "
              "[286, 287, 288, ..., 426, 427, 428], ..., [572, 573, 574, ..., 712, 713, 714], "
              "[715, 716, 717, ..., 855, 856, 857], [858, 859, 860, ..., 998, 999, 1000]]");
  static int32_t wide[1002];
  assert_text(tensor_value(*state, DIST_I32, 2, narrow, wide),
              "i32[501, 2] [[0, 0], [0, 0], [0, 0], ..., [0, 0], [0, 0], [0, 0]]");
  dist_value *items[1001], *list = NULL;
  for (int i = 0; i < 1001; i++) items[i] = tensor_value(*state, DIST_I32, 0, NULL, &data[i]);
  assert_ok(dist_value_create_list(*state, items, 1001, &list));
  assert_text(list, "[i32 0, i32 1, i32 2, ..., i32 998, i32 999, i32 1000]");
  for (int i = 0; i < 1001; i++) dist_value_release(items[i]);
  static char letters[2001];
  for (int i = 0; i < 2000; i += 2) memcpy(letters + i, "\xC3\xA9", 2);
  memcpy(letters, "xx", 2);
  letters[999] = 'x', letters[1000] = '\xC3', letters[1001] = '\xA9', letters[998] = 'x';
  assert_ok(dist_value_create_text(*state, letters, &value));
  assert_int_equal(strlen(text_of(value)), 1000 + strlen("\"\"..."));
  dist_value_release(value);
}

/* ---- Kinds ---- */

static void nests_and_components(void **state) {
  float one = 1, two = 2;
  dist_value *a = tensor_value(*state, DIST_F32, 0, NULL, &one),
             *b = tensor_value(*state, DIST_F32, 0, NULL, &two);
  dist_value *own[R] = {a, b}, *per_replica = NULL, *mirrored = NULL, *tuple = NULL, *single = NULL,
             *dict = NULL;
  dist_value *none = NULL, *words = NULL, *object = NULL, *list = NULL, *empty = NULL;
  assert_ok(dist_value_create_per_replica(*state, own, R, &per_replica));
  own[1] = a;
  assert_ok(dist_value_create_mirrored(*state, own, R, &mirrored));
  assert_ok(dist_value_create_none(*state, &none));
  assert_ok(dist_value_create_text(*state, "a \"quoted\\\"\n\tword", &words));
  assert_ok(dist_value_wrap_object(*state, &one, NULL, &object));
  dist_value *const pair[] = {none, words};
  assert_ok(dist_value_create_tuple(*state, pair, 2, &tuple));
  assert_ok(dist_value_create_tuple(*state, pair, 1, &single));
  static const char *const keys[] = {"loss", "a\"b"};
  dist_value *const entries[] = {per_replica, single};
  assert_ok(dist_value_create_dict(*state, keys, entries, 2, &dict));
  assert_ok(dist_value_create_list(*state, NULL, 0, &empty));
  dist_value *const all[] = {dict, mirrored, object, empty};
  assert_ok(dist_value_create_list(*state, all, 4, &list));
  assert_string_equal(text_of(per_replica), "PerReplica: 0: f32 1, 1: f32 2");
  assert_string_equal(text_of(mirrored), "Mirrored: 0: f32 1, 1: f32 1");
  assert_string_equal(text_of(none), "None");
  assert_string_equal(text_of(object), "Object");
  assert_string_equal(text_of(tuple), "(None, \"a \\\"quoted\\\\\\\"\\n\\tword\")");
  assert_string_equal(text_of(list),
                      "[{\"a\\\"b\": (None,), \"loss\": {PerReplica: 0: f32 1, 1: f32 2}}, "
                      "{Mirrored: 0: f32 1, 1: f32 1}, Object, []]");
  dist_value *const owned[] = {a,      b,     per_replica, mirrored, none, words,
                               object, tuple, dict,        single,   list, empty};
  for (size_t i = 0; i < COUNT_OF(owned); i++) dist_value_release(owned[i]);
}

static void composites_name_their_parts(void **state) {
  float data[] = {1, 2, 3};
  int64_t indices[] = {0, 4}, shape[] = {9}, splits[] = {0, 1, 3}, positions[] = {2, 5};
  const int64_t one = 1, two = 2, three = 3, two_one[] = {2, 1};
  dist_value *v2 = tensor_value(*state, DIST_F32, 1, &two, data),
             *v3 = tensor_value(*state, DIST_F32, 1, &three, data);
  dist_value *i = tensor_value(*state, DIST_I64, 1, &two, indices),
             *s = tensor_value(*state, DIST_I64, 1, &one, shape);
  dist_value *rows = tensor_value(*state, DIST_I64, 1, &three, splits), *none = NULL, *value = NULL;
  dist_value *p = tensor_value(*state, DIST_I64, 2, two_one, positions);
  assert_ok(dist_value_create_none(*state, &none));
  dist_value *slices[] = {v2, i, s}, *const ragged[] = {v3, rows}, *const sparse[] = {p, v2, s};
  assert_ok(dist_value_create_composite(*state, DIST_VALUE_INDEXED_SLICES, slices, 3, &value));
  assert_text(value, "IndexedSlices(values: f32[2] [1, 2], indices: i64[2] [0, 4], dense_shape: i64[1] [9])");
  slices[2] = none;
  assert_ok(dist_value_create_composite(*state, DIST_VALUE_INDEXED_SLICES, slices, 3, &value));
  assert_text(value, "IndexedSlices(values: f32[2] [1, 2], indices: i64[2] [0, 4], dense_shape: None)");
  assert_ok(dist_value_create_composite(*state, DIST_VALUE_RAGGED, ragged, 2, &value));
  assert_text(value, "Ragged(values: f32[3] [1, 2, 3], row_splits: i64[3] [0, 1, 3])");
  assert_ok(dist_value_create_composite(*state, DIST_VALUE_SPARSE, sparse, 3, &value));
  assert_text(value, "Sparse(indices: i64[2, 1] [[2], [5]], values: f32[2] [1, 2], dense_shape: i64[1] [9])");
  dist_value *const owned[] = {v2, v3, i, s, rows, none, p};
  for (size_t k = 0; k < COUNT_OF(owned); k++) dist_value_release(owned[k]);
}

static void variables_show_every_copy(void **state) {
  (void)state;
  float data[] = {1, 2};
  const int64_t two = 2;
  const dist_tensor initial = {data, DIST_F32, 1, &two, NULL};
  static const struct {
    int32_t kind, num_replicas, synchronization;
    const char *expected;
  } rows[] = {
      {DIST_STRATEGY_MIRRORED, 2, DIST_SYNCHRONIZATION_AUTO,
       "MirroredVariable: 0: \"w\" f32[2] [1, 2], 1: \"w/replica_1\" f32[2] [1, 5]"},
      {DIST_STRATEGY_MIRRORED, 2, DIST_SYNCHRONIZATION_ON_READ,
       "SyncOnReadVariable: 0: \"w\" f32[2] [1, 2], 1: \"w/replica_1\" f32[2] [1, 5]"},
      {DIST_STRATEGY_MIRRORED, 1, DIST_SYNCHRONIZATION_AUTO, "MirroredVariable: 0: \"w\" f32[2] [1, 5]"},
      {DIST_STRATEGY_CENTRAL_STORAGE, 3, DIST_SYNCHRONIZATION_AUTO,
       "AggregatingVariable: 0: \"w\" f32[2] [1, 5]"},
      {DIST_STRATEGY_ONE_DEVICE, 1, DIST_SYNCHRONIZATION_AUTO, "Variable: 0: \"w\" f32[2] [1, 5]"},
      {DIST_STRATEGY_DEFAULT, 1, DIST_SYNCHRONIZATION_AUTO, "Variable: 0: \"w\" f32[2] [1, 5]"},
  };
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.kind = rows[i].kind;
    options.num_replicas = rows[i].num_replicas;
    dist_strategy *strategy = strategy_with(options);
    dist_variable_options how = DIST_VARIABLE_OPTIONS_INIT;
    how.name = "w";
    how.synchronization = rows[i].synchronization;
    dist_variable *variable = NULL;
    assert_ok(dist_variable_create(strategy, &initial, &how, &variable));
    dist_tensor last;
    assert_ok(dist_variable_component(variable, rows[i].num_replicas - 1, &last));
    ((float *)last.data)[1] = 5;
    assert_string_equal(text_of_variable(variable), rows[i].expected);
    dist_value *value = NULL, *list = NULL;
    assert_ok(dist_value_create_variable(variable, &value));
    assert_string_equal(text_of(value), rows[i].expected);
    assert_ok(dist_value_create_list(strategy, &value, 1, &list));
    char inside[256];
    snprintf(inside, sizeof inside, "[{%s}]", rows[i].expected);
    assert_text(list, inside);
    dist_value_release(value);
    dist_variable_destroy(variable);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void the_hosts_locale_does_not_matter(void **state) {
  double number = 1234567.5;
  static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
  const char *const before = setlocale(LC_ALL, NULL);
  char saved[128];
  snprintf(saved, sizeof saved, "%s", before);
  for (size_t i = 0; i < COUNT_OF(names) && setlocale(LC_ALL, names[i]) == NULL; i++) continue;
  dist_value *value = tensor_value(*state, DIST_F64, 0, NULL, &number);
  const int same = strcmp(text_of(value), "f64 1234567.5") == 0;
  setlocale(LC_ALL, saved);
  assert_true(same);
  dist_value_release(value);
}

static void arguments_are_checked(void **state) {
  float one = 1;
  dist_value *value = tensor_value(*state, DIST_F32, 0, NULL, &one);
  assert_fails(dist_value_describe(NULL, collect, NULL), DIST_INVALID_ARGUMENT, "value is NULL");
  assert_fails(dist_value_describe(value, NULL, NULL), DIST_INVALID_ARGUMENT, "fn is NULL");
  assert_fails(dist_variable_describe(NULL, collect, NULL), DIST_INVALID_ARGUMENT, "variable is NULL");
  dist_value_release(value);
}

static int make_strategy(void **state) {
  *state = strategy_of(R, DIST_THREADS_CALLER);
  return 0;
}

static int end_strategy(void **state) { return dist_strategy_destroy(*state); }

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(elements_of_every_dtype),   cmocka_unit_test(numbers_read_back_as_the_same_bits),
      cmocka_unit_test(shapes_show_in_brackets),   cmocka_unit_test(long_ones_show_their_ends),
      cmocka_unit_test(nests_and_components),      cmocka_unit_test(composites_name_their_parts),
      cmocka_unit_test(variables_show_every_copy), cmocka_unit_test(the_hosts_locale_does_not_matter),
      cmocka_unit_test(arguments_are_checked),
  };
  return cmocka_run_group_tests_name("describe", tests, make_strategy, end_strategy);
}
