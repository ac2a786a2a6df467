/* SPDX-License-Identifier: Apache-2.0
 *
 * The trace, the counters, the statistics of late replicas, and dist_strategy_explain(), also while replicas
 * run. observe.py runs this program as `test_observe trace|live|metrics` and parses its output.
 */
#include "tests/abi/alloc_support.h"

enum { R = 4, LATE = 2, ROUNDS = 6 };

typedef struct text {
  char *data;
  size_t size;
} text;

static void append(const char *piece, size_t size, void *user_data) {
  text *to = user_data;
  char *grown = realloc(to->data, to->size + size + 1);
  if (grown == NULL) abort();
  memcpy(grown + to->size, piece, size);
  to->data = grown;
  to->size += size;
  grown[to->size] = '\0';
}

static void discard(const char *piece, size_t size, void *user_data) {
  *(size_t *)user_data += piece != NULL ? size : 0;
}

static int count_of(const char *in, const char *words) {
  int count = 0;
  for (const char *at = in; (at = strstr(at, words)) != NULL; at++) count++;
  return count;
}

static dist_status sum(dist_replica *replica, int64_t length, const char *tag) {
  static float buffers[R][1024];
  dist_tensor tensor = vector_of(buffers[dist_replica_id(replica)], DIST_F32, &length);
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.tag = tag;
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &options, NULL);
}

/* Returns when all others have arrived, which the trace shows. */
static dist_status come_last(dist_replica *replica) {
  char waits[32];
  snprintf(waits, sizeof waits, "\"waits_for\":[%d]", dist_replica_id(replica));
  for (;;) {
    text trace = {NULL, 0};
    const dist_status status = dist_strategy_write_trace(dist_replica_strategy(replica), append, &trace);
    const int waiting = status == DIST_OK ? count_of(trace.data, waits) : 0;
    free(trace.data);
    if (status != DIST_OK || waiting == R - 1) return status;
    sched_yield();
  }
}

static dist_status with_one_late(dist_replica *replica, void *user_data) {
  (void)user_data;
  dist_status status = DIST_OK;
  for (int i = 0; i < ROUNDS && status == DIST_OK; i++) {
    if (dist_replica_id(replica) == LATE) status = come_last(replica);
    if (status == DIST_OK) status = sum(replica, i % 2 == 0 ? 16 : 1024, "grads");
  }
  return status;
}

