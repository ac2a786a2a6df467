/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables that one thread reads and writes from the cross-replica context while others run: calls take
 * turns, so none sees a partly written value. Also calls that need not wait.
 */
#include "tests/abi/common.h"

#include <unistd.h>

enum { R = 2, LENGTH = 4096, ROUNDS = 200 };

typedef struct model {
  dist_strategy *strategy;
  dist_variable *weights;
  dist_metric *metric;
  atomic_int inside, may_go, torn;
} model;

static dist_value *filled(dist_strategy *strategy, float number) {
  static _Thread_local float numbers[LENGTH];
  const int64_t length = LENGTH;
  for (int i = 0; i < LENGTH; i++) numbers[i] = number;
  const dist_tensor tensor = vector_of(numbers, DIST_F32, &length);
  dist_value *value = NULL;
  return dist_value_create_tensor(strategy, &tensor, &value) == DIST_OK ? value : NULL;
}

static model model_of(int32_t threads, int64_t timeout_ns) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = R;
  options.threads = threads;
  options.timeout_ns = timeout_ns;
  model m = {.strategy = strategy_with(options)};
  static float zeros[LENGTH];
  const int64_t length = LENGTH;
  const dist_tensor tensor = vector_of(zeros, DIST_F32, &length);
  assert_ok(dist_variable_create(m.strategy, &tensor, NULL, &m.weights));
  assert_ok(dist_metric_create(m.strategy, DIST_METRIC_SUM, NULL, &m.metric));
  return m;
}

static void end_model(model *m) {
  dist_metric_destroy(m->metric);
  dist_variable_destroy(m->weights);
  assert_ok(dist_strategy_destroy(m->strategy));
}

static int whole(const float *numbers) {
  for (int i = 1; i < LENGTH; i++) {
    if (numbers[i] != numbers[0]) return 0;
  }
  return 1;
}

/* ---- Calls that wait ---- */

static dist_status no_values(dist_strategy *strategy, const dist_update_place *place, dist_value *args,
                             dist_value *kwargs, dist_value **out, void *user_data) {
  (void)strategy;
  (void)place, (void)args, (void)kwargs, (void)out, (void)user_data;
  return DIST_OK;
}

/* Makes all calls that read or write variables in the cross-replica context. Returns the first status other
 * than `wanted`. */
static dist_status all_from_outside(model *m, const char *path, dist_status wanted, const char **out_name) {
  dist_value *value = filled(m->strategy, 7);
  dist_value *as_value = NULL;
  dist_value *out = NULL;
  double sum;
  dist_status status = dist_value_create_variable(m->weights, &as_value);
  if (value == NULL || status != DIST_OK) abort();
#define TRY(name, call)    \
  *out_name = name;        \
  status = (call);         \
  dist_value_release(out); \
  out = NULL;              \
  if (status != wanted) goto end
  TRY("assign", dist_variable_assign(m->strategy, m->weights, DIST_ASSIGN, value));
  TRY("update", dist_update(m->strategy, m->weights, no_values, NULL, NULL, NULL, NULL, &out));
  TRY("read", dist_variable_read(m->strategy, m->weights, &out));
  TRY("check_drift", dist_variable_check_drift(m->strategy, m->weights, NULL));
  TRY("reduce", dist_reduce(m->strategy, DIST_REDUCE_MEAN, as_value, NULL, 0, &out));
  TRY("gather", dist_gather(m->strategy, as_value, 0, &out));
  TRY("metric_result", dist_metric_result(m->strategy, m->metric, &sum));
  TRY("metric_reset", dist_metric_reset(m->strategy, m->metric));
  if (path != NULL) {
    TRY("save", dist_checkpoint_save(m->strategy, path, &m->weights, 1, NULL));
    TRY("load", dist_checkpoint_load(m->strategy, path, &m->weights, 1, NULL));
  }
#undef TRY
end:
  dist_value_release(as_value);
  dist_value_release(value);
  return status;
}

static dist_status stay(dist_replica *replica, void *user_data) {
  model *m = user_data;
  (void)replica;
  atomic_fetch_add(&m->inside, 1);
  while (!atomic_load(&m->may_go)) sched_yield();
  return DIST_OK;
}

typedef struct run_thread {
  model *m;
  int32_t threads;
  dist_replica_fn fn;
  dist_status status;
  report error;
} run_thread;

static void *run_beside(void *argument) {
  run_thread *r = argument;
  r->status = run_on(r->threads, r->m->strategy, r->fn, r->m, &r->error);
  return NULL;
}

static void a_run_is_waited_for(void **state) {
  (void)state;
  char folder[] = "/tmp/dist_turns_XXXXXX";
  char path[64];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/weights", folder);
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    model m = model_of(threads, 20000000);
    run_thread beside = {.m = &m, .threads = threads, .fn = stay};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_beside, &beside), 0);
    while (atomic_load(&m.inside) != R) sched_yield();
    const char *name = "";
    if (all_from_outside(&m, path, DIST_DEADLINE_EXCEEDED, &name) != DIST_DEADLINE_EXCEEDED)
      fail_msg("%s, %s: %s", threads_name(threads), name, dist_last_error());
    assert_has(dist_last_error(), "did not end within");
    atomic_store(&m.may_go, 1);
    pthread_join(thread, NULL);
    if (beside.status != DIST_OK) fail_msg("%s", beside.error.message);
    end_model(&m);

    m = model_of(threads, 0);
    if (all_from_outside(&m, path, DIST_OK, &name) != DIST_OK) fail_msg("%s: %s", name, dist_last_error());
    assert_healthy(threads, m.strategy);
    end_model(&m);
  }
  unlink(path);
  rmdir(folder);
}

