/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_strategy_shutdown(): a strategy ends whatever its replicas do, and leaves nothing behind once they
 * have returned.
 */
#include "tests/abi/alloc_support.h"
#include "tests/abi/gate.h"
#include "tests/abi/mesh_support.h"

typedef struct scene {
  dist_strategy *strategy;
  int32_t stuck; /* the replica that does not return until it is released */
  gate inside, let_out, others;
  int ends;          /* its thread ends when it is released */
  dist_status after; /* the result of a collective of the stuck function after its release */
  dist_status run;
  report error;
} scene;

static refusals counted;

static dist_strategy_options counting(int32_t replicas, int32_t threads) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  static dist_host_options host;
  host = (dist_host_options)DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  counted = (refusals){.refuse_at = -1};
  options.num_replicas = replicas;
  options.threads = threads;
  host.allocator = refusing(&counted);
  return options;
}

/* Calls that a function may make long after the shutdown. They fail or succeed, but must not access freed
 * memory. */
static dist_status use_everything(dist_replica *replica) {
  float number = 1;
  dist_tensor tensor = {&number, DIST_F32, 0, NULL, NULL};
  const dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, NULL, NULL);
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  dist_work *work = NULL;
  if (dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &options, &work) == DIST_OK) {
    (void)!dist_work_wait(work, DIST_NO_TIMEOUT);
    dist_work_destroy(work);
  }
  dist_value *value = NULL;
  if (dist_value_create_tensor(dist_replica_strategy(replica), &tensor, &value) == DIST_OK)
    dist_value_release(value);
  (void)!dist_strategy_cancel(dist_replica_strategy(replica));
  return status;
}

static dist_status stay(dist_replica *replica, void *user_data) {
  scene *s = user_data;
  if (dist_replica_id(replica) != s->stuck) {
    gate_add(&s->others);
    return dist_barrier(replica, NULL, NULL);
  }
  gate_add(&s->inside);
  gate_await(&s->let_out, 1);
  s->after = use_everything(replica);
  if (s->ends) pthread_exit(NULL);
  return s->after;
}

static scene scene_of(dist_strategy *strategy, int32_t stuck) {
  return (scene){
      .strategy = strategy, .stuck = stuck, .inside = GATE_INIT, .let_out = GATE_INIT, .others = GATE_INIT};
}

/* Runs the scene on a separate thread. Returns when the stuck function is inside. */
static pthread_t begin(scene *s, void *(*run)(void *)) {
  pthread_t host;
  assert_int_equal(pthread_create(&host, NULL, run, s), 0);
  gate_await(&s->inside, 1);
  return host;
}

static void *run_stay(void *argument) {
  scene *s = argument;
  s->run = dist_run(s->strategy, stay, s, NULL);
  read_report(&s->error);
  return NULL;
}

/* The error names the replicas that are inside. On a busy machine, it may also name some that have not left
 * yet. */
static void assert_names(const char *kind, int32_t id) {
  const char *at = strstr(dist_last_error(), kind);
  assert_has(dist_last_error(), "have not returned");
  if (at == NULL || strchr(at, '0' + (int)id) == NULL)
    fail_msg("no %s %d in '%s'", kind, (int)id, dist_last_error());
}

static void idle_strategies(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    for (int64_t timeout_ns = -1; timeout_ns <= 1; timeout_ns++) {
      const int before = count_threads();
      dist_strategy *strategy = strategy_with(counting(3, threads));
      report error;
      assert_int_equal(run_on(threads, strategy, healthy, NULL, &error), DIST_OK);
      dist_group *group = NULL;
      assert_ok(dist_group_create(strategy, (const int32_t[]){0, 2}, 2, &group));
      assert_ok(dist_strategy_shutdown(strategy, timeout_ns));
      assert_ok(dist_strategy_destroy(strategy));
      assert_int_equal(atomic_load(&counted.live_bytes), 0);
      await_threads(before);
    }
  }
  assert_ok(dist_strategy_shutdown(NULL, 0));
}

