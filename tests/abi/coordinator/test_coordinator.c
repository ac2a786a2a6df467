/* SPDX-License-Identifier: Apache-2.0
 *
 * A coordinator, parameter servers and workers in one process, over loopback. test_coordinator_processes.c
 * tests them as separate processes.
 */
#include <dist/experimental/coordinator.h>
#include <dist/experimental/rpc.h>
#include <dist/experimental/server.h>
#include "cluster_of_servers.h"

#include <pthread.h>

/* ---- Closures ---- */

static atomic_int released;
static void count_release(void *user_data) {
  (void)user_data;
  atomic_fetch_add(&released, 1);
}

static dist_status fails(dist_closure *closure, dist_value *arguments, dist_value **out_result,
                         void *user_data) {
  (void)out_result, (void)user_data;
  dist_value *one = number(1);
  const dist_status status = dist_closure_assign(closure, "v", DIST_ASSIGN_ADD, one);
  dist_value_release(one);
  if (status != DIST_OK) return status;
  return dist_fail(DIST_OUT_OF_RANGE,
                   dist_value_text(arguments) != NULL ? dist_value_text(arguments) : "boom");
}

static dist_status which(dist_closure *closure, dist_value *arguments, dist_value **out_result,
                         void *user_data) {
  (void)arguments, (void)user_data;
  if (strcmp(dist_closure_name(closure), "which") != 0) return DIST_INTERNAL;
  *out_result = number((float)dist_closure_worker(closure));
  return DIST_OK;
}

/* A per-worker value, which counts. */
typedef struct counter {
  atomic_int at;
} counter;
static void free_counter(void *object) { free(object); }
static atomic_int made_by; /* the number of the closure that created one */
static dist_status make_counter(dist_closure *closure, dist_value *arguments, dist_value **out_result,
                                void *user_data) {
  (void)arguments, (void)user_data;
  atomic_store(&made_by, (int)dist_closure_id(closure));
  counter *made = calloc(1, sizeof *made);
  return dist_value_wrap_object(dist_get_strategy(), made, free_counter, out_result);
}
static dist_status count(dist_closure *closure, dist_value *arguments, dist_value **out_result,
                         void *user_data) {
  (void)arguments, (void)user_data;
  dist_value *own = NULL;
  const dist_status status = dist_closure_per_worker(closure, "counter", &own);
  if (status != DIST_OK) return status;
  counter *mine = dist_value_object(own);
  *out_result = number((float)atomic_fetch_add(&mine->at, 1));
  dist_value_release(own);
  return DIST_OK;
}

/* Waits until it is released or cancelled. */
typedef struct gate {
  atomic_int inside, open, cancelled;
} gate;
static gate the_gate;
static dist_status wait_at(dist_closure *closure, dist_value *arguments, dist_value **out_result,
                           void *user_data) {
  (void)arguments, (void)out_result, (void)user_data;
  atomic_fetch_add(&the_gate.inside, 1);
  while (!atomic_load(&the_gate.open)) {
    if (dist_cancel_signalled(dist_closure_cancel(closure))) {
      atomic_fetch_add(&the_gate.cancelled, 1);
      return dist_fail(DIST_CANCELLED, "cancelled");
    }
    usleep(200);
  }
  return DIST_OK;
}
static void await(atomic_int *what, int wanted) {
  while (atomic_load(what) < wanted) usleep(200);
}

static dist_status read_v(dist_closure *closure, dist_value *arguments, dist_value **out_result,
                          void *user_data) {
  (void)arguments;
  const char *name = user_data;
  return dist_closure_read(closure, &name, 1, out_result);
}

static void register_all(dist_server *server, void *user_data) {
  (void)user_data;
  assert_ok(dist_server_register(server, "add_and_double", add_and_double, NULL, count_release));
  assert_ok(dist_server_register(server, "fails", fails, NULL, NULL));
  assert_ok(dist_server_register(server, "which", which, NULL, NULL));
  assert_ok(dist_server_register(server, "make_counter", make_counter, NULL, NULL));
  assert_ok(dist_server_register(server, "count", count, NULL, NULL));
  assert_ok(dist_server_register(server, "wait", wait_at, NULL, NULL));
  assert_ok(dist_server_register(server, "read_v", read_v, (void *)"v", NULL));
  assert_ok(dist_server_register(server, "read_stale", read_v, (void *)"stale", NULL));
}

