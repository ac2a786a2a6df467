/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_variable_check_drift() over several workers: variables whose copies may differ, workers that check
 * different variables, and workers that are late, lost, cancelled or out of memory.
 */
#include "../alloc_support.h"
#include "../clock.h"
#include "../workers_support.h"

/* ---- Inside a merge function, and variables whose copies need not be equal ---- */

static dist_variable *make_variable(dist_strategy *strategy, const char *name, int64_t elements,
                                    int32_t synchronization) {
  static const float zeros[64];
  const dist_tensor initial = {(void *)zeros, DIST_F32, 1, &elements, NULL};
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.name = name;
  options.synchronization = synchronization;
  if (synchronization == DIST_SYNCHRONIZATION_ON_READ) options.aggregation = DIST_AGGREGATION_SUM;
  dist_variable *variable = NULL;
  return dist_variable_create(strategy, &initial, &options, &variable) == DIST_OK ? variable : NULL;
}

static dist_status check_merged(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                dist_value **out_result, void *user_data) {
  (void)args, (void)out_result, (void)kwargs;
  return dist_variable_check_drift(strategy, user_data, NULL);
}

static dist_status merge_and_check(dist_replica *replica, void *user_data) {
  return dist_merge_call(replica, check_merged, user_data, NULL, NULL, NULL, NULL);
}

static dist_status check_inside_a_merge(dist_strategy *strategy, int worker, void *user_data) {
  dist_variable *const variable = make_variable(strategy, "w", 5, DIST_SYNCHRONIZATION_AUTO);
  dist_status status = dist_run(strategy, merge_and_check, variable, NULL);
  dist_tensor copy;
  if (status == DIST_OK && worker == 1) {
    status = dist_variable_component(variable, 3, &copy);
    if (status == DIST_OK) ((float *)copy.data)[4] = 1;
  }
  if (status == DIST_OK) *(dist_status *)user_data = dist_run(strategy, merge_and_check, variable, NULL);
  const dist_status found = status == DIST_OK ? dist_run(strategy, merge_and_check, variable, NULL) : status;
  dist_variable_destroy(variable);
  return found;
}