static void the_late_one_leads_the_table(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    dist_strategy *strategy = strategy_of(R, threads);
    report error;
    size_t n = 99;
    assert_ok(dist_strategy_stragglers(strategy, NULL, 0, 0, &n));
    assert_int_equal(n, 0);
    assert_int_equal(run_on(threads, strategy, with_one_late, NULL, &error), DIST_OK);
    dist_straggler rows[4];
    assert_ok(dist_strategy_stragglers(strategy, rows, sizeof rows[0], COUNT_OF(rows), &n));
    assert_int_equal(n, 1);
    assert_string_equal(rows[0].tag, "grads");
    assert_int_equal(rows[0].collective, DIST_COLLECTIVE_ALL_REDUCE);
    assert_int_equal(rows[0].group, 0);
    assert_int_equal(rows[0].replica, LATE);
    assert_int_equal(rows[0].rounds, ROUNDS);
    assert_int_equal(rows[0].times_last, ROUNDS);
    assert_true(rows[0].mean_late_ns > 0);
    assert_true(rows[0].max_late_ns >= rows[0].mean_late_ns);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void rows_of_other_versions(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(R, DIST_THREADS_CALLER);
  assert_ok(dist_run(strategy, with_one_late, NULL, NULL));
  size_t n = 0;
  assert_ok(dist_strategy_stragglers(strategy, NULL, 0, 0, &n));
  assert_int_equal(n, 1);
  struct {
    dist_straggler known;
    int64_t unknown;
    int64_t behind;
  } longer = {.unknown = 7, .behind = 7};
  assert_ok(dist_strategy_stragglers(strategy, &longer.known, sizeof longer - sizeof longer.behind, 1, &n));
  assert_int_equal(longer.known.replica, LATE);
  assert_int_equal(longer.unknown, 0);
  assert_int_equal(longer.behind, 7);
  dist_straggler shorter = {.rounds = 7};
  assert_ok(dist_strategy_stragglers(strategy, &shorter, offsetof(dist_straggler, rounds), 1, &n));
  assert_int_equal(shorter.replica, LATE);
  assert_int_equal(shorter.rounds, 7);
  assert_ok(dist_strategy_destroy(strategy));
}

static void wrong_arguments(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_CALLER);
  size_t n = 0;
  dist_straggler row;
  assert_fails(dist_strategy_write_trace(NULL, append, NULL), DIST_INVALID_ARGUMENT,
               "dist_strategy_write_trace(): strategy");
  assert_fails(dist_strategy_write_trace(strategy, NULL, NULL), DIST_INVALID_ARGUMENT, "fn is NULL");
  assert_fails(dist_strategy_write_metrics(NULL, NULL, append, NULL), DIST_INVALID_ARGUMENT, "strategy");
  assert_fails(dist_strategy_write_metrics(strategy, "x", NULL, NULL), DIST_INVALID_ARGUMENT, "fn is NULL");
  assert_fails(dist_strategy_explain(NULL, append, NULL), DIST_INVALID_ARGUMENT, "strategy");
  assert_fails(dist_strategy_explain(strategy, NULL, NULL), DIST_INVALID_ARGUMENT, "fn is NULL");
  assert_fails(dist_strategy_stragglers(NULL, &row, sizeof row, 1, &n), DIST_INVALID_ARGUMENT, "strategy");
  assert_fails(dist_strategy_stragglers(strategy, &row, sizeof row, 1, NULL), DIST_INVALID_ARGUMENT, "out_n");
  assert_fails(dist_strategy_stragglers(strategy, NULL, sizeof row, 1, &n), DIST_INVALID_ARGUMENT,
               "out is NULL");
  assert_fails(dist_strategy_stragglers(strategy, &row, 0, 1, &n), DIST_INVALID_ARGUMENT, "row_bytes");
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Lack of memory ---- */

static dist_status all_of_it(dist_strategy *strategy) {
  size_t size = 0;
  dist_straggler row;
  dist_status status = dist_strategy_write_trace(strategy, discard, &size);
  if (status == DIST_OK) status = dist_strategy_write_metrics(strategy, NULL, discard, &size);
  if (status == DIST_OK) status = dist_strategy_stragglers(strategy, &row, sizeof row, 1, &size);
  if (status == DIST_OK) status = dist_strategy_explain(strategy, discard, &size);
  return status;
}

static void lack_of_memory_is_a_status(void **state) {
  (void)state;
  refusals a = {.refuse_at = -1};
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = R;
  host.allocator = refusing(&a);
  dist_strategy *strategy = strategy_with(options);
  static const int32_t ids[] = {1, 3};
  dist_group *group = NULL;
  assert_ok(dist_group_create(strategy, ids, 2, &group));
  assert_ok(dist_run(strategy, with_one_late, NULL, NULL));

  /* The metrics report exactly the bytes that the allocator has handed out. */
  text page = {NULL, 0};
  assert_ok(dist_strategy_write_metrics(strategy, NULL, append, &page));
  char line[64];
  snprintf(line, sizeof line, "\ndist_memory_held_bytes %ld\n", atomic_load(&a.live_bytes));
  assert_has(page.data, line);
  free(page.data);

  const long before = atomic_load(&a.live_bytes);
  int k = 0;
  for (dist_status status = DIST_RESOURCE_EXHAUSTED; status != DIST_OK; k++) {
    atomic_store(&a.refuse_at, atomic_load(&a.requests) + k);
    status = all_of_it(strategy);
    if (status != DIST_OK) assert_int_equal(status, DIST_RESOURCE_EXHAUSTED);
    assert_int_equal(atomic_load(&a.live_bytes), before);
    assert_in_range(k, 0, 1000);
  }
  assert_true(k > 3);
  atomic_store(&a.refuse_at, -1);
  assert_ok(dist_group_destroy(group));
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(atomic_load(&a.live_bytes), 0);
}

/* ---- While replicas run ---- */

static atomic_int looks; /* texts that were written during the run */

static dist_status until_looked_at(dist_replica *replica, void *user_data) {
  const int32_t enough = *(const int32_t *)user_data;
  for (;;) {
    /* All replicas end after the same round, because they use the value that replica 0 has read. */
    int32_t go_on = atomic_load(&looks) < enough;
    int64_t length = 1;
    dist_tensor tensor = vector_of(&go_on, DIST_I32, &length);
    dist_status status = dist_broadcast(replica, 0, &tensor, &tensor, 1, NULL, NULL);
    for (int i = 0; i < 50 && status == DIST_OK; i++) status = sum(replica, 16, i % 2 == 0 ? "even" : NULL);
    if (status != DIST_OK || !go_on) return status;
  }
}

typedef struct onlooker {
  dist_strategy *strategy;
  int32_t times;
  int print;
  dist_status status;
} onlooker;

static void *look_on(void *argument) {
  onlooker *self = argument;
  for (int32_t i = 0; i < self->times; i++) {
    text trace = {NULL, 0};
    if (self->status == DIST_OK) self->status = dist_strategy_write_trace(self->strategy, append, &trace);
    if (self->status == DIST_OK && self->print) fwrite(trace.data, 1, trace.size, stdout);
    if (self->status == DIST_OK) self->status = all_of_it(self->strategy);
    free(trace.data);
    atomic_fetch_add(&looks, 1);
  }
  return NULL;
}

static dist_status look_while_running(int32_t times, int print) {
  dist_strategy *strategy = strategy_of(R, DIST_THREADS_CALLER);
  onlooker onlookers[2];
  pthread_t threads[2];
  int32_t enough = 2 * times;
  atomic_store(&looks, 0);
  for (int i = 0; i < 2; i++) {
    onlookers[i] = (onlooker){strategy, times, print && i == 0, DIST_OK};
    if (pthread_create(&threads[i], NULL, look_on, &onlookers[i]) != 0) abort();
  }
  dist_status status = dist_run(strategy, until_looked_at, &enough, NULL);
  for (int i = 0; i < 2; i++) {
    pthread_join(threads[i], NULL);
    if (status == DIST_OK) status = onlookers[i].status;
  }
  if (dist_strategy_destroy(strategy) != DIST_OK) abort();
  return status;
}

static void looking_on_disturbs_nobody(void **state) {
  (void)state;
  assert_ok(look_while_running(10, 0));
}

static void explanations_name_the_reasons(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(R, DIST_THREADS_LIBRARY);
  text words = {NULL, 0};
  assert_ok(dist_strategy_explain(strategy, append, &words));
  static const char *const lines[] = {"libdist 0.",
                                      "\n  replicas: 4, as requested\n",
                                      "\n  CPUs: ",
                                      "\n  replica threads: replicas 0-3",
                                      "\n  waiting: ",
                                      "\n  placement: the operating system",
                                      "\n  timeout: a replica waits 600 s",
                                      "\n  SIMD: ",
                                      "\n  cache: ",
                                      "\n  groups: group 0 has all 4 replicas\n",
                                      "\n  memory: ",
                                      "\n  flight recorder: "};
  for (size_t i = 0; i < COUNT_OF(lines); i++) assert_has(words.data, lines[i]);
  free(words.data);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- For observe.py ---- */

static const char wild_tag[] = "a\"b\\c\n\t\x01\xff\xc0\x80\xed\xa0\x80\xe2\x82\xac";

/* An asynchronous sum, and a planned one with two rounds. */
static dist_status works(dist_replica *replica) {
  static float buffers[R][64];
  int64_t length = 64;
  dist_tensor tensor = vector_of(buffers[dist_replica_id(replica)], DIST_F32, &length);
  dist_work *work = NULL;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.tag = "later";
  dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &options, &work);
  if (status == DIST_OK) status = dist_work_wait(work, DIST_NO_TIMEOUT);
  dist_work_destroy(work);
  work = NULL;
  options.tag = "planned";
  options.planned = 1;
  if (status == DIST_OK)
    status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &options, &work);
  for (int i = 0; i < 2 && status == DIST_OK; i++) {
    status = dist_work_start(work);
    if (status == DIST_OK) status = dist_work_wait(work, DIST_NO_TIMEOUT);
  }
  dist_work_destroy(work);
  return status;
}

