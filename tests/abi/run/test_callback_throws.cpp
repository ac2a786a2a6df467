// SPDX-License-Identifier: Apache-2.0
// A C++ callback that violates its contract and throws. The exception must not unwind through the C ABI.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>

#include <dist/dist.h>

extern "C" {
#include <cmocka.h>
}

namespace {

dist_status throw_in_one(dist_replica *replica, void *user_data) {
  if (dist_replica_id(replica) == *static_cast<int32_t *>(user_data))
    throw std::runtime_error("no promise kept");
  return dist_barrier(replica, nullptr);
}

dist_status throw_in_values(dist_replica *replica, dist_value *, dist_value *, dist_value **,
                            void *user_data) {
  if (dist_replica_id(replica) == *static_cast<int32_t *>(user_data)) throw 7;
  return dist_barrier(replica, nullptr);
}

dist_status throw_in_merge(dist_strategy *, dist_value *, dist_value **, void *) {
  throw std::logic_error("merging");
}

dist_status merge(dist_replica *replica, void *) {
  return dist_merge_call(replica, throw_in_merge, nullptr, nullptr, nullptr, nullptr);
}

dist_status fine(dist_replica *replica, void *) { return dist_barrier(replica, nullptr); }

void thrown_exceptions_are_a_status(void **) {
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; ++threads) {
    dist_strategy_options options;
    dist_strategy_options_init(&options, sizeof options);
    options.num_replicas = 3;
    options.threads = threads;
    dist_strategy *strategy = nullptr;
    assert_int_equal(dist_strategy_create(&options, &strategy), DIST_OK);
    for (int32_t who = 0; who < 3; ++who) {
      assert_int_equal(dist_run(strategy, throw_in_one, &who, nullptr), DIST_UNKNOWN);
      assert_non_null(std::strstr(dist_last_error(), "threw a C++ exception"));
      dist_value *result = nullptr;
      assert_int_equal(dist_run_values(strategy, throw_in_values, &who, nullptr, nullptr, nullptr, &result),
                       DIST_UNKNOWN);
      assert_null(result);
      assert_int_equal(dist_run(strategy, merge, nullptr, nullptr), DIST_UNKNOWN);
      assert_int_equal(dist_run(strategy, fine, nullptr, nullptr), DIST_OK);
    }
    assert_int_equal(dist_strategy_destroy(strategy), DIST_OK);
  }
}

dist_status throw_for_a_component(const dist_value_context *, dist_value **, void *user_data) {
  if (user_data != nullptr) throw 7;
  throw std::runtime_error("no component");
}

dist_status throw_for_a_beginning(dist_value **, void *) { throw std::logic_error("no beginning"); }

void throw_for_a_text(const char *, std::size_t, void *) { throw std::length_error("no text"); }

void outside_of_runs_too(void **) {
  dist_strategy *strategy = nullptr;
  assert_int_equal(dist_strategy_create(nullptr, &strategy), DIST_OK);
  dist_value *value = nullptr;
  assert_int_equal(dist_values_from_function(strategy, throw_for_a_component, nullptr, &value), DIST_UNKNOWN);
  assert_non_null(std::strstr(dist_last_error(), "no component"));
  assert_int_equal(dist_values_from_function(strategy, throw_for_a_component, strategy, &value),
                   DIST_UNKNOWN);
  assert_non_null(std::strstr(dist_last_error(), "C++ exception"));
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.initial_fn = throw_for_a_beginning;
  dist_variable *variable = nullptr;
  assert_int_equal(dist_variable_create(strategy, nullptr, &options, &variable), DIST_UNKNOWN);
  assert_int_equal(dist_explain(strategy, throw_for_a_text, nullptr), DIST_RESOURCE_EXHAUSTED);
  assert_null(value);
  assert_null(variable);
  assert_int_equal(dist_strategy_destroy(strategy), DIST_OK);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(thrown_exceptions_are_a_status),
                              cmocka_unit_test(outside_of_runs_too)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
