/* SPDX-License-Identifier: Apache-2.0
 *
 * Asynchronous and planned collectives over several workers: packs, a thousand collectives in progress, and
 * progress while replicas compute. Also workers that leave, fail, are late, call a different collective, are
 * cancelled or lost. test_layouts.c checks that the bits equal those of a single process.
 */
#include "../workers_support.h"

enum { TENSORS = 40, EACH = 300, MANY = 1000 };

static const dist_collective_options defaults = DIST_COLLECTIVE_OPTIONS_INIT;

typedef struct program {
  dist_replica_fn fn;
  void *user_data;
} program;

static dist_status run_program(dist_strategy *strategy, int worker, void *user_data) {
  const program *p = user_data;
  (void)worker;
  return dist_run(strategy, p->fn, p->user_data, NULL);
}

static void on_layouts(dist_replica_fn fn, void *user_data, int32_t threads) {
  const char *const layouts[] = {"2+2", "1+1+1+1", "3+1", "4", "1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1"};
  for (size_t l = 0; l < COUNT_OF(layouts); ++l) {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
    options.worker = &worker;
    options.threads = threads;
    worker.staging_bytes = l == 0 ? 4096 : 0;
    workers all = workers_of(layouts[l], options);
    program p = {fn, user_data};
    all_workers(&all, run_program, &p);
    end_workers(&all);
  }
}

/* ---- Packs ---- */

static float sum_of(int32_t replicas, size_t t, int i) {
  float sum = 0;
  for (int32_t r = 0; r < replicas; ++r) sum += (float)(r + 1) / (float)(1 + t + (size_t)i);
  return sum;
}

/* The tensors become ready in a different order on each replica, and the plan has several rounds. */
static dist_status plan_in_packs(dist_replica *replica, void *user_data) {
  (void)user_data;
  const int32_t me = dist_replica_id(replica);
  const int32_t replicas = dist_replica_num_replicas(replica);
  float data[TENSORS][EACH];
  dist_tensor tensors[TENSORS];
  const int64_t shape[] = {EACH};
  for (int t = 0; t < TENSORS; ++t) tensors[t] = (dist_tensor){data[t], DIST_F32, 1, shape, NULL};
  dist_work *plan = NULL;
  dist_collective_options options = defaults;
  options.planned = 1;
  options.bytes_per_pack = 3 * EACH * (int64_t)sizeof(float);
  dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, tensors, tensors, TENSORS, &options, &plan);
  for (int round = 0; round < 3 && status == DIST_OK; ++round) {
    for (size_t k = 0; k < TENSORS && status == DIST_OK; ++k) {
      const size_t t = (k * 7 + (size_t)me * 11 + (size_t)round) % TENSORS;
      for (int i = 0; i < EACH; ++i) data[t][i] = (float)(me + 1) / (float)(1 + t + (size_t)i);
      status = dist_work_ready(plan, t);
    }
    if (status == DIST_OK) status = dist_work_wait(plan, DIST_NO_TIMEOUT);
    for (size_t t = 0; t < TENSORS && status == DIST_OK; ++t) {
      for (int i = 0; i < EACH; ++i) {
        if (data[t][i] != sum_of(replicas, t, i)) return dist_fail(DIST_DATA_LOSS, "another sum of a plan");
      }
    }
  }
  dist_work_destroy(plan);
  return status;
}

static void packs_go_in_any_order(void **state) {
  (void)state;
  on_layouts(plan_in_packs, NULL, DIST_THREADS_CALLER);
}

/* ---- Many in progress ---- */

/* With blocking collectives in between. Some works are only polled. */
static dist_status have_many(dist_replica *replica, void *user_data) {
  (void)user_data;
  const int32_t me = dist_replica_id(replica);
  const int32_t replicas = dist_replica_num_replicas(replica);
  static const int64_t shape[] = {4};
  int32_t(*data)[4] = malloc(MANY * sizeof *data);
  dist_work **works = calloc(MANY, sizeof *works);
  dist_status status = DIST_OK;
  for (int k = 0; k < MANY && status == DIST_OK; ++k) {
    for (int i = 0; i < 4; ++i) data[k][i] = me + k + i;
    dist_tensor t = {data[k], DIST_I32, 1, shape, NULL};
    dist_collective_options options = defaults;
    status = dist_all_reduce(replica, DIST_REDUCE_SUM, &t, &t, 1, &options, &works[k]);
    if (status == DIST_OK && k % 100 == 50) status = dist_barrier(replica, NULL, NULL);
  }
  for (int k = MANY - 1; k >= 0 && status == DIST_OK; --k) {
    int32_t done = k % 2;
    while (done == 0 && status == DIST_OK) status = dist_work_test(works[k], &done);
    if (status == DIST_OK) status = dist_work_wait(works[k], DIST_NO_TIMEOUT);
    for (int i = 0; i < 4; ++i) {
      const int32_t sum = replicas * (replicas - 1) / 2 + replicas * (k + i);
      if (status == DIST_OK && data[k][i] != sum) status = dist_fail(DIST_DATA_LOSS, "another sum of a work");
    }
  }
  for (int k = 0; k < MANY; ++k) dist_work_destroy(works[k]);
  free(works);
  free(data);
  return status;
}

