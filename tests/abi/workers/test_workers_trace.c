/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces, counters and statistics of late replicas over several workers. They use global numbers of replicas
 * and workers, and all workers name the same late one. workers_trace.py runs this program as
 * `test_workers_trace trace` and combines the output of the workers.
 */
#include "../workers_support.h"

enum { REPLICAS = 4, ROUNDS = 4, LARGE = 5000 };

typedef struct text {
  char *data;
  size_t size;
} text;

static void keep(const char *piece, size_t size, void *user_data) {
  text *to = user_data;
  char *grown = realloc(to->data, to->size + size + 1);
  if (grown == NULL) abort();
  memcpy(grown + to->size, piece, size);
  to->data = grown;
  to->size += size;
  grown[to->size] = '\0';
}

static int count_of(const char *in, const char *words) {
  int count = 0;
  for (const char *at = in; (at = strstr(at, words)) != NULL; at++) count++;
  return count;
}

/* ---- Late replicas that all others wait for ---- */

typedef struct lateness {
  const workers *all;
  int worker;      /* that is late, or whose replica is late */
  int32_t replica; /* that is late; -1 = the worker, outside replicas */
} lateness;

/* Whether the trace of a worker contains these words this number of times for one round. */
static int says(const lateness *late, int worker, int sequence, const char *words, int times) {
  text trace = {NULL, 0};
  const dist_status status = dist_strategy_write_trace(late->all->strategies[worker], keep, &trace);
  int found = status == DIST_OK ? 0 : -1;
  char round[32];
  snprintf(round, sizeof round, "\"sequence\":%d,", sequence);
  for (const char *at = trace.data; found >= 0 && (at = strstr(at, round)) != NULL; at++) {
    const char *const next = strstr(at + 1, "\"sequence\"");
    const char *const there = strstr(at, words);
    if (there != NULL && (next == NULL || there < next)) found++;
  }
  free(trace.data);
  return found == times;
}

/* Returns when all others wait only for this one, which their traces show. */
static void come_last(const lateness *late, int sequence) {
  char words[80];
  for (int w = 0; w < late->all->n; ++w) {
    int32_t waiting = late->replica < 0 ? 1 : late->all->replicas[w];
    if (w == late->worker) {
      waiting -= 1;
      snprintf(words, sizeof words, "\"waits_for\":[%d]", late->replica);
    } else {
      snprintf(words, sizeof words, "\"missing_workers\":1,\"waits_for_worker\":%d", late->worker);
    }
    while (!says(late, w, sequence, words, waiting)) sched_yield();
  }
}

static dist_status with_one_late(dist_replica *replica, void *user_data) {
  static float buffers[MOST][LARGE];
  const lateness *const late = user_data;
  const int32_t me = dist_replica_id(replica);
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.tag = "grads";
  dist_status status = DIST_OK;
  for (int i = 0; i < ROUNDS && status == DIST_OK; ++i) {
    const int64_t length = i % 2 == 0 ? 16 : LARGE;
    const dist_tensor tensor = vector_of(buffers[me], DIST_F32, &length);
    dist_tensor out = tensor;
    if (me == late->replica) come_last(late, i + 1);
    status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &out, 1, &options, NULL);
  }
  return status;
}

static dist_status run_late(dist_strategy *strategy, int worker, void *user_data) {
  (void)worker;
  return dist_run(strategy, with_one_late, user_data, NULL);
}

static void all_workers_name_the_replica_that_is_late(void **state) {
  (void)state;
  static const char *const layouts[] = {"2+2", "1+1+1+1", "3+1", "1+3", "2+1+1"};
  for (size_t k = 0; k < COUNT_OF(layouts); ++k) {
    for (int32_t replica = 0; replica < REPLICAS; ++replica) {
      dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
      dist_worker_options options_worker = DIST_WORKER_OPTIONS_INIT;
      options.worker = &options_worker;
      if (replica % 2 == 1) options_worker.staging_bytes = 4096; /* large ones are sent in pieces */
      workers all = workers_of(layouts[k], options);
      lateness late = {&all, 0, replica};
      for (int32_t first = all.replicas[0]; first <= replica; first += all.replicas[++late.worker]) continue;
      all_workers(&all, run_late, &late);
      for (int w = 0; w < all.n; ++w) {
        dist_straggler rows[4];
        size_t n = 0;
        assert_ok(dist_strategy_stragglers(all.strategies[w], rows, sizeof rows[0], COUNT_OF(rows), &n));
        assert_int_equal(n, 1);
        assert_string_equal(rows[0].tag, "grads");
        assert_int_equal(rows[0].collective, DIST_COLLECTIVE_ALL_REDUCE);
        assert_int_equal(rows[0].group, 0);
        assert_int_equal(rows[0].replica, replica);
        assert_int_equal(rows[0].worker, late.worker);
        assert_int_equal(rows[0].rounds, ROUNDS);
        assert_int_equal(rows[0].times_last, ROUNDS);
        /* If it is the only replica of its worker, no replica there has waited for it. */
        const int waited = w != late.worker || all.replicas[w] > 1;
        assert_int_equal(rows[0].mean_late_ns > 0, waited);
        assert_true(rows[0].max_late_ns >= rows[0].mean_late_ns);
      }
      end_workers(&all);
    }
  }
}

