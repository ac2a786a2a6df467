/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that a function creates, component by component.
 */
#include "tests/abi/common.h"

enum { R = 3 };

typedef struct making {
  dist_strategy *strategy;
  int32_t calls, fail_at, other_at;
  int silent;
  dist_value *shared; /* every component; NULL = none */
} making;

/* (shared, [a text of the id]) */
static dist_status make_component(dist_strategy *strategy, const dist_value_context *context,
                                  dist_value **out_value, void *user_data) {
  (void)strategy;
  making *m = user_data;
  const int32_t id = context->replica_id_in_sync_group;
  if (id != m->calls++ || context->num_replicas_in_sync != dist_strategy_num_replicas(m->strategy))
    return dist_fail(DIST_INTERNAL, "not in order");
  if (m->shared == NULL) return DIST_OK;
  char name[16];
  snprintf(name, sizeof name, "r%d", (int)id);
  dist_value *text = NULL, *list = NULL;
  dist_status status = dist_value_create_text(m->strategy, name, &text);
  if (status == DIST_OK)
    status = dist_value_create_list(m->strategy, &text, id == m->other_at ? 0 : 1, &list);
  dist_value *items[] = {m->shared, list};
  if (status == DIST_OK) status = dist_value_create_tuple(m->strategy, items, 2, out_value);
  dist_value_release(list);
  dist_value_release(text);
  if (status != DIST_OK || id != m->fail_at) return status;
  return m->silent ? DIST_NOT_FOUND : dist_fail(DIST_NOT_FOUND, "no such file"); /* with a value, too */
}

static void components_are_made_in_order(void **state) {
  making m = {.strategy = *state, .fail_at = -1, .other_at = -1};
  dist_value *value = NULL;
  assert_ok(dist_value_create_text(*state, "shared", &m.shared));
  assert_ok(dist_values_from_function(*state, make_component, &m, &value));
  assert_int_equal(m.calls, R);
  assert_int_equal(dist_value_kind_of(value), DIST_VALUE_TUPLE);
  const dist_value *same = dist_value_item(value, 0), *own = dist_value_item(dist_value_item(value, 1), 0);
  assert_int_equal(dist_value_kind_of(same), DIST_VALUE_PER_REPLICA); /* although all are one value */
  assert_int_equal(dist_value_kind_of(own), DIST_VALUE_PER_REPLICA);
  for (size_t r = 0; r < R; r++) assert_ptr_equal(dist_value_item(same, r), m.shared);
  assert_string_equal(dist_value_text(dist_value_item(own, 1)), "r1");
  dist_value_release(value);
  dist_value_release(m.shared);
  m = (making){.strategy = *state, .fail_at = -1, .other_at = -1};
  assert_ok(dist_values_from_function(*state, make_component, &m, &value));
  assert_int_equal(dist_value_kind_of(value), DIST_VALUE_PER_REPLICA);
  for (size_t r = 0; r < R; r++)
    assert_int_equal(dist_value_kind_of(dist_value_item(value, r)), DIST_VALUE_NONE);
  dist_value_release(value);
}

static void components_that_fail(void **state) {
  making m = {.strategy = *state, .fail_at = 1, .other_at = -1};
  dist_value *value = NULL;
  assert_ok(dist_value_create_text(*state, "shared", &m.shared));
  assert_fails(dist_values_from_function(*state, make_component, &m, &value), DIST_NOT_FOUND, "no such file");
  assert_int_equal(m.calls, 2);
  m.calls = 0;
  m.silent = 1;
  assert_fails(dist_values_from_function(*state, make_component, &m, &value), DIST_NOT_FOUND,
               "replica 1's component");
  m.calls = 0;
  m.fail_at = -1;
  m.other_at = 2;
  assert_fails(dist_values_from_function(*state, make_component, &m, &value), DIST_INVALID_ARGUMENT,
               "value[1]: replica 0 has a list of 1, but replica 2 has a list of 0");
  assert_null(value);
  dist_value_release(m.shared);
}

static dist_status make_inside(dist_replica *replica, void *user_data) {
  making *m = user_data;
  (void)replica;
  dist_value *value = NULL;
  const dist_status status = dist_values_from_function(m->strategy, make_component, m, &value);
  dist_value_release(value);
  return status;
}

static void components_inside_a_replica(void **state) {
  making m = {.strategy = *state, .fail_at = -1, .other_at = -1};
  assert_fails(dist_run(*state, make_inside, &m, NULL), DIST_FAILED_PRECONDITION,
               "must be called in the cross-replica context");
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_ONE_DEVICE;
  m.strategy = strategy_with(options);
  assert_ok(dist_value_create_text(m.strategy, "alone", &m.shared));
  assert_ok(dist_run(m.strategy, make_inside, &m, NULL)); /* nothing is distributed inside a replica */
  dist_value *value = NULL;
  m.calls = 0;
  assert_ok(dist_values_from_function(m.strategy, make_component, &m, &value));
  assert_ptr_equal(dist_value_item(value, 0), m.shared);
  dist_value_release(value);
  dist_value_release(m.shared);
  assert_ok(dist_strategy_destroy(m.strategy));
}

static void null_arguments(void **state) {
  making m = {.strategy = *state, .fail_at = -1, .other_at = -1};
  dist_value *value = NULL;
  assert_fails(dist_values_from_function(NULL, make_component, &m, &value), DIST_INVALID_ARGUMENT,
               "strategy is NULL");
  assert_fails(dist_values_from_function(*state, NULL, NULL, &value), DIST_INVALID_ARGUMENT, "fn is NULL");
  assert_fails(dist_values_from_function(*state, make_component, &m, NULL), DIST_INVALID_ARGUMENT,
               "out_value is NULL");
  assert_null(value);
  assert_int_equal(m.calls, 0);
}

static int make_strategy(void **state) {
  *state = strategy_of(R, DIST_THREADS_CALLER);
  return 0;
}

static int end_strategy(void **state) { return dist_strategy_destroy(*state) == DIST_OK ? 0 : -1; }

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(components_are_made_in_order),
      cmocka_unit_test(components_that_fail),
      cmocka_unit_test(components_inside_a_replica),
      cmocka_unit_test(null_arguments),
  };
  return cmocka_run_group_tests_name("values_from_function", tests, make_strategy, end_strategy);
}