/* The stuck replica is named, the threads of the others end, and the last one that leaves frees
 * everything. */
static void check_stuck(int32_t threads, int32_t stuck, int ends) {
  const int before = count_threads();
  static scene s;
  s = scene_of(strategy_with(counting(3, threads)), stuck);
  s.ends = ends;
  const pthread_t host = begin(&s, run_stay);
  assert_int_equal(dist_strategy_shutdown(s.strategy, 50000000), DIST_DEADLINE_EXCEEDED);
  assert_names("replica", stuck);
  assert_ok(dist_strategy_destroy(s.strategy));
  /* the caller of the run, and the stuck replica if it is another thread */
  const int caller_is_it = threads == DIST_THREADS_CALLER && stuck == 0;
  await_threads(before + (caller_is_it ? 1 : 2));
  assert_true(atomic_load(&counted.live_bytes) > 0);
  gate_add(&s.let_out);
  pthread_join(host, NULL);
  await_threads(before);
  assert_int_equal(s.after, DIST_CANCELLED);
  /* replicas with lower ids have been cancelled */
  if (!ends || stuck > 0) assert_int_equal(s.run, DIST_CANCELLED);
  while (atomic_load(&counted.live_bytes) != 0) sched_yield(); /* the thread may still be leaving */
}

static void a_stuck_replica(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; threads++) {
    for (int32_t stuck = 0; stuck < 3; stuck++) {
      check_stuck(threads, stuck, 0);
      check_stuck(threads, stuck, 1);
    }
  }
}

typedef struct queued {
  scene *scene;
  atomic_int thread;
  dist_status status;
  report error;
} queued;

static void *run_behind(void *argument) {
  queued *q = argument;
  atomic_store(&q->thread, this_thread());
  q->status = dist_run(q->scene->strategy, healthy, NULL, NULL);
  read_report(&q->error);
  return NULL;
}

static void *shut_down(void *argument) {
  queued *q = argument;
  q->status = dist_strategy_shutdown(q->scene->strategy, -1);
  return NULL;
}

/* Queued callers return at once. When the functions have returned, everything is freed. */
static void runs_that_end_in_time(void **state) {
  (void)state;
  for (int i = 0; i < 20; i++) {
    static scene s;
    s = scene_of(strategy_with(counting(2, DIST_THREADS_CALLER + i % 2)), 1);
    pthread_t ending, behind[2];
    queued waiting[2] = {{.scene = &s}, {.scene = &s}}, end = {.scene = &s};
    const pthread_t host = begin(&s, run_stay);
    for (int k = 0; k < 2; k++) {
      assert_int_equal(pthread_create(&behind[k], NULL, run_behind, &waiting[k]), 0);
      while (!sleeps(atomic_load(&waiting[k].thread))) sched_yield();
    }
    assert_int_equal(pthread_create(&ending, NULL, shut_down, &end), 0);
    for (int k = 0; k < 2; k++) {
      pthread_join(behind[k], NULL);
      assert_int_equal(waiting[k].status, DIST_CANCELLED);
      assert_has(waiting[k].error.message, "dist_strategy_shutdown()");
    }
    gate_add(&s.let_out);
    pthread_join(ending, NULL);
    pthread_join(host, NULL);
    assert_int_equal(end.status, DIST_OK);
    assert_int_equal(s.run, DIST_CANCELLED);
    assert_ok(dist_strategy_destroy(s.strategy));
    assert_int_equal(atomic_load(&counted.live_bytes), 0);
  }
}

static dist_status run_once(dist_strategy *strategy, int32_t id) {
  (void)id;
  return dist_run(strategy, healthy, NULL, NULL);
}

static dist_status enter_once(dist_strategy *strategy, int32_t id) {
  dist_replica *replica = NULL;
  const dist_status status = dist_replica_enter(strategy, id, &replica);
  return status != DIST_OK ? status : dist_replica_leave(replica, healthy(replica, NULL));
}