/* ---- Effects and results ---- */

static void closures_change_variables_and_give_values(void **state) {
  (void)state;
  cluster c;
  begin_cluster(&c, 2, 2, register_all, NULL, NULL);
  create_number(&c, "v", 0);
  dist_remote_value *remotes[7];
  for (int i = 0; i < 7; ++i) remotes[i] = schedule(&c, "add_and_double", number((float)i + 1));
  join(&c);
  for (int i = 0; i < 7; ++i) assert_true(fetch(remotes[i]) == 2.0F * ((float)i + 1));
  assert_true(read_number(&c, "v") == 28);
  int32_t done = 0;
  assert_ok(dist_coordinator_done(c.coordinator, &done));
  assert_int_equal(done, 1);
  join(&c);
  dist_coordinator_stats stats = DIST_COORDINATOR_STATS_INIT;
  assert_ok(dist_coordinator_query(c.coordinator, &stats));
  assert_int_equal(stats.completed, 7);
  assert_int_equal(stats.mark, 7);
  /* One worker may have run all of them before the other was connected. */
  while (stats.workers_up < 2) {
    sched_yield();
    assert_ok(dist_coordinator_query(c.coordinator, &stats));
  }
  assert_true(stats.bytes_sent > 7 * 4 && stats.bytes_received > 7 * 4);
  const int before = atomic_load(&released);
  end_cluster(&c);
  assert_int_equal(atomic_load(&released), before + 4);
}

static void servers_end_with_their_coordinator(void **state) {
  (void)state;
  cluster c;
  begin_cluster(&c, 1, 1, register_all, NULL, NULL);
  create_number(&c, "v", 0);
  assert_fails(dist_server_join(c.ps[0], 0, NULL), DIST_DEADLINE_EXCEEDED, "continues to run");
  dist_remote_value_release(schedule(&c, "which", NULL));
  join(&c);
  dist_coordinator_destroy(c.coordinator);
  assert_ok(dist_server_join(c.ps[0], -1, NULL));
  assert_ok(dist_server_join(c.workers[0], -1, NULL));
  c.coordinator = NULL;
  end_cluster(&c);
}

/* A thread that waits with its own cancel object for a server to end. */
typedef struct joiner {
  dist_server *server;
  dist_cancel *cancel;
  dist_status status;
  pthread_t thread;
} joiner;
static void *join_server(void *user_data) {
  joiner *self = user_data;
  self->status = dist_server_join(self->server, -1, self->cancel);
  return NULL;
}

static void waits_for_a_server_end_each_by_its_own(void **state) {
  (void)state;
  enum { N = 8 };
  dist_server *server = NULL;
  char address[64];
  start_server(&server, address, NULL, NULL);
  joiner all[N];
  for (int i = 0; i < N; ++i) {
    all[i] = (joiner){server, NULL, DIST_UNKNOWN, 0};
    assert_ok(dist_cancel_create(NULL, &all[i].cancel));
    assert_int_equal(pthread_create(&all[i].thread, NULL, join_server, &all[i]), 0);
  }
  for (int i = 0; i < N / 2; ++i) {
    assert_ok(dist_cancel_signal(all[i].cancel, "enough"));
    /* A wait that begins and ends in the meantime does not consume another one's signal. */
    assert_fails(dist_server_join(server, 0, NULL), DIST_DEADLINE_EXCEEDED, "continues to run");
    assert_int_equal(pthread_join(all[i].thread, NULL), 0);
    assert_int_equal(all[i].status, DIST_CANCELLED);
  }
  dist_server_stop(server);
  for (int i = 0; i < N; ++i) {
    if (i >= N / 2) assert_int_equal(pthread_join(all[i].thread, NULL), 0);
    assert_int_equal(all[i].status, i < N / 2 ? DIST_CANCELLED : DIST_OK);
    dist_cancel_destroy(all[i].cancel);
  }
  assert_ok(dist_server_destroy(server));
}