static void a_thousand_are_under_way(void **state) {
  (void)state;
  on_layouts(have_many, NULL, DIST_THREADS_LIBRARY);
}

/* ---- While replicas compute ---- */

typedef struct computing {
  atomic_int ended; /* replicas of worker 1 that have the sum */
  float sums[MOST];
} computing;

static dist_status begin_sum(dist_replica *replica, float *value, int64_t timeout_ns, dist_work **out) {
  dist_tensor t = {value, DIST_F32, 0, NULL, NULL};
  dist_collective_options options = defaults;
  options.timeout_ns = timeout_ns;
  options.tag = "grads";
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &t, &t, 1, &options, out);
}

/* Replicas of worker 0 make no call until those of worker 1 have their sums. */
static dist_status compute_meanwhile(dist_replica *replica, void *user_data) {
  computing *c = user_data;
  const int32_t me = dist_replica_id(replica);
  dist_work *work = NULL;
  c->sums[me] = (float)(me + 1);
  dist_status status = begin_sum(replica, &c->sums[me], 0, &work);
  if (status != DIST_OK) return status;
  while (me < 2 && atomic_load(&c->ended) < 2) sched_yield();
  status = dist_work_wait(work, DIST_NO_TIMEOUT);
  if (me >= 2) atomic_fetch_add(&c->ended, 1);
  dist_work_destroy(work);
  return status;
}

