/* SPDX-License-Identifier: Apache-2.0
 *
 * Whatever bytes a host passes in tags, messages and keys, libdist emits UTF-8 without control characters,
 * and single lines if it promises lines. Names must be valid.
 */
#include "tests/abi/common.h"

#include <time.h>

#include "tests/abi/utf8.h"

static const char *const hostile[] = {
    "new\nline",    "tab\t", "\x1b[31m", "\xff\xfe",
    "\xed\xa0\x80", "x\x7f", "\xc2\x85", "0123456789012345678901234567890123456789012345\xe2\x82\xac"};

/* ---- Text that arrives in pieces ---- */

typedef struct words {
  char text[1 << 20];
  size_t size;
  int torn; /* a piece is not valid UTF-8 by itself */
} words;

static words all;

static void add(const char *text, size_t size_bytes, void *user_data) {
  words *to = user_data;
  char piece[8192];
  if (size_bytes >= sizeof piece || to->size + size_bytes >= sizeof to->text) return;
  memcpy(piece, text, size_bytes);
  piece[size_bytes] = '\0';
  to->torn |= !is_utf8(piece);
  memcpy(to->text + to->size, piece, size_bytes + 1);
  to->size += size_bytes;
}

static const words *begin(void) {
  all.size = 0;
  all.torn = 0;
  all.text[0] = '\0';
  return &all;
}

static void assert_text(const words *w) {
  assert_true(w->size > 0);
  assert_false(w->torn);
  assert_true(is_utf8(w->text));
}

/* ---- Tags ---- */

static char logged[512];
static int bad_lines;

static void take_line(int32_t level, const char *message, void *user_data) {
  (void)user_data, (void)level;
  bad_lines += !is_line(message);
  snprintf(logged, sizeof logged, "%s", message);
}

/* A fast clock, so that waiting seems long enough to be logged. */
static int64_t fast_clock(void *user_data) {
  (void)user_data;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return ((int64_t)now.tv_sec * 1000000000 + now.tv_nsec) * 100;
}

static dist_status barriers(dist_replica *replica, void *user_data) {
  (void)user_data;
  for (size_t i = 0; i < COUNT_OF(hostile); i++) {
    dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
    options.tag = hostile[i];
    const dist_status status = dist_barrier(replica, &options, NULL);
    if (status != DIST_OK) return status;
  }
  return DIST_OK;
}

