/* SPDX-License-Identifier: Apache-2.0
 *
 * Work: collectives that run while their members do something else. The results equal those of the oracle,
 * for any order of waiting, on any kind of thread, and next to blocking collectives.
 */
#include "work_support.h"

enum { STEPS = 12 };

typedef struct program {
  exchange steps[STEPS];
  int n;
  int blocking_every; /* step k is blocking if k % blocking_every == 0; 0 = none */
  enum ending how;    /* that of member 0; the others have different ones; ENDINGS = LEAVING for all */
  dist_work *left[MEMBERS][STEPS];
} program;

static program p;

static dist_status play(dist_replica *replica, void *user_data) {
  (void)user_data;
  const int32_t id = dist_replica_id(replica);
  dist_work *works[STEPS] = {NULL};
  size_t n = 0;
  dist_status status = DIST_OK;
  for (int k = 0; k < p.n && status == DIST_OK; k++) {
    exchange *e = &p.steps[k];
    const int32_t me = e->group == NULL ? id : dist_group_rank(e->group, id);
    if (me < 0) continue;
    if (p.blocking_every != 0 && k % p.blocking_every == 0)
      status = call_exchange(replica, e, me);
    else
      status = issue_exchange(replica, e, me, 0, 0, &works[n++]);
  }
  if (status != DIST_OK) return status; /* the test fails, and works in progress are drained */
  const enum ending how = p.how == ENDINGS ? LEAVING : (p.how + id) % LEAVING;
  status = end_works(works, n, how);
  memcpy(p.left[id], works, sizeof works);
  return status;
}

/* Runs the program, checks all results, and destroys the remaining works. */
static void check_program(dist_strategy *strategy, int32_t threads, const char *what) {
  report error;
  char text[256];
  memset(p.left, 0, sizeof p.left);
  if (run_on(threads, strategy, play, NULL, &error) != DIST_OK) fail_msg("%s: %s", what, error.message);
  for (int k = 0; k < p.n; k++) {
    if (find_wrong(&p.steps[k], text, sizeof text) != NULL) fail_msg("%s, step %d: %s", what, k, text);
    free_exchange(&p.steps[k]);
  }
  for (int r = 0; r < MEMBERS; r++) {
    for (int k = 0; k < STEPS; k++) {
      if (p.left[r][k] == NULL) continue;
      assert_ok(dist_work_wait(p.left[r][k], DIST_NO_TIMEOUT)); /* outside a run, the work has ended */
      dist_work_destroy(p.left[r][k]);
    }
  }
}

static recipe recipe_of(int k, int32_t members, uint64_t seed) {
  recipe given = {.collective = exchanged[((uint64_t)k + seed) % COUNT_OF(exchanged)],
                  .op = k % 3 == 0 ? DIST_REDUCE_SUM : DIST_REDUCE_MEAN,
                  .root = k % members,
                  .kind = k % 2 == 0 ? DIST_SCAN_INCLUSIVE : DIST_SCAN_EXCLUSIVE,
                  .axis = k % 2 == 0 ? 0 : -1,
                  .members = members,
                  .ndim = 2,
                  .n = (size_t)k % (TENSORS + 1),
                  .dtypes = {DIST_F32, DIST_F16, DIST_F64},
                  .in_style = k % 5 == 1 ? GAPS : DENSE,
                  .out_style = k % 5 == 2 ? TRANSPOSED : DENSE,
                  .most = k % 4 == 3 ? 200 : 6, /* small ones at once, large ones by oneTBB */
                  .uneven = k % 2,
                  .splits = k % 3 == 0,
                  .seed = seed * 1000 + (uint64_t)k};
  if (given.collective == DIST_COLLECTIVE_SCAN) given.op = DIST_REDUCE_SUM;
  if (!reduces(given.collective)) given.op = 0;
  const int sums = reduces(given.collective) && given.collective != DIST_COLLECTIVE_SCAN;
  given.several = sums && k % 4 == 1;
  given.weighted = given.op == DIST_REDUCE_MEAN && k % 4 == 1;
  given.numerics = sums && k % 7 == 2 ? DIST_NUMERICS_REPRODUCIBLE
                   : k % 7 == 4       ? DIST_NUMERICS_TREE
                                      : DIST_NUMERICS_ORDERED;
  given.in_place = k % 6 == 5 && given.in_style == DENSE && given.out_style == DENSE && given.axis == 0;
  return given;
}

static void make_program(int32_t members, uint64_t seed) {
  p.n = STEPS;
  for (int k = 0; k < STEPS; k++) {
    const recipe given = recipe_of(k, members, seed);
    make_exchange(&p.steps[k], &given);
    p.steps[k].tag = k % 2 == 0 ? "even" : NULL;
  }
}