static dist_status reduce_late(dist_strategy *strategy, int worker, void *user_data) {
  const lateness *const late = user_data;
  float one = 1;
  const dist_tensor tensor = {&one, DIST_F32, 0, NULL, NULL};
  dist_value *value = NULL;
  dist_value *sum = NULL;
  dist_status status = dist_value_create_tensor(strategy, &tensor, &value);
  if (worker == late->worker) come_last(late, 1);
  if (status == DIST_OK) status = dist_reduce(strategy, DIST_REDUCE_SUM, value, NULL, 0, &sum);
  dist_value_release(sum);
  dist_value_release(value);
  return status;
}

static void a_worker_may_be_late_outside_of_its_replicas(void **state) {
  (void)state;
  for (int worker = 0; worker < 3; ++worker) {
    workers all = workers_of("1+2+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
    lateness late = {&all, worker, -1};
    all_workers(&all, reduce_late, &late);
    for (int w = 0; w < all.n; ++w) {
      dist_straggler row;
      size_t n = 0;
      assert_ok(dist_strategy_stragglers(all.strategies[w], &row, sizeof row, 1, &n));
      assert_int_equal(n, 1);
      assert_int_equal(row.replica, -1);
      assert_int_equal(row.worker, worker);
      assert_int_equal(row.group, 0);
      assert_int_equal(row.rounds, 1);
      assert_int_equal(row.mean_late_ns > 0, w != worker);
    }
    end_workers(&all);
  }
}

/* ---- Counters ---- */

static void pages_of_workers_can_be_told_apart(void **state) {
  (void)state;
  workers all = workers_of("1+3", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  lateness late = {&all, 0, -2};
  all_workers(&all, run_late, &late);
  for (int w = 0; w < all.n; ++w) {
    text page = {NULL, 0};
    assert_ok(dist_strategy_write_metrics(all.strategies[w], w == 0 ? NULL : "train", keep, &page));
    assert_has(page.data, w == 0 ? "\ndist_replicas{worker=\"0\"} 4\n"
                                 : "\ndist_replicas{strategy=\"train\",worker=\"1\"} 4\n");
    for (int32_t r = 0; r < REPLICAS; ++r) {
      char line[96];
      snprintf(line, sizeof line, "\ndist_runs_total{%sworker=\"%d\",replica=\"%d\"} 1\n",
               w == 0 ? "" : "strategy=\"train\",", w, r);
      assert_int_equal(count_of(page.data, line), (r > 0) == w);
    }
    free(page.data);
  }
  end_workers(&all);
}

/* ---- For workers_trace.py ---- */

static dist_status fail_on_one(dist_replica *replica, void *user_data) {
  (void)user_data;
  if (dist_replica_id(replica) == 3) return dist_fail(DIST_DATA_LOSS, "as planned");
  return dist_barrier(replica, NULL, NULL);
}

static dist_status part_of_a_trace(dist_strategy *strategy, int worker, void *user_data) {
  const lateness *const late = user_data;
  dist_status status = dist_run(strategy, with_one_late, user_data, NULL);
  const lateness outside = {late->all, 0, -1};
  if (status == DIST_OK) status = reduce_late(strategy, worker, (void *)&outside);
  if (status == DIST_OK && dist_run(strategy, fail_on_one, NULL, NULL) == DIST_OK) status = DIST_UNKNOWN;
  return status;
}

static int print_traces(void) {
  workers all = workers_of("2+1+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  lateness late = {&all, 1, 2};
  all_workers(&all, part_of_a_trace, &late);
  for (int w = 0; w < all.n; ++w) {
    text out = {NULL, 0};
    if (dist_strategy_write_trace(all.strategies[w], keep, &out) != DIST_OK) return 1;
    fwrite(out.data, 1, out.size, stdout);
    free(out.data);
  }
  end_workers(&all);
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 1) return strcmp(argv[1], "trace") == 0 ? print_traces() : 2;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_workers_name_the_replica_that_is_late),
      cmocka_unit_test(a_worker_may_be_late_outside_of_its_replicas),
      cmocka_unit_test(pages_of_workers_can_be_told_apart),
  };
  return cmocka_run_group_tests_name("trace of workers", tests, NULL, NULL);
}
