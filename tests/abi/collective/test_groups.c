/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups: collectives of some replicas while others do something else, their reports, and members that wait
 * for each other in different groups.
 */
#include "tests/abi/recipe.h"

enum { R = 6 };

static dist_group *group_of(dist_strategy *strategy, const int32_t *ids, size_t n) {
  dist_group *group = NULL;
  assert_ok(dist_group_create(strategy, ids, n, &group));
  return group;
}
#define GROUP(strategy, ...) \
  group_of(strategy, (const int32_t[]){__VA_ARGS__}, COUNT_OF(((const int32_t[]){__VA_ARGS__})))

static void sizes_and_ranks(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(R, DIST_THREADS_CALLER);
  dist_group *group = GROUP(strategy, 1, 3, 4);
  static const int32_t ranks[] = {-1, 0, -1, 1, 2, -1};
  assert_int_equal(dist_group_size(group), 3);
  for (int32_t id = 0; id < R; id++) assert_int_equal(dist_group_rank(group, id), ranks[id]);
  assert_int_equal(dist_group_rank(group, -1), -1);
  assert_int_equal(dist_group_rank(group, R), -1);
  assert_int_equal(dist_group_rank(group, INT32_MAX), -1);
  assert_int_equal(dist_group_size(NULL), 0);
  assert_int_equal(dist_group_rank(NULL, 0), -1);
  assert_ok(dist_group_destroy(group));
  assert_ok(dist_group_destroy(NULL));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Collectives in groups ---- */

enum { STEPS = 24, GROUPS = 5 };

typedef struct program {
  exchange steps[STEPS];
  dist_status statuses[R];
} program;

static dist_status play(dist_replica *replica, void *user_data) {
  program *p = user_data;
  dist_status status = DIST_OK;
  for (int k = 0; status == DIST_OK && k < STEPS; k++) status = do_exchange(replica, &p->steps[k]);
  return status;
}

/* Runs every collective in every group in one run. Overlapping groups take turns, and disjoint groups run at
 * the same time. */
static void every_collective_in_every_group(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    dist_strategy *strategy = strategy_of(R, threads);
    dist_group *groups[GROUPS] = {GROUP(strategy, 0, 2, 4), GROUP(strategy, 1, 3, 5), GROUP(strategy, 2, 3),
                                  GROUP(strategy, 5), GROUP(strategy, 0, 1, 2, 3, 4, 5)};
    static program p;
    for (uint64_t round = 0; round < 6; round++) {
      for (int k = 0; k < STEPS; k++) {
        dist_group *group = k % 6 == 5 ? NULL : groups[(k + (int)round) % GROUPS];
        recipe given = {.collective = exchanged[((uint64_t)k + round) % COUNT_OF(exchanged)],
                        .op = DIST_REDUCE_SUM,
                        .kind = DIST_SCAN_INCLUSIVE,
                        .n = (size_t)k % 3,
                        .dtypes = {DIST_F32, DIST_I8},
                        .ndim = 2,
                        .axis = k % 2,
                        .most = round == 5 ? 150 : 6,
                        .uneven = 1,
                        .splits = 1,
                        .in_style = k % 5 == 0 ? GAPS : DENSE,
                        .seed = round * 100 + (uint64_t)k};
        given.members = group == NULL ? R : dist_group_size(group);
        given.root = k % given.members;
        if (!reduces(given.collective)) given.op = 0;
        make_exchange(&p.steps[k], &given);
        p.steps[k].group = group;
      }
      report error;
      char text[256];
      if (run_on(threads, strategy, play, &p, &error) != DIST_OK) fail_msg("%s", error.message);
      for (int k = 0; k < STEPS; k++) {
        if (find_wrong(&p.steps[k], text, sizeof text) != NULL) fail_msg("step %d: %s", k, text);
        free_exchange(&p.steps[k]);
      }
    }
    for (int g = 0; g < GROUPS; g++) assert_ok(dist_group_destroy(groups[g]));
    assert_healthy(threads, strategy);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* ---- Reports ---- */

typedef struct scene {
  dist_group *a, *b, *c;
  int which;
  int yields;
  dist_status statuses[R];
  report reports[R];
  int32_t groups[R];
  atomic_int failed; /* number of members that have received their report */
} scene;

static dist_status meet(dist_replica *replica, const dist_group *group, const char *tag, int64_t timeout_ns) {
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.group = group, options.tag = tag, options.timeout_ns = timeout_ns;
  return dist_barrier(replica, &options, NULL);
}

static dist_status keep(scene *s, dist_replica *replica, dist_status status) {
  const int32_t me = dist_replica_id(replica);
  dist_error_info info = DIST_ERROR_INFO_INIT;
  s->statuses[me] = status;
  read_report(&s->reports[me]);
  s->groups[me] = dist_last_error_info(&info) == DIST_OK ? info.group : -1;
  return status;
}

enum { OTHER_ROOT, OVERLAP, EARLY, FAILS, LATE, CANCELS };

/* Replica 4, which has rank 1 in group {2, 4, 5}, does something different from the others. */
static dist_status trouble_in_a_group(dist_replica *replica, void *user_data) {
  scene *s = user_data;
  static float memory[16];
  const int32_t me = dist_replica_id(replica);
  if (me < 2 || me == 3) return DIST_OK;
  const int culprit = me == 4;
  int64_t length = 4;
  float mine[4] = {0};
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.group = s->a, options.tag = "apart";
  dist_tensor in = vector_of(mine, DIST_F32, &length), out = in;
  dist_status status = meet(replica, s->a, NULL, -1);
  if (status != DIST_OK) return status;
  switch (s->which) {
    case OTHER_ROOT:
      return keep(s, replica, dist_broadcast(replica, culprit ? 2 : 0, &in, &out, 1, &options, NULL));
    case OVERLAP:
      out.data = memory + (me == 2 ? 0 : culprit ? 8 : 10);
      return keep(s, replica, dist_all_reduce(replica, DIST_REDUCE_SUM, &in, &out, 1, &options, NULL));
    case EARLY:
      if (culprit) return DIST_OK;
      break;
    case FAILS:
      if (culprit) return dist_fail(DIST_DATA_LOSS, "no more data");
      break;
    case LATE:
      while (culprit && atomic_load(&s->failed) < 2) sched_yield();
      options.timeout_ns = 20000000;
      break;
    default:
      if (culprit) return dist_strategy_cancel(dist_replica_strategy(replica));
  }
  status = keep(s, replica, dist_barrier(replica, &options, NULL));
  atomic_fetch_add(&s->failed, 1);
  return status;
}

static void reports_name_group_and_replicas(void **state) {
  (void)state;
  static const struct {
    dist_status status;
    int32_t replica, collective;
    const char *words[2];
  } expected[] = {
      {DIST_INVALID_ARGUMENT,
       4,
       DIST_COLLECTIVE_BROADCAST,
       {"replica 4 called broadcast from 2", "replicas 2, 5"}},
      {DIST_INVALID_ARGUMENT, -2, DIST_COLLECTIVE_ALL_REDUCE, {"overlap", "replicas 4 and 5"}},
      {DIST_ABORTED, 4, DIST_COLLECTIVE_BARRIER, {"replica 4 returned early", "replica"}},
      {DIST_ABORTED,
       4,
       DIST_COLLECTIVE_BARRIER,
       {"replica 4 failed with DATA_LOSS: no more data", "replica"}},
      {DIST_DEADLINE_EXCEEDED, 4, DIST_COLLECTIVE_BARRIER, {"replica 4 did not arrive", " ms"}},
      {DIST_CANCELLED, -1, 0, {"dist_strategy_cancel", ""}},
  };
  dist_strategy *strategy = strategy_of(R, DIST_THREADS_LIBRARY);
  dist_group *other = GROUP(strategy, 0, 1);
  static scene s;
  s.a = GROUP(strategy, 2, 4, 5);
  for (int repeat = 0; repeat < 3; repeat++) {
    for (s.which = OTHER_ROOT; s.which <= CANCELS; s.which++) {
      memset(s.statuses, 0, sizeof s.statuses);
      atomic_store(&s.failed, 0);
      const dist_status status = dist_run(strategy, trouble_in_a_group, &s, NULL);
      assert_int_equal(status, s.which == FAILS ? DIST_DATA_LOSS : expected[s.which].status);
      for (int32_t r = 2; r <= 5; r += 3) {
        const report *got = &s.reports[r];
        if (s.statuses[r] != expected[s.which].status)
          fail_msg("case %d, replica %d: %s: %s", s.which, (int)r, dist_status_name(s.statuses[r]),
                   got->message);
        assert_has(got->message, expected[s.which].words[0]);
        assert_has(got->message, expected[s.which].words[1]);
        if (s.which == CANCELS) continue;
        assert_has(got->message, " of group 2");
        assert_has(got->message, "#2 (tag \"apart\")");
        assert_int_equal(s.groups[r], 2);
        assert_int_equal(got->collective, expected[s.which].collective);
        assert_int_equal(got->sequence, 2);
        assert_string_equal(got->tag, "apart");
        assert_string_equal(got->message, s.reports[2].message);
        if (expected[s.which].replica >= 0) assert_int_equal(got->replica, expected[s.which].replica);
        assert_true(strlen(got->hint) > 0);
      }
      assert_healthy(DIST_THREADS_LIBRARY, strategy);
    }
  }
  assert_ok(dist_group_destroy(s.a));
  assert_ok(dist_group_destroy(other));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- A group that is first used late in a run ---- */

/* Replica 4 ends its part of the run, or cancels the run, before replicas 2 and 5 first use their group. */
static dist_status come_late(dist_replica *replica, void *user_data) {
  scene *s = user_data;
  const int32_t me = dist_replica_id(replica);
  if (me == 4) {
    const dist_status status = s->which == CANCELS ? dist_strategy_cancel(dist_replica_strategy(replica))
                               : s->which == FAILS ? dist_fail(DIST_DATA_LOSS, "no more data")
                                                   : DIST_OK;
    atomic_store(&s->failed, 1);
    return status;
  }
  if (me != 2 && me != 5) return DIST_OK;
  while (!atomic_load(&s->failed)) sched_yield();
  for (int i = 0; i < s->yields; i++) sched_yield();
  return keep(s, replica, meet(replica, s->a, "late", -1));
}

static void a_run_that_comes_late_to_a_group(void **state) {
  (void)state;
  static const struct {
    int which;
    dist_status status, run;
    const char *words;
  } expected[] = {{EARLY, DIST_ABORTED, DIST_ABORTED, "replica 4 returned early"},
                  {FAILS, DIST_ABORTED, DIST_DATA_LOSS, "replica 4 failed with DATA_LOSS: no more data"},
                  {CANCELS, DIST_CANCELLED, DIST_CANCELLED, "dist_strategy_cancel"}};
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    dist_strategy *strategy = strategy_of(R, threads);
    dist_group *unused = GROUP(strategy, 0, 1, 2, 3, 4, 5);
    static scene s;
    s.a = GROUP(strategy, 2, 4, 5);
    for (int repeat = 0; repeat < 30; repeat++) {
      const size_t k = (size_t)repeat % COUNT_OF(expected);
      memset(s.statuses, 0, sizeof s.statuses);
      atomic_store(&s.failed, 0);
      s.which = expected[k].which, s.yields = repeat / 3 * 4;
      report error;
      assert_int_equal(run_on(threads, strategy, come_late, &s, &error), expected[k].run);
      for (int32_t r = 2; r <= 5; r += 3) {
        if (s.statuses[r] != expected[k].status)
          fail_msg("case %d, replica %d: %s", s.which, (int)r, dist_status_name(s.statuses[r]));
        assert_has(s.reports[r].message, expected[k].words);
      }
      assert_healthy(threads, strategy);
    }
    assert_ok(dist_group_destroy(s.a));
    assert_ok(dist_group_destroy(unused));
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* ---- Members that wait for each other ---- */

/* Cycles by `which`: 0 = two replicas; 1 = three; 2 = all replicas; 3 = two, next to groups that work
 * normally. */
static dist_status wait_around(dist_replica *replica, void *user_data) {
  scene *s = user_data;
  const int32_t me = dist_replica_id(replica);
  dist_group *const ring[] = {s->a, s->b, s->c};
  dist_status status = DIST_OK;
  if (s->which == 0 || s->which == 3) { /* a = {0, 1}, b = {0, 1, 2} */
    if (me == 0) status = meet(replica, s->a, "first", -1);
    if (me == 1 || me == 2) status = meet(replica, s->b, "second", -1);
    if (s->which == 3 && me >= 3)
      for (int i = 0; status == DIST_OK && i < 200; i++) status = meet(replica, s->c, NULL, -1);
  } else if (s->which == 1) { /* a = {0, 1}, b = {1, 2}, c = {0, 2} */
    if (me < 3) status = meet(replica, ring[me], "ring", -1);
  } else {
    status = meet(replica, me == 0 ? s->a : NULL, me == 0 ? "apart" : "together", -1); /* a = {0, 1} */
  }
  return keep(s, replica, status);
}

static void replicas_that_wait_for_each_other(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.num_replicas = R, options.threads = threads, options.timeout_ns = -1;
    dist_strategy *strategy = strategy_with(options);
    /* The parts of the report about replica 0, in which the number of the group follows "of", and about its
     * peer. */
    static const char *const words[4][2] = {
        {"replica 0 in barrier #1 (tag \"first\") of group", "replica 1 in barrier #1 (tag \"second\")"},
        {"replica 0 in barrier #1 (tag \"ring\") of group", "replica 2 in barrier #1 (tag \"ring\")"},
        {"replica 0 in barrier #1 (tag \"apart\") of group", "for replica 0"},
        {"replica 0 in barrier #1 (tag \"first\") of group", "for replica 0"}};
    for (int which = 0; which < 4; which++) {
      static scene s;
      s.which = which;
      s.a = GROUP(strategy, 0, 1);
      s.b = which == 1 ? GROUP(strategy, 1, 2) : GROUP(strategy, 0, 1, 2);
      s.c = which == 1 ? GROUP(strategy, 0, 2) : GROUP(strategy, 3, 4, 5);
      const int32_t members = which == 2 ? R : 3;
      for (int repeat = 0; repeat < 10; repeat++) {
        report error;
        assert_int_equal(run_on(threads, strategy, wait_around, &s, &error), DIST_ABORTED);
        for (int32_t r = 0; r < members; r++) {
          if (s.statuses[r] != DIST_ABORTED)
            fail_msg("case %d, replica %d: %s", which, (int)r, dist_status_name(s.statuses[r]));
          assert_has(s.reports[r].message, "wait for each other");
          assert_has(s.reports[r].message, words[which][0]);
          assert_has(s.reports[r].message, words[which][1]);
          assert_has(s.reports[r].message, "for replica 1");
        }
        for (int32_t r = members; r < R; r++) assert_int_equal(s.statuses[r], DIST_OK);
        assert_has(error.message, "wait for each other");
        assert_has(error.message, "replica 0");
        assert_healthy(threads, strategy);
      }
      assert_ok(dist_group_destroy(s.a));
      assert_ok(dist_group_destroy(s.b));
      assert_ok(dist_group_destroy(s.c));
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static dist_status begin_meeting(dist_replica *replica, const dist_group *group, dist_work **out_work) {
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.tag = "either", options.group = group;
  return dist_barrier(replica, &options, out_work);
}

/* a = {0, 1}, b = {0, 2}. Replica 0 waits until one of the groups has completed, and then enters the barrier
 * of all replicas. Replica 1 enters a after that barrier. In case 1, replica 2 enters b before it, and all
 * succeeds. In case 0 it does not, so that no replica can continue. */
static dist_status wait_for_either(dist_replica *replica, void *user_data) {
  scene *s = user_data;
  const int32_t me = dist_replica_id(replica);
  dist_work *a = NULL, *b = NULL;
  dist_status status = DIST_OK;
  if (me == 0) {
    size_t index = 2;
    status = begin_meeting(replica, s->a, &a);
    if (status == DIST_OK) status = begin_meeting(replica, s->b, &b);
    if (status == DIST_OK) status = dist_work_wait_any((dist_work *[]){a, b}, 2, -1, &index);
    if (status == DIST_OK && index != 1) status = DIST_INTERNAL;
  }
  if (me == 2 && s->which == 1) status = begin_meeting(replica, s->b, &b);
  if (b != NULL && me == 2 && status == DIST_OK) status = dist_work_wait(b, -1);
  if (status == DIST_OK) status = meet(replica, NULL, "together", -1);
  if (me == 1 && status == DIST_OK) status = begin_meeting(replica, s->a, &a);
  if (a != NULL && status == DIST_OK) status = dist_work_wait(a, -1);
  keep(s, replica, status);
  dist_work_destroy(a);
  dist_work_destroy(b);
  return status;
}

static void a_wait_for_any_of_several_is_an_edge(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.num_replicas = R, options.threads = threads, options.timeout_ns = -1;
    dist_strategy *strategy = strategy_with(options);
    static scene s;
    s.a = GROUP(strategy, 0, 1);
    s.b = GROUP(strategy, 0, 2);
    for (int repeat = 0; repeat < 20; repeat++) {
      report error;
      s.which = 0;
      assert_int_equal(run_on(threads, strategy, wait_for_either, &s, &error), DIST_ABORTED);
      for (int32_t r = 0; r < R; r++) {
        if (s.statuses[r] != DIST_ABORTED)
          fail_msg("replica %d: %s", (int)r, dist_status_name(s.statuses[r]));
        assert_has(s.reports[r].message, "wait for each other");
        assert_has(s.reports[r].message, "replica 0 in asynchronous barrier #1 (tag \"either\") of group");
        assert_has(s.reports[r].message, "(tag \"together\") for replica 0");
      }
      s.which = 1;
      assert_int_equal(run_on(threads, strategy, wait_for_either, &s, &error), DIST_OK);
    }
    assert_ok(dist_group_destroy(s.a));
    assert_ok(dist_group_destroy(s.b));
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* ---- Misuse ---- */

static dist_status use_wrongly(dist_replica *replica, void *user_data) {
  scene *s = user_data;
  dist_group *made = NULL;
  const int32_t me = dist_replica_id(replica);
  if (me == 0) { /* not a member of a; b belongs to another strategy */
    keep(s, replica, meet(replica, s->a, NULL, 0));
    if (s->statuses[0] != DIST_INVALID_ARGUMENT || strstr(dist_last_error(), "is not a member") == NULL)
      return DIST_INTERNAL;
    if (meet(replica, s->b, NULL, 0) != DIST_INVALID_ARGUMENT) return DIST_INTERNAL;
    if (strstr(dist_last_error(), "another strategy") == NULL) return DIST_INTERNAL;
    if (dist_group_create(dist_replica_strategy(replica), (int32_t[]){0}, 1, &made) !=
        DIST_FAILED_PRECONDITION)
      return DIST_INTERNAL;
    if (strstr(dist_last_error(), "dist_group_create") == NULL || made != NULL) return DIST_INTERNAL;
    if (dist_group_destroy(s->a) != DIST_FAILED_PRECONDITION) return DIST_INTERNAL;
    if (strstr(dist_last_error(), "a run is in progress") == NULL) return DIST_INTERNAL;
  }
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.group = s->a;
  if (me != 0 && dist_merge_call(replica, NULL, NULL, NULL, NULL, &options, NULL) != DIST_INVALID_ARGUMENT)
    return DIST_INTERNAL;
  return dist_barrier(replica, NULL, NULL); /* the run is not affected by any of these errors */
}

static void group_misuse(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_LIBRARY),
                *other = strategy_of(3, DIST_THREADS_CALLER);
  dist_group *made = NULL;
  static const int32_t ids[] = {0, 1, 2, 2, 1, -1, 3};
  assert_fails(dist_group_create(NULL, ids, 1, &made), DIST_INVALID_ARGUMENT, "strategy is NULL");
  assert_fails(dist_group_create(strategy, NULL, 1, &made), DIST_INVALID_ARGUMENT, "replica_ids is NULL");
  assert_fails(dist_group_create(strategy, ids, 1, NULL), DIST_INVALID_ARGUMENT, "out_group is NULL");
  assert_fails(dist_group_create(strategy, ids, 0, &made), DIST_INVALID_ARGUMENT, "a group has 1 to");
  assert_fails(dist_group_create(strategy, ids, 4, &made), DIST_INVALID_ARGUMENT, "not 4");
  assert_fails(dist_group_create(strategy, ids, SIZE_MAX, &made), DIST_INVALID_ARGUMENT,
               "not 18446744073709551615");
  assert_fails(dist_group_create(strategy, ids + 2, 2, &made), DIST_INVALID_ARGUMENT,
               "replica_ids[1] is 2, after 2");
  assert_fails(dist_group_create(strategy, ids + 3, 2, &made), DIST_INVALID_ARGUMENT,
               "replica_ids[1] is 1, after 2");
  assert_fails(dist_group_create(strategy, ids + 5, 1, &made), DIST_INVALID_ARGUMENT, "replica_ids[0] is -1");
  assert_fails(dist_group_create(strategy, ids + 6, 1, &made), DIST_INVALID_ARGUMENT, "replica_ids[0] is 3");
  assert_null(made);
  static scene s;
  s.a = GROUP(strategy, 1, 2);
  s.b = GROUP(other, 0, 1);
  assert_ok(dist_run(strategy, use_wrongly, &s, NULL));
  assert_fails(dist_strategy_destroy(strategy), DIST_FAILED_PRECONDITION, "the strategy still has groups");
  assert_healthy(DIST_THREADS_LIBRARY, strategy); /* the strategy is not affected */
  assert_ok(dist_group_destroy(s.a));
  assert_ok(dist_group_destroy(s.b));
  assert_ok(dist_strategy_destroy(strategy));
  assert_ok(dist_strategy_destroy(other));
}

/* A root is a rank of the group. */
static dist_status roots_are_ranks(dist_replica *replica, void *user_data) {
  scene *s = user_data;
  const int32_t me = dist_replica_id(replica), rank = dist_group_rank(s->a, me);
  if (rank < 0) return DIST_OK;
  int64_t length = 1;
  int32_t number = me;
  dist_tensor tensor = vector_of(&number, DIST_I32, &length);
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.group = s->a;
  for (int32_t root = -1; root <= 3; root++) {
    number = me;
    const dist_status status = dist_broadcast(replica, root, &tensor, &tensor, 1, &options, NULL);
    if (root < 0 || root > 2) {
      if (status != DIST_INVALID_ARGUMENT || strstr(dist_last_error(), "0 to 2") == NULL)
        return DIST_INTERNAL;
    } else if (status != DIST_OK) {
      return status;
    } else if (number != 2 * root + 1) {
      return dist_fail(DIST_INTERNAL, "not that root's number");
    }
  }
  return DIST_OK;
}

static void a_root_is_a_rank(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(R, DIST_THREADS_CALLER);
  scene s = {.a = GROUP(strategy, 1, 3, 5)};
  assert_ok(dist_run(strategy, roots_are_ranks, &s, NULL));
  assert_ok(dist_group_destroy(s.a));
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sizes_and_ranks),
      cmocka_unit_test(every_collective_in_every_group),
      cmocka_unit_test(reports_name_group_and_replicas),
      cmocka_unit_test(a_run_that_comes_late_to_a_group),
      cmocka_unit_test(replicas_that_wait_for_each_other),
      cmocka_unit_test(a_wait_for_any_of_several_is_an_edge),
      cmocka_unit_test(group_misuse),
      cmocka_unit_test(a_root_is_a_rank),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
