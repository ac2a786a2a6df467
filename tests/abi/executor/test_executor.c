/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_executor: host threads help with loops, do not help, or help late. Also
 * dist_host_options.helper_threads: if it is 0, a strategy on host threads starts no threads.
 */
#include "tests/abi/common.h"
#include "tests/abi/gate.h"

enum { LENGTH = 1 << 18 };

/* ---- No thread is started (this test comes first, because oneTBB's threads remain) ---- */

static dist_status loop_and_reduce(dist_replica *replica, void *user_data);

static void use_from_outside(dist_strategy *strategy) {
  const int64_t length = LENGTH;
  float *data = calloc(LENGTH, sizeof *data);
  assert_non_null(data);
  const dist_tensor tensor = vector_of(data, DIST_F32, &length);
  dist_value *parts[2] = {NULL, NULL}, *both = NULL, *sum = NULL;
  for (int i = 0; i < 2; i++) assert_ok(dist_value_create_tensor(strategy, &tensor, &parts[i]));
  assert_ok(dist_value_create_per_replica(strategy, parts, 2, &both));
  assert_ok(dist_reduce(strategy, DIST_REDUCE_SUM, both, NULL, 0, &sum));
  dist_value_release(sum);
  dist_value_release(both);
  for (int i = 0; i < 2; i++) dist_value_release(parts[i]);
  dist_dataset *dataset = NULL;
  dist_iterator *iterator = NULL;
  dist_value *batch = NULL;
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 1024;
  assert_ok(dist_dataset_create_from_tensors(strategy, &tensor, 1, &options, &dataset));
  assert_ok(dist_iterator_create(dataset, &iterator));
  for (int i = 0; i < 3; i++) {
    assert_ok(dist_iterator_next(iterator, &batch));
    dist_value_release(batch);
    batch = NULL;
  }
  dist_iterator_destroy(iterator);
  dist_dataset_destroy(dataset);
  free(data);
}

static void nothing_starts_a_thread_in_host_mode(void **state) {
  (void)state;
  const int before = count_threads();
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_HOST);
  report error;
  for (int i = 0; i < 3; i++) {
    if (run_on(DIST_THREADS_HOST, strategy, loop_and_reduce, NULL, &error) != DIST_OK)
      fail_msg("%s", error.message);
    use_from_outside(strategy);
  }
  await_threads(before);
  assert_ok(dist_strategy_destroy(strategy));
  await_threads(before);
}

/* ---- Executors ---- */

typedef struct pool {
  int refuse_after; /* number of tasks; < 0 = no limit */
  int inline_too;   /* runs tasks on the calling thread */
  int keep;         /* keeps tasks until run_kept() */
  atomic_int asked, ran;
  dist_task_fn tasks[256];
  void *data[256];
  pthread_mutex_t mutex;
} pool;

typedef struct job {
  pool *p;
  dist_task_fn task;
  void *data;
} job;

static void *job_main(void *argument) {
  job j = *(job *)argument;
  free(argument);
  j.task(j.data);
  atomic_fetch_add(&j.p->ran, 1);
  return NULL;
}

static int32_t execute(dist_task_fn task, void *task_data, void *user_data) {
  pool *p = user_data;
  const int asked = atomic_fetch_add(&p->asked, 1);
  if (p->refuse_after >= 0 && asked >= p->refuse_after) return 1;
  if (p->inline_too) {
    task(task_data);
    atomic_fetch_add(&p->ran, 1);
    return 0;
  }
  if (p->keep) {
    pthread_mutex_lock(&p->mutex);
    const int at = asked % 256;
    p->tasks[at] = task, p->data[at] = task_data;
    pthread_mutex_unlock(&p->mutex);
    return 0;
  }
  job *j = malloc(sizeof *j);
  if (j == NULL) return 1;
  *j = (job){p, task, task_data};
  pthread_t thread;
  if (pthread_create(&thread, NULL, job_main, j) != 0) {
    free(j);
    return 1;
  }
  pthread_detach(thread);
  return 0;
}

static void await_ran(pool *p, int count) {
  while (atomic_load(&p->ran) < count) sched_yield();
}

static dist_strategy *with_executor(pool *p, int32_t replicas, int32_t threads, int32_t helpers) {
  dist_executor executor = DIST_EXECUTOR_INIT;
  executor.num_threads = helpers;
  executor.execute = execute;
  executor.user_data = p;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = replicas;
  options.threads = threads;
  host.executor = &executor;
  return strategy_with(options); /* the strategy has copied it */
}