static void errors_come_out_once(void **state) {
  (void)state;
  cluster c;
  begin_cluster(&c, 1, 1, register_all, NULL, NULL);
  create_number(&c, "v", 0);
  dist_remote_value *bad = schedule(&c, "fails", NULL);
  dist_value *value = NULL;
  assert_fails(dist_remote_value_get(bad, -1, &value), DIST_OUT_OF_RANGE, "boom");
  int32_t done = 0;
  assert_fails(dist_coordinator_done(c.coordinator, &done), DIST_OUT_OF_RANGE,
               "closure 0 (fails) on worker 0");
  assert_ok(dist_coordinator_done(c.coordinator, &done));
  assert_int_equal(done, 1);
  assert_true(fetch(schedule(&c, "add_and_double", number(3))) == 6);
  join(&c);
  assert_fails(dist_remote_value_get(bad, -1, &value), DIST_OUT_OF_RANGE, "boom");
  dist_remote_value_release(bad);
  /* A failed closure changes no variable. */
  assert_true(read_number(&c, "v") == 3);
  dist_remote_value_release(schedule(&c, "nothing of this name", NULL));
  assert_fails(dist_coordinator_join(c.coordinator, -1, NULL), DIST_NOT_FOUND,
               "has no closure nothing of this name");
  join(&c);
  end_cluster(&c);
}

static void an_error_cancels_what_waits(void **state) {
  (void)state;
  cluster c;
  memset(&the_gate, 0, sizeof the_gate);
  begin_cluster(&c, 1, 2, register_all, NULL, NULL);
  create_number(&c, "v", 0);
  dist_remote_value *running = schedule(&c, "wait", NULL);
  await(&the_gate.inside, 1);
  dist_remote_value *bad = schedule(&c, "fails", NULL);
  dist_value *value = NULL;
  assert_int_equal(dist_remote_value_get(bad, -1, &value), DIST_OUT_OF_RANGE);
  /* The running closure is asked to end. The error is that of the first closure that failed. */
  await(&the_gate.cancelled, 1);
  assert_fails(dist_coordinator_join(c.coordinator, -1, NULL), DIST_OUT_OF_RANGE, "boom");
  dist_remote_value_release(running);
  dist_remote_value_release(bad);
  assert_true(read_number(&c, "v") == 0);
  assert_true(fetch(schedule(&c, "add_and_double", number(1))) == 2);
  end_cluster(&c);
}

static void each_worker_has_its_own(void **state) {
  (void)state;
  cluster c;
  begin_cluster(&c, 1, 2, register_all, NULL, NULL);
  create_number(&c, "v", 0);
  dist_coordinator_stats stats = DIST_COORDINATOR_STATS_INIT;
  while (stats.workers_up != 2) {
    assert_ok(dist_coordinator_query(c.coordinator, &stats));
    usleep(1000);
  }
  assert_ok(dist_coordinator_create_per_worker(c.coordinator, "counter", "make_counter", NULL));
  assert_int_equal(atomic_load(&made_by), -1);
  assert_fails(dist_coordinator_create_per_worker(c.coordinator, "counter", "make_counter", NULL),
               DIST_ALREADY_EXISTS, "\"counter\"");
  assert_fails(dist_coordinator_create_per_worker(c.coordinator, "other", "nowhere", NULL), DIST_NOT_FOUND,
               "nowhere");
  /* It was not created, so the name is free. */
  assert_ok(dist_coordinator_create_per_worker(c.coordinator, "other", "make_counter", NULL));
  /* Workers take turns. */
  dist_remote_value *first = schedule(&c, "count", NULL), *second = schedule(&c, "count", NULL);
  assert_true(fetch(first) == 0);
  assert_true(fetch(second) == 0);
  const float a = fetch(schedule(&c, "which", NULL)), b = fetch(schedule(&c, "which", NULL));
  assert_true((a == 0 && b == 1) || (a == 1 && b == 0));
  end_cluster(&c);
}

