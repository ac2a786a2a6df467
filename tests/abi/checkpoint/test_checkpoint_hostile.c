/* SPDX-License-Identifier: Apache-2.0
 *
 * Invalid files: truncated, modified and made-up ones. Each causes an error that names the tensor and the
 * problem, and no variable changes.
 */
#include "checkpoint_support.h"

#include <fcntl.h>

static const float before[2] = {8, 9};

/* "w" F32 [2] and "v" F32 [2]. Both contain `before` until a file is loaded. */
typedef struct pair {
  dist_strategy *strategy;
  dist_variable *variables[2];
} pair;

static int make_pair(void **state) {
  static pair p;
  p.strategy = strategy_of_kind(DIST_STRATEGY_MIRRORED, 2);
  p.variables[0] = vector_variable(p.strategy, "v", DIST_F32, before, 2);
  p.variables[1] = vector_variable(p.strategy, "w", DIST_F32, before, 2);
  *state = &p;
  return 0;
}

static int end_pair(void **state) {
  pair *p = *state;
  for (int i = 0; i < 2; i++) dist_variable_destroy(p->variables[i]);
  return dist_strategy_destroy(p->strategy);
}

static dist_status load(const pair *p, file_path path, size_t n, const dist_checkpoint_options *options) {
  return dist_checkpoint_load(p->strategy, path.text, (dist_variable **)p->variables, n, options);
}

/* Asserts that every copy of both is `expected`, and sets them to `before` again. */
static void check_and_set_back(const pair *p, const void *expected) {
  for (int k = 0; k < 4; k++) {
    assert_memory_equal(copy_of(p->variables[k / 2], k % 2), expected, sizeof before);
    memcpy(copy_of(p->variables[k / 2], k % 2), before, sizeof before);
  }
}

static void check_unchanged(const pair *p, const char *what) {
  for (int i = 0; i < 2; i++) {
    for (int32_t r = 0; r < 2; r++) {
      if (memcmp(copy_of(p->variables[i], r), before, sizeof before) != 0)
        fail_msg("%s: variable %d has changed: %s", what, i, dist_last_error());
    }
  }
}

#define T(name, dtype, shape, begin, end) \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" #begin "," #end "]}"
#define V T("v", "F32", "2", 0, 8)
#define META(texts) "{\"__metadata__\":{" texts "}," V "}"

typedef struct made_up {
  const char *header;
  size_t data_bytes;
  dist_status status;
  const char *words;
} made_up;