static void they_go_on_while_a_worker_computes(void **state) {
  (void)state;
  workers all = workers_of("2+2", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  for (int again = 0; again < 20; ++again) {
    static computing c;
    memset(&c, 0, sizeof c);
    program p = {compute_meanwhile, &c};
    all_workers(&all, run_program, &p);
    for (int r = 0; r < 4; ++r) assert_true(c.sums[r] == 10);
  }
  end_workers(&all);
}

/* ---- Faults ---- */

typedef struct trouble {
  dist_replica_fn fn; /* of worker 1 */
  atomic_int over;    /* on worker 0 */
  int64_t timeout_ns;
  int planned;
} trouble;

/* Waits for two sums, so that the second is in progress behind the first. */
static dist_status wait_for_sums(dist_replica *replica, void *user_data) {
  trouble *given = user_data;
  float values[2] = {1, 2};
  dist_work *works[2] = {0};
  dist_status status = DIST_OK;
  for (int k = 0; k < 2 && status == DIST_OK; ++k) {
    if (!given->planned) {
      status = begin_sum(replica, &values[k], given->timeout_ns, &works[k]);
      continue;
    }
    dist_tensor t = {&values[k], DIST_F32, 0, NULL, NULL};
    dist_collective_options options = defaults;
    options.timeout_ns = given->timeout_ns;
    options.planned = 1;
    options.tag = "grads";
    status = dist_all_reduce(replica, DIST_REDUCE_SUM, &t, &t, 1, &options, &works[k]);
  }
  if (given->planned && dist_replica_id(replica) >= 2) {
    const dist_status left = status == DIST_OK ? given->fn(replica, user_data) : status;
    for (int k = 0; k < 2; ++k) dist_work_destroy(works[k]);
    return left;
  }
  for (int k = 0; k < 2 && status == DIST_OK && given->planned; ++k) status = dist_work_start(works[k]);
  for (int k = 1; k >= 0 && status == DIST_OK; --k) status = dist_work_wait(works[k], DIST_NO_TIMEOUT);
  for (int k = 0; k < 2; ++k) dist_work_destroy(works[k]);
  atomic_fetch_add(&given->over, 1);
  return status;
}

static dist_status make_trouble(dist_strategy *strategy, int worker, void *user_data) {
  trouble *given = user_data;
  return dist_run(strategy, worker == 1 && !given->planned ? given->fn : wait_for_sums, user_data, NULL);
}

static dist_status leave_at_once(dist_replica *replica, void *user_data) {
  (void)replica;
  (void)user_data;
  return DIST_OK;
}

static dist_status fail_at_once(dist_replica *replica, void *user_data) {
  (void)replica;
  (void)user_data;
  return dist_fail(DIST_DATA_LOSS, "the disk is gone");
}

static dist_status gather_instead(dist_replica *replica, void *user_data) {
  (void)user_data;
  float in = 1;
  float out[4];
  const int64_t one[] = {1};
  const int64_t four[] = {4};
  dist_tensor given = {&in, DIST_F32, 1, one, NULL};
  dist_tensor made = {out, DIST_F32, 1, four, NULL};
  dist_work *work = NULL;
  dist_collective_options options = defaults;
  dist_status status = dist_all_gather(replica, &given, &made, 1, &options, &work);
  if (status == DIST_OK) status = dist_work_wait(work, DIST_NO_TIMEOUT);
  dist_work_destroy(work);
  return status;
}

static dist_status come_when_it_is_over(dist_replica *replica, void *user_data) {
  trouble *given = user_data;
  while (atomic_load(&given->over) < 2) sched_yield();
  float value = 1;
  dist_work *work = NULL;
  dist_status status = begin_sum(replica, &value, 0, &work);
  if (status == DIST_OK) status = dist_work_wait(work, DIST_NO_TIMEOUT);
  dist_work_destroy(work);
  return status;
}

/* Cancels the second sum, which replica 2 never starts. */
static dist_status cancel_one(dist_replica *replica, void *user_data) {
  (void)user_data;
  float value = 1;
  dist_work *work = NULL;
  dist_status status = begin_sum(replica, &value, 0, &work);
  if (status == DIST_OK) status = dist_work_wait(work, DIST_NO_TIMEOUT);
  dist_work_destroy(work);
  if (status != DIST_OK) return status;
  if (dist_replica_id(replica) == 2) return dist_barrier(replica, NULL, NULL);
  work = NULL;
  status = begin_sum(replica, &value, 0, &work);
  if (status == DIST_OK) status = dist_work_cancel(work);
  if (status == DIST_OK) status = dist_work_wait(work, DIST_NO_TIMEOUT);
  dist_work_destroy(work);
  return status;
}

static void hold_trouble(const workers *all, trouble given, dist_status code, const char *words) {
  worker_thread threads[MOST_WORKERS];
  trouble own = {.fn = given.fn, .timeout_ns = given.timeout_ns, .planned = given.planned};
  on_workers(all, make_trouble, &own, threads);
  for (int w = 0; w < all->n; ++w) {
    if (w == 1) continue;
    if (threads[w].status != code || strstr(threads[w].error.message, words) == NULL)
      fail_msg("worker %d: %s: %s; not %s with \"%s\"", w, dist_status_name(threads[w].status),
               threads[w].error.message, dist_status_name(code), words);
  }
  static computing c;
  for (int again = 0; again < 2; ++again) {
    memset(&c, 0, sizeof c);
    c.ended = 2;
    program p = {compute_meanwhile, &c};
    all_workers(all, run_program, &p);
    for (int r = 0; r < 4; ++r) assert_true(c.sums[r] == (all->n == 2 ? 10 : 21));
  }
}

static void trouble_is_told_and_passes(void **state) {
  (void)state;
  const struct {
    dist_replica_fn fn;
    int64_t timeout_ns;
    dist_status code;
    const char *words;
    int planned;
  } cases[] = {
      {leave_at_once, 0, DIST_ABORTED, "(tag \"grads\"): worker 1 returned early", 0},
      {fail_at_once, 0, DIST_ABORTED, "the disk is gone", 0},
      {gather_instead, 0, DIST_INVALID_ARGUMENT, "worker 1", 0},
      {come_when_it_is_over, 20000000, DIST_DEADLINE_EXCEEDED, "worker 1", 0},
      {cancel_one, 0, DIST_ABORTED, "CANCELLED", 0},
      {leave_at_once, 0, DIST_ABORTED, "worker 1 returned early", 1},
      {fail_at_once, 0, DIST_ABORTED, "the disk is gone", 1},
      {leave_at_once, 0, DIST_ABORTED, "worker 1", 1},
  };
  const char *const layouts[] = {"2+2", "2+2+2"};
  for (size_t l = 0; l < COUNT_OF(layouts); ++l) {
    workers all = workers_of(layouts[l], (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
    for (size_t k = 0; k < COUNT_OF(cases); ++k) {
      if (l == 1 && cases[k].planned) continue; /* worker 2 plays the part of worker 1 there */
      hold_trouble(
          &all, (trouble){.fn = cases[k].fn, .timeout_ns = cases[k].timeout_ns, .planned = cases[k].planned},
          cases[k].code, cases[k].words);
    }
    end_workers(&all);
  }
}

static dist_status shut_down_or_wait(dist_strategy *strategy, int worker, void *user_data) {
  if (worker == 1) return dist_strategy_shutdown(strategy, -1);
  return dist_run(strategy, wait_for_sums, user_data, NULL);
}

static void a_worker_that_ends_is_lost(void **state) {
  (void)state;
  workers all = workers_of("2+2", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  trouble given = {0};
  worker_thread threads[MOST_WORKERS];
  on_workers(&all, shut_down_or_wait, &given, threads);
  assert_int_equal(threads[0].status, DIST_UNAVAILABLE);
  assert_has(threads[0].error.message, "worker 1 is lost");
  end_workers(&all);
}

static dist_status run_with_deadline(dist_strategy *strategy, int worker, void *user_data) {
  trouble *given = user_data;
  if (worker == 1) {
    while (atomic_load(&given->over) < 2) sched_yield();
    return dist_run(strategy, leave_at_once, NULL, NULL);
  }
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  options.timeout_ns = 20000000;
  return dist_run(strategy, wait_for_sums, given, &options);
}

static void the_deadline_of_a_run_ends_them(void **state) {
  (void)state;
  workers all = workers_of("2+2", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  trouble given = {0};
  worker_thread threads[MOST_WORKERS];
  on_workers(&all, run_with_deadline, &given, threads);
  assert_int_equal(threads[0].status, DIST_DEADLINE_EXCEEDED);
  static computing c = {.ended = 2};
  program p = {compute_meanwhile, &c};
  all_workers(&all, run_program, &p);
  end_workers(&all);
}

/* ---- Plans after a failed run ---- */

#define TRY(call)                           \
  do {                                      \
    const dist_status status_ = (call);     \
    if (status_ != DIST_OK) return status_; \
  } while (0)

enum { LASTING = 4 };

typedef struct lasting {
  dist_work *plans[LASTING];
  float data[LASTING];
} lasting;

static dist_status plan_sum(dist_replica *replica, lasting *all) {
  const int32_t me = dist_replica_id(replica);
  dist_tensor tensor = {&all->data[me], DIST_F32, 0, NULL, NULL};
  dist_collective_options options = defaults;
  options.planned = 1;
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &options, &all->plans[me]);
}

static dist_status round_of_sum(dist_replica *replica, lasting *all) {
  const int32_t me = dist_replica_id(replica);
  all->data[me] = (float)(me + 1);
  dist_status status = dist_work_start(all->plans[me]);
  if (status == DIST_OK) status = dist_work_wait(all->plans[me], DIST_NO_TIMEOUT);
  if (status == DIST_OK && all->data[me] != 10) return dist_fail(DIST_DATA_LOSS, "another sum of a plan");
  return status;
}

static dist_status plan_and_go(dist_replica *replica, void *user_data) {
  const dist_status status = plan_sum(replica, user_data);
  return status == DIST_OK ? round_of_sum(replica, user_data) : status;
}

/* Worker 1 fails when no other worker needs it any more. */
static dist_status fail_late(dist_replica *replica, void *user_data) {
  TRY(round_of_sum(replica, user_data));
  if (dist_replica_id(replica) == 2) return dist_barrier(replica, NULL, NULL);
  return dist_replica_id(replica) == 3 ? dist_fail(DIST_INVALID_ARGUMENT, "late") : DIST_OK;
}

static dist_status plan_again(dist_replica *replica, void *user_data) {
  lasting *all = user_data;
  const dist_status status = dist_work_start(all->plans[dist_replica_id(replica)]);
  if (status != DIST_FAILED_PRECONDITION) {
    return dist_fail(DIST_INTERNAL, "a plan outlived a failed run");
  }
  dist_work_destroy(all->plans[dist_replica_id(replica)]);
  return plan_and_go(replica, all);
}

static dist_status go_on_after_failures(dist_strategy *strategy, int worker, void *user_data) {
  TRY(dist_run(strategy, plan_and_go, user_data, NULL));
  for (int i = 0; i < 20; ++i) {
    const dist_status status = dist_run(strategy, fail_late, user_data, NULL);
    /* Worker 0 may still be in the round when the other one fails. */
    const int expected =
        worker == 0 ? status == DIST_OK || status == DIST_ABORTED : status == DIST_INVALID_ARGUMENT;
    if (!expected) {
      return dist_fail(DIST_INTERNAL, "the run that fails ended otherwise");
    }
    TRY(dist_run(strategy, plan_again, user_data, NULL));
  }
  return DIST_OK;
}

static void a_failure_anywhere_ends_plans_everywhere(void **state) {
  (void)state;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.timeout_ns = 60000000000;
  workers two = workers_of("2+2", options);
  lasting all = {0};
  all_workers(&two, go_on_after_failures, &all);
  for (int r = 0; r < LASTING; ++r) dist_work_destroy(all.plans[r]);
  end_workers(&two);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(packs_go_in_any_order),
      cmocka_unit_test(a_thousand_are_under_way),
      cmocka_unit_test(they_go_on_while_a_worker_computes),
      cmocka_unit_test(trouble_is_told_and_passes),
      cmocka_unit_test(a_worker_that_ends_is_lost),
      cmocka_unit_test(the_deadline_of_a_run_ends_them),
      cmocka_unit_test(a_failure_anywhere_ends_plans_everywhere),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
