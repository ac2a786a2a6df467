// SPDX-License-Identifier: Apache-2.0
// Every callback of the library: an exception that it throws becomes a status, or is dropped if the callback
// cannot report one, and calls of libdist that cannot work there are refused. Afterwards the strategy works.
#include "tests/abi/whole/callbacks_outside.hpp"

namespace {

// The calls that a callback may make.
enum class May { kAll, kNotWait, kNothing };

struct Row {
  const char *callback;
  dist_status (*provoke)();
  dist_status thrown;  // what the host gets if the callback throws
  May may;
  bool serves = false;   // handles requests, which need library threads
  bool may_end = false;  // it does not belong to a call on the test's strategy, which may be destroyed there
};

// The callbacks of servers run on threads of a server, which survives their exceptions; test_rpc.c and
// test_coordinator.c test them. libdist itself provides dist_task_fn.
// @every callback but rpc_fn, closure_fn, server_update_fn, partition_fn, task_fn: see above
const Row kRows[] = {
    {"dist_replica_fn", in_replica, DIST_UNKNOWN, May::kAll},
    {"dist_values_fn", in_values, DIST_UNKNOWN, May::kAll},
    {"dist_merge_fn", in_merge, DIST_UNKNOWN, May::kAll},
    {"dist_range_fn", in_range, DIST_UNKNOWN, May::kNotWait},
    {"dist_reduce_fn", in_operator<1, false>, DIST_UNKNOWN, May::kNothing},
    {"dist_reduce_fn of much data", in_operator<1 << 18, false>, DIST_UNKNOWN, May::kNothing},
    {"dist_reduce_fn of a work", in_operator<1, true>, DIST_UNKNOWN, May::kNothing},
    {"dist_reduce_fn of a large work", in_operator<1 << 18, true>, DIST_UNKNOWN, May::kNothing},
    {"dist_reduce_fn of a plan", in_plan, DIST_UNKNOWN, May::kNothing},
    {"dist_reduce_fn of a scan", in_scan, DIST_UNKNOWN, May::kNothing},
    {"dist_reduce_fn outside runs", in_accumulate, DIST_UNKNOWN, May::kNothing},
    {"dist_apply_fn", in_apply, DIST_UNKNOWN, May::kNothing},
    {"dist_reduce_values_fn", in_reduce_values, DIST_UNKNOWN, May::kAll, false, true},
    {"dist_broadcast_values_fn", in_broadcast_values, DIST_UNKNOWN, May::kAll, false, true},
    {"dist_gather_values_fn", in_gather_values, DIST_UNKNOWN, May::kAll, false, true},
    {"dist_value_fn", in_component, DIST_UNKNOWN, May::kAll},
    {"dist_initial_fn", in_initial, DIST_UNKNOWN, May::kAll},
    {"dist_update_fn", in_update, DIST_UNKNOWN, May::kAll},
    {"dist_source_fn", in_source<0>, DIST_UNKNOWN, May::kNotWait},
    {"dist_source_fn ahead", in_source<2>, DIST_UNKNOWN, May::kNotWait},
    {"dist_file_source_fn", in_file_source, DIST_UNKNOWN, May::kNotWait},
    {"dist_dataset_fn", in_dataset_function, DIST_UNKNOWN, May::kAll},
    {"dist_dataset_reduce_fn", in_dataset_reduce, DIST_UNKNOWN, May::kAll, false, true},
    {"dist_text_fn", in_text, DIST_UNKNOWN, May::kAll},
    {"dist_instance_create_fn", in_serving<Served::kCreate>, DIST_UNKNOWN, May::kAll, true},
    {"dist_instance_destroy_fn", in_serving<Served::kDestroy>, DIST_OK, May::kAll, true},
    {"dist_replica_fn that warms up", in_serving<Served::kWarmUp>, DIST_UNKNOWN, May::kAll, true},
    {"dist_replica_fn of a request", in_serving<Served::kRequest>, DIST_UNKNOWN, May::kAll, true},
    {"dist_done_fn", in_serving<Served::kDone>, DIST_OK, May::kAll, true},
    {"dist_batch_fn", in_batch<Batched::kStep>, DIST_UNKNOWN, May::kAll, true},
    {"dist_batch_free_fn of a state", in_batch<Batched::kState>, DIST_OK, May::kNotWait, true},
    {"dist_batch_free_fn of a result", in_batch<Batched::kResult>, DIST_OK, May::kNotWait, true},
    {"dist_release_fn", in_release, DIST_OK, May::kAll, false, true},
    {"dist_version_release_fn", in_version_release, DIST_OK, May::kAll, false, true},
    {"dist_clock_fn", in_clock, DIST_OK, May::kNothing},
    {"dist_log_fn", in_log, DIST_OK, May::kNothing},
    {"dist_allocator.alloc", in_alloc, DIST_RESOURCE_EXHAUSTED, May::kNothing},
    {"dist_allocator.free", in_free, DIST_OK, May::kNothing},
    {"dist_execute_fn", in_execute, DIST_OK, May::kAll, false, true},
    {"dist_strategy_functions.copy_of_replica", in_layout, DIST_UNKNOWN, May::kAll, false, true},
    {"dist_cluster_resolver_functions.spec", in_spec, DIST_UNKNOWN, May::kAll, false, true},
    {"dist_cluster_resolver_functions.release", in_resolver_release, DIST_OK, May::kAll, false, true},
};

dist_status play(const Row &row, Act what) {
  act = what;
  acted = 0;
  const dist_status status = row.provoke();
  act = Act::kNothing;
  if (acted == 0) fail_msg("%s was not called", row.callback);
  return status;
}

void play(const Row &row, Act what, dist_status wanted) {
  const dist_status status = play(row, what);
  if (status != wanted) fail_msg("%s: %s: %s", row.callback, dist_status_name(status), dist_last_error());
  if (wanted == DIST_UNKNOWN && std::strstr(dist_last_error(), "threw a C++ exception") == nullptr)
    fail_msg("%s: %s", row.callback, dist_last_error());
  if (dist_run(current, fine, nullptr, nullptr) != DIST_OK)
    fail_msg("after %s: %s", row.callback, dist_last_error());
}

void for_each_row(void (*use)(const Row &)) {
  for (const dist_threads threads : {DIST_THREADS_CALLER, DIST_THREADS_LIBRARY}) {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.num_replicas = kReplicas;
    options.threads = threads;
    assert_int_equal(dist_strategy_create(&options, &current), DIST_OK);
    for (const Row &row : kRows) {
      if (threads == DIST_THREADS_LIBRARY || !row.serves) use(row);
    }
    assert_int_equal(dist_strategy_destroy(current), DIST_OK);
  }
}

void exceptions_of_callbacks_are_a_status(void **) {
  for_each_row([](const Row &row) {
    play(row, Act::kThrow, row.thrown);
    play(row, Act::kThrowInt, row.thrown);
  });
}

// In the other contexts, calls that cannot work are rejected by the objects that they would wait for, which
// have their own tests.
void calls_that_cannot_work_are_refused(void **) {
  for_each_row([](const Row &row) {
    if (row.may == May::kAll) return;
    run_status = barrier_status = value_status = DIST_OK;
    play(row, Act::kCall, DIST_OK);
    assert_int_equal(run_status.load(), DIST_FAILED_PRECONDITION);
    assert_int_equal(barrier_status.load(), DIST_FAILED_PRECONDITION);
    assert_int_equal(value_status.load(), row.may == May::kNothing ? DIST_FAILED_PRECONDITION : DIST_OK);
  });
}

// A call on the strategy is in progress on this thread, or will need it.
void no_callback_ends_its_strategy(void **) {
  for_each_row([](const Row &row) {
    if (row.may_end) return;
    for (const Act each : {Act::kDestroy, Act::kShutDown}) {
      end_status = DIST_OK;
      (void)play(row, each);
      if (end_status != DIST_FAILED_PRECONDITION)
        fail_msg("%s: %s", row.callback, dist_status_name(end_status));
      assert_int_equal(dist_run(current, fine, nullptr, nullptr), DIST_OK);
    }
  });
}

// An exception in one replica ends the run of all.
dist_status throw_in_one(dist_replica *replica, void *user_data) {
  if (dist_replica_id(replica) == *static_cast<int32_t *>(user_data))
    throw std::runtime_error("no promise kept");
  return dist_barrier(replica, nullptr, nullptr);
}

void an_exception_of_one_replica_ends_the_run(void **) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 3;
  for (const dist_threads threads : {DIST_THREADS_CALLER, DIST_THREADS_LIBRARY}) {
    options.threads = threads;
    dist_strategy *strategy = nullptr;
    assert_int_equal(dist_strategy_create(&options, &strategy), DIST_OK);
    for (int32_t who = 0; who < 3; ++who) {
      assert_int_equal(dist_run(strategy, throw_in_one, &who, nullptr), DIST_UNKNOWN);
      char wanted[64];
      std::snprintf(wanted, sizeof wanted, "replica %d's function threw a C++ exception: no promise", who);
      assert_non_null(std::strstr(dist_last_error(), wanted));
      assert_int_equal(dist_run(strategy, fine, nullptr, nullptr), DIST_OK);
    }
    assert_int_equal(dist_strategy_destroy(strategy), DIST_OK);
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(exceptions_of_callbacks_are_a_status),
                              cmocka_unit_test(calls_that_cannot_work_are_refused),
                              cmocka_unit_test(no_callback_ends_its_strategy),
                              cmocka_unit_test(an_exception_of_one_replica_ends_the_run)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
