/* SPDX-License-Identifier: Apache-2.0
 *
 * Planned work: rounds of one list, started as a whole or tensor by tensor in any order, in packs of any
 * size, without allocating memory. Also how a plan ends, and calls that it rejects.
 */
#include "work_support.h"

enum { ROUNDS = 5, LONGEST = 9 };

/* ---- Every collective ---- */

typedef struct planned_program {
  exchange steps[COUNT_OF(exchanged)];
  int64_t bytes_per_pack;
  int rounds;
} planned_program;

static planned_program program;

/* Makes tensors ready one by one in a random order, all at once, or some one by one and then the rest. */
static dist_status begin_round(dist_work *plan, size_t n, uint64_t seed) {
  const uint64_t way = next_random(&seed) % 3;
  if (way == 0 || n == 0) return dist_work_start(plan);
  const size_t some = way == 1 ? n : (size_t)(next_random(&seed) % n);
  const size_t first = (size_t)(next_random(&seed) % n), down = (size_t)(next_random(&seed) % 2);
  dist_status status = DIST_OK;
  for (size_t k = 0; k < some && status == DIST_OK; k++)
    status = dist_work_ready(plan, down ? (first + n - k) % n : (first + k) % n);
  return status == DIST_OK && some < n ? dist_work_start(plan) : status;
}

static dist_status end_round(dist_work *plan, uint64_t way) {
  int32_t done = 0;
  size_t index;
  dist_status status = DIST_OK;
  switch (way % 3) {
    case 0: return dist_work_wait(plan, DIST_NO_TIMEOUT);
    case 1: return dist_work_wait_any(&plan, 1, DIST_NO_TIMEOUT, &index);
    default:
      while (status == DIST_OK && !done) {
        status = dist_work_test(plan, &done);
        if (!done) sched_yield();
      }
      return status;
  }
}

static dist_status plan_and_play(dist_replica *replica, void *user_data) {
  (void)user_data;
  const int32_t id = dist_replica_id(replica);
  dist_work *plans[COUNT_OF(exchanged)] = {NULL};
  dist_status status = DIST_OK;
  for (size_t k = 0; k < COUNT_OF(exchanged) && status == DIST_OK; k++) {
    exchange *e = &program.steps[k];
    const int32_t me = e->group == NULL ? id : dist_group_rank(e->group, id);
    if (me >= 0) status = issue_exchange(replica, e, me, 1, program.bytes_per_pack, &plans[k]);
  }
  for (int round = 0; round < program.rounds; round++) { /* all plans are in progress at once */
    for (size_t k = 0; k < COUNT_OF(exchanged) && status == DIST_OK; k++) {
      const uint64_t seed = (uint64_t)(round * 100 + id * 10) + k;
      const exchange *e = &program.steps[k];
      const size_t n = e->collective == DIST_COLLECTIVE_BARRIER ? 0 : e->n;
      if (plans[k] != NULL) status = begin_round(plans[k], n, seed);
    }
    for (size_t k = COUNT_OF(exchanged); k-- > 0 && status == DIST_OK;)
      if (plans[k] != NULL) status = end_round(plans[k], (uint64_t)round + k + (uint64_t)id);
  }
  for (size_t k = 0; k < COUNT_OF(exchanged); k++) /* in different orders on different replicas */
    dist_work_destroy(plans[id % 2 == 0 ? k : COUNT_OF(exchanged) - 1 - k]);
  return status;
}