static void cached_reads_are_as_old_as_they_may_be(void **state) {
  (void)state;
  cluster c;
  begin_cluster(&c, 1, 1, register_all, NULL, NULL);
  create_number(&c, "v", 0);
  const float zero = 0;
  const dist_tensor tensor = {(void *)&zero, DIST_F32, 0, NULL, NULL};
  dist_ps_variable_options options = DIST_PS_VARIABLE_OPTIONS_INIT;
  options.max_staleness = 2;
  assert_ok(dist_coordinator_create_variable(c.coordinator, "stale", &tensor, &options));
  /* Read at closure 0, and again at closure 3, because the values for 1 and 2 may be that old. */
  static const float wanted[] = {1, 1, 1, 4, 4, 4, 7};
  for (int i = 0; i < 7; ++i) {
    dist_value *now = number((float)i + 1);
    assert_ok(dist_coordinator_assign(c.coordinator, "stale", DIST_ASSIGN, now));
    dist_value_release(now);
    assert_true(fetch(schedule(&c, "read_stale", NULL)) == wanted[i]);
  }
  end_cluster(&c);
}

static void a_strategy_has_one_coordinator(void **state) {
  (void)state;
  cluster c;
  begin_cluster(&c, 1, 1, NULL, NULL, NULL);
  dist_coordinator *second = NULL;
  assert_ok(dist_coordinator_create(c.strategy, NULL, &second));
  assert_ptr_equal(second, c.coordinator);
  assert_fails(dist_strategy_destroy(c.strategy), DIST_FAILED_PRECONDITION, "coordinator");
  dist_coordinator_destroy(second);
  create_number(&c, "v", 3);
  assert_true(read_number(&c, "v") == 3);
  dist_strategy *other = NULL;
  assert_ok(dist_strategy_create(NULL, &other));
  assert_fails(dist_coordinator_create(other, NULL, &second), DIST_INVALID_ARGUMENT, "PARAMETER_SERVER");
  assert_ok(dist_strategy_destroy(other));
  end_cluster(&c);
}

/* ---- Waits ---- */

static void a_full_queue_is_waited_for(void **state) {
  (void)state;
  cluster c;
  memset(&the_gate, 0, sizeof the_gate);
  dist_coordinator_options options = DIST_COORDINATOR_OPTIONS_INIT;
  options.max_queued = 2;
  begin_cluster(&c, 1, 1, register_all, NULL, &options);
  create_number(&c, "v", 0);
  dist_remote_value_release(schedule(&c, "wait", NULL));
  dist_remote_value *queued = schedule(&c, "which", NULL);
  dist_schedule_options now = DIST_SCHEDULE_OPTIONS_INIT;
  now.timeout_ns = 1000000;
  assert_fails(dist_coordinator_schedule(c.coordinator, "which", NULL, &now, NULL), DIST_DEADLINE_EXCEEDED,
               "place");
  assert_fails(dist_coordinator_join(c.coordinator, 1000000, NULL), DIST_DEADLINE_EXCEEDED,
               "waiting for closures");
  dist_cancel *cancel = NULL;
  assert_ok(dist_cancel_create(NULL, &cancel));
  assert_ok(dist_cancel_signal(cancel, "enough"));
  assert_fails(dist_coordinator_join(c.coordinator, -1, cancel), DIST_CANCELLED, "enough");
  dist_cancel_destroy(cancel);
  dist_value *value = NULL;
  assert_fails(dist_remote_value_get(queued, 1000000, &value), DIST_DEADLINE_EXCEEDED,
               "closure 1 (which) is not available yet. The closure continues to run.");
  /* A queued closure can be cancelled. */
  dist_remote_value_cancel(queued);
  assert_int_equal(dist_remote_value_get(queued, -1, &value), DIST_CANCELLED);
  dist_remote_value_release(queued);
  await(&the_gate.inside, 1);
  atomic_store(&the_gate.open, 1);
  join(&c);
  end_cluster(&c);
}