static const made_up headers[] = {
    /* JSON */
    {"", 0, DIST_DATA_LOSS, "does not start with {"},
    {"[]", 0, DIST_DATA_LOSS, "does not start with {"},
    {" {}", 0, DIST_DATA_LOSS, "does not start with {"},
    {"{" V, 8, DIST_DATA_LOSS, "not JSON: Missing a comma or '}'"},
    {"{" V "}x", 8, DIST_DATA_LOSS, "not JSON"},
    {"{" V "}{}", 8, DIST_DATA_LOSS, "not JSON"},
    {"{\"\xff\":1}", 0, DIST_DATA_LOSS, "not JSON"},
    {"{\"\\ud800\":1}", 0, DIST_DATA_LOSS, "not JSON"},
    /* Structure */
    {"{\"v\":1}", 0, DIST_DATA_LOSS, "tensor \"v\": it cannot be a number"},
    {"{\"v\":[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]}", 0, DIST_DATA_LOSS,
     "tensor \"v\": it cannot be a list"},
    {"{\"v\":{\"v\":{}}}", 0, DIST_DATA_LOSS, "tensor \"v\" has no dtype"},
    {"{\"v\":{\"v\":" TEN("[[[[[[[[[[") "[" TEN("]]]]]]]]]]") "]}}", 0, DIST_DATA_LOSS,
     "tensor \"v\": an unknown field nests deeper than 100 levels"},
    {"{\"v\":{\"v\":" TEN(TEN("{\"a\":[")), 0, DIST_DATA_LOSS, "nests deeper than 100 levels"},
    {"{\"v\":{\"v\":[1,{\"a\":[}", 0, DIST_DATA_LOSS, "not JSON"},
    {"{\"v\":null}", 0, DIST_DATA_LOSS, "tensor \"v\": it cannot be null"},
    {"{\"v\":{}}", 0, DIST_DATA_LOSS, "tensor \"v\" has no dtype"},
    {"{\"v\":{\"dtype\":\"F32\"}}", 0, DIST_DATA_LOSS, "tensor \"v\" has no shape"},
    {"{\"v\":{\"dtype\":\"F32\",\"shape\":[]}}", 0, DIST_DATA_LOSS, "tensor \"v\" has no data_offsets"},
    {"{\"v\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 0, DIST_DATA_LOSS, "tensor \"v\" has dtype twice"},
    {"{\"v\":{\"dtype\":32}}", 0, DIST_DATA_LOSS, "tensor \"v\": dtype cannot be a number"},
    {"{\"v\":{\"dtype\":{}}}", 0, DIST_DATA_LOSS, "tensor \"v\": dtype cannot be an object"},
    {"{" T("v", "F31", "2", 0, 8) "}", 8, DIST_DATA_LOSS,
     "tensor \"v\": \"F31\" is not a dtype of safetensors files"},
    {"{" T("v", "f32", "2", 0, 8) "}", 8, DIST_DATA_LOSS, "\"f32\" is not a dtype"},
    {"{" T("v", "F32\\u0000", "2", 0, 8) "}", 8, DIST_DATA_LOSS, "is not a dtype of safetensors"},
    {"{\"v\":{\"shape\":2}}", 0, DIST_DATA_LOSS, "tensor \"v\": shape cannot be a number"},
    {"{" T("v", "F32", "\"2\"", 0, 8) "}", 8, DIST_DATA_LOSS, "tensor \"v\": shape cannot be a string"},
    {"{" T("v", "F32", "[2]", 0, 8) "}", 8, DIST_DATA_LOSS, "tensor \"v\": shape cannot be a list"},
    {"{" T("v", "F32", "-2", 0, 8) "}", 8, DIST_DATA_LOSS, "tensor \"v\": shape cannot be a negative number"},
    {"{" T("v", "F32", "2.0", 0, 8) "}", 8, DIST_DATA_LOSS,
     "tensor \"v\": shape cannot be a number that is not an integer"},
    {"{" T("v", "F32", "2", 0, 8.5) "}", 8, DIST_DATA_LOSS,
     "tensor \"v\": data_offsets cannot be a number that"},
    {"{" T("v", "F32", "2", -0, 8) "}", 8, DIST_DATA_LOSS, "tensor \"v\": data_offsets"},
    {"{\"v\":{\"data_offsets\":[0]}}", 0, DIST_DATA_LOSS, "tensor \"v\": data_offsets has 1 numbers"},
    {"{\"v\":{\"data_offsets\":[0,1,2]}}", 0, DIST_DATA_LOSS, "tensor \"v\": data_offsets has 3 numbers"},
    {"{" V "," V "}", 8, DIST_DATA_LOSS, "the header has the tensor \"v\" twice"},
    {"{" V ",\"a\\u0000b\":{}}", 8, DIST_DATA_LOSS, "\"a\" contains a NUL byte"},
    {"{\"a\\u001b[31m\":{}}", 8, DIST_DATA_LOSS, "tensor \"a\\x1b[31m\""},
    /* Sizes and offsets */
    {"{" T("v", "F32", "3", 0, 8) "}", 8, DIST_DATA_LOSS,
     "tensor \"v\": shape and dtype (F32) need 96 bits, "},
    {"{" T("v", "F4", "3", 0, 1) "}", 1, DIST_DATA_LOSS, "tensor \"v\": shape and dtype (F4) need 12 bits"},
    {"{" T("v", "F32", "2", 8, 0) "}", 8, DIST_DATA_LOSS,
     "tensor \"v\": data_offsets end (0) before they begin (8)"},
    {"{" T("v", "U8", "4294967296,4294967296", 0, 0) "}", 0, DIST_DATA_LOSS,
     "tensor \"v\": the shape has more"},
    {"{" T("v", "F32", "4611686018427387904,4", 0, 0) "}", 0, DIST_DATA_LOSS,
     "tensor \"v\": the shape has more"},
    {"{" T("v", "U8", "9223372036854775808", 0, 8) "}", 8, DIST_DATA_LOSS,
     "tensor \"v\": a size is 9223372036854775808"},
    {"{" T("v", "U8", "99999999999999999999", 0, 8) "}", 8, DIST_DATA_LOSS,
     "tensor \"v\": shape cannot be a number that"},
    {"{" T("v", "U8", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", 0, 1) "}", 1, DIST_UNIMPLEMENTED,
     "tensor \"v\" has more than 16"},
    {"{" T("v", "F32", "2", 0, 8) "}", 7, DIST_DATA_LOSS,
     "tensor \"v\" ends at byte 8 of the data, but the file has 7"},
    {"{" T("v", "F32", "2", 0, 8) "}", 9, DIST_DATA_LOSS, "1 bytes follow the last tensor (\"v\")"},
    {"{}", 1, DIST_DATA_LOSS, "1 bytes follow the last tensor and"},
    {"{" V "," T("w", "F32", "2", 4, 12) "}", 12, DIST_DATA_LOSS,
     "tensor \"w\" begins at byte 4 of the data, which overlaps the previous data: \"v\" ends at 8"},
    {"{" V "," T("w", "F32", "2", 0, 8) "}", 8, DIST_DATA_LOSS,
     "begins at byte 0 of the data, which overlaps"},
    {"{" V "," T("w", "F32", "0", 4, 4) "}", 8, DIST_DATA_LOSS, "tensor \"w\" begins at byte 4"},
    {"{" V "," T("w", "F32", "2", 9, 17) "}", 17, DIST_DATA_LOSS,
     "tensor \"w\" begins at byte 9 of the data, which leaves a gap: \"v\" ends at 8"},
    {"{" T("v", "F32", "2", 1, 9) "}", 9, DIST_DATA_LOSS, "tensor \"v\" begins at byte 1"},
    {"{" V "," T("w", "U8", "8", 18446744073709551608, 18446744073709551616) "}", 8, DIST_DATA_LOSS,
     "tensor \"w\""},
    {"{" V "," T("w", "U8", "8", 18446744073709551607, 18446744073709551615) "}", 8, DIST_DATA_LOSS,
     "tensor \"w\" ends at byte 18446744073709551615"},
    /* Metadata */
    {"{\"__metadata__\":1," V "}", 8, DIST_DATA_LOSS, "\"__metadata__\" is a number"},
    {"{\"__metadata__\":{},\"__metadata__\":{}," V "}", 8, DIST_DATA_LOSS,
     "the header has \"__metadata__\" twice"},
    {META("\"k\":1"), 8, DIST_DATA_LOSS, "\"__metadata__\": \"k\" is a number, but must be a string"},
    {META("\"k\":{}"), 8, DIST_DATA_LOSS, "\"__metadata__\": \"k\" is an object, but must be a string"},
    {META("\"k\":\"1\",\"k\":\"2\""), 8, DIST_DATA_LOSS, "\"__metadata__\" has the key \"k\" twice"},
    {META("\"k\":\"a\\u0000b\""), 8, DIST_DATA_LOSS, "\"k\" contains a NUL byte"},
    {META("\"libdist.crc32:v\":\"0000000\""), 8, DIST_DATA_LOSS,
     "tensor \"v\": \"0000000\" is not a checksum"},
    {META("\"libdist.crc32:v\":\"0000000x\""), 8, DIST_DATA_LOSS,
     "tensor \"v\": \"0000000x\" is not a checksum"},
    {META("\"libdist.crc32\":\"12345678\""), 8, DIST_DATA_LOSS,
     "the header was changed after libdist wrote it"},
    {META("\"libdist.crc32\":\"123"), 8, DIST_DATA_LOSS, "the header was changed after libdist wrote it"},
};