static void every_collective(void **state) {
  (void)state;
  static const int64_t packs[] = {0, 1, 4000, INT64_MAX};
  static const int32_t sizes[] = {1, 3, MEMBERS};
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
      dist_strategy *strategy = strategy_of(sizes[s], threads);
      dist_group *group = NULL;
      const int32_t ids[] = {sizes[s] - 1};
      assert_ok(dist_group_create(strategy, ids, 1, &group));
      for (uint64_t round = 0; round < COUNT_OF(packs); round++) {
        program.bytes_per_pack = packs[round];
        program.rounds = ROUNDS;
        for (size_t k = 0; k < COUNT_OF(exchanged); k++) {
          const int alone = k % 4 == 3; /* in a group of one */
          recipe given = {.collective = exchanged[k],
                          .members = alone ? 1 : sizes[s],
                          .n = (k + round) % (TENSORS + 1),
                          .ndim = 2,
                          .axis = (int32_t)k % 2,
                          .dtypes = {DIST_I32, DIST_F64, DIST_BF16},
                          .in_style = k % 5 == 4 ? GAPS : DENSE,
                          .most = k % 3 == 0 && sizes[s] < MEMBERS ? 150 : 5,
                          .uneven = 1,
                          .splits = 1,
                          .seed = round * 31 + k};
          if (reduces(given.collective)) given.op = DIST_REDUCE_SUM;
          given.several = given.op != 0 && given.collective != DIST_COLLECTIVE_SCAN && k % 2 == 0;
          make_exchange(&program.steps[k], &given);
          program.steps[k].group = alone ? group : NULL;
          program.steps[k].tag = "planned";
        }
        report error;
        char text[256];
        if (run_on(threads, strategy, plan_and_play, NULL, &error) != DIST_OK) fail_msg("%s", error.message);
        for (size_t k = 0; k < COUNT_OF(exchanged); k++) {
          const char *wrong = find_wrong(&program.steps[k], text, sizeof text);
          if (wrong != NULL)
            fail_msg("%s, packs of %lld: %s", threads_name(threads), (long long)packs[round], wrong);
          free_exchange(&program.steps[k]);
        }
      }
      assert_ok(dist_group_destroy(group));
      assert_ok(dist_strategy_destroy(strategy));
    }
  }
}

/* ---- Rounds ---- */

/* A list in place, with some empty tensors. Each round has different numbers. */
typedef struct list {
  size_t n;
  int64_t lengths[LONGEST];
  float *data[LONGEST];
  dist_tensor tensors[LONGEST];
} list;

static const int64_t lengths[LONGEST] = {3, 0, 40000, 1, 0, 700, 100000, 17, 0};

static void make_list(list *l, size_t n) {
  l->n = n;
  for (size_t t = 0; t < n; t++) {
    l->lengths[t] = lengths[t];
    l->data[t] = malloc((size_t)lengths[t] * sizeof(float) + 1);
    l->tensors[t] = vector_of(l->data[t], DIST_F32, &l->lengths[t]);
  }
}
static void free_list(list *l) {
  for (size_t t = 0; t < l->n; t++) free(l->data[t]);
}
static float number(int32_t id, int round, size_t t, int64_t i) {
  return (float)((id + 1) * 3 + round % 100 + (int)t + (int)(i % 5));
}
static void fill_tensor(list *l, int32_t id, int round, size_t t) {
  for (int64_t i = 0; i < l->lengths[t]; i++) l->data[t][i] = number(id, round, t, i);
}
static dist_status look_at(const list *l, int32_t n, int round) {
  for (size_t t = 0; t < l->n; t++) {
    for (int64_t i = 0; i < l->lengths[t]; i++) {
      float sum = 0;
      for (int32_t r = 0; r < n; r++) sum += number(r, round, t, i);
      if (l->data[t][i] != sum) return dist_fail(DIST_INTERNAL, "a wrong sum");
    }
  }
  return DIST_OK;
}

static dist_status plan_list(dist_replica *replica, list *l, int64_t bytes_per_pack, const char *tag,
                             dist_work **out_plan) {
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.planned = 1, options.bytes_per_pack = bytes_per_pack;
  options.tag = tag;
  return dist_all_reduce(replica, DIST_REDUCE_SUM, l->tensors, l->tensors, l->n, &options, out_plan);
}

/* Like a training step: some tensors are ready while others are being filled. */
static dist_status play_round(dist_work *plan, list *l, int32_t id, int32_t n, int round) {
  dist_status status = DIST_OK;
  const int whole = (round + id) % 4 == 0 || l->n == 0;
  for (size_t k = 0; k < l->n && status == DIST_OK; k++) {
    const size_t t = (round + id) % 2 == 0 ? k : l->n - 1 - k;
    fill_tensor(l, id, round, t);
    if (!whole) status = dist_work_ready(plan, t);
  }
  if (whole && status == DIST_OK) status = dist_work_start(plan);
  if (status == DIST_OK) status = dist_work_wait(plan, DIST_NO_TIMEOUT);
  return status == DIST_OK ? look_at(l, n, round) : status;
}

typedef struct training {
  ledger memory;
  size_t n;
  int64_t bytes_per_pack;
  int rounds;
  int keep; /* plans and lists are kept for a later run */
  list lists[MEMBERS];
  dist_work *plans[MEMBERS];
} training;

