/* SPDX-License-Identifier: Apache-2.0
 *
 * Preemption: after a notice on any worker, all workers save between the same two runs and end. The next
 * start resumes from there.
 */
#include <dist/experimental/preemption.h>
#include "../clock.h"
#include "../workers_support.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MOST_RUNS = 1000, GRACE_NS = 1000 };

typedef struct job {
  char path[64];
  int64_t notice_at; /* the call since this start of the worker at which the notice comes; -1 = none */
  int notified;      /* the worker that gets it */
  int64_t grace_ns;
  stepping_clock *clock; /* each run of worker 0 advances it */
  /* The results of each worker. */
  int64_t calls[MOST_WORKERS];
  int64_t saved[MOST_WORKERS]; /* the number of calls at the first save; -1 = not saved */
  float values[MOST_WORKERS];
} job;

static dist_status count(dist_replica *replica, void *user_data) {
  const float one = 1;
  const dist_tensor tensor = {(void *)&one, DIST_F32, 0, NULL, NULL};
  return dist_replica_assign(replica, user_data, DIST_ASSIGN_ADD, &tensor, NULL);
}

static dist_status loop(dist_strategy *strategy, int worker, job *kept, dist_preemption_handler *handler,
                        dist_variable *variable) {
  dist_status status = DIST_OK;
  kept->saved[worker] = -1;
  for (int64_t begin = dist_preemption_total_run_calls(handler), calls = begin;
       status == DIST_OK && calls < begin + MOST_RUNS; calls = dist_preemption_total_run_calls(handler)) {
    if (worker == kept->notified && calls - begin == kept->notice_at) dist_preemption_notify(handler);
    int32_t state = DIST_PREEMPTION_NONE;
    status = dist_preemption_save_if_preempted(handler, NULL, &state);
    if (state == DIST_PREEMPTION_SAVED && kept->saved[worker] < 0) kept->saved[worker] = calls;
    if (status == DIST_OK) status = dist_preemption_run(handler, count, variable, NULL);
    if (worker == 0 && kept->clock != NULL) atomic_fetch_add(&kept->clock->now_ns, GRACE_NS / 4);
  }
  kept->calls[worker] = dist_preemption_total_run_calls(handler);
  (void)strategy;
  return status;
}

static dist_status train(dist_strategy *strategy, int worker, void *user_data) {
  job *kept = user_data;
  float zero = 0;
  const dist_tensor initial = {&zero, DIST_F32, 0, NULL, NULL};
  dist_variable_options of = DIST_VARIABLE_OPTIONS_INIT;
  of.aggregation = DIST_AGGREGATION_SUM;
  of.name = "steps";
  dist_variable *variable = NULL;
  dist_preemption_handler *handler = NULL;
  dist_value *value = NULL;
  dist_status status = dist_variable_create(strategy, &initial, &of, &variable);
  dist_preemption_options options = DIST_PREEMPTION_OPTIONS_INIT;
  options.path = kept->path;
  options.variables = &variable;
  options.num_variables = 1;
  options.grace_ns = kept->grace_ns;
  if (status == DIST_OK) status = dist_preemption_handler_create(strategy, &options, &handler);
  if (status == DIST_OK) status = loop(strategy, worker, kept, handler, variable);
  const dist_status ended = status;
  report why = {0};
  if (ended != DIST_OK) read_report(&why);
  dist_tensor tensor;
  status = dist_variable_read(strategy, variable, &value);
  if (status == DIST_OK) status = dist_value_tensor(value, &tensor);
  if (status == DIST_OK) memcpy(&kept->values[worker], tensor.data, sizeof(float));
  dist_value_release(value);
  dist_preemption_handler_destroy(handler);
  dist_variable_destroy(variable);
  if (status != DIST_OK) return status;
  return ended == DIST_OK ? DIST_OK : dist_fail(ended, why.message);
}

static job job_in_a_file(void) {
  job made = {.path = "/tmp/dist-preemption-XXXXXX", .notice_at = 5};
  const int file = mkstemp(made.path);
  assert_true(file >= 0);
  close(file);
  remove(made.path);
  return made;
}

static void all_end_alike(const workers *all, const worker_thread *threads, const job *kept,
                          int32_t replicas) {
  for (int w = 0; w < all->n; ++w) {
    if (threads[w].status != DIST_CANCELLED) fail_msg("worker %d: %s", w, threads[w].error.message);
    assert_has(threads[w].error.message, "the job is preempted");
    assert_int_equal(kept->calls[w], kept->calls[0]);
    assert_int_equal(kept->saved[w], kept->saved[0]);
    assert_true(kept->values[w] == (float)(kept->calls[0] * replicas));
  }
}