static void made_up_headers(void **state) {
  const pair *p = *state;
  const file_path path = path_of("made up");
  for (size_t i = 0; i < COUNT_OF(headers); i++) {
    const made_up *row = &headers[i];
    write_with_header(path.text, row->header, row->data_bytes);
    const dist_status status = load(p, path, 1, NULL);
    if (status != row->status || strstr(dist_last_error(), row->words) == NULL) {
      fail_msg("%s\n  %s: %s\n  wanted: %s: %s", row->header, dist_status_name(status), dist_last_error(),
               dist_status_name(row->status), row->words);
    }
    assert_has(dist_last_error(), "made up\": ");
    dist_checkpoint *file = NULL;
    assert_int_equal(dist_checkpoint_open(p->strategy, path.text, &file), row->status);
    assert_null(file);
    check_unchanged(p, row->header);
  }
}

/* Unusual but valid headers: order, spaces, offsets that are not aligned, dtypes that libdist does not
 * have. */
static void unusual_headers(void **state) {
  const pair *p = *state;
  static const made_up rows[] = {
      {"{ \"w\" : {\"data_offsets\":[1,9],\"shape\":[2] , \"dtype\":\"F32\"}\n," T(
           "odd", "U8", "", 0, 1) "," T("v", "F32", "2", 9, 17) "}  \t",
       17, 0, 0},
      {"{" V "," T("w", "F32", "2", 8, 16) "," T("none", "F64", "0,9223372036854775807,9223372036854775807",
                                                 8, 8) "," T("half", "F4", "2", 16, 17) "}",
       17, 0, 0},
      {"{" V "," T("w", "F32", "2", 8, 16) ",\"__metadata__\":{\"libdist.crc32:gone\":\"what\"}}", 16, 0, 0},
      {"{" V "," T("w", "F32", "2", 8, 16) "," T("", "U8", "0", 16, 16) "}", 16, 0, 0},
      {"{" V "," T("w", "F32", "2", 8, 16) ",\"__metadata__\":null}", 16, 0, 0},
      /* Fields that other programs add */
      {"{\"v\":{\"note\":\"x\",\"dtype\":\"F32\",\"a\":1,\"shape\":[2],\"a\":-1,\"b\":[],\"data_offsets\":[0,"
       "8],"
       "\"c\":{\"shape\":[3],\"d\":[[1.5,null,true],{}]},\"Dtype\":{},\"n\":null,\"t\":false,\"f\":1e300,"
       "\"u\":18446744073709551615,\"z\":\"a\\u0000b\"}," T("w", "F32", "2", 8, 16) "}",
       16, 0, 0},
      {"{\"v\":{\"deep\":" TEN("[[[[[[[[[[")
           TEN("]]]]]]]]]]") ",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}," T("w", "F32", "2", 8,
                                                                                           16) "}",
       16, 0, 0},
  };
  const file_path path = path_of("unusual");
  unsigned char sevens[8];
  memset(sevens, 7, sizeof sevens);
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    write_with_header(path.text, rows[i].header, rows[i].data_bytes);
    assert_ok(load(p, path, 2, NULL));
    check_and_set_back(p, sevens);
  }
}

