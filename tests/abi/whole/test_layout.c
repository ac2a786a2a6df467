/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers that are compiled into programs: every constant, and the size and offsets of every public
 * struct on 64-bit systems. They must never change. layout.txt lists them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <dist/dist.h>

#include "tests/skip.h"

typedef struct {
  const char *name;
  long long is, must_be;
} number;

#define CHECK_INIT(type, initializer)                          \
  do {                                                         \
    static const type expected = initializer;                  \
    type options;                                              \
    memset(&options, 0xff, sizeof(options));                   \
    type##_init(&options, sizeof(options));                    \
    assert_memory_equal(&options, &expected, sizeof(options)); \
  } while (0)

#include "layout.h" /* written by layout.py: constants, layout, compare_initializers() */

static void check(const number *numbers, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (numbers[i].is != numbers[i].must_be)
      fail_msg("%s is %lld, was %lld", numbers[i].name, numbers[i].is, numbers[i].must_be);
  }
}

static void constants_keep_their_values(void **state) {
  (void)state;
  check(constants, sizeof(constants) / sizeof(constants[0]));
}

static void structs_keep_their_layout(void **state) {
  (void)state;
  if (sizeof(void *) != 8) skip_because("the layout is recorded for 64-bit machines");
  check(layout, sizeof(layout) / sizeof(layout[0]));
}

/* Languages without macros initialize structs by the functions, and C by the macros. */
static void init_functions_give_what_the_macros_give(void **state) {
  (void)state;
  compare_initializers();
}

/* The caller passes the size of its struct. If it was compiled with a shorter one, nothing beyond must be
 * written. */
static void init_functions_write_no_further_than_asked(void **state) {
  (void)state;
  dist_run_options options;
  memset(&options, 0xff, sizeof(options));
  dist_run_options_init(&options, offsetof(dist_run_options, timeout_ns));
  assert_int_equal(options.struct_size, offsetof(dist_run_options, timeout_ns));
  assert_int_equal(options.reserved, 0);
  assert_int_equal(options.timeout_ns, -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(constants_keep_their_values),
      cmocka_unit_test(structs_keep_their_layout),
      cmocka_unit_test(init_functions_give_what_the_macros_give),
      cmocka_unit_test(init_functions_write_no_further_than_asked),
  };
  return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