typedef struct marks {
  unsigned char *of;
  atomic_int wrong;
} marks;

static void mark(int64_t begin, int64_t end, void *user_data) {
  marks *m = user_data;
  for (int64_t i = begin; i < end; i++) m->of[i]++;
  if (begin >= end) atomic_fetch_add(&m->wrong, 1);
}

/* Visits each index once, for any grain and an empty range. Then runs a work that helpers may process, and a
 * sum. */
static dist_status loop_and_reduce(dist_replica *replica, void *user_data) {
  (void)user_data;
  static const int64_t grains[] = {1, 7, 1000, LENGTH / 2, LENGTH, 10 * (int64_t)LENGTH};
  marks m = {calloc(LENGTH, 1), 0};
  dist_status status = m.of == NULL ? DIST_RESOURCE_EXHAUSTED : DIST_OK;
  for (size_t k = 0; k < COUNT_OF(grains) && status == DIST_OK; k++) {
    memset(m.of, 0, LENGTH);
    status = dist_replica_parallel_for(replica, 0, LENGTH, grains[k], mark, &m);
    for (int64_t i = 0; i < LENGTH; i++) atomic_fetch_add(&m.wrong, m.of[i] != 1);
    if (status == DIST_OK) status = dist_replica_parallel_for(replica, -3, -3, grains[k], mark, &m);
  }
  free(m.of);
  if (status == DIST_OK && atomic_load(&m.wrong) != 0)
    status = dist_fail(DIST_INTERNAL, "not each index once");
  dist_work *work = NULL;
  dist_collective_options async = DIST_COLLECTIVE_OPTIONS_INIT;
  int64_t length = 1;
  int32_t number = 1;
  dist_tensor tensor = vector_of(&number, DIST_I32, &length);
  if (status == DIST_OK)
    status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &async, &work);
  if (status == DIST_OK) status = dist_work_wait(work, DIST_NO_TIMEOUT);
  dist_work_destroy(work);
  return status == DIST_OK ? healthy(replica, NULL) : status;
}

static void loops_are_shared_with_the_hosts_threads(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    pool p = {.refuse_after = -1, .mutex = PTHREAD_MUTEX_INITIALIZER};
    dist_strategy *strategy = with_executor(&p, 2, threads, 3);
    report error;
    if (run_on(threads, strategy, loop_and_reduce, NULL, &error) != DIST_OK) fail_msg("%s", error.message);
    assert_true(atomic_load(&p.asked) >= 3);
    use_from_outside(strategy);
    assert_ok(dist_strategy_destroy(strategy));
    await_ran(&p, atomic_load(&p.asked));
  }
}

static void executors_that_refuse_or_run_at_once(void **state) {
  (void)state;
  for (int kind = 0; kind < 3; kind++) {
    pool p = {
        .refuse_after = kind == 2 ? -1 : kind, .inline_too = kind == 2, .mutex = PTHREAD_MUTEX_INITIALIZER};
    dist_strategy *strategy = with_executor(&p, 2, DIST_THREADS_LIBRARY, 65535);
    report error;
    if (run_on(DIST_THREADS_LIBRARY, strategy, loop_and_reduce, NULL, &error) != DIST_OK)
      fail_msg("%s", error.message);
    assert_ok(dist_strategy_destroy(strategy));
    await_ran(&p, kind == 0 ? 0 : 1);
  }
}

/* A loop does not wait for tasks that have not started. A task that starts after the loop finds nothing to
 * do. */
static void tasks_that_come_late_find_nothing(void **state) {
  (void)state;
  pool p = {.refuse_after = 200, .keep = 1, .mutex = PTHREAD_MUTEX_INITIALIZER};
  dist_strategy *strategy = with_executor(&p, 2, DIST_THREADS_CALLER, 2);
  report error;
  if (run_on(DIST_THREADS_CALLER, strategy, loop_and_reduce, NULL, &error) != DIST_OK)
    fail_msg("%s", error.message);
  assert_ok(dist_strategy_destroy(strategy));
  int kept = 0;
  for (int i = 0; i < 200; i++) {
    if (p.tasks[i] != NULL) p.tasks[i](p.data[i]), kept++;
  }
  assert_true(kept > 0);
}

/* ---- The memory for loading depends on the threads that can be used, not on the executor's number ---- */

typedef struct meter {
  atomic_size_t now, most;
} meter;