static training the_training;

static dist_status train(dist_replica *replica, void *user_data) {
  training *g = user_data;
  const int32_t id = dist_replica_id(replica), n = dist_replica_num_replicas(replica);
  dist_status status = DIST_OK;
  if (g->plans[id] == NULL) {
    make_list(&g->lists[id], g->n);
    status = plan_list(replica, &g->lists[id], g->bytes_per_pack, NULL, &g->plans[id]);
  }
  if (status == DIST_OK) status = play_round(g->plans[id], &g->lists[id], id, n, 0);
  if (status == DIST_OK) status = dist_barrier(replica, NULL, NULL);
  const long requests = atomic_load(&g->memory.requests);
  for (int round = 1; round < g->rounds && status == DIST_OK; round++)
    status = play_round(g->plans[id], &g->lists[id], id, n, round);
  if (status == DIST_OK && atomic_load(&g->memory.requests) != requests)
    status = dist_fail(DIST_INTERNAL, "a round allocates");
  if (status == DIST_OK) status = dist_barrier(replica, NULL, NULL);
  if (g->keep && status == DIST_OK) return status;
  dist_work_destroy(g->plans[id]);
  g->plans[id] = NULL;
  free_list(&g->lists[id]);
  return status;
}

static void rounds_do_not_allocate(void **state) {
  (void)state;
  static const int64_t packs[] = {0, 1, 5000, 1 << 20};
  static const size_t sizes[] = {0, 1, 2, LONGEST};
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
      training *g = &the_training;
      memset(g, 0, sizeof *g);
      atomic_store(&g->memory.refuse_at, -1);
      dist_strategy *strategy = strategy_on(&g->memory, 2 + (int32_t)s, threads);
      g->n = sizes[s];
      for (size_t k = 0; k < COUNT_OF(packs); k++) {
        g->bytes_per_pack = packs[k];
        g->rounds = 12;
        report error;
        for (int run = 0; run < 3; run++) { /* the plan of the first run is used in the others, too */
          g->keep = run < 2;
          if (run_on(threads, strategy, train, g, &error) != DIST_OK) fail_msg("%s", error.message);
        }
      }
      assert_ok(dist_strategy_destroy(strategy));
      assert_int_equal(atomic_load(&g->memory.live), 0);
    }
  }
}

/* ---- Rejected calls, and how a plan ends ---- */