/* Only the first 8 bytes, and a header that is shorter than its length field. */
static void lengths_that_are_none(void **state) {
  const pair *p = *state;
  static const uint64_t lengths[] = {0, 1, 9, 100000000, 100000001, INT64_MAX, UINT64_MAX};
  const file_path path = path_of("length");
  for (size_t i = 0; i < COUNT_OF(lengths); i++) {
    unsigned char bytes[16] = {0};
    memcpy(bytes, &lengths[i], 8);
    for (size_t size = 0; size <= sizeof bytes; size++) {
      write_file(path.text, bytes, size);
      assert_fails(dist_checkpoint_load(p->strategy, path.text, NULL, 0, NULL), DIST_DATA_LOSS, "length\": ");
    }
  }
  assert_has(dist_last_error(), "its header claims 18446744073709551615 bytes");
}

static void variables_that_do_not_fit(void **state) {
  const pair *p = *state;
  const file_path path = path_of("fit");
  static const made_up rows[] = {
      {"{" V "," T("w", "F64", "1", 8, 16) "}", 16, DIST_INVALID_ARGUMENT,
       "tensor \"w\" is f64[1], but variable \"w\" is f32[2]. Both must have the same dtype and shape."},
      {"{" V "," T("w", "F32", "2,1", 8, 16) "}", 16, DIST_INVALID_ARGUMENT, "tensor \"w\" is f32[2, 1]"},
      {"{" V "," T("w", "F8_E4M3", "2", 8, 10) "}", 10, DIST_INVALID_ARGUMENT, "tensor \"w\" is F8_E4M3"},
      {"{" V "," T("W", "F32", "2", 8, 16) "}", 16, DIST_NOT_FOUND,
       "no tensor \"w\". It has 2: \"v\", \"W\""},
      {"{}", 0, DIST_NOT_FOUND, "no tensor \"v\". It has 0: none"},
      {META("\"libdist.position.pass\":\"1\""), 8, DIST_NOT_FOUND,
       "\"libdist.position.elements\" is missing"},
      {META("\"libdist.position.pass\":\"1x\""), 8, DIST_DATA_LOSS, "\"libdist.position.pass\" is \"1x\""},
      {META("\"libdist.position.pass\":\"-1\""), 8, DIST_DATA_LOSS, "\"libdist.position.pass\" is \"-1\""},
      {META("\"libdist.position.pass\":\"9223372036854775808\""), 8, DIST_DATA_LOSS, "must be a number"},
  };
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    dist_position position = DIST_POSITION_INIT;
    dist_checkpoint_options options = DIST_CHECKPOINT_OPTIONS_INIT;
    options.position = &position;
    write_with_header(path.text, rows[i].header, rows[i].data_bytes);
    const int whole = strncmp(rows[i].words, "tensor", 6) == 0 || strncmp(rows[i].words, "no ", 3) == 0;
    assert_fails(load(p, path, whole ? 2 : 1, &options), rows[i].status, rows[i].words);
    check_unchanged(p, rows[i].header);
  }
}