static void *metered_alloc(size_t size_bytes, size_t align_bytes, void *user_data) {
  meter *m = user_data;
  const size_t now = atomic_fetch_add(&m->now, size_bytes) + size_bytes;
  for (size_t most = atomic_load(&m->most); now > most;) {
    if (atomic_compare_exchange_weak(&m->most, &most, now)) break;
  }
  void *memory = NULL;
  return posix_memalign(&memory, align_bytes < sizeof(void *) ? sizeof(void *) : align_bytes, size_bytes) == 0
             ? memory
             : NULL;
}

static void metered_free(void *memory, size_t size_bytes, size_t align_bytes, void *user_data) {
  (void)align_bytes;
  atomic_fetch_sub(&((meter *)user_data)->now, size_bytes);
  free(memory);
}

static void loads_take_room_for_a_bounded_number_of_threads(void **state) {
  (void)state;
  enum { VARIABLES = 300, ELEMENTS = 4096 }; /* 4.7 MiB */
  pool p = {.refuse_after = 0, .mutex = PTHREAD_MUTEX_INITIALIZER};
  meter m = {0, 0};
  dist_executor executor = DIST_EXECUTOR_INIT;
  executor.num_threads = 65535;
  executor.execute = execute;
  executor.user_data = &p;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = 1;
  host.executor = &executor;
  host.allocator = (dist_allocator){metered_alloc, metered_free, &m};
  dist_strategy *strategy = strategy_with(options);
  static float data[ELEMENTS];
  const int64_t length = ELEMENTS;
  const dist_tensor initial = vector_of(data, DIST_F32, &length);
  dist_variable *variables[VARIABLES];
  for (int i = 0; i < VARIABLES; i++) {
    char name[32];
    snprintf(name, sizeof name, "variable %d", i);
    dist_variable_options own = DIST_VARIABLE_OPTIONS_INIT;
    own.name = name;
    assert_ok(dist_variable_create(strategy, &initial, &own, &variables[i]));
  }
  char path[] = "/tmp/dist_executor_XXXXXX";
  const int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  assert_ok(dist_checkpoint_save(strategy, path, variables, VARIABLES, NULL));
  const size_t before = atomic_load(&m.now);
  atomic_store(&m.most, before);
  assert_ok(dist_checkpoint_load(strategy, path, variables, VARIABLES, NULL));
  /* A quarter of a MiB per reading thread. For 300 threads, it would be 75 MiB. */
  assert_in_range(atomic_load(&m.most) - before, 0, (size_t)32 << 20);
  assert_true(atomic_load(&p.asked) > 0);
  unlink(path);
  for (int i = 0; i < VARIABLES; i++) dist_variable_destroy(variables[i]);
  assert_ok(dist_strategy_destroy(strategy));
}

static void wrong_executors_are_refused(void **state) {
  (void)state;
  pool p = {.refuse_after = -1};
  dist_executor executor = DIST_EXECUTOR_INIT;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  dist_strategy *strategy = NULL;
  host.executor = &executor;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "execute is NULL");
  executor.execute = execute;
  executor.user_data = &p;
  static const int32_t strange[] = {0, -1, INT32_MIN, 65536, INT32_MAX};
  for (size_t i = 0; i < COUNT_OF(strange); i++) {
    executor.num_threads = strange[i];
    assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "num_threads is");
  }
  executor.num_threads = 1;
  executor.struct_size = 3;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "struct_size");
  host.executor = NULL;
  host.helper_threads = 2;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "helper_threads");
  assert_null(strategy);
}

static void host_threads_may_be_helped(void **state) {
  (void)state;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = 2;
  options.threads = DIST_THREADS_HOST;
  host.helper_threads = 1;
  dist_strategy *strategy = strategy_with(options);
  report error;
  if (run_on(DIST_THREADS_HOST, strategy, loop_and_reduce, NULL, &error) != DIST_OK)
    fail_msg("%s", error.message);
  use_from_outside(strategy);
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_starts_a_thread_in_host_mode),
      cmocka_unit_test(loops_are_shared_with_the_hosts_threads),
      cmocka_unit_test(executors_that_refuse_or_run_at_once),
      cmocka_unit_test(tasks_that_come_late_find_nothing),
      cmocka_unit_test(loads_take_room_for_a_bounded_number_of_threads),
      cmocka_unit_test(wrong_executors_are_refused),
      cmocka_unit_test(host_threads_may_be_helped),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