/* Several runs of one strategy, so that entries of the channel are reused. */
static void every_collective(void **state) {
  (void)state;
  static const int32_t sizes[] = {1, 2, 3};
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
      dist_strategy *strategy = strategy_of(sizes[s], threads);
      for (uint64_t round = 0; round < 12; round++) {
        make_program(sizes[s], round);
        p.how = round < ENDINGS ? (enum ending)round : ENDINGS;
        p.blocking_every = round % 3 == 2 ? 3 : 0;
        check_program(strategy, threads, threads_name(threads));
      }
      assert_ok(dist_strategy_destroy(strategy));
    }
  }
}

static void more_replicas_than_cpus(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    dist_strategy *strategy = strategy_of(MEMBERS, threads);
    for (uint64_t round = 0; round < ENDINGS; round++) {
      make_program(MEMBERS, round + 20);
      p.how = (enum ending)round == LEAVING ? ENDINGS : (enum ending)round;
      p.blocking_every = (int)round % 2 * 4;
      check_program(strategy, threads, "crowded");
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* Several channels at once, because groups overlap. */
static void groups(void **state) {
  (void)state;
  enum { R = 4, GROUPS = 4 };
  static const int32_t ids[GROUPS][R] = {{0, 2}, {1, 2, 3}, {3}, {0, 1, 2, 3}};
  static const size_t sizes[GROUPS] = {2, 3, 1, 4};
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    dist_strategy *strategy = strategy_of(R, threads);
    dist_group *groups_of[GROUPS];
    for (int g = 0; g < GROUPS; g++) assert_ok(dist_group_create(strategy, ids[g], sizes[g], &groups_of[g]));
    for (uint64_t round = 0; round < 8; round++) {
      p.n = STEPS;
      for (int k = 0; k < STEPS; k++) {
        const int g = (k + (int)round) % (GROUPS + 1); /* GROUPS means all replicas */
        const recipe given = recipe_of(k, g == GROUPS ? R : (int32_t)sizes[g], round + 40);
        make_exchange(&p.steps[k], &given);
        p.steps[k].group = g == GROUPS ? NULL : groups_of[g];
      }
      p.how = round < LEAVING ? (enum ending)round : ENDINGS;
      p.blocking_every = round % 4 == 3 ? 5 : 0;
      check_program(strategy, threads, "groups");
    }
    for (int g = 0; g < GROUPS; g++) assert_ok(dist_group_destroy(groups_of[g]));
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* ---- A few at a time, for a long time ---- */

typedef struct sum {
  int64_t length;
  float *data;
  dist_tensor tensor;
} sum;

static void make_sum(sum *s, int64_t length, float first) {
  s->length = length;
  s->data = malloc((size_t)length * sizeof(float));
  for (int64_t i = 0; i < length; i++) s->data[i] = first + (float)(i % 7);
  s->tensor = vector_of(s->data, DIST_F32, &s->length);
}

static dist_status issue_sum(dist_replica *replica, sum *s, dist_work **out_work) {
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &s->tensor, &s->tensor, 1, &options, out_work);
}

/* The sum of the contributions first + r with r < n. */
static dist_status end_sum(sum *s, int32_t n, float first) {
  dist_status status = DIST_OK;
  const int32_t sum_of_ids = n * (n - 1) / 2;
  for (int64_t i = 0; i < s->length && status == DIST_OK; i++) {
    const float each = first + (float)(i % 7);
    if (s->data[i] != (float)n * each + (float)sum_of_ids) status = dist_fail(DIST_INTERNAL, "a wrong sum");
  }
  free(s->data);
  return status;
}

/* A sliding window of works covers many more than the channel has entries. Small and large ones are in the
 * same window. */
static dist_status slide(dist_replica *replica, void *user_data) {
  (void)user_data;
  enum { MANY = 400, WINDOW = 15 };
  const int32_t id = dist_replica_id(replica), n = dist_replica_num_replicas(replica);
  static _Thread_local sum sums[WINDOW];
  dist_work *works[WINDOW] = {NULL};
  dist_status status = DIST_OK;
  for (int k = 0; k < MANY + WINDOW && status == DIST_OK; k++) {
    const int at = k % WINDOW;
    if (works[at] != NULL) {
      status = wait_and_destroy(&works[at]);
      if (status == DIST_OK) status = end_sum(&sums[at], n, (float)((k - WINDOW) % 50));
    }
    if (k >= MANY || status != DIST_OK) continue;
    make_sum(&sums[at], k * 7 % 5 == 0 ? 40000 : k % 4, (float)id + (float)(k % 50));
    status = issue_sum(replica, &sums[at], &works[at]);
  }
  return status;
}

static void places_serve_again_and_again(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    for (int32_t r = 2; r <= 5; r += 3) {
      dist_strategy *strategy = strategy_of(r, threads);
      report error;
      if (run_on(threads, strategy, slide, NULL, &error) != DIST_OK) fail_msg("%s", error.message);
      assert_ok(dist_strategy_destroy(strategy));
    }
  }
}

/* ---- Misuse ---- */

static dist_work *borrowed;

static void *from_another_thread(void *unused) {
  (void)unused;
  int32_t done = 7;
  size_t index = 7;
  static const char *const words = "belongs to replica 0";
  const int right = dist_work_wait(borrowed, DIST_NO_TIMEOUT) == DIST_FAILED_PRECONDITION &&
                    strstr(dist_last_error(), words) != NULL &&
                    dist_work_test(borrowed, &done) == DIST_FAILED_PRECONDITION && done == 7 &&
                    dist_work_wait_any(&borrowed, 1, DIST_NO_TIMEOUT, &index) == DIST_FAILED_PRECONDITION &&
                    index == 7 && dist_work_cancel(borrowed) == DIST_FAILED_PRECONDITION;
  return right ? &borrowed : NULL;
}

#define EXPECT(call, status, words)                                             \
  do {                                                                          \
    if ((call) != (status) || strstr(dist_last_error(), words) == NULL) {       \
      char text[600];                                                           \
      snprintf(text, sizeof text, "%s says: %.400s", #call, dist_last_error()); \
      return dist_fail(DIST_INTERNAL, text);                                    \
    }                                                                           \
  } while (0)

static dist_status misuse(dist_replica *replica, void *user_data) {
  (void)user_data;
  sum s;
  dist_work *work = NULL, *none[] = {NULL};
  size_t index = 7;
  int32_t done = 7;
  const int32_t id = dist_replica_id(replica);
  make_sum(&s, 3, (float)id);
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.planned = 1;
  EXPECT(dist_barrier(replica, &options, NULL), DIST_INVALID_ARGUMENT, "out_work");
  options.planned = 2;
  EXPECT(dist_barrier(replica, &options, &work), DIST_INVALID_ARGUMENT, "planned is 2");
  options.planned = 1;
  EXPECT(dist_merge_call(replica, NULL, NULL, NULL, NULL, &options, NULL), DIST_INVALID_ARGUMENT,
         "cannot be planned");
  options.planned = 0;
  EXPECT(dist_all_reduce(replica, 77, &s.tensor, &s.tensor, 1, &options, &work), DIST_INVALID_ARGUMENT, "op");
  if (work != NULL) return dist_fail(DIST_INTERNAL, "a refused call gave a work");
  EXPECT(dist_work_start(NULL), DIST_INVALID_ARGUMENT, "work is NULL");
  EXPECT(dist_work_ready(NULL, 0), DIST_INVALID_ARGUMENT, "work is NULL");
  EXPECT(dist_work_wait(NULL, DIST_NO_TIMEOUT), DIST_INVALID_ARGUMENT, "work is NULL");
  EXPECT(dist_work_test(NULL, &done), DIST_INVALID_ARGUMENT, "work is NULL");
  EXPECT(dist_work_cancel(NULL), DIST_INVALID_ARGUMENT, "work is NULL");
  EXPECT(dist_work_wait_any(none, 0, DIST_NO_TIMEOUT, &index), DIST_INVALID_ARGUMENT,
         "the list of works is empty");
  EXPECT(dist_work_wait_any(none, 1, DIST_NO_TIMEOUT, &index), DIST_INVALID_ARGUMENT, "works[0] is NULL");
  EXPECT(dist_work_wait_any(NULL, 1, DIST_NO_TIMEOUT, &index), DIST_INVALID_ARGUMENT, "works is NULL");
  EXPECT(dist_work_wait_any(none, 1, DIST_NO_TIMEOUT, NULL), DIST_INVALID_ARGUMENT, "out_index is NULL");
  if (index != 7 || done != 7) return dist_fail(DIST_INTERNAL, "an output was written");
  dist_work_destroy(NULL);
  if (id == 0) {
    dist_status status = issue_sum(replica, &s, &work);
    if (status != DIST_OK) return status;
    EXPECT(dist_work_start(work), DIST_FAILED_PRECONDITION, "planned");
    EXPECT(dist_work_ready(work, 0), DIST_FAILED_PRECONDITION, "planned");
    EXPECT(dist_work_test(work, NULL), DIST_INVALID_ARGUMENT, "out_done is NULL");
    status = dist_work_test(work, &done); /* the peer has not arrived */
    if (status != DIST_OK || done != 0) return dist_fail(DIST_INTERNAL, "it is done alone");
    borrowed = work;
    pthread_t thread;
    void *right = NULL;
    if (pthread_create(&thread, NULL, from_another_thread, NULL) != 0) abort();
    pthread_join(thread, &right);
    if (right == NULL) return dist_fail(DIST_INTERNAL, "another thread may use the work");
  }
  dist_status status = dist_barrier(replica, NULL, NULL);
  if (status == DIST_OK && id != 0) status = issue_sum(replica, &s, &work);
  if (status == DIST_OK) status = dist_work_wait(work, DIST_NO_TIMEOUT);
  if (status == DIST_OK) status = dist_work_wait(work, DIST_NO_TIMEOUT); /* again, after it has ended */
  if (status == DIST_OK) status = dist_work_cancel(work);                /* has no effect */
  if (status == DIST_OK) status = dist_work_test(work, &done);
  if (status == DIST_OK && done != 1) status = dist_fail(DIST_INTERNAL, "it is not done");
  dist_work_destroy(work);
  return status == DIST_OK ? end_sum(&s, 2, 0) : status;
}

static void calls_that_are_refused(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  for (int run = 0; run < 2; run++) assert_ok(dist_run(strategy, misuse, NULL, NULL));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Works that outlive a run ---- */

typedef struct leftover {
  const dist_group *group;
  dist_work *works[2];
} leftover;

static dist_status leave_a_handle(dist_replica *replica, void *user_data) {
  leftover *l = user_data;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.group = l->group;
  return dist_barrier(replica, &options, &l->works[dist_replica_id(replica)]);
}

static void strategies_and_groups_outlive_their_works(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  dist_group *group = NULL;
  assert_ok(dist_group_create(strategy, (const int32_t[]){0, 1}, 2, &group));
  leftover all = {NULL, {NULL}}, some = {group, {NULL}};
  assert_ok(dist_run(strategy, leave_a_handle, &all, NULL));
  assert_ok(dist_run(strategy, leave_a_handle, &some, NULL));
  assert_fails(dist_group_destroy(group), DIST_FAILED_PRECONDITION, "the group still has works");
  dist_work_destroy(some.works[0]);
  assert_fails(dist_group_destroy(group), DIST_FAILED_PRECONDITION, "the group still has works");
  dist_work_destroy(some.works[1]);
  assert_ok(dist_group_destroy(group));
  assert_fails(dist_strategy_destroy(strategy), DIST_FAILED_PRECONDITION, "the strategy still has works");
  assert_healthy(DIST_THREADS_CALLER, strategy); /* the strategy is unchanged */
  for (int r = 0; r < 2; r++) dist_work_destroy(all.works[r]);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Waits that expire ---- */

static atomic_int has_waited;

static dist_status wait_for_a_late_member(dist_replica *replica, void *user_data) {
  (void)user_data;
  float value = 1;
  dist_tensor t = {&value, DIST_F32, 0, NULL, NULL};
  dist_work *work = NULL;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  const int late = dist_replica_id(replica) == 1;
  while (late && atomic_load(&has_waited) == 0) sched_yield();
  dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, &t, &t, 1, &options, &work);
  if (status != DIST_OK) return status;
  size_t index = 9;
  int32_t ended = 1;
  for (int64_t timeout_ns = 0; !late && timeout_ns <= 1000; timeout_ns += 500) {
    if (dist_work_wait(work, timeout_ns) != DIST_DEADLINE_EXCEEDED) return dist_fail(DIST_INTERNAL, "wait");
    if (dist_work_wait_any(&work, 1, timeout_ns, &index) != DIST_DEADLINE_EXCEEDED || index != 9)
      return dist_fail(DIST_INTERNAL, "wait_any");
    if (dist_work_test(work, &ended) != DIST_OK || ended) return dist_fail(DIST_INTERNAL, "test");
  }
  if (!late && dist_work_wait(work, -2) != DIST_INVALID_ARGUMENT) return dist_fail(DIST_INTERNAL, "-2");
  atomic_store(&has_waited, 1);
  status = dist_work_wait(work, DIST_NO_TIMEOUT);
  dist_work_destroy(work);
  return status == DIST_OK && value != 2 ? dist_fail(DIST_INTERNAL, "sum") : status;
}

static void a_wait_that_expires_leaves_the_work_in_progress(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_LIBRARY);
  for (int run = 0; run < 20; run++) {
    atomic_store(&has_waited, 0);
    assert_ok(dist_run(strategy, wait_for_a_late_member, NULL, NULL));
  }
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_collective),
      cmocka_unit_test(more_replicas_than_cpus),
      cmocka_unit_test(groups),
      cmocka_unit_test(places_serve_again_and_again),
      cmocka_unit_test(calls_that_are_refused),
      cmocka_unit_test(a_wait_that_expires_leaves_the_work_in_progress),
      cmocka_unit_test(strategies_and_groups_outlive_their_works),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