static dist_status healthy_alone(dist_replica *replica, void *user_data) {
  (void)user_data;
  return dist_replica_check(replica);
}

static dist_status submit_once(dist_strategy *strategy, int32_t id) {
  (void)id;
  dist_request *request = NULL;
  dist_status status = dist_submit(strategy, healthy_alone, NULL, NULL, &request);
  if (status != DIST_OK) return status;
  status = dist_request_wait(request, DIST_NO_TIMEOUT);
  dist_request_destroy(request);
  return status;
}

static dist_status read_once(dist_strategy *strategy, int32_t id) {
  (void)id;
  float number = 3;
  const dist_tensor tensor = {&number, DIST_F32, 0, NULL, NULL};
  dist_value *value = NULL, *sum = NULL;
  dist_status status = dist_value_create_tensor(strategy, &tensor, &value);
  if (status != DIST_OK) return status;
  status = dist_reduce(strategy, DIST_REDUCE_MEAN, value, NULL, 0, &sum);
  dist_value_release(sum);
  dist_value_release(value);
  return status == DIST_OK && dist_strategy_num_replicas(strategy) != 2 ? DIST_INTERNAL : status;
}

typedef struct repeated {
  dist_strategy *strategy;
  dist_status (*once)(dist_strategy *strategy, int32_t id);
  int32_t id;
  gate *begun;
  dist_status status;
} repeated;

static void *repeat(void *argument) {
  repeated *r = argument;
  do {
    r->status = r->once(r->strategy, r->id);
    gate_add(r->begun);
  } while (r->status == DIST_OK);
  return NULL;
}

/* Until the strategy is destroyed, threads that do not know about the shutdown may still call it. */
static void calls_that_come_later(void **state) {
  (void)state;
  for (int i = 0; i < 60; i++) {
    const int32_t threads = DIST_THREADS_CALLER + i % 3;
    const int submits = threads == DIST_THREADS_LIBRARY && i % 2 == 0;
    dist_strategy *strategy = strategy_with(counting(2, threads));
    gate begun = GATE_INIT;
    pthread_t handles[2];
    repeated all[2];
    for (int32_t k = 0; k < 2; k++) {
      all[k] = (repeated){strategy,
                          threads == DIST_THREADS_HOST ? enter_once
                          : submits                    ? submit_once
                                                       : run_once,
                          k, &begun, DIST_OK};
      assert_int_equal(pthread_create(&handles[k], NULL, repeat, &all[k]), 0);
    }
    gate_await(&begun, 2);
    assert_ok(dist_strategy_shutdown(strategy, -1));
    for (int k = 0; k < 2; k++) {
      pthread_join(handles[k], NULL);
      if (!submits || all[k].status != DIST_UNAVAILABLE) assert_int_equal(all[k].status, DIST_CANCELLED);
    }
    assert_int_equal(all[0].once(strategy, 0), DIST_CANCELLED);
    assert_has(dist_last_error(), "dist_strategy_shutdown() has shut down");
    assert_ok(read_once(strategy, 0));
    assert_fails(dist_strategy_shutdown(strategy, -1), DIST_FAILED_PRECONDITION, "already been shut down");
    assert_ok(dist_strategy_destroy(strategy));
    assert_int_equal(atomic_load(&counted.live_bytes), 0);
  }
}

/* ---- Host threads ---- */

typedef struct host_member {
  scene *scene;
  int32_t id;
  dist_status entered, left;
} host_member;

static void *enter_and_stay(void *argument) {
  host_member *h = argument;
  dist_replica *replica = NULL;
  h->entered = dist_replica_enter(h->scene->strategy, h->id, &replica);
  if (h->entered != DIST_OK) return NULL;
  h->left = dist_replica_leave(replica, stay(replica, h->scene));
  return NULL;
}

