/* SPDX-License-Identifier: Apache-2.0
 *
 * The version, and errors: the last error as text and as fields, per thread.
 */
#include "tests/abi/common.h"

static void before_the_first_failure(void **state) {
  (void)state;
  assert_string_equal(dist_last_error(), "");
  dist_error_info info = DIST_ERROR_INFO_INIT;
  assert_ok(dist_last_error_info(&info));
  assert_int_equal(info.code, DIST_OK);
  assert_int_equal(info.replica, -1);
  assert_int_equal(info.struct_size, sizeof info);
  assert_string_equal(info.message, "");
  assert_string_equal(info.tag, "");
  assert_string_equal(info.expected, "");
  assert_string_equal(info.received, "");
  assert_string_equal(info.hint, "");
  assert_string_equal(info.function, "");
  assert_string_equal(info.parameter, "");
}

/* The parts of an error about an argument, and the marks around the names of this API. */
static void an_error_has_parts(void **state) {
  (void)state;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = -1;
  dist_strategy *strategy = NULL;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT,
               "num_replicas is -1, but must be at least 1, or 0 for the number of usable CPUs");
  dist_error_info info = DIST_ERROR_INFO_INIT;
  assert_ok(dist_last_error_info(&info));
  assert_string_equal(info.function, "dist_strategy_create");
  assert_string_equal(info.parameter, "num_replicas");
  assert_string_equal(info.received, "-1");
  assert_string_equal(info.expected, "at least 1, or 0 for the number of usable CPUs");
  assert_string_equal(info.hint, "");

  assert_int_equal(dist_scope_exit(NULL), DIST_INVALID_ARGUMENT);
  assert_ok(dist_last_error_marked(&info));
  assert_string_equal(info.message,
                      "\x0E"
                      "dist_scope_exit()\x0F: \x0E"
                      "strategy\x0F is \x0ENULL\x0F");
  assert_string_equal(info.received, "\x0ENULL\x0F");
  assert_string_equal(info.parameter, "strategy");
  assert_ok(dist_last_error_info(&info));
  assert_string_equal(info.message, "dist_scope_exit(): strategy is NULL");
  assert_string_equal(info.received, "NULL");
  assert_ok(dist_last_error_marked(&info)); /* the marks have been removed */
  assert_string_equal(info.message, "dist_scope_exit(): strategy is NULL");

  /* A program's own text has no parts. Its marks stay, because it may be an error that a binding reports
   * again. */
  assert_int_equal(dist_fail(DIST_NOT_FOUND,
                             "`n` is 3, but must be 4. Ask \x0E"
                             "dist_run()\x0F."),
                   DIST_NOT_FOUND);
  assert_ok(dist_last_error_marked(&info));
  assert_string_equal(info.message,
                      "`n` is 3, but must be 4. Ask \x0E"
                      "dist_run()\x0F.");
  assert_string_equal(info.parameter, "");
  assert_string_equal(info.function, "");
  assert_int_equal(dist_last_error_marked(NULL), DIST_INVALID_ARGUMENT);
}

static dist_status fails_inside(dist_replica *replica, void *user_data) {
  (void)user_data;
  return dist_broadcast(replica, 7, NULL, NULL, 0, NULL, NULL);
}

/* The function of an error is the one that failed, not the one that passes the error on. */
static void the_innermost_function_is_named(void **state) {
  (void)state;
  dist_strategy *strategy = NULL;
  assert_ok(dist_strategy_create(NULL, &strategy));
  assert_fails(dist_run(strategy, fails_inside, NULL, NULL), DIST_INVALID_ARGUMENT, "root is 7, but must be");
  dist_error_info info = DIST_ERROR_INFO_INIT;
  assert_ok(dist_last_error_info(&info));
  assert_string_equal(info.function, "dist_broadcast");
  assert_string_equal(info.parameter, "root");
  assert_string_equal(info.received, "7");
  assert_ok(dist_strategy_destroy(strategy));
}

static void version_and_features(void **state) {
  (void)state;
  assert_int_equal(dist_version(),
                   DIST_VERSION_MAJOR * 10000 + DIST_VERSION_MINOR * 100 + DIST_VERSION_PATCH);
  assert_int_equal(dist_has_feature("pinning"), 1);
  assert_int_equal(dist_has_feature("telepathy"), 0);
  assert_int_equal(dist_has_feature("onednn"), 0); /* an example uses it, libdist does not */
  assert_int_equal(dist_has_feature(""), 0);
  assert_int_equal(dist_has_feature(NULL), 0);
}

static void statuses_have_names(void **state) {
  (void)state;
  static const char *const names[] = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS"};
  for (size_t i = 0; i < COUNT_OF(names); i++)
    assert_string_equal(dist_status_name((dist_status)i), names[i]);
  assert_string_equal(dist_status_name(-1), "UNKNOWN_STATUS");
  assert_string_equal(dist_status_name(16), "UNKNOWN_STATUS");
  assert_string_equal(dist_status_name(INT32_MAX), "UNKNOWN_STATUS");
  assert_string_equal(dist_status_name(INT32_MIN), "UNKNOWN_STATUS");
}