#define EXPECT(call, status, words)                                        \
  do {                                                                     \
    if ((call) != (status) || strstr(dist_last_error(), words) == NULL) {  \
      char text[600];                                                      \
      snprintf(text, sizeof text, "%s: %.400s", #call, dist_last_error()); \
      return dist_fail(DIST_INTERNAL, text);                               \
    }                                                                      \
  } while (0)

static dist_status refuse(dist_replica *replica, void *user_data) {
  (void)user_data;
  const int32_t id = dist_replica_id(replica), n = dist_replica_num_replicas(replica);
  list l;
  make_list(&l, 4);
  dist_work *plan = NULL;
  dist_status status = plan_list(replica, &l, 1, NULL, &plan);
  if (status != DIST_OK) return status;
  int32_t done = 0;
  for (int round = 0; round < 3; round++) {
    for (size_t t = 0; t < l.n; t++) fill_tensor(&l, id, round, t);
    if (dist_work_test(plan, &done) != DIST_OK || !done || dist_work_wait(plan, DIST_NO_TIMEOUT) != DIST_OK)
      return dist_fail(DIST_INTERNAL, "it is under way before it has begun");
    EXPECT(dist_work_ready(plan, 4), DIST_INVALID_ARGUMENT, "tensor is 4, but the plan has 4");
    EXPECT(dist_work_ready(plan, SIZE_MAX), DIST_INVALID_ARGUMENT, "the plan has 4");
    if ((status = dist_work_ready(plan, 2)) != DIST_OK) return status;
    EXPECT(dist_work_ready(plan, 2), DIST_FAILED_PRECONDITION, "already ready");
    if ((status = dist_work_start(plan)) != DIST_OK) return status;
    EXPECT(dist_work_start(plan), DIST_FAILED_PRECONDITION, "already started");
    for (size_t t = 0; t < l.n; t++) {
      for (int twice = 0; twice < 2; twice++) /* start() has already made all of them ready */
        EXPECT(dist_work_ready(plan, t), DIST_FAILED_PRECONDITION, "already ready");
    }
    EXPECT(dist_work_start(plan), DIST_FAILED_PRECONDITION, "already started");
    if ((status = dist_work_wait(plan, DIST_NO_TIMEOUT)) != DIST_OK) return status;
    if ((status = look_at(&l, n, round)) != DIST_OK) return status;
  }
  dist_work_destroy(plan);
  free_list(&l);
  return DIST_OK;
}

static void calls_that_are_refused(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  assert_ok(dist_run(strategy, refuse, NULL, NULL));
  training *g = &the_training;
  memset(g, 0, sizeof *g);
  g->n = 2, g->rounds = 2, g->keep = 1;
  assert_ok(dist_run(strategy, train, g, NULL));
  assert_fails(dist_work_start(g->plans[0]), DIST_FAILED_PRECONDITION, "inside its function");
  assert_fails(dist_work_ready(g->plans[1], 0), DIST_FAILED_PRECONDITION, "inside its function");
  assert_fails(dist_strategy_destroy(strategy), DIST_FAILED_PRECONDITION, "works");
  g->keep = 0;
  assert_ok(dist_run(strategy, train, g, NULL));
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_status fail_in_the_middle(dist_replica *replica, void *user_data) {
  training *g = user_data;
  const int32_t id = dist_replica_id(replica);
  if (id == 1) return dist_fail(DIST_DATA_LOSS, "no rows");
  dist_status status = dist_work_start(g->plans[id]);
  if (status == DIST_OK) status = dist_work_wait(g->plans[id], DIST_NO_TIMEOUT);
  return status;
}

static dist_status expect_an_old_plan(dist_replica *replica, void *user_data) {
  training *g = user_data;
  const int32_t id = dist_replica_id(replica);
  for (int twice = 0; twice < 2; twice++) {
    EXPECT(dist_work_start(g->plans[id]), DIST_FAILED_PRECONDITION, "Plan it again");
    EXPECT(dist_work_ready(g->plans[id], 0), DIST_FAILED_PRECONDITION, "Plan it again");
  }
  dist_work_destroy(g->plans[id]);
  g->plans[id] = NULL;
  free_list(&g->lists[id]);
  return train(replica, g);
}

static void a_failing_run_ends_plans(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    dist_strategy *strategy = strategy_of(3, threads);
    training *g = &the_training;
    report error;
    memset(g, 0, sizeof *g);
    g->n = LONGEST, g->rounds = 3, g->keep = 1, g->bytes_per_pack = 4096;
    for (int time = 0; time < 3; time++) {
      g->keep = 1;
      if (run_on(threads, strategy, train, g, &error) != DIST_OK) fail_msg("%s", error.message);
      assert_int_equal(run_on(threads, strategy, fail_in_the_middle, g, &error), DIST_DATA_LOSS);
      assert_has(error.message, "no rows");
      g->keep = time < 2;
      if (run_on(threads, strategy, expect_an_old_plan, g, &error) != DIST_OK) fail_msg("%s", error.message);
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* Members whose plans differ. */
static dist_status disagree(dist_replica *replica, void *user_data) {
  const int what = *(int *)user_data;
  const int32_t id = dist_replica_id(replica);
  list l;
  make_list(&l, what == 0 && id == 1 ? 3 : 4);
  dist_work *plan = NULL;
  const dist_status status =
      plan_list(replica, &l, what == 1 && id == 1 ? 8 : 4096, what == 2 && id == 1 ? "b" : "a", &plan);
  if (status == DIST_OK || plan != NULL) abort();
  free_list(&l);
  return status;
}

static void plans_that_differ(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_CALLER);
  for (int what = 0; what < 3; what++) {
    assert_fails(dist_run(strategy, disagree, &what, NULL), DIST_INVALID_ARGUMENT,
                 what == 2 ? "called all_reduce with tag" : "plan of all_reduce");
    assert_healthy(DIST_THREADS_CALLER, strategy);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_collective),       cmocka_unit_test(rounds_do_not_allocate),
      cmocka_unit_test(calls_that_are_refused), cmocka_unit_test(a_failing_run_ends_plans),
      cmocka_unit_test(plans_that_differ),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