static void a_merge_function_asks_too(void **state) {
  (void)state;
  workers all = workers_of("2+2", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  worker_thread threads[MOST_WORKERS];
  dist_status before[MOST_WORKERS] = {DIST_OK};
  on_workers(&all, check_inside_a_merge, before, threads);
  for (int w = 0; w < 2; ++w) {
    assert_int_equal(threads[w].status, DIST_DATA_LOSS);
    assert_has(threads[w].error.message, "element 4 ([4]) is 1 on replica 3 but 0 on replica 0");
  }
  end_workers(&all);
}

static dist_status check_others(dist_strategy *strategy, int worker, void *user_data) {
  (void)user_data;
  dist_variable *const on_read = make_variable(strategy, "steps", 3, DIST_SYNCHRONIZATION_ON_READ);
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_DEFAULT;
  dist_strategy *plain = NULL;
  dist_status status = dist_strategy_create(&options, &plain);
  if (status != DIST_OK) return status;
  dist_variable *const own = make_variable(plain, "own", 2, DIST_SYNCHRONIZATION_AUTO);
  dist_tensor copy;
  dist_drift drift[2] = {DIST_DRIFT_INIT, DIST_DRIFT_INIT};
  status = dist_variable_component(on_read, 2 * worker, &copy);
  if (status == DIST_OK) *(float *)copy.data = (float)worker;
  if (status == DIST_OK) status = dist_variable_component(own, 0, &copy);
  if (status == DIST_OK) *(float *)copy.data = (float)worker;
  if (status == DIST_OK) status = dist_variable_check_drift(strategy, on_read, &drift[0]);
  if (status == DIST_OK) status = dist_variable_check_drift(strategy, own, &drift[1]);
  if (status == DIST_OK && (drift[0].num_copies != 0 || drift[1].num_copies != 1))
    status = dist_fail(DIST_INTERNAL, "other numbers of copies");
  dist_variable_destroy(own);
  dist_variable_destroy(on_read);
  return dist_strategy_destroy(plain) == DIST_OK ? status : DIST_INTERNAL;
}

static void copies_that_need_not_be_equal(void **state) {
  (void)state;
  workers all = workers_of("2+2", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  for (int again = 0; again < 2; ++again) all_workers(&all, check_others, NULL);
  end_workers(&all);
}

/* ---- Faults ---- */

typedef enum oddity { NAME, SHAPE, SYNCHRONIZATION, OTHER_CALL, NO_CALL, OTHERS_VARIABLE, ODDITIES } oddity;

static dist_status check_odd(dist_strategy *strategy, int worker, void *user_data) {
  const oddity odd = *(oddity *)user_data;
  dist_variable *variables[4] = {make_variable(strategy, "a", 6, DIST_SYNCHRONIZATION_AUTO),
                                 make_variable(strategy, "b", 6, DIST_SYNCHRONIZATION_AUTO),
                                 make_variable(strategy, "a", 7, DIST_SYNCHRONIZATION_AUTO),
                                 make_variable(strategy, "a", 6, DIST_SYNCHRONIZATION_ON_READ)};
  dist_strategy *other = NULL;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  dist_status status = dist_strategy_create(&options, &other);
  if (status != DIST_OK) return status;
  dist_variable *const foreign = make_variable(other, "a", 6, DIST_SYNCHRONIZATION_AUTO);
  dist_value *value = NULL;
  if (worker == 1 && odd == OTHER_CALL) {
    status = dist_variable_read(strategy, variables[3], &value);
  } else if (worker == 1 && odd == NO_CALL) {
    status = dist_run(strategy, merge_and_check, variables[1], NULL);
  } else {
    dist_variable *const mine = worker != 1              ? variables[0]
                                : odd == OTHERS_VARIABLE ? foreign
                                                         : variables[odd + 1];
    status = dist_variable_check_drift(strategy, mine, NULL);
  }
  report error;
  read_report(&error);
  dist_variable_destroy(foreign);
  dist_status ended = dist_strategy_destroy(other);
  /* The workers are in step again. */
  for (int again = 0; again < 2 && ended == DIST_OK; ++again) {
    ended = dist_variable_check_drift(strategy, variables[0], NULL);
  }
  for (int i = 0; i < 4; ++i) dist_variable_destroy(variables[i]);
  dist_value_release(value);
  if (ended != DIST_OK) return DIST_UNKNOWN;
  return status == DIST_OK ? DIST_OK : dist_fail(status, error.message);
}

static void workers_that_check_different_things_are_told(void **state) {
  (void)state;
  const struct {
    dist_status status; /* of workers 0 and 2 */
    const char *words;
  } wanted[] = {
      {DIST_INVALID_ARGUMENT,
       "worker 1 called all_reduce with tag \"drift of b f32[6] MirroredVariable\", but workers 0, 2 "
       "called all_reduce with tag \"drift of a f32[6] MirroredVariable\""},
      {DIST_INVALID_ARGUMENT, "tag \"drift of a f32[7] MirroredVariable\""},
      {DIST_INVALID_ARGUMENT, "tag \"drift of a f32[6] SyncOnReadVariable\""},
      {DIST_INVALID_ARGUMENT, "worker 1 called all_reduce"},
      {DIST_INVALID_ARGUMENT, "worker 1 called all_reduce with tag \"drift of b"},
      {DIST_ABORTED, "another strategy"}};
  _Static_assert(COUNT_OF(wanted) == ODDITIES, "each");
  workers all = workers_of("2+1+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  for (oddity odd = 0; odd < ODDITIES; ++odd) {
    worker_thread threads[MOST_WORKERS];
    on_workers(&all, check_odd, &odd, threads);
    for (int w = 0; w < all.n; ++w) {
      const dist_status status =
          w == 1 && odd == OTHERS_VARIABLE ? DIST_INVALID_ARGUMENT : wanted[odd].status;
      assert_has(threads[w].error.message, wanted[odd].words);
      assert_int_equal(threads[w].status, status);
    }
  }
  end_workers(&all);
}

typedef enum fate { LATE, LOST, CANCELLED_BY_ANOTHER } fate;

typedef struct absence {
  fate fate; /* of worker 1, or of the call that waits for it */
  stepping_clock clock;
  dist_strategy *waits;
  atomic_int made; /* workers that have created their variable */
  atomic_int told; /* worker 0 has its report */
} absence;

static dist_status check_without_one(dist_strategy *strategy, int worker, void *user_data) {
  absence *const given = user_data;
  dist_variable *const variable = make_variable(strategy, "w", 6, DIST_SYNCHRONIZATION_AUTO);
  atomic_fetch_add(&given->made, 1);
  while (atomic_load(&given->made) < 2) sched_yield();
  if (worker == 1 && given->fate == LOST) {
    dist_variable_destroy(variable);
    return dist_strategy_shutdown(strategy, -1);
  }
  /* From here on, the time of the call passes. */
  if (given->fate == LATE) atomic_store(&given->clock.step_ns, 1000000);
  dist_status status = DIST_OK;
  while (worker == 1 && !atomic_load(&given->told) && status == DIST_OK) {
    sched_yield();
    if (given->fate == CANCELLED_BY_ANOTHER) status = dist_strategy_cancel(given->waits);
  }
  if (status == DIST_OK) status = dist_variable_check_drift(strategy, variable, NULL);
  atomic_store(&given->told, 1);
  dist_variable_destroy(variable);
  return status;
}

static void a_worker_that_is_late_or_lost(void **state) {
  (void)state;
  const struct {
    dist_status status;
    const char *words;
  } wanted[] = {{DIST_DEADLINE_EXCEEDED, "worker 1 did not arrive"},
                {DIST_UNAVAILABLE, "worker 1 is lost"},
                {DIST_CANCELLED, "cancelled"}};
  for (fate of = LATE; of <= CANCELLED_BY_ANOTHER; ++of) {
    absence given = {.fate = of};
    dist_strategy_options options = by_clock(&given.clock, 0, DIST_THREADS_CALLER);
    options.timeout_ns = 1000000000;
    workers all = workers_of("1+2", options);
    given.waits = all.strategies[0];
    worker_thread threads[MOST_WORKERS];
    on_workers(&all, check_without_one, &given, threads);
    for (int w = 0; w < all.n; ++w) {
      if (of == LOST && w == 1) continue;
      assert_has(threads[w].error.message, wanted[of].words);
      if (of != CANCELLED_BY_ANOTHER) assert_has(threads[w].error.message, "drift of w");
      /* Worker 1 may be cancelled before it has described its variable. Then it learns that the other one has
       * failed. */
      if (of == CANCELLED_BY_ANOTHER && w == 1 && threads[w].status == DIST_ABORTED) continue;
      assert_int_equal(threads[w].status, wanted[of].status);
    }
    end_workers(&all);
  }
}

/* ---- Lack of memory ---- */

typedef struct refusal_round {
  refusals *memory;
  long refused; /* number of the rejected request, counted after the variable has been created */
  atomic_int made;
  atomic_int at_the_end;
  int drifts;
} refusal_round;

/* Waits until both workers have finished the preceding part. */
static void wait_for_both(atomic_int *count) {
  atomic_fetch_add(count, 1);
  while (atomic_load(count) < 2) sched_yield();
}

static dist_status check_without_memory(dist_strategy *strategy, int worker, void *user_data) {
  refusal_round *const given = user_data;
  dist_variable *const variable = make_variable(strategy, "w", 40, DIST_SYNCHRONIZATION_AUTO);
  dist_tensor copy;
  dist_status status = dist_variable_component(variable, worker, &copy);
  if (status != DIST_OK) return status;
  wait_for_both(&given->made);
  if (worker == 0) {
    if (given->drifts) ((float *)copy.data)[39] = 1;
    atomic_store(&given->memory->refuse_at, atomic_load(&given->memory->requests) + given->refused);
  }
  wait_for_both(&given->at_the_end);
  status = dist_variable_check_drift(strategy, variable, NULL);
  dist_variable_destroy(variable);
  return status;
}

static void whoever_has_no_memory_tells_the_others(void **state) {
  (void)state;
  static refusals memory;
  memory = (refusals){.refuse_at = -1};
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  host.allocator = refusing(&memory);
  workers all = workers_of("1+1", options);
  for (int drifts = 0; drifts < 2; ++drifts) {
    const dist_status found = drifts ? DIST_DATA_LOSS : DIST_OK;
    int refused = 1;
    for (long k = 0; refused; ++k) {
      refusal_round given = {.memory = &memory, .refused = k, .drifts = drifts};
      worker_thread threads[MOST_WORKERS];
      on_workers(&all, check_without_memory, &given, threads);
      refused = atomic_load(&memory.requests) > atomic_load(&memory.refuse_at);
      atomic_store(&memory.refuse_at, -1);
      if (threads[0].status == found && threads[1].status == found) continue;
      for (int w = 0; w < 2; ++w) {
        assert_true(refused);
        assert_int_not_equal(threads[w].status, DIST_OK);
        assert_int_not_equal(threads[w].status, DIST_DATA_LOSS);
      }
    }
  }
  end_workers(&all);
  assert_int_equal(atomic_load(&memory.live_bytes), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_merge_function_asks_too),
      cmocka_unit_test(copies_that_need_not_be_equal),
      cmocka_unit_test(workers_that_check_different_things_are_told),
      cmocka_unit_test(a_worker_that_is_late_or_lost),
      cmocka_unit_test(whoever_has_no_memory_tells_the_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
