/* SPDX-License-Identifier: Apache-2.0
 *
 * Versions: each one is released exactly once. Covers obstacles: runs abandoned at a deadline, host threads
 * that do not arrive, lack of memory, and a fork.
 */
#include "tests/abi/alloc_support.h"
#include "tests/abi/clock.h"
#include "tests/abi/mesh_support.h"
#include "tests/abi/serve/serve_support.h"
#include "tests/abi/version/versions_support.h"

#include <sys/wait.h>
#include <unistd.h>

/* ---- Numbers and errors ---- */

static dist_status refused_in_a_replica(dist_replica *replica, void *user_data) {
  series *s = user_data;
  void *content = NULL;
  EXPECT_FAILS(dist_replica_version(NULL, s->versions, &content, NULL), DIST_INVALID_ARGUMENT,
               "replica is NULL");
  EXPECT_FAILS(dist_replica_version(replica, NULL, &content, NULL), DIST_INVALID_ARGUMENT,
               "versions is NULL");
  EXPECT_FAILS(dist_replica_version(replica, s->versions, NULL, NULL), DIST_INVALID_ARGUMENT,
               "out_content is NULL");
  if (dist_versions_latest(s->versions) == 0) {
    EXPECT_FAILS(dist_replica_version(replica, s->versions, &content, NULL), DIST_FAILED_PRECONDITION,
                 "no version has been published");
    EXPECT(content == NULL);
    return DIST_OK;
  }
  TRY(dist_replica_version(replica, s->versions, &content, NULL));
  EXPECT(content != NULL);
  EXPECT_FAILS(dist_versions_await(s->versions, 1, 0), DIST_FAILED_PRECONDITION, "function of replica");
  return DIST_OK;
}

static void numbers_and_errors(void **state) {
  (void)state;
  dist_versions *versions = NULL;
  assert_fails(dist_versions_create(NULL, NULL), DIST_INVALID_ARGUMENT, "out_versions is NULL");
  dist_allocator half = {refusing_alloc, NULL, NULL};
  assert_fails(dist_versions_create(&half, &versions), DIST_INVALID_ARGUMENT,
               "only one of alloc and free is set");
  assert_null(versions);
  assert_int_equal(dist_versions_latest(NULL), 0);
  dist_versions_destroy(NULL);

  series *s = series_with(NULL);
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  assert_int_equal(dist_versions_latest(s->versions), 0);
  assert_fails(dist_versions_publish(NULL, s, NULL, NULL, NULL), DIST_INVALID_ARGUMENT, "versions is NULL");
  assert_fails(dist_versions_publish(s->versions, NULL, NULL, NULL, NULL), DIST_INVALID_ARGUMENT,
               "content is NULL");
  assert_fails(dist_versions_await(NULL, 1, 0), DIST_INVALID_ARGUMENT, "versions is NULL");
  assert_fails(dist_versions_await(s->versions, 1, 0), DIST_INVALID_ARGUMENT, "no version has been published");
  assert_ok(dist_run(strategy, refused_in_a_replica, s, NULL));
  for (int64_t i = 1; i <= 3; i++) {
    assert_int_equal(publish(s), i);
    assert_int_equal(dist_versions_latest(s->versions), i);
    assert_int_equal(atomic_load(&s->released), i - 1);
    assert_true(i == 1 || pthread_equal(s->last_release, pthread_self()));
    assert_ok(dist_versions_await(s->versions, i, 0));
  }
  assert_fails(dist_versions_await(s->versions, 4, 0), DIST_INVALID_ARGUMENT,
               "number is 4, but the published versions are 1 to 3");
  assert_fails(dist_versions_await(s->versions, 0, 0), DIST_INVALID_ARGUMENT, "number is 0");
  assert_ok(dist_run(strategy, refused_in_a_replica, s, NULL));
  /* Published without a function and a number, and destroyed while one version exists. */
  int content = 0;
  assert_ok(dist_versions_publish(s->versions, &content, NULL, NULL, NULL));
  assert_int_equal(dist_versions_latest(s->versions), 4);
  end_series(s);
  assert_ok(dist_strategy_destroy(strategy));
}