static void the_end_cancels_what_has_none(void **state) {
  (void)state;
  cluster c;
  memset(&the_gate, 0, sizeof the_gate);
  begin_cluster(&c, 1, 1, register_all, NULL, NULL);
  create_number(&c, "v", 0);
  dist_remote_value *running = schedule(&c, "wait", NULL), *waiting = schedule(&c, "which", NULL);
  await(&the_gate.inside, 1);
  dist_coordinator_destroy(c.coordinator);
  c.coordinator = NULL;
  dist_value *value = NULL;
  assert_fails(dist_remote_value_get(running, -1, &value), DIST_CANCELLED, "the coordinator has ended");
  assert_int_equal(dist_remote_value_get(waiting, -1, &value), DIST_CANCELLED);
  dist_remote_value_release(running);
  dist_remote_value_release(waiting);
  end_cluster(&c);
  assert_int_equal(atomic_load(&the_gate.cancelled), 1);
}

/* Creates a variable, and is inside its partitioner when the coordinator is destroyed. */
typedef struct creator {
  cluster c;
  dist_remote_value *running; /* ends with CANCELLED */
  atomic_int inside;
  dist_status status;
} creator;
static dist_status divide_at_the_end(const dist_tensor *spec, int64_t *out_partitions, void *user_data) {
  creator *self = user_data;
  dist_value *value = NULL;
  atomic_store(&self->inside, 1);
  if (dist_remote_value_get(self->running, -1, &value) != DIST_CANCELLED) return DIST_INTERNAL;
  for (int32_t i = 0; i < spec->ndim; ++i) out_partitions[i] = 1;
  return DIST_OK;
}
static void *create_at_the_end(void *user_data) {
  creator *self = user_data;
  float pair[2] = {0, 0};
  const int64_t two = 2;
  const dist_tensor vector = {pair, DIST_F32, 1, &two, NULL};
  self->status = dist_coordinator_create_variable(self->c.coordinator, "late", &vector, NULL);
  return NULL;
}

static void the_end_waits_for_calls_that_are_inside(void **state) {
  (void)state;
  creator all;
  memset(&all, 0, sizeof all);
  memset(&the_gate, 0, sizeof the_gate);
  dist_coordinator_options options = DIST_COORDINATOR_OPTIONS_INIT;
  options.partitioner = divide_at_the_end;
  options.partitioner_user_data = &all;
  begin_cluster(&all.c, 1, 1, register_all, NULL, &options);
  all.running = schedule(&all.c, "wait", NULL);
  await(&the_gate.inside, 1);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, create_at_the_end, &all), 0);
  await(&all.inside, 1);
  dist_coordinator_destroy(all.c.coordinator);
  all.c.coordinator = NULL;
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(all.status, DIST_CANCELLED);
  dist_remote_value_release(all.running);
  end_cluster(&all.c);
}

static void servers_that_are_not_there_are_named(void **state) {
  (void)state;
  cluster c;
  memset(&c, 0, sizeof c);
  c.num_ps = c.num_workers = 1;
  snprintf(c.addresses[0], 64, "127.0.0.1:1");
  snprintf(c.addresses[1], 64, "127.0.0.1:2");
  c.strategy = cluster_strategy(&c);
  dist_coordinator_options options = DIST_COORDINATOR_OPTIONS_INIT;
  options.timeout_ns = 300000000;
  assert_ok(dist_coordinator_create(c.strategy, &options, &c.coordinator));
  const float zero = 0;
  const dist_tensor tensor = {(void *)&zero, DIST_F32, 0, NULL, NULL};
  /* The first attempt to connect may take longer than the deadline. */
  const char *const cause =
      "/job:ps/task:0 is not connected: server 127.0.0.1:1 cannot be reached: connection refused";
  for (int i = 0; i == 0 || (i < 100 && strstr(dist_last_error(), cause) == NULL); ++i) {
    assert_fails(dist_coordinator_create_variable(c.coordinator, "v", &tensor, NULL), DIST_DEADLINE_EXCEEDED,
                 "/job:ps/task:0 is not connected");
  }
  assert_has(dist_last_error(), cause);
  dist_remote_value_release(schedule(&c, "which", NULL));
  assert_fails(dist_coordinator_join(c.coordinator, 1000000, NULL), DIST_DEADLINE_EXCEEDED, "and 1 more");
  dist_coordinator_destroy(c.coordinator);
  assert_ok(dist_strategy_destroy(c.strategy));
}