static void fail_sets_the_text(void **state) {
  (void)state;
  assert_fails(dist_fail(DIST_NOT_FOUND, "no row 7: 100 %s of %d"), DIST_NOT_FOUND, "no row 7: 100 %s of %d");
  dist_error_info info = DIST_ERROR_INFO_INIT;
  assert_ok(dist_last_error_info(&info));
  assert_int_equal(info.code, DIST_NOT_FOUND);
  assert_string_equal(info.message, dist_last_error());
  assert_int_equal(info.replica, -1);
  assert_int_equal(dist_fail(DIST_NOT_FOUND, NULL), DIST_NOT_FOUND);
  assert_string_equal(dist_last_error(), "");
  assert_fails(dist_fail(DIST_OK, "all is well"), DIST_INVALID_ARGUMENT, "DIST_OK");
  assert_fails(dist_fail(-7, "a code of the host's"), -7, "a code of the host's");
  /* The new text may be the one that it replaces. */
  assert_fails(dist_fail(DIST_INTERNAL, dist_last_error()), DIST_INTERNAL, "a code of the host's");
}

static void long_texts_are_cut_between_characters(void **state) {
  (void)state;
  char text[2000];
  for (size_t shift = 0; shift < 4; shift++) { /* four bytes each, from every offset */
    memset(text, 'x', shift);
    for (size_t i = shift; i + 4 < sizeof text; i += 4) memcpy(text + i, "\xF0\x9F\x90\x88", 5);
    assert_int_equal(dist_fail(DIST_INTERNAL, text), DIST_INTERNAL);
    const size_t length = strlen(dist_last_error());
    assert_in_range(length, 1020, 1023);
    assert_int_equal((length - shift) % 4, 0);
    assert_memory_equal(dist_last_error(), text, length);
  }
  memset(text, 'x', 1023);
  text[1023] = '\0';
  assert_int_equal(dist_fail(DIST_INTERNAL, text), DIST_INTERNAL);
  assert_string_equal(dist_last_error(), text);
}

/* The call fills exactly the part of the struct that the caller's version has. */
static void info_of_every_size(void **state) {
  (void)state;
  assert_int_equal(dist_fail(DIST_DATA_LOSS, "cut short"), DIST_DATA_LOSS);
  union {
    dist_error_info info;
    unsigned char bytes[sizeof(dist_error_info) + 64];
  } given;
  for (uint32_t size = 0; size <= sizeof given; size++) {
    memset(&given, 0xA5, sizeof given);
    given.info.struct_size = size;
    const dist_status status = dist_last_error_info(&given.info);
    const size_t known = size < sizeof(dist_error_info) ? size : sizeof(dist_error_info);
    if (size < 8) {
      assert_int_equal(status, DIST_INVALID_ARGUMENT);
    } else {
      assert_int_equal(status, DIST_OK);
      assert_int_equal(given.info.struct_size, size);
      assert_int_equal(given.info.code, DIST_DATA_LOSS);
    }
    for (size_t i = size < 8 ? 4 : known; i < sizeof given; i++) assert_int_equal(given.bytes[i], 0xA5);
  }
  assert_int_equal(dist_last_error_info(NULL), DIST_INVALID_ARGUMENT);
  assert_string_equal(dist_last_error(), "cut short"); /* a wrong query does not replace the error */
}

static void *fail_elsewhere(void *argument) {
  char *text = argument;
  snprintf(text, 64, "[%s]", dist_last_error());
  (void)dist_fail(DIST_UNAVAILABLE, "elsewhere");
  return NULL;
}

static void errors_belong_to_threads(void **state) {
  (void)state;
  (void)dist_fail(DIST_NOT_FOUND, "here");
  char text[64] = "";
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, text), 0);
  pthread_join(thread, NULL);
  assert_string_equal(text, "[]");
  assert_string_equal(dist_last_error(), "here");
}

static void success_keeps_the_error(void **state) {
  (void)state;
  (void)dist_fail(DIST_NOT_FOUND, "still here");
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  assert_ok(dist_run(strategy, healthy, NULL, NULL));
  assert_ok(dist_strategy_destroy(strategy));
  assert_string_equal(dist_last_error(), "still here");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(before_the_first_failure),
      cmocka_unit_test(an_error_has_parts),
      cmocka_unit_test(the_innermost_function_is_named), /* first: no failure yet on this thread */
      cmocka_unit_test(version_and_features),
      cmocka_unit_test(statuses_have_names),
      cmocka_unit_test(fail_sets_the_text),
      cmocka_unit_test(long_texts_are_cut_between_characters),
      cmocka_unit_test(info_of_every_size),
      cmocka_unit_test(errors_belong_to_threads),
      cmocka_unit_test(success_keeps_the_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