static dist_status part_of_a_trace(dist_replica *replica, void *user_data) {
  dist_group *const *pair = user_data;
  const int32_t id = dist_replica_id(replica);
  dist_status status = DIST_OK;
  if (id == LATE) status = come_last(replica);
  if (status == DIST_OK) status = sum(replica, 16, wild_tag);
  if (status == DIST_OK) status = dist_barrier(replica, NULL, NULL);
  if (status == DIST_OK) status = works(replica);
  if (status == DIST_OK && id % 2 == 1) {
    dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
    options.group = *pair;
    status = dist_barrier(replica, &options, NULL);
  }
  return status;
}

static dist_status one_fails(dist_replica *replica, void *user_data) {
  (void)user_data;
  if (dist_replica_id(replica) == 1) {
    const dist_status status = come_last(replica);
    if (status != DIST_OK || sum(replica, -1, "refused") != DIST_INVALID_ARGUMENT) return status;
    return dist_fail(DIST_DATA_LOSS, "as planned");
  }
  return dist_barrier(replica, NULL, NULL);
}

static int print_text(const char *what) {
  if (strcmp(what, "live") == 0) return look_while_running(20, 1) != DIST_OK;
  dist_strategy *strategy = strategy_of(R, DIST_THREADS_CALLER);
  static const int32_t ids[] = {1, 3};
  dist_group *group = NULL;
  text out = {NULL, 0};
  if (dist_group_create(strategy, ids, 2, &group) != DIST_OK) return 1;
  if (dist_run(strategy, part_of_a_trace, &group, NULL) != DIST_OK) return 1;
  if (dist_run(strategy, one_fails, NULL, NULL) != DIST_DATA_LOSS) return 1;
  const dist_status status = strcmp(what, "trace") == 0
                                 ? dist_strategy_write_trace(strategy, append, &out)
                                 : dist_strategy_write_metrics(strategy, wild_tag, append, &out);
  if (status != DIST_OK) return 1;
  fwrite(out.data, 1, out.size, stdout);
  free(out.data);
  return dist_group_destroy(group) != DIST_OK || dist_strategy_destroy(strategy) != DIST_OK;
}

int main(int argc, char **argv) {
  if (argc > 1) return print_text(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_late_one_leads_the_table),
      cmocka_unit_test(rows_of_other_versions),
      cmocka_unit_test(wrong_arguments),
      cmocka_unit_test(lack_of_memory_is_a_status),
      cmocka_unit_test(looking_on_disturbs_nobody),
      cmocka_unit_test(explanations_name_the_reasons),
  };
  return cmocka_run_group_tests_name("observe", tests, NULL, NULL);
}