/* ---- Rejected calls ---- */

static void what_is_wrong_is_said(void **state) {
  (void)state;
  cluster c;
  begin_cluster(&c, 1, 1, register_all, NULL, NULL);
  create_number(&c, "v", 0);
  const float zero = 0;
  const int64_t two = 2;
  const dist_tensor scalar = {(void *)&zero, DIST_F32, 0, NULL, NULL};
  float pair[2] = {0, 0};
  const dist_tensor vector = {pair, DIST_F32, 1, &two, NULL};
  assert_int_equal(dist_coordinator_create_variable(c.coordinator, "v", &scalar, NULL), DIST_ALREADY_EXISTS);
  assert_int_equal(dist_coordinator_create_variable(c.coordinator, "", &scalar, NULL), DIST_INVALID_ARGUMENT);
  dist_ps_variable_options options = DIST_PS_VARIABLE_OPTIONS_INIT;
  const int64_t none[] = {0, 1}, many[] = {3}, second[] = {1, 2};
  options.partitions = none;
  options.num_partitions = 2;
  assert_fails(dist_coordinator_create_variable(c.coordinator, "x", &vector, &options), DIST_INVALID_ARGUMENT,
               "[0, 1]");
  options.partitions = many;
  options.num_partitions = 1;
  assert_fails(dist_coordinator_create_variable(c.coordinator, "x", &vector, &options), DIST_INVALID_ARGUMENT,
               "3 parts");
  options.partitions = second;
  options.num_partitions = 2;
  assert_int_equal(dist_coordinator_create_variable(c.coordinator, "x", &vector, &options),
                   DIST_INVALID_ARGUMENT);
  dist_value *value = NULL;
  assert_ok(dist_value_create_tensor(dist_get_strategy(), &vector, &value));
  assert_fails(dist_coordinator_assign(c.coordinator, "v", DIST_ASSIGN, value), DIST_INVALID_ARGUMENT,
               "cannot be assigned");
  assert_int_equal(dist_coordinator_assign(c.coordinator, "x", DIST_ASSIGN, value), DIST_NOT_FOUND);
  dist_value_release(value);
  assert_ok(dist_value_wrap_object(dist_get_strategy(), pair, NULL, &value));
  assert_fails(dist_coordinator_schedule(c.coordinator, "which", value, NULL, NULL), DIST_INVALID_ARGUMENT,
               "cannot be sent");
  dist_value_release(value);
  /* If a result cannot be sent, the closure fails and changes nothing. */
  dist_remote_value_release(schedule(&c, "make_counter", NULL));
  assert_fails(dist_coordinator_join(c.coordinator, -1, NULL), DIST_INVALID_ARGUMENT, "cannot be sent");
  assert_int_equal(atomic_load(&made_by), 0);
  dist_server *server = NULL;
  assert_int_equal(dist_server_create(NULL, "nowhere", 0, NULL, &server), DIST_INVALID_ARGUMENT);
  assert_fails(dist_server_register(c.ps[0], "late", which, NULL, NULL), DIST_FAILED_PRECONDITION, "started");
  end_cluster(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(closures_change_variables_and_give_values),
      cmocka_unit_test(servers_end_with_their_coordinator),
      cmocka_unit_test(waits_for_a_server_end_each_by_its_own),
      cmocka_unit_test(errors_come_out_once),
      cmocka_unit_test(an_error_cancels_what_waits),
      cmocka_unit_test(each_worker_has_its_own),
      cmocka_unit_test(cached_reads_are_as_old_as_they_may_be),
      cmocka_unit_test(a_strategy_has_one_coordinator),
      cmocka_unit_test(a_full_queue_is_waited_for),
      cmocka_unit_test(the_end_cancels_what_has_none),
      cmocka_unit_test(the_end_waits_for_calls_that_are_inside),
      cmocka_unit_test(servers_that_are_not_there_are_named),
      cmocka_unit_test(what_is_wrong_is_said),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