static void a_default_replica_is_in_no_run(void **state) {
  (void)state;
  series *s = series_with(NULL);
  (void)publish(s);
  dist_replica *replica = dist_get_replica();
  void *content = NULL;
  assert_non_null(replica);
  assert_fails(dist_replica_version(replica, s->versions, &content, NULL), DIST_FAILED_PRECONDITION,
               "default replica");
  end_series(s);
}

/* ---- Where versions are released ---- */

typedef struct destroying {
  series *s;
  dist_strategy *strategy;
  int64_t expected;
  atomic_int runs; /* runs started by release functions */
} destroying;

static void release_and_run(void *content, void *user_data) {
  (void)content;
  destroying *d = user_data;
  if (dist_run(d->strategy, healthy, NULL, NULL) == DIST_OK) atomic_fetch_add(&d->runs, 1);
}

static dist_status replace_inside(dist_replica *replica, void *user_data) {
  destroying *d = user_data;
  void *content = NULL;
  TRY(dist_replica_version(replica, d->s->versions, &content, NULL));
  TRY(dist_barrier(replica, NULL, NULL));
  if (dist_replica_id(replica) == 1) TRY(dist_versions_publish(d->s->versions, d, release_and_run, d, NULL));
  return dist_barrier(replica, NULL, NULL);
}

/* libdist holds no lock while it calls the release function, which may do everything that the run's caller
 * may do. */
static void released_by_the_callers_thread(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; threads++) {
    destroying d = {.s = series_with(NULL), .strategy = strategy_of(2, threads)};
    assert_ok(dist_versions_publish(d.s->versions, &d, release_and_run, &d, NULL));
    for (int i = 1; i <= 3; i++) {
      assert_ok(dist_run(d.strategy, replace_inside, &d, NULL));
      assert_int_equal(atomic_load(&d.runs), i);
    }
    end_series(d.s);
    assert_int_equal(atomic_load(&d.runs), 4);
    assert_ok(dist_strategy_destroy(d.strategy));
  }
}

static dist_status destroy_inside(dist_replica *replica, void *user_data) {
  destroying *d = user_data;
  TRY(see_number(replica, d->s, d->expected));
  TRY(dist_barrier(replica, NULL, NULL));
  if (dist_replica_id(replica) == 0) dist_versions_destroy(d->s->versions);
  if (atomic_load(&d->s->released) != 0) return dist_fail(DIST_DATA_LOSS, SEE_TORN);
  return dist_barrier(replica, NULL, NULL);
}

static void a_series_ends_under_its_run(void **state) {
  (void)state;
  destroying d = {.s = series_with(NULL), .strategy = strategy_of(3, DIST_THREADS_CALLER)};
  d.expected = publish(d.s);
  assert_ok(dist_run(d.strategy, destroy_inside, &d, NULL));
  assert_int_equal(atomic_load(&d.s->released), 1);
  d.s->versions = NULL;
  end_series(d.s);
  assert_ok(dist_strategy_destroy(d.strategy));
}

/* ---- Runs that are abandoned at a deadline ---- */

typedef struct late {
  series *s;
  int64_t expected;
  int32_t who; /* the replica or device that is late */
  held at;
} late;

static dist_status be_late(dist_replica *replica, void *user_data) {
  late *l = user_data;
  TRY(see_number(replica, l->s, l->expected));
  if (dist_replica_id(replica) != l->who) return DIST_OK;
  gate_add(&l->at.inside);
  gate_await(&l->at.released, 1);
  /* The run has ended for its caller, but not for this replica. */
  const dist_status seen = see_number(replica, l->s, l->expected);
  if (seen != DIST_OK) atomic_fetch_add(&l->s->bad, 1);
  return seen;
}

static dist_status see_latest(dist_replica *replica, void *user_data) {
  late *l = user_data;
  return see_number(replica, l->s, dist_versions_latest(l->s->versions));
}

/* Abandons a run while replica 1 is inside. */
static void leave_a_run(dist_strategy *strategy, late *l) {
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  options.timeout_ns = 1000000;
  assert_fails(dist_run(strategy, be_late, l, &options), DIST_DEADLINE_EXCEEDED,
               "have not returned from their functions");
  gate_await(&l->at.inside, 1);
}

