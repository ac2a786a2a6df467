/* SPDX-License-Identifier: Apache-2.0
 *
 * Forked children, which have only the thread that forked. Every function returns an error there, also inside
 * a replica's function; all output parameters are set accordingly; and destroy functions accept their
 * handles.
 */
#include <dist/tf.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/abi/mesh_support.h"
#include "tests/abi/replica_calls.h"

enum { R = 3, HANG_S = 60 };

/* Ends a child with a status, and writes a message to the parent's log. */
static void end_child(const char *what, int wrong) {
  if (wrong) {
    fprintf(stderr, "# in the child: %s: %s\n", what, dist_last_error());
    fflush(stderr);
  }
  _exit(wrong ? 1 : 0);
}

static int refused(dist_status status) {
  return status == DIST_FAILED_PRECONDITION && strstr(dist_last_error(), "forked") != NULL;
}
#define MUST_REFUSE(call) \
  if (!refused(call)) end_child(#call, 1)
#define MUST_HOLD(condition) \
  if (!(condition)) end_child(#condition, 1)

/* Like fork(), but a child that hangs is killed by a signal. Library threads leave this signal to the
 * host's. */
static pid_t fork_watched(void) {
  fflush(stderr);
  const pid_t child = fork();
  if (child == 0) {
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    alarm(HANG_S);
  }
  return child;
}

static pid_t test_process;

/* A child that ends inside a run does not free what the run holds, which is not a leak of libdist. */
int __lsan_is_turned_off(void); /* NOLINT(bugprone-reserved-identifier): the sanitizer's name */
int __lsan_is_turned_off(void) { return getpid() != test_process; } /* NOLINT: likewise */

static int ended_well(pid_t child) {
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- Outside runs ---- */

typedef struct everything {
  dist_strategy *strategy;
  call_things things;
  dist_group *group;
  dist_dataset *dataset;
  dist_iterator *iterator;
  dist_cross_device *cross_device;
} everything;

static void no_write(const char *text, size_t n, void *user_data) { (void)text, (void)n, (void)user_data; }
static dist_status no_component(dist_strategy *strategy, const dist_value_context *context, dist_value **out,
                                void *user_data) {
  (void)strategy;
  (void)context, (void)out, (void)user_data;
  return DIST_OK;
}
static void use_strategy(dist_strategy *s) {
  dist_replica *replica = NULL;
  dist_group *group = NULL;
  const int32_t id = 0;
  MUST_REFUSE(dist_run(s, healthy, NULL, NULL));
  MUST_REFUSE(dist_run_values(s, no_values, NULL, NULL, NULL, NULL, NULL));
  MUST_REFUSE(dist_replica_enter(s, 0, &replica));
  MUST_REFUSE(dist_strategy_cancel(s));
  MUST_REFUSE(dist_group_create(s, &id, 1, &group));
  MUST_REFUSE(dist_scope_enter(s));
  MUST_REFUSE(dist_set_strategy(s));
  MUST_REFUSE(dist_strategy_write_trace(s, no_write, NULL));
  MUST_REFUSE(dist_strategy_write_metrics(s, "name", no_write, NULL));
  MUST_REFUSE(dist_strategy_explain(s, no_write, NULL));
}

static void use_values(dist_strategy *s, dist_value *value) {
  dist_value *out = NULL;
  int64_t length = 1;
  float number = 1;
  const dist_tensor tensor = vector_of(&number, DIST_F32, &length);
  MUST_REFUSE(dist_value_create_tensor(s, &tensor, &out));
  MUST_REFUSE(dist_value_create_list(s, &value, 1, &out));
  MUST_REFUSE(dist_values_from_function(s, no_component, NULL, &out));
  MUST_REFUSE(dist_reduce(s, DIST_REDUCE_SUM, value, NULL, 0, &out));
  MUST_REFUSE(dist_gather(s, value, 0, &out));
  MUST_REFUSE(dist_broadcast_to(s, value, NULL, &out));
  MUST_REFUSE(dist_strategy_local_results(s, value, &out));
}

static void use_variables(dist_strategy *s, call_things *t) {
  dist_value *out = NULL;
  dist_variable *variable = NULL;
  dist_metric *metric = NULL;
  double number = 0;
  dist_drift drift = DIST_DRIFT_INIT;
  int64_t length = 1;
  float one = 1;
  const dist_tensor tensor = vector_of(&one, DIST_F32, &length);
  MUST_REFUSE(dist_variable_create(s, &tensor, NULL, &variable));
  MUST_REFUSE(dist_variable_read(s, t->variable, &out));
  MUST_REFUSE(dist_variable_assign(s, t->variable, DIST_ASSIGN, t->value));
  MUST_REFUSE(dist_variable_scatter(s, t->variable, DIST_SCATTER_ADD, t->value));
  MUST_REFUSE(dist_variable_check_drift(s, t->variable, &drift));
  MUST_REFUSE(dist_update(s, t->variable, no_update, NULL, NULL, NULL, NULL, &out));
  MUST_REFUSE(dist_metric_create(s, DIST_METRIC_SUM, NULL, &metric));
  MUST_REFUSE(dist_metric_result(s, t->metric, &number));
  MUST_REFUSE(dist_metric_reset(s, t->metric));
  MUST_REFUSE(dist_checkpoint_save(s, "none.safetensors", &t->variable, 1, NULL));
  MUST_REFUSE(dist_checkpoint_load(s, "none.safetensors", &t->variable, 1, NULL));
}

static void use_the_rest(everything *e) {
  dist_value *out = NULL;
  dist_iterator *iterator = NULL;
  MUST_REFUSE(dist_iterator_next(e->iterator, &out));
  MUST_REFUSE(dist_iterator_create(e->dataset, &iterator));
  MUST_REFUSE(dist_cross_device_reduce(e->cross_device, DIST_REDUCE_SUM, e->things.value, NULL, &out));
  MUST_REFUSE(dist_cross_device_gather(e->cross_device, e->things.value, 0, &out));
}

static void destroy_everything(everything *e) {
  dist_iterator_destroy(e->iterator);
  dist_dataset_destroy(e->dataset);
  dist_cross_device_destroy(e->cross_device);
  end_things(&e->things);
  MUST_HOLD(dist_group_destroy(e->group) == DIST_OK);
  MUST_HOLD(dist_strategy_destroy(e->strategy) == DIST_OK);
}

static everything everything_of(int32_t threads) {
  everything e = {.strategy = strategy_of(R, threads)};
  const int32_t ids[] = {0, 2};
  e.things = things_of(e.strategy);
  assert_ok(dist_group_create(e.strategy, ids, 2, &e.group));
  int64_t shape[] = {12};
  static float rows[12];
  const dist_tensor tensor = {rows, DIST_F32, 1, shape, NULL};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = R;
  assert_ok(dist_dataset_create_from_tensors(e.strategy, &tensor, 1, &options, &e.dataset));
  assert_ok(dist_iterator_create(e.dataset, &e.iterator));
  assert_ok(dist_cross_device_create(NULL, &e.cross_device));
  return e;
}

static void outside_runs(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    everything e = everything_of(threads);
    const pid_t child = fork_watched();
    if (child == 0) {
      use_strategy(e.strategy);
      use_values(e.strategy, e.things.value);
      use_variables(e.strategy, &e.things);
      use_the_rest(&e);
      destroy_everything(&e);
      end_child("done", 0);
    }
    assert_true(ended_well(child));
    assert_healthy(threads, e.strategy);
    destroy_everything(&e);
  }
}

/* ---- Inside a replica's function ---- */

typedef struct inside {
  everything e;
  int32_t who;  /* the replica that forks */
  int wrong;    /* of the replica that forks: the child failed */
  pid_t parent; /* the test's process */
} inside;

static dist_status in_order(dist_replica *replica, inside *in, pid_t child) {
  in->wrong += !ended_well(child);
  return healthy(replica, NULL);
}

static dist_status call_all(dist_replica *replica, void *user_data) {
  inside *in = user_data;
  if (dist_replica_id(replica) != in->who) return healthy(replica, NULL);
  const pid_t child = fork_watched();
  if (child == 0) {
    for (size_t i = 0; i < COUNT_OF(replica_calls); i++)
      if (!refused(replica_calls[i].call(replica, &in->e.things))) end_child(replica_calls[i].name, 1);
    MUST_REFUSE(dist_replica_attach(replica));
    MUST_HOLD(dist_replica_id(replica) == in->who && dist_replica_num_replicas(replica) == R);
    use_strategy(in->e.strategy);
    use_values(in->e.strategy, in->e.things.value);
    use_variables(in->e.strategy, &in->e.things);
    use_the_rest(&in->e);
    destroy_everything(&in->e);
    end_child("done", 0);
  }
  return in_order(replica, in, child);
}

/* Calls on a work in progress and on its group. */
static dist_status call_on_work(dist_replica *replica, void *user_data) {
  inside *in = user_data;
  float numbers[4] = {0};
  int64_t length = 4;
  const dist_tensor t = vector_of(numbers, DIST_F32, &length);
  dist_work *work = NULL;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  dist_status status = DIST_OK;
  pid_t child = -1;
  if (dist_replica_id(replica) == in->who) {
    status = dist_all_reduce(replica, DIST_REDUCE_SUM, &t, (dist_tensor *)&t, 1, &options, &work);
    child = fork_watched();
    if (child == 0) {
      int32_t done = 0;
      size_t index = 0;
      MUST_HOLD(status == DIST_OK);
      MUST_REFUSE(dist_work_test(work, &done));
      MUST_REFUSE(dist_work_wait(work, DIST_NO_TIMEOUT));
      MUST_REFUSE(dist_work_wait_any(&work, 1, DIST_NO_TIMEOUT, &index));
      MUST_REFUSE(dist_work_cancel(work));
      dist_work_destroy(work);
      MUST_HOLD(dist_group_destroy(in->e.group) == DIST_OK);
      end_child("done", 0);
    }
    in->wrong += !ended_well(child);
  }
  if (status == DIST_OK) status = dist_barrier(replica, NULL, NULL);
  if (status == DIST_OK && work == NULL)
    status = dist_all_reduce(replica, DIST_REDUCE_SUM, &t, (dist_tensor *)&t, 1, &options, &work);
  if (status == DIST_OK) status = dist_work_wait(work, DIST_NO_TIMEOUT);
  dist_work_destroy(work);
  return status;
}

/* The child returns from its replica function. */
static dist_status come_out(dist_replica *replica, void *user_data) {
  inside *in = user_data;
  if (dist_replica_id(replica) != in->who) return healthy(replica, NULL);
  const pid_t child = fork_watched();
  return child == 0 ? DIST_OK : in_order(replica, in, child);
}

static dist_status merge_and_come_out(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                      dist_value **out, void *user_data) {
  (void)args, (void)out, (void)kwargs;
  inside *in = user_data;
  const pid_t child = fork_watched();
  if (child == 0) {
    use_strategy(strategy);
    return DIST_OK;
  }
  in->wrong += !ended_well(child);
  return DIST_OK;
}
static dist_status fork_in_merge(dist_replica *replica, void *user_data) {
  inside *in = user_data;
  const dist_status status = dist_merge_call(replica, merge_and_come_out, user_data, NULL, NULL, NULL, NULL);
  if (getpid() != in->parent)
    end_child("merge_call", !refused(status) || !refused(dist_barrier(replica, NULL, NULL)));
  return status == DIST_OK ? healthy(replica, NULL) : status;
}

/* The child returns from an operator into the middle of a collective. */
static inside *of_operator;
static void add_and_come_out(void *acc, const void *in, int64_t count, dist_dtype dtype, void *user_data) {
  (void)dtype;
  atomic_flag *forked = user_data;
  if (getpid() == of_operator->parent && !atomic_flag_test_and_set(forked)) {
    const pid_t child = fork_watched();
    if (child != 0) of_operator->wrong += !ended_well(child);
  }
  for (int64_t i = 0; i < count; i++) ((float *)acc)[i] += ((const float *)in)[i];
}
static dist_status fork_in_operator(dist_replica *replica, void *user_data) {
  inside *in = user_data;
  static atomic_flag forked = ATOMIC_FLAG_INIT;
  float numbers[4] = {0};
  int64_t length = 4;
  dist_tensor t = vector_of(numbers, DIST_F32, &length);
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.reduce_fn = add_and_come_out;
  options.reduce_user_data = &forked;
  const dist_status status = dist_all_reduce(replica, DIST_REDUCE_USER, &t, &t, 1, &options, NULL);
  if (getpid() != in->parent) end_child("barrier", !refused(dist_barrier(replica, NULL, NULL)));
  return status == DIST_OK ? healthy(replica, NULL) : status;
}

static void fork_inside(dist_replica_fn fn) {
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; threads++) {
    inside in = {.e = everything_of(threads), .parent = getpid()};
    of_operator = &in;
    for (in.who = 0; in.who < R; in.who++) {
      const dist_status status = dist_run(in.e.strategy, fn, &in, NULL);
      if (getpid() != in.parent) { /* the child of replica 0, which runs on this thread */
        MUST_HOLD(refused(status));
        destroy_everything(&in.e);
        end_child("done", 0);
      }
      assert_int_equal(status, DIST_OK);
      assert_int_equal(in.wrong, 0);
      assert_healthy(threads, in.e.strategy);
    }
    destroy_everything(&in.e);
  }
}

static void every_call_inside(void **state) {
  (void)state;
  fork_inside(call_all);
}
static void work_under_way(void **state) {
  (void)state;
  fork_inside(call_on_work);
}
/* ThreadSanitizer fails if a child's last thread is not its first, and ends it. */
static void skip_where_that_breaks(void) {
#if defined(__SANITIZE_THREAD__)
  skip_because("ThreadSanitizer ends a forked child whose last thread is not its first");
#endif
}

static void coming_out_of_the_function(void **state) {
  (void)state;
  skip_where_that_breaks();
  fork_inside(come_out);
}
static void coming_out_of_a_merge_function(void **state) {
  (void)state;
  fork_inside(fork_in_merge);
}
static void coming_out_of_an_operator(void **state) {
  (void)state;
  fork_inside(fork_in_operator);
}

/* ---- Requests, and items of a batcher's step ---- */

static dist_status fork_in_step(dist_replica *replica, dist_batch *batch, void *user_data) {
  inside *in = user_data;
  int result = 0;
  const pid_t child = fork_watched();
  if (child == 0) {
    MUST_REFUSE(dist_replica_check(replica));
    MUST_REFUSE(dist_batch_check(batch, 0));
    MUST_REFUSE(dist_batch_emit(batch, 0, &result));
    dist_batch_end(batch, 0, DIST_OK);
    MUST_HOLD(dist_batch_size(batch) == 1);
    end_child("step", 0);
  }
  in->wrong += !ended_well(child);
  in->wrong += dist_batch_check(batch, 0) != DIST_OK;
  in->wrong += dist_batch_emit(batch, 0, &result) != DIST_OK;
  return DIST_OK;
}

static void of_a_step(void **state) {
  (void)state;
  inside in = {.parent = getpid()};
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  options.threads = DIST_THREADS_LIBRARY;
  dist_strategy *strategy = strategy_with(options);
  dist_batcher *batcher = NULL;
  assert_ok(dist_batcher_create(strategy, fork_in_step, &in, NULL, &batcher));
  dist_request *work = NULL;
  assert_ok(dist_batcher_submit(batcher, NULL, NULL, &work));
  assert_ok(dist_request_wait(work, -1));
  dist_request_destroy(work);
  assert_int_equal(in.wrong, 0);
  assert_ok(dist_batcher_destroy(batcher));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Logical devices and host threads ---- */

static dist_status device_comes_out(dist_replica *device, dist_value *args, dist_value *kwargs,
                                    dist_value **out, void *user_data) {
  (void)args, (void)kwargs, (void)out;
  inside *in = user_data;
  if (dist_device_replica(device) != 0 || dist_replica_id(device) != in->who)
    return dist_barrier(device, NULL, NULL);
  const pid_t child = fork_watched();
  if (child == 0) {
    MUST_REFUSE(dist_barrier(device, NULL, NULL));
    return DIST_OK;
  }
  in->wrong += !ended_well(child);
  return dist_barrier(device, NULL, NULL);
}
static dist_status fork_on_devices(dist_replica *replica, void *user_data) {
  inside *in = user_data;
  const dist_status status =
      dist_run_on_devices(replica, device_comes_out, user_data, NULL, NULL, NULL, NULL);
  if (getpid() != in->parent) end_child("run_on_devices", !refused(status));
  return status;
}

static void of_a_logical_device(void **state) {
  (void)state;
  skip_where_that_breaks();
  inside in = {.parent = getpid()};
  dist_strategy *mesh = mesh_of(2, 2);
  for (in.who = 0; in.who < 2; in.who++) {
    assert_ok(dist_run(mesh, fork_on_devices, &in, NULL));
    assert_int_equal(in.wrong, 0);
  }
  assert_ok(dist_strategy_destroy(mesh));
}

static void of_a_host_thread(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_HOST);
  dist_replica *replica = NULL;
  assert_ok(dist_replica_enter(strategy, 0, &replica));
  pid_t child = fork_watched();
  if (child == 0) {
    MUST_REFUSE(dist_barrier(replica, NULL, NULL));
    MUST_REFUSE(dist_replica_leave(replica, DIST_OK));
    MUST_HOLD(dist_strategy_destroy(strategy) == DIST_OK);
    pthread_exit(NULL); /* while inside; the child ends with its last thread */
  }
  assert_true(ended_well(child));
  assert_ok(dist_barrier(replica, NULL, NULL));
  assert_ok(dist_replica_leave(replica, DIST_OK));
  assert_ok(dist_strategy_destroy(strategy));
}

#if !defined(__SANITIZE_THREAD__) /* no new threads after a fork of a process with several threads */
static dist_status run_own(dist_replica *replica, void *user_data) {
  inside *in = user_data;
  if (dist_replica_id(replica) != in->who) return healthy(replica, NULL);
  const pid_t child = fork_watched();
  if (child == 0) {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.num_replicas = 2;
    dist_strategy *own = NULL;
    MUST_HOLD(dist_strategy_create(&options, &own) == DIST_OK);
    MUST_HOLD(dist_run(own, healthy, NULL, NULL) == DIST_OK);
    MUST_HOLD(dist_strategy_destroy(own) == DIST_OK);
    end_child("done", 0);
  }
  return in_order(replica, in, child);
}

static void a_child_has_strategies_of_its_own(void **state) {
  (void)state;
  fork_inside(run_own);
}
#endif

int main(void) {
  test_process = getpid();
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(outside_runs),
    cmocka_unit_test(every_call_inside),
    cmocka_unit_test(work_under_way),
    cmocka_unit_test(coming_out_of_the_function),
    cmocka_unit_test(coming_out_of_a_merge_function),
    cmocka_unit_test(coming_out_of_an_operator),
    cmocka_unit_test(of_a_step),
    cmocka_unit_test(of_a_logical_device),
    cmocka_unit_test(of_a_host_thread),
#if !defined(__SANITIZE_THREAD__)
    cmocka_unit_test(a_child_has_strategies_of_its_own),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