static void put_byte(const char *path, size_t at, unsigned char byte) {
  const int file = open(path, O_WRONLY);
  assert_true(file >= 0);
  assert_int_equal(pwrite(file, &byte, 1, (off_t)at), 1);
  close(file);
}

/* Every file that is shorter or differs in one bit is either rejected or has the same values. */
static void cut_and_changed_files(void **state) {
  const pair *p = *state;
  const file_path path = path_of("changed");
  static const float saved[2] = {1, 2};
  dist_variable *sources[2] = {vector_variable(p->strategy, "v", DIST_F32, saved, 2),
                               vector_variable(p->strategy, "w", DIST_F32, saved, 2)};
  dist_checkpoint_options options = DIST_CHECKPOINT_OPTIONS_INIT;
  dist_position position = DIST_POSITION_INIT, loaded = DIST_POSITION_INIT;
  options.position = &position;
  assert_ok(dist_checkpoint_save(p->strategy, path.text, sources, 2, &options));
  for (int i = 0; i < 2; i++) dist_variable_destroy(sources[i]);
  options.position = &loaded;
  size_t size = 0;
  unsigned char *data = read_file(path.text, &size);
  for (size_t cut = size; cut-- > 0;) {
    assert_int_equal(truncate(path.text, (off_t)cut), 0);
    assert_int_equal(load(p, path, 2, &options), DIST_DATA_LOSS);
    check_unchanged(p, "cut");
  }
  write_file(path.text, data, size);
  int accepted = 0;
  for (size_t bit = 0; bit < 8 * size; bit++) {
    if (bit > 0) put_byte(path.text, (bit - 1) / 8, data[(bit - 1) / 8]);
    put_byte(path.text, bit / 8, data[bit / 8] ^ (unsigned char)(1u << bit % 8));
    if (load(p, path, 2, &options) != DIST_OK) {
      check_unchanged(p, "a changed bit");
      if (bit / 8 >= size - 16) /* the bit belongs to the data */
        assert_has(dist_last_error(),
                   bit / 8 >= size - 8 ? "tensor \"w\": the data is corrupt" : "tensor \"v\": the data");
      continue;
    }
    accepted++;
    assert_memory_equal(&loaded, &position, sizeof loaded);
    check_and_set_back(p, saved);
  }
  assert_true(accepted <= 8 * 16); /* only changes of the key of the header's own checksum */
  free(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(made_up_headers, make_pair, end_pair),
      cmocka_unit_test_setup_teardown(unusual_headers, make_pair, end_pair),
      cmocka_unit_test_setup_teardown(lengths_that_are_none, make_pair, end_pair),
      cmocka_unit_test_setup_teardown(variables_that_do_not_fit, make_pair, end_pair),
      cmocka_unit_test_setup_teardown(cut_and_changed_files, make_pair, end_pair),
  };
  return cmocka_run_group_tests(tests, NULL, leave_folder);
}