static void a_run_that_is_left(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; threads++) {
    dist_strategy *strategy = strategy_of(2, threads);
    late l = {series_with(NULL), 0, 1, HELD_INIT};
    l.expected = publish(l.s);
    leave_a_run(strategy, &l);
    (void)publish(l.s);
    assert_int_equal(atomic_load(&l.s->released), 0);
    assert_int_equal(dist_run(strategy, see_latest, &l, NULL), DIST_FAILED_PRECONDITION);
    assert_fails(dist_versions_await(l.s->versions, 2, 0), DIST_DEADLINE_EXCEEDED, "version 1 (1 run)");
    gate_add(&l.at.released);
    while (dist_run(strategy, see_latest, &l, NULL) != DIST_OK) sched_yield();
    assert_ok(dist_versions_await(l.s->versions, 2, 0));
    assert_int_equal(atomic_load(&l.s->released), 1);
    assert_ok(dist_strategy_destroy(strategy));
    end_series(l.s);
  }
}

static void a_strategy_ends_after_one(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  late l = {series_with(NULL), 0, 1, HELD_INIT};
  l.expected = publish(l.s);
  leave_a_run(strategy, &l);
  (void)publish(l.s);
  gate_add(&l.at.released);
  while (dist_strategy_destroy(strategy) != DIST_OK) sched_yield();
  assert_ok(dist_versions_await(l.s->versions, 2, 0));
  end_series(l.s);
}

static dist_status late_device(dist_replica *device, dist_value *args, dist_value *kwargs,
                               dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)out_result;
  return be_late(device, user_data);
}

/* Device 1 is still inside when the run of the replicas has ended. */
static dist_status leave_a_device(dist_replica *replica, void *user_data) {
  dist_devices_options options = DIST_DEVICES_OPTIONS_INIT;
  options.timeout_ns = 1000000;
  dist_value *result = NULL;
  EXPECT_FAILS(dist_run_on_devices(replica, late_device, user_data, NULL, NULL, &options, &result),
               DIST_DEADLINE_EXCEEDED, "have not returned from their functions");
  return DIST_OK;
}

static dist_status use_devices(dist_replica *replica, void *user_data) {
  dist_value *result = NULL;
  late *l = user_data;
  l->who = -1;
  return dist_run_on_devices(replica, late_device, l, NULL, NULL, NULL, &result);
}

static void check_late_device(int as_request) {
  dist_strategy_options with = DIST_STRATEGY_OPTIONS_INIT;
  with.threads = DIST_THREADS_LIBRARY;
  dist_strategy *strategy = mesh_with(1, 2, with);
  late l = {series_with(NULL), 0, 1, HELD_INIT};
  l.expected = publish(l.s);
  if (as_request) {
    assert_int_equal(end_of(submit(strategy, leave_a_device, &l, NULL)), DIST_OK);
  } else {
    assert_ok(dist_run(strategy, leave_a_device, &l, NULL));
  }
  gate_await(&l.at.inside, 1);
  for (int i = 1; i <= 3; i++) {
    (void)publish(l.s);
    assert_ok(dist_run(strategy, see_latest, &l, NULL));
    assert_int_equal(end_of(submit(strategy, see_latest, &l, NULL)), DIST_OK);
    /* The versions that these have seen are released, but the device's version is not. */
    assert_int_equal(atomic_load(&l.s->released), i - 1);
    assert_fails(dist_versions_await(l.s->versions, 2, 0), DIST_DEADLINE_EXCEEDED, "version 1 (1 run)");
  }
  gate_add(&l.at.released);
  /* As soon as a run on devices is accepted, the device has left. */
  late after = {l.s, dist_versions_latest(l.s->versions), -1, HELD_INIT};
  while (dist_run(strategy, use_devices, &after, NULL) != DIST_OK) sched_yield();
  assert_int_equal(end_of(submit(strategy, use_devices, &after, NULL)), DIST_OK);
  assert_ok(dist_versions_await(l.s->versions, 4, 0));
  assert_int_equal(atomic_load(&l.s->released), 3);
  assert_ok(dist_strategy_destroy(strategy));
  end_series(l.s);
}