static void tags_become_lines(void **state) {
  (void)state;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = 2;
  host.log = take_line;
  host.clock = fast_clock;
  dist_strategy *strategy = strategy_with(options);
  assert_ok(dist_run(strategy, barriers, NULL, NULL));
  assert_ok(dist_strategy_write_trace(strategy, add, (void *)begin()));
  assert_text(&all);
  assert_has(all.text, "\"tag\":\"new\\\\nline\"");
  assert_ok(dist_strategy_write_metrics(strategy, "na\"me\n\xff", add, (void *)begin()));
  assert_text(&all);
  assert_has(all.text, "strategy=\"na\\\"me\\n\xEF\xBF\xBD\"");
  assert_ok(dist_strategy_explain(strategy, add, (void *)begin()));
  assert_text(&all);
  dist_straggler rows[COUNT_OF(hostile)];
  size_t n = 0;
  assert_ok(dist_strategy_stragglers(strategy, rows, sizeof rows[0], COUNT_OF(rows), &n));
  for (size_t i = 0; i < n && i < COUNT_OF(rows); i++) assert_true(is_line(rows[i].tag));
  assert_int_equal(bad_lines, 0);
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_status disagree(dist_replica *replica, void *user_data) {
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.tag = dist_replica_id(replica) == 0 ? user_data : "other";
  return dist_barrier(replica, &options, NULL);
}

static void reports_are_lines(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  for (size_t i = 0; i < COUNT_OF(hostile); i++) {
    assert_int_equal(dist_run(strategy, disagree, (void *)hostile[i], NULL), DIST_INVALID_ARGUMENT);
    report error;
    read_report(&error);
    assert_true(is_line(error.message) && is_line(error.tag) && is_line(error.expected));
    assert_true(is_line(error.received) && is_line(error.hint));
    assert_true(error.expected[0] != '\0' && error.received[0] != '\0');
  }
  assert_int_equal(dist_run(strategy, disagree, NULL, NULL), DIST_INVALID_ARGUMENT);
  assert_has(dist_last_error(), "without a tag");
  assert_ok(dist_strategy_destroy(strategy));
}

/* If parts do not add up, or all replicas pass one buffer, the report shows the expected and the actual
 * sizes. */
static dist_status do_not_fit(dist_replica *replica, void *user_data) {
  static float whole[4], parts[2][2];
  static const int64_t size_of_whole[] = {3}, size_of_part[] = {2};
  const int32_t id = dist_replica_id(replica);
  const int overlap = user_data != NULL;
  const dist_tensor in = {parts[id], DIST_F32, 1, size_of_part, NULL};
  dist_tensor out = {overlap ? parts[0] : whole, DIST_F32, 1, overlap ? size_of_part : size_of_whole, NULL};
  return overlap ? dist_scan(replica, DIST_REDUCE_SUM, DIST_SCAN_INCLUSIVE, &in, &out, 1, NULL, NULL)
                 : dist_all_gather(replica, &in, &out, 1, NULL, NULL);
}

static void refusals_have_all_fields(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  report error;
  assert_int_equal(dist_run(strategy, do_not_fit, NULL, NULL), DIST_INVALID_ARGUMENT);
  read_report(&error);
  assert_string_equal(error.expected, "4 elements along the axis");
  assert_string_equal(error.received, "3 elements along the axis");
  assert_true(error.hint[0] != '\0');
  assert_int_equal(dist_run(strategy, do_not_fit, &error, NULL), DIST_INVALID_ARGUMENT);
  read_report(&error);
  assert_string_equal(error.expected, "memory of its own for every tensor");
  assert_string_equal(error.received, "buffers that overlap");
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_status another_variable(dist_replica *replica, void *user_data) {
  (void)user_data;
  const float number = 1;
  const dist_tensor scalar = {(void *)&number, DIST_F32, 0, NULL, NULL};
  dist_variable *variable = NULL;
  return dist_replica_variable(replica, dist_replica_id(replica) == 0 ? "a" : "b", &scalar, NULL, &variable);
}

/* Reports use the name of the function that the host has called, not that of its implementation. */
static void reports_name_the_call(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  assert_int_equal(dist_run(strategy, another_variable, NULL, NULL), DIST_INVALID_ARGUMENT);
  assert_has(dist_last_error(), "replica_variable #1");
  assert_null(strstr(dist_last_error(), "merge_call"));
  assert_null(strstr(dist_last_error(), "0x"));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Messages ---- */

static void messages_keep_their_lines_and_lose_the_rest(void **state) {
  (void)state;
  assert_fails(dist_fail(DIST_NOT_FOUND, "row 7:\n\tgone\x1b[31m \xff"), DIST_NOT_FOUND, "row 7:");
  assert_string_equal(dist_last_error(), "row 7:\n\tgone\\x1b[31m \xEF\xBF\xBD");
}

/* ---- Names ---- */

static dist_status name_inside(dist_replica *replica, void *user_data) {
  const float number = 1;
  const dist_tensor scalar = {(void *)&number, DIST_F32, 0, NULL, NULL};
  dist_variable *variable = NULL;
  return dist_replica_variable(replica, user_data, &scalar, NULL, &variable);
}

static void names_are_lines(void **state) {
  (void)state;
  const float number = 1;
  const dist_tensor scalar = {(void *)&number, DIST_F32, 0, NULL, NULL};
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_CALLER), *mesh = NULL;
  for (size_t i = 0; i + 1 < COUNT_OF(hostile); i++) {
    dist_variable *variable = NULL;
    dist_metric *metric = NULL;
    dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
    options.name = hostile[i];
    assert_fails(dist_variable_create(strategy, &scalar, &options, &variable), DIST_INVALID_ARGUMENT,
                 "one line of UTF-8");
    assert_true(is_line(dist_last_error()));
    assert_fails(dist_run(strategy, name_inside, (void *)hostile[i], NULL), DIST_INVALID_ARGUMENT,
                 "one line of UTF-8");
    assert_fails(dist_metric_create(strategy, DIST_METRIC_SUM, hostile[i], &metric), DIST_INVALID_ARGUMENT,
                 "one line of UTF-8");
    const dist_mesh_axis axis = {hostile[i], 1};
    dist_strategy_options of_mesh = DIST_STRATEGY_OPTIONS_INIT;
    dist_mesh_options of_mesh_mesh = DIST_MESH_OPTIONS_INIT;
    of_mesh.mesh = &of_mesh_mesh;
    of_mesh.kind = DIST_STRATEGY_MESH;
    of_mesh_mesh.axes = &axis;
    of_mesh_mesh.num_axes = 1;
    assert_fails(dist_strategy_create(&of_mesh, &mesh), DIST_INVALID_ARGUMENT, "one line of UTF-8");
  }
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Values ---- */

static void descriptions_are_lines(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_CALLER);
  for (size_t i = 0; i < COUNT_OF(hostile); i++) {
    dist_value *text = NULL, *dict = NULL;
    assert_ok(dist_value_create_text(strategy, hostile[i], &text));
    assert_ok(dist_value_create_dict(strategy, &hostile[i], &text, 1, &dict));
    assert_string_equal(dist_value_text(text), hostile[i]); /* a host's text stays unchanged */
    assert_ok(dist_value_describe(dict, add, (void *)begin()));
    assert_text(&all);
    assert_true(is_line(all.text));
    dist_value_release(text);
    dist_value_release(dict);
  }
  /* Longer than the buffer for pieces, so that pieces end at every position within characters. */
  enum { KEYS = 100 };
  static char keys[KEYS][400];
  const char *key[KEYS];
  dist_value *items[KEYS], *dict = NULL;
  for (int i = 0; i < KEYS; i++) {
    int used = snprintf(keys[i], sizeof keys[i], "%03d", i);
    for (int k = 0; k < 90; k++) {
      used += snprintf(keys[i] + used, sizeof keys[i] - (size_t)used, "%s",
                       k % 2 ? "\xe2\x82\xac" : "\xf0\x9f\x90\x88");
    }
    key[i] = keys[i];
    assert_ok(dist_value_create_none(strategy, &items[i]));
  }
  assert_ok(dist_value_create_dict(strategy, key, items, KEYS, &dict));
  assert_ok(dist_value_describe(dict, add, (void *)begin()));
  assert_true(all.size > 20000);
  assert_text(&all);
  for (int i = 0; i < KEYS; i++) dist_value_release(items[i]);
  dist_value_release(dict);
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tags_become_lines),
      cmocka_unit_test(reports_are_lines),
      cmocka_unit_test(refusals_have_all_fields),
      cmocka_unit_test(reports_name_the_call),
      cmocka_unit_test(messages_keep_their_lines_and_lose_the_rest),
      cmocka_unit_test(names_are_lines),
      cmocka_unit_test(descriptions_are_lines),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