/* ---- No partly written values ---- */

static dist_status look_again(dist_replica *replica, void *user_data) {
  model *m = user_data;
  dist_tensor copy;
  dist_status status = dist_variable_component(m->weights, dist_replica_id(replica), &copy);
  for (int i = 0; i < 20 && status == DIST_OK; i++) {
    const volatile float *const numbers = copy.data;
    const float first = numbers[0];
    for (int k = 1; k < LENGTH; k++) atomic_fetch_add(&m->torn, numbers[k] != first);
    status = dist_barrier(replica, NULL, NULL);
  }
  return status;
}

static dist_status change_inside(dist_replica *replica, void *user_data) {
  model *m = user_data;
  dist_tensor copy;
  dist_status status = dist_variable_component(m->weights, dist_replica_id(replica), &copy);
  for (int k = 0; k < LENGTH && status == DIST_OK; k++) ((float *)copy.data)[k] += 1;
  return status == DIST_OK ? dist_barrier(replica, NULL, NULL) : status;
}

typedef struct writer {
  model *m;
  dist_status status;
  int torn;
} writer;

static void *write_and_read(void *argument) {
  writer *w = argument;
  for (int i = 0; i < ROUNDS && w->status == DIST_OK; i++) {
    dist_value *value = filled(w->m->strategy, (float)i);
    w->status = dist_variable_assign(w->m->strategy, w->m->weights, DIST_ASSIGN, value);
    dist_value_release(value);
    dist_value *read = NULL;
    dist_tensor tensor;
    if (w->status == DIST_OK) w->status = dist_variable_read(w->m->strategy, w->m->weights, &read);
    if (w->status == DIST_OK) w->status = dist_value_tensor(read, &tensor);
    if (w->status == DIST_OK) w->torn += !whole(tensor.data);
    dist_value_release(read);
  }
  return NULL;
}

static void nobody_sees_half_of_a_value(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    model m = model_of(threads, 0);
    writer w = {.m = &m};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_and_read, &w), 0);
    report error;
    for (int i = 0; i < ROUNDS / 4; i++) {
      if (run_on(threads, m.strategy, i % 2 ? look_again : change_inside, &m, &error) != DIST_OK)
        fail_msg("%s", error.message);
    }
    pthread_join(thread, NULL);
    assert_int_equal(w.status, DIST_OK);
    assert_int_equal(w.torn, 0);
    assert_int_equal(atomic_load(&m.torn), 0);
    end_model(&m);
  }
}

/* ---- Calls that need not wait ---- */

static dist_status merge(dist_strategy *strategy, dist_value *args, dist_value *kwargs, dist_value **out,
                         void *user_data) {
  (void)strategy, (void)args, (void)out, (void)kwargs;
  const char *name;
  return all_from_outside(user_data, NULL, DIST_OK, &name);
}
static dist_status in_merge(dist_replica *replica, void *user_data) {
  return dist_merge_call(replica, merge, user_data, NULL, NULL, NULL, NULL);
}

static void a_merge_function_goes_ahead(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    model m = model_of(threads, 0);
    report error;
    if (run_on(threads, m.strategy, in_merge, &m, &error) != DIST_OK) fail_msg("%s", error.message);
    end_model(&m);
  }
}

/* Called on any libdist thread. It may read another variable, but a run would wait for this update. */
static dist_status update_by_another(dist_strategy *strategy, const dist_update_place *place,
                                     dist_value *args, dist_value *kwargs, dist_value **out_result,
                                     void *user_data) {
  (void)strategy, (void)kwargs, (void)out_result;
  (void)place, (void)args;
  model *m = user_data;
  dist_value *read = NULL;
  dist_replica *replica = NULL;
  dist_status status = dist_variable_read(m->strategy, m->weights, &read);
  dist_value_release(read);
  if (status != DIST_OK) return status;
  if (dist_run(m->strategy, healthy, NULL, NULL) != DIST_FAILED_PRECONDITION ||
      strstr(dist_last_error(), "inside an update function") == NULL)
    return dist_fail(DIST_INTERNAL, "it runs");
  return dist_replica_enter(m->strategy, 0, &replica) == DIST_FAILED_PRECONDITION ? DIST_OK : DIST_INTERNAL;
}

static void an_update_function_reads(void **state) {
  (void)state;
  dist_update_options options = DIST_UPDATE_OPTIONS_INIT;
  options.parallel = 1;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    model m = model_of(threads, 0);
    assert_ok(dist_update(m.strategy, m.weights, update_by_another, &m, NULL, NULL, &options, NULL));
    assert_healthy(threads, m.strategy);
    end_model(&m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_run_is_waited_for),
      cmocka_unit_test(nobody_sees_half_of_a_value),
      cmocka_unit_test(a_merge_function_goes_ahead),
      cmocka_unit_test(an_update_function_reads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