static void devices_that_are_left(void **state) {
  (void)state;
  check_late_device(0);
  check_late_device(1);
}

/* ---- Host threads ---- */

typedef struct visit {
  dist_strategy *strategy;
  late *l;
  int32_t id;
  dist_status status;
  gate *leave;
} visit;

static void *visit_main(void *argument) {
  visit *v = argument;
  dist_replica *replica = NULL;
  v->status = dist_replica_enter(v->strategy, v->id, &replica);
  if (v->status != DIST_OK) return NULL;
  const dist_status seen = see_number(replica, v->l->s, v->l->expected);
  gate_add(&v->l->at.inside);
  gate_await(v->leave, 1);
  v->status = dist_replica_leave(replica, seen);
  return NULL;
}

static void threads_of_the_host(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_HOST);
  late l = {series_with(NULL), 0, 0, HELD_INIT};
  for (int round = 0; round < 3; round++) {
    l.expected = publish(l.s);
    gate leave[2] = {GATE_INIT, GATE_INIT};
    visit visits[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
      visits[i] = (visit){strategy, &l, i, DIST_INTERNAL, &leave[i]};
      assert_int_equal(pthread_create(&threads[i], NULL, visit_main, &visits[i]), 0);
      gate_await(&l.at.inside, 2 * round + i + 1);
      /* The other replica enters later and sees the same version. */
      if (i == 0) (void)publish(l.s);
    }
    gate_add(&leave[0]);
    assert_fails(dist_versions_await(l.s->versions, l.expected + 1, 0), DIST_DEADLINE_EXCEEDED, "(1 run)");
    gate_add(&leave[1]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) assert_int_equal(visits[i].status, DIST_OK);
    assert_ok(dist_versions_await(l.s->versions, l.expected + 1, 0));
    assert_int_equal(atomic_load(&l.s->released), 2 * round + 1);
  }
  assert_ok(dist_strategy_destroy(strategy));
  end_series(l.s);
}

/* Replica 1 never enters. The run ends when replica 0 returns. */
static void a_run_that_is_given_up(void **state) {
  (void)state;
  static stepping_clock clock;
  dist_strategy *strategy = strategy_with(by_clock(&clock, 2, DIST_THREADS_HOST));
  late l = {series_with(NULL), 0, 0, HELD_INIT};
  l.expected = publish(l.s);
  for (int i = 0; i < 3; i++) {
    gate open = GATE_INIT;
    gate_add(&open);
    visit v = {strategy, &l, 0, DIST_INTERNAL, &open};
    atomic_store(&clock.step_ns, 3600000000000); /* longer than any wait */
    (void)visit_main(&v);
    assert_int_equal(v.status, DIST_DEADLINE_EXCEEDED);
    assert_int_equal(atomic_load(&l.s->released), i);
    l.expected = publish(l.s);
    assert_int_equal(atomic_load(&l.s->released), i);
  }
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(atomic_load(&l.s->released), 3);
  end_series(l.s);
}

/* ---- Lack of memory ---- */

enum { SERIES = 3 };

static dist_status see_several(dist_replica *replica, void *user_data) {
  series **all = user_data;
  for (int i = 0; i < SERIES; i++) TRY(see_number(replica, all[i], 1));
  return DIST_OK;
}

static void a_strategy_without_memory(void **state) {
  (void)state;
  static refusals a;
  a = (refusals){.refuse_at = -1};
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = 1;
  host.allocator = refusing(&a);
  series *all[SERIES];
  for (int i = 0; i < SERIES; i++) {
    all[i] = series_with(NULL);
    (void)publish(all[i]);
  }
  dist_strategy *strategy = strategy_with(options);
  /* Seeing a series allocates memory once, which is then reused. */
  for (int i = 0; i < SERIES; i++) {
    atomic_store(&a.refuse_at, atomic_load(&a.requests));
    assert_fails(dist_run(strategy, see_several, all, NULL), DIST_RESOURCE_EXHAUSTED, "out of memory");
    atomic_store(&a.refuse_at, -1);
    if (i + 1 < SERIES) {
      series *fewer[SERIES];
      for (int k = 0; k < SERIES; k++) fewer[k] = all[k <= i ? k : 0];
      assert_ok(dist_run(strategy, see_several, fewer, NULL));
    }
  }
  assert_ok(dist_run(strategy, see_several, all, NULL));
  const long requests = atomic_load(&a.requests);
  for (int i = 0; i < 100; i++) assert_ok(dist_run(strategy, see_several, all, NULL));
  assert_int_equal(atomic_load(&a.requests), requests);
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(atomic_load(&a.live_bytes), 0);
  for (int i = 0; i < SERIES; i++) end_series(all[i]);
}