static void a_stuck_host_thread(void **state) {
  (void)state;
  for (int32_t come = 1; come <= 3; come++) { /* of three replicas; the others never enter */
    static scene s;
    s = scene_of(strategy_with(counting(3, DIST_THREADS_HOST)), 0);
    pthread_t threads[3];
    host_member members[3];
    for (int32_t i = 0; i < come; i++) {
      members[i] = (host_member){.scene = &s, .id = i};
      assert_int_equal(pthread_create(&threads[i], NULL, enter_and_stay, &members[i]), 0);
      if (i == 0) gate_await(&s.inside, 1);
    }
    gate_await(&s.others, come - 1);
    assert_fails(dist_strategy_shutdown(s.strategy, 50000000), DIST_DEADLINE_EXCEEDED, "replica");
    assert_names("replica", 0);
    if (come == 2) assert_ok(dist_strategy_destroy(s.strategy));
    for (int32_t i = 1; i < come; i++) {
      pthread_join(threads[i], NULL);
      assert_int_not_equal(members[i].entered == DIST_OK ? members[i].left : members[i].entered, DIST_OK);
    }
    assert_true(atomic_load(&counted.live_bytes) > 0);
    if (come != 2) assert_ok(dist_strategy_destroy(s.strategy));
    gate_add(&s.let_out);
    pthread_join(threads[0], NULL);
    assert_int_equal(s.after, DIST_CANCELLED);
    assert_int_not_equal(members[0].left, DIST_OK);
    assert_int_equal(atomic_load(&counted.live_bytes), 0);
  }
}

/* ---- Logical devices, and runs inside merge functions ---- */

static dist_status device_stays(dist_replica *device, dist_value *args, dist_value *kwargs,
                                dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)out_result;
  scene *s = user_data;
  if (dist_device_replica(device) != 1 || dist_replica_id(device) != 1)
    return dist_barrier(device, NULL, NULL);
  gate_add(&s->inside);
  gate_await(&s->let_out, 1);
  return s->after = dist_barrier(device, NULL, NULL);
}

static dist_status stay_on_devices(dist_replica *replica, void *user_data) {
  return dist_run_on_devices(replica, device_stays, user_data, NULL, NULL, NULL, NULL);
}

static void *run_on_its_devices(void *argument) {
  scene *s = argument;
  s->run = dist_run(s->strategy, stay_on_devices, s, NULL);
  return NULL;
}

static void a_stuck_logical_device(void **state) {
  (void)state;
  const int before = count_threads();
  static scene s;
  s = scene_of(mesh_with(2, 2, counting(0, DIST_THREADS_CALLER)), -1);
  const pthread_t host = begin(&s, run_on_its_devices);
  assert_int_equal(dist_strategy_shutdown(s.strategy, 50000000), DIST_DEADLINE_EXCEEDED);
  assert_names("logical device", 1);
  assert_has(dist_last_error(), "of replica 1");
  assert_ok(dist_strategy_destroy(s.strategy));
  await_threads(before + 3); /* the caller, replica 1, and its device 1 */
  gate_add(&s.let_out);
  pthread_join(host, NULL);
  await_threads(before);
  assert_int_equal(s.after, DIST_CANCELLED);
  assert_int_equal(s.run, DIST_CANCELLED);
  while (atomic_load(&counted.live_bytes) != 0) sched_yield();
}

static dist_status run_and_stay(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                dist_value **out_result, void *user_data) {
  (void)args, (void)out_result, (void)kwargs;
  const dist_status status = dist_run(strategy, stay, user_data, NULL);
  /* it has returned, and its strategy starts no more runs */
  return dist_run(strategy, healthy, NULL, NULL) == DIST_OK ? DIST_INTERNAL : status;
}

static dist_status merge_and_stay(dist_replica *replica, void *user_data) {
  return dist_merge_call(replica, run_and_stay, user_data, NULL, NULL, NULL, NULL);
}

static void *run_merging(void *argument) {
  scene *s = argument;
  s->run = dist_run(s->strategy, merge_and_stay, s, NULL);
  return NULL;
}