static int32_t replicas_of(const workers *all) {
  int32_t replicas = 0;
  for (int w = 0; w < all->n; ++w) replicas += all->replicas[w];
  return replicas;
}

static void all_save_between_the_same_runs(void **state) {
  (void)state;
  const char *const layouts[] = {"2", "1+1", "2+1+1"};
  for (size_t l = 0; l < COUNT_OF(layouts); ++l) {
    for (int notified = 0; notified < 2; ++notified) {
      workers all = workers_of(layouts[l], (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
      job kept = job_in_a_file();
      worker_thread threads[MOST_WORKERS];
      kept.notified = notified < all.n ? notified : 0;
      on_workers(&all, train, &kept, threads);
      all_end_alike(&all, threads, &kept, replicas_of(&all));
      assert_in_range(kept.calls[0], 5, 15);
      end_workers(&all);
      /* The next start continues with a different number of replicas. */
      const int64_t before = kept.calls[0];
      const float value = kept.values[0];
      all = workers_of("1+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
      kept.notified = 1;
      on_workers(&all, train, &kept, threads);
      assert_in_range(kept.calls[0], before + 5, before + 15);
      for (int w = 0; w < 2; ++w) {
        assert_int_equal(kept.calls[w], kept.calls[0]);
        assert_true(kept.values[w] == value + 2.0F * (float)(kept.calls[0] - before));
      }
      end_workers(&all);
      remove(kept.path);
    }
  }
}

static void the_job_goes_on_until_its_grace_is_over(void **state) {
  (void)state;
  const char *const layouts[] = {"2", "1+2"};
  for (size_t l = 0; l < COUNT_OF(layouts); ++l) {
    stepping_clock clock = {0};
    workers all = workers_of(layouts[l], by_clock(&clock, 0, DIST_THREADS_CALLER));
    job kept = job_in_a_file();
    worker_thread threads[MOST_WORKERS];
    kept.clock = &clock;
    kept.grace_ns = GRACE_NS;
    kept.notified = all.n - 1;
    on_workers(&all, train, &kept, threads);
    all_end_alike(&all, threads, &kept, replicas_of(&all));
    /* On worker 0's clock, the grace period is four runs. */
    assert_in_range(kept.calls[0] - kept.saved[0], 4, 8);
    end_workers(&all);
    remove(kept.path);
  }
}

/* ---- Worker 1 waits for worker 0, whose run lasts until that wait has ended ---- */

typedef struct cancelled_wait {
  dist_cancel *cancel;            /* NULL = dist_strategy_cancel() */
  int by_run;                     /* dist_preemption_run() waits */
  _Atomic(dist_strategy *) waits; /* worker 1's, when it waits */
  atomic_int is_over;
  atomic_int goes_on;
} cancelled_wait;

static dist_status cancel_the_other(dist_replica *replica, void *user_data) {
  cancelled_wait *kept = user_data;
  (void)replica;
  while (!atomic_load(&kept->is_over)) {
    /* A strategy's cancel does not apply to a wait that has not begun, but a cancel object does. */
    dist_strategy *const other = atomic_load(&kept->waits);
    const dist_status status = other == NULL          ? DIST_OK
                               : kept->cancel != NULL ? dist_cancel_signal(kept->cancel, "enough")
                                                      : dist_strategy_cancel(other);
    if (status != DIST_OK) return status;
    sched_yield();
  }
  atomic_store(&kept->goes_on, 1);
  return DIST_OK;
}

static dist_status nothing(dist_replica *replica, void *user_data) {
  (void)replica;
  (void)user_data;
  return DIST_OK;
}

static dist_status wait_and_go_on(dist_strategy *strategy, dist_preemption_handler *handler,
                                  cancelled_wait *kept) {
  int32_t what = -1;
  atomic_store(&kept->waits, strategy);
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  options.cancel = kept->cancel;
  const dist_status waited = kept->by_run ? dist_preemption_run(handler, nothing, NULL, &options)
                                          : dist_preemption_save_if_preempted(handler, kept->cancel, &what);
  report why = {0};
  if (waited != DIST_OK) read_report(&why);
  atomic_store(&kept->is_over, 1);
  while (!atomic_load(&kept->goes_on)) sched_yield();
  if (waited != DIST_CANCELLED || strstr(why.message, "wait for worker 0") == NULL)
    return dist_fail(DIST_UNKNOWN, why.message);
  return DIST_OK;
}

static dist_status cancel_a_wait(dist_strategy *strategy, int worker, void *user_data) {
  cancelled_wait *kept = user_data;
  dist_preemption_handler *handler = NULL;
  const dist_preemption_options options = DIST_PREEMPTION_OPTIONS_INIT;
  dist_status status = dist_preemption_handler_create(strategy, &options, &handler);
  if (status == DIST_OK) status = dist_run(strategy, worker == 0 ? cancel_the_other : nothing, kept, NULL);
  if (status == DIST_OK && worker == 1) status = wait_and_go_on(strategy, handler, kept);
  for (int i = 0; i < 3 && status == DIST_OK; ++i) status = dist_preemption_run(handler, nothing, NULL, NULL);
  dist_preemption_handler_destroy(handler);
  return status;
}

static void a_wait_for_worker_0_can_be_cancelled(void **state) {
  (void)state;
  for (int way = 0; way < 3; ++way) {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.timeout_ns = 20 * INT64_C(1000000000); /* for hangs only */
    workers all = workers_of("1+1", options);
    cancelled_wait kept = {.by_run = way == 2};
    if (way != 0) assert_ok(dist_cancel_create(NULL, &kept.cancel));
    worker_thread threads[MOST_WORKERS];
    on_workers(&all, cancel_a_wait, &kept, threads);
    for (int w = 0; w < 2; ++w)
      if (threads[w].status != DIST_OK) fail_msg("worker %d: %s", w, threads[w].error.message);
    end_workers(&all);
    dist_cancel_destroy(kept.cancel);
  }
}

static dist_preemption_handler *signalled;
static void on_signal(int number) {
  (void)number;
  dist_preemption_notify(signalled);
}

static void a_signal_gives_the_notice(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  dist_preemption_options options = DIST_PREEMPTION_OPTIONS_INIT;
  assert_ok(dist_preemption_handler_create(strategy, &options, &signalled));
  int32_t what = -1;
  assert_ok(dist_preemption_save_if_preempted(signalled, NULL, &what));
  assert_int_equal(what, DIST_PREEMPTION_NONE);
  signal(SIGUSR1, on_signal);
  raise(SIGUSR1);
  assert_ok(dist_preemption_save_if_preempted(signalled, NULL, &what));
  assert_int_equal(what, DIST_PREEMPTION_OVER);
  dist_preemption_count_run(signalled);
  assert_int_equal(dist_preemption_total_run_calls(signalled), 1);
  dist_preemption_handler_destroy(signalled);
  assert_ok(dist_strategy_destroy(strategy));
}

static void what_cannot_be_is_refused(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  dist_strategy *other = strategy_of(2, DIST_THREADS_CALLER);
  float zero = 0;
  const dist_tensor initial = {&zero, DIST_F32, 0, NULL, NULL};
  dist_variable *variable = NULL;
  assert_ok(dist_variable_create(other, &initial, NULL, &variable));
  dist_preemption_handler *handler = NULL;
  dist_preemption_options options = DIST_PREEMPTION_OPTIONS_INIT;
  options.grace_ns = -1;
  assert_int_equal(dist_preemption_handler_create(strategy, &options, &handler), DIST_INVALID_ARGUMENT);
  assert_has(dist_last_error(), "grace_ns is -1");
  options.grace_ns = 0;
  options.variables = &variable;
  options.num_variables = 1;
  assert_int_equal(dist_preemption_handler_create(strategy, &options, &handler), DIST_INVALID_ARGUMENT);
  assert_has(dist_last_error(), "no path");
  options.path = "/nowhere/at/all";
  assert_int_equal(dist_preemption_handler_create(strategy, &options, &handler), DIST_FAILED_PRECONDITION);
  assert_has(dist_last_error(), "belongs to another strategy");
  /* A file with content that no handler writes. */
  char path[] = "/tmp/dist-preemption-XXXXXX";
  close(mkstemp(path));
  const char *const keys[] = {"preemption.total_run_calls"};
  const char *const texts[] = {"-3"};
  dist_checkpoint_options file = DIST_CHECKPOINT_OPTIONS_INIT;
  file.metadata_keys = keys;
  file.metadata_texts = texts;
  file.num_metadata = 1;
  assert_ok(dist_checkpoint_save(other, path, &variable, 1, &file));
  options.path = path;
  assert_int_equal(dist_preemption_handler_create(other, &options, &handler), DIST_DATA_LOSS);
  assert_has(dist_last_error(), "preemption.total_run_calls is not a number");
  remove(path);
  dist_variable_destroy(variable);
  assert_ok(dist_strategy_destroy(other));
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_save_between_the_same_runs),
      cmocka_unit_test(the_job_goes_on_until_its_grace_is_over),
      cmocka_unit_test(a_wait_for_worker_0_can_be_cancelled),
      cmocka_unit_test(a_signal_gives_the_notice),
      cmocka_unit_test(what_cannot_be_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