static void a_series_without_memory(void **state) {
  (void)state;
  static refusals a;
  a = (refusals){.refuse_at = -1};
  const dist_allocator allocator = refusing(&a);
  int k = 0;
  for (int refused = 1; refused; k++) {
    atomic_store(&a.refuse_at, atomic_load(&a.requests) + k);
    dist_versions *versions = NULL;
    dist_status status = dist_versions_create(&allocator, &versions);
    int64_t number = 0;
    int content = 0;
    for (int i = 1; i <= 2 && status == DIST_OK; i++) {
      status = dist_versions_publish(versions, &content, NULL, NULL, &number);
      assert_int_equal(dist_versions_latest(versions), status == DIST_OK ? i : i - 1);
      assert_int_equal(number, status == DIST_OK ? i : i - 1);
    }
    refused = status != DIST_OK;
    assert_true(!refused || status == DIST_RESOURCE_EXHAUSTED);
    dist_versions_destroy(versions);
    assert_int_equal(atomic_load(&a.live_bytes), 0);
  }
  assert_int_equal(k, 5); /* the Memory object, the series and two versions; then no more */
}

/* ---- A forked child ---- */

#define MUST_REFUSE(call) \
  bad |= (call) != DIST_FAILED_PRECONDITION || strstr(dist_last_error(), "forked") == NULL

static dist_status see_in_the_child(dist_replica *replica, void *user_data) {
  void *content = NULL;
  return dist_replica_version(replica, ((series *)user_data)->versions, &content, NULL);
}

static dist_status fork_inside(dist_replica *replica, void *user_data) {
  series *s = user_data;
  int64_t number = 0;
  TRY(see(replica, s, &number));
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    int bad = 0;
    void *content = NULL;
    MUST_REFUSE(dist_replica_version(replica, s->versions, &content, NULL));
    MUST_REFUSE(dist_versions_publish(s->versions, s, release_model, s, NULL));
    MUST_REFUSE(dist_versions_await(s->versions, 1, 0));
    bad |= dist_versions_latest(s->versions) != number;
    dist_strategy *own = NULL;
    bad |= dist_strategy_create(NULL, &own) != DIST_OK;
    MUST_REFUSE(dist_run(own, see_in_the_child, s, NULL));
    dist_versions_destroy(s->versions);
    bad |= atomic_load(&s->released) != 0;
    _exit(bad);
  }
  int status = 0;
  EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  return DIST_OK;
}

static void a_forked_child(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_CALLER);
  series *s = series_with(NULL);
  (void)publish(s);
  assert_ok(dist_run(strategy, fork_inside, s, NULL));
  (void)publish(s);
  assert_int_equal(atomic_load(&s->released), 1);
  assert_ok(dist_strategy_destroy(strategy));
  end_series(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_and_errors),
      cmocka_unit_test(a_default_replica_is_in_no_run),
      cmocka_unit_test(released_by_the_callers_thread),
      cmocka_unit_test(a_series_ends_under_its_run),
      cmocka_unit_test(a_run_that_is_left),
      cmocka_unit_test(a_strategy_ends_after_one),
      cmocka_unit_test(devices_that_are_left),
      cmocka_unit_test(threads_of_the_host),
      cmocka_unit_test(a_run_that_is_given_up),
      cmocka_unit_test(a_strategy_without_memory),
      cmocka_unit_test(a_series_without_memory),
      cmocka_unit_test(a_forked_child),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