static void a_run_inside_a_merge_function(void **state) {
  (void)state;
  for (int32_t stuck = 0; stuck < 2; stuck++) {
    const int before = count_threads();
    static scene s;
    s = scene_of(strategy_with(counting(2, DIST_THREADS_LIBRARY)), stuck);
    const pthread_t host = begin(&s, run_merging);
    assert_fails(dist_strategy_shutdown(s.strategy, 50000000), DIST_DEADLINE_EXCEEDED, "replica");
    if (stuck == 0) assert_ok(dist_strategy_destroy(s.strategy));
    gate_add(&s.let_out);
    pthread_join(host, NULL);
    await_threads(before);
    if (stuck == 1) assert_ok(dist_strategy_destroy(s.strategy)); /* after its functions have returned */
    assert_int_equal(s.run, DIST_CANCELLED);
    while (atomic_load(&counted.live_bytes) != 0) sched_yield();
  }
}

/* ---- What a shutdown leaves, and rejected calls ---- */

static dist_status leave_a_work(dist_replica *replica, void *user_data) {
  static float numbers[2];
  dist_work **works = user_data;
  const int32_t me = dist_replica_id(replica);
  dist_tensor tensor = {&numbers[me], DIST_F32, 0, NULL, NULL};
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &options, &works[me]);
}

static void what_is_left_of_it(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_with(counting(2, DIST_THREADS_LIBRARY));
  dist_work *works[2] = {NULL, NULL};
  assert_ok(dist_run(strategy, leave_a_work, works, NULL));
  float number = 3;
  const dist_tensor tensor = {&number, DIST_F32, 0, NULL, NULL};
  dist_value *value = NULL;
  assert_ok(dist_value_create_tensor(strategy, &tensor, &value));
  dist_variable *variable = NULL;
  assert_ok(dist_variable_create(strategy, &tensor, NULL, &variable));
  assert_ok(dist_strategy_shutdown(strategy, -1));
  assert_ok(dist_strategy_destroy(strategy));
  assert_true(atomic_load(&counted.live_bytes) > 0);
  dist_work_destroy(works[0]);
  assert_ok(dist_work_wait(works[1], DIST_NO_TIMEOUT));
  dist_work_destroy(works[1]);
  dist_value_release(value);
  dist_variable_destroy(variable);
  assert_int_equal(atomic_load(&counted.live_bytes), 0);
}

static dist_status shuts_down_inside(dist_replica *replica, void *user_data) {
  dist_status *statuses = user_data;
  statuses[dist_replica_id(replica)] = dist_strategy_shutdown(dist_replica_strategy(replica), 0);
  return DIST_OK;
}

static void refusals_leave_it_as_it_was(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  dist_status statuses[2] = {DIST_OK, DIST_OK};
  assert_ok(dist_run(strategy, shuts_down_inside, statuses, NULL));
  assert_int_equal(statuses[0], DIST_FAILED_PRECONDITION);
  assert_int_equal(statuses[1], DIST_FAILED_PRECONDITION);
  assert_ok(dist_scope_enter(strategy));
  assert_fails(dist_strategy_shutdown(strategy, 0), DIST_FAILED_PRECONDITION, "scope");
  assert_ok(dist_scope_exit(strategy));
  assert_healthy(DIST_THREADS_CALLER, strategy);
  assert_ok(dist_strategy_shutdown(strategy, 0));
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(idle_strategies),
      cmocka_unit_test(a_stuck_replica),
      cmocka_unit_test(runs_that_end_in_time),
      cmocka_unit_test(a_stuck_host_thread),
      cmocka_unit_test(calls_that_come_later),
      cmocka_unit_test(a_stuck_logical_device),
      cmocka_unit_test(a_run_inside_a_merge_function),
      cmocka_unit_test(what_is_left_of_it),
      cmocka_unit_test(refusals_leave_it_as_it_was),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
