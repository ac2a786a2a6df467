/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups of some replicas of several workers: the reports if members disagree, leave, fail, are late or are
 * cancelled, or if a worker is lost. All calls return, and reports use global replica numbers.
 */
#include "../layouts_support.h"

/* Replicas 0-1, 2-3, 4-5 and 6-7. The group {3, 4, 6} has no replica of worker 0, and {1, 4} none of workers
 * 1 and 3. */
enum { WORKERS = 4 };

static dist_group *group_of(dist_strategy *strategy, const int32_t *ids, size_t n) {
  dist_group *group = NULL;
  return dist_group_create(strategy, ids, n, &group) == DIST_OK ? group : NULL;
}

typedef struct scene {
  workers all;
  dist_group *a[WORKERS], *b[WORKERS];
  int which;
  int32_t culprit;
  atomic_int failed; /* members of the group that have received their report */
  dist_status statuses[ALL];
  report reports[ALL];
  dist_error_info infos[ALL];
} scene;

static dist_status make_both(dist_strategy *strategy, int worker, void *user_data) {
  scene *s = user_data;
  s->a[worker] = group_of(strategy, (const int32_t[]){3, 4, 6}, 3);
  s->b[worker] = group_of(strategy, (const int32_t[]){1, 4}, 2);
  return s->a[worker] != NULL && s->b[worker] != NULL ? DIST_OK : DIST_INTERNAL;
}

static dist_status destroy_both(dist_strategy *strategy, int worker, void *user_data) {
  scene *s = user_data;
  (void)strategy;
  const dist_status status = dist_group_destroy(s->a[worker]);
  return status != DIST_OK ? status : dist_group_destroy(s->b[worker]);
}

static int make_scene(void **state) {
  static scene s;
  memset(&s, 0, sizeof s);
  s.all = workers_of("2+2+2+2", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  all_workers(&s.all, make_both, &s);
  *state = &s;
  return 0;
}

static int end_scene(void **state) {
  scene *s = *state;
  all_workers(&s->all, destroy_both, s);
  end_workers(&s->all);
  return 0;
}

static dist_status add_one(dist_replica *replica, const dist_group *group, dist_reduce_op op,
                           int64_t timeout_ns) {
  int64_t mine = dist_replica_id(replica);
  dist_tensor t = {&mine, DIST_I64, 0, NULL, NULL};
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.group = group, options.timeout_ns = timeout_ns, options.tag = "apart";
  return dist_all_reduce(replica, op, &t, &t, 1, &options, NULL);
}

static dist_status keep(scene *s, dist_replica *replica, dist_status status) {
  const int32_t me = dist_replica_id(replica);
  s->statuses[me] = status;
  read_report(&s->reports[me]);
  s->infos[me] = (dist_error_info)DIST_ERROR_INFO_INIT;
  if (status != DIST_OK && dist_last_error_info(&s->infos[me]) != DIST_OK) s->infos[me].group = -1;
  atomic_fetch_add(&s->failed, 1);
  return status;
}

enum { OTHER_OP, EARLY, EARLY_UNUSED, FAILS, FAILS_UNUSED, LATE, CANCELS };

/* The culprit is a member of group a = {3, 4, 6}. All other replicas return at once. */
static dist_status trouble(dist_replica *replica, void *user_data) {
  scene *s = user_data;
  const int32_t me = dist_replica_id(replica);
  if (me != 3 && me != 4 && me != 6) return DIST_OK;
  const dist_group *const group = s->a[me / 2];
  const int culprit = me == s->culprit;
  const int unused = s->which == EARLY_UNUSED || s->which == FAILS_UNUSED;
  if (!unused) {
    const dist_status status = add_one(replica, group, DIST_REDUCE_SUM, 0);
    if (status != DIST_OK) return status;
  }
  if (culprit && (s->which == EARLY || s->which == EARLY_UNUSED)) return DIST_OK;
  if (culprit && (s->which == FAILS || s->which == FAILS_UNUSED))
    return dist_fail(DIST_DATA_LOSS, "the disk is gone");
  if (culprit && s->which == CANCELS)
    return keep(s, replica, dist_strategy_cancel(s->all.strategies[me / 2]));
  while (culprit && s->which == LATE && atomic_load(&s->failed) < 2) sched_yield();
  const dist_reduce_op op = culprit && s->which == OTHER_OP ? DIST_REDUCE_MAX : DIST_REDUCE_SUM;
  return keep(s, replica, add_one(replica, group, op, s->which == LATE ? 30000000 : 0));
}

static void play_trouble(scene *s, int which, int32_t culprit) {
  worker_thread threads[MOST_WORKERS];
  replica_program p = {trouble, s};
  s->which = which, s->culprit = culprit;
  atomic_store(&s->failed, 0);
  memset(s->statuses, 0, sizeof s->statuses);
  on_workers(&s->all, run_program, &p, threads);
}

static dist_status sum_everywhere(dist_replica *replica, void *user_data) {
  scene *s = user_data;
  const int32_t me = dist_replica_id(replica);
  dist_status status = add_one(replica, NULL, DIST_REDUCE_SUM, 0);
  if (status == DIST_OK && (me == 1 || me == 4)) status = add_one(replica, s->b[me / 2], DIST_REDUCE_SUM, 0);
  if (status == DIST_OK && (me == 3 || me == 4 || me == 6))
    status = add_one(replica, s->a[me / 2], DIST_REDUCE_SUM, 0);
  return status;
}

static const int32_t members[] = {3, 4, 6};

/* Asserts that all members except the culprit have the same report with global numbers. */
static void expect(scene *s, dist_status code, const char *words) {
  const report *first = NULL;
  for (size_t i = 0; i < COUNT_OF(members); ++i) {
    const int32_t me = members[i];
    if (me == s->culprit && s->which != OTHER_OP) continue;
    if (s->statuses[me] != code) fail_msg("replica %d: %s", (int)me, s->reports[me].message);
    assert_has(s->reports[me].message, words);
    assert_has(s->reports[me].message, " of group 1: ");
    assert_int_equal(s->infos[me].group, 1);
    assert_int_equal(s->infos[me].worker, s->culprit / 2);
    /* If the group's leader (on worker 1) has left, each worker makes its own report, which states that. */
    if (s->culprit == members[0] && s->which != OTHER_OP) continue;
    if (first != NULL) assert_string_equal(s->reports[me].message, first->message);
    first = &s->reports[me];
  }
  run_on_workers(&s->all, sum_everywhere, s);
}

static void who_disagrees_is_named(void **state) {
  scene *s = *state;
  for (size_t i = 0; i < COUNT_OF(members); ++i) {
    char words[128];
    play_trouble(s, OTHER_OP, members[i]);
    snprintf(words, sizeof words, "all_reduce #2 (tag \"apart\") of group 1: worker %d called all_reduce MAX",
             (int)members[i] / 2);
    expect(s, DIST_INVALID_ARGUMENT, words);
  }
}

static void who_leaves_is_named(void **state) {
  scene *s = *state;
  for (int which = EARLY; which <= EARLY_UNUSED; ++which) {
    for (size_t i = 0; i < COUNT_OF(members); ++i) {
      char words[64];
      play_trouble(s, which, members[i]);
      snprintf(words, sizeof words, "worker %d returned early", (int)members[i] / 2);
      expect(s, DIST_ABORTED, words);
    }
  }
}

static void who_fails_is_named(void **state) {
  scene *s = *state;
  for (int which = FAILS; which <= FAILS_UNUSED; ++which) {
    for (size_t i = 0; i < COUNT_OF(members); ++i) {
      char words[64];
      play_trouble(s, which, members[i]);
      snprintf(words, sizeof words, "worker %d failed with DATA_LOSS: the disk is gone", (int)members[i] / 2);
      expect(s, DIST_ABORTED, words);
      for (size_t k = 0; k < COUNT_OF(members); ++k) {
        if (k != i) assert_int_equal(s->infos[members[k]].replica, members[i]);
      }
    }
  }
}

/* Which report comes first depends on whose deadline expires first. */
static void who_is_late_is_named(void **state) {
  scene *s = *state;
  for (size_t i = 0; i < COUNT_OF(members); ++i) {
    char words[64];
    play_trouble(s, LATE, members[i]);
    snprintf(words, sizeof words, "worker %d did not arrive", (int)members[i] / 2);
    for (size_t k = 0; k < COUNT_OF(members); ++k) {
      const int32_t me = members[k];
      assert_int_equal(s->statuses[me], DIST_DEADLINE_EXCEEDED);
      if (k != i) assert_has(s->reports[me].message, words);
    }
    run_on_workers(&s->all, sum_everywhere, s);
  }
}

static void who_cancels_ends_it_for_all(void **state) {
  scene *s = *state;
  for (size_t i = 0; i < COUNT_OF(members); ++i) {
    play_trouble(s, CANCELS, members[i]);
    for (size_t k = 0; k < COUNT_OF(members); ++k) {
      if (k == i) continue;
      assert_int_equal(s->statuses[members[k]], DIST_ABORTED);
      assert_has(s->reports[members[k]].message, "the run was cancelled");
    }
    run_on_workers(&s->all, sum_everywhere, s);
  }
}

/* A group within one worker: the members' report is also that of all others. */
typedef struct pair {
  const workers *all;
  dist_group *of[2];
  atomic_int waiting;
  dist_status statuses[4];
  report reports[4];
} pair;

static dist_status make_pair_group(dist_strategy *strategy, int worker, void *user_data) {
  pair *p = user_data;
  p->of[worker] = group_of(strategy, (const int32_t[]){0, 1, 3}, 3);
  return p->of[worker] != NULL ? DIST_OK : DIST_INTERNAL;
}

/* Replica 2 stays until the others have returned. They must not wait for the end of its worker's run. */
static dist_status leave_a_pair(dist_replica *replica, void *user_data) {
  pair *p = user_data;
  const int32_t me = dist_replica_id(replica);
  if (me == 2) {
    while (atomic_load(&p->waiting) < 3) sched_yield();
    return DIST_OK;
  }
  dist_status status = add_one(replica, p->of[me / 2], DIST_REDUCE_SUM, 0);
  if (status == DIST_OK && me == 3) {
    atomic_fetch_add(&p->waiting, 1);
    return DIST_OK;
  }
  if (status == DIST_OK) status = add_one(replica, p->of[me / 2], DIST_REDUCE_SUM, 0);
  p->statuses[me] = status;
  read_report(&p->reports[me]);
  atomic_fetch_add(&p->waiting, 1);
  return status;
}

static void the_last_member_to_leave_is_missed_at_once(void **state) {
  (void)state;
  workers all = workers_of("2+2", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  static pair p;
  p.all = &all;
  all_workers(&all, make_pair_group, &p);
  worker_thread threads[MOST_WORKERS];
  replica_program program = {leave_a_pair, &p};
  on_workers(&all, run_program, &program, threads);
  for (int me = 0; me < 2; ++me) {
    assert_int_equal(p.statuses[me], DIST_ABORTED);
    assert_has(p.reports[me].message, "of group 1: worker 1 returned early");
  }
  for (int w = 0; w < 2; ++w) assert_ok(dist_group_destroy(p.of[w]));
  end_workers(&all);
}

/* ---- Groups that wait for each other ---- */

static dist_status cross(dist_replica *replica, void *user_data) {
  scene *s = user_data;
  const int32_t me = dist_replica_id(replica);
  const dist_group *const mine = s->b[me / 2];
  if (me != 1 && me != 4) return add_one(replica, NULL, DIST_REDUCE_SUM, 50000000);
  /* Each waits for the other, in different groups. */
  dist_status status = me == 1 ? add_one(replica, mine, DIST_REDUCE_SUM, 50000000)
                               : add_one(replica, NULL, DIST_REDUCE_SUM, 50000000);
  if (status == DIST_OK) status = add_one(replica, me == 1 ? NULL : mine, DIST_REDUCE_SUM, 50000000);
  return keep(s, replica, status);
}

static void groups_in_another_order_end(void **state) {
  scene *s = *state;
  worker_thread threads[MOST_WORKERS];
  replica_program p = {cross, s};
  atomic_store(&s->failed, 0);
  on_workers(&s->all, run_program, &p, threads);
  assert_int_not_equal(s->statuses[1], DIST_OK);
  assert_int_not_equal(s->statuses[4], DIST_OK);
  run_on_workers(&s->all, sum_everywhere, s);
}

/* ---- Workers that are lost or have destroyed the group ---- */

static dist_status shut_down_or_run(dist_strategy *strategy, int worker, void *user_data) {
  replica_program p = {sum_everywhere, user_data};
  return worker == 3 ? dist_strategy_shutdown(strategy, -1) : run_program(strategy, worker, &p);
}

static dist_status sum_in_group(dist_replica *replica, void *user_data) {
  scene *s = user_data;
  const int32_t me = dist_replica_id(replica);
  if (me != 3 && me != 4 && me != 6) return DIST_OK;
  return keep(s, replica, add_one(replica, s->a[me / 2], DIST_REDUCE_SUM, 0));
}

static void a_lost_worker_is_named(void **state) {
  (void)state;
  void *made = NULL;
  (void)make_scene(&made);
  scene *s = made;
  worker_thread threads[MOST_WORKERS];
  on_workers(&s->all, shut_down_or_run, s, threads);
  for (int again = 0; again < 2; ++again) {
    replica_program p = {sum_in_group, s};
    s->all.n = 3;
    on_workers(&s->all, run_program, &p, threads);
    for (int32_t me = 3; me < 5; ++me) {
      assert_int_equal(s->statuses[me], DIST_UNAVAILABLE);
      assert_has(s->reports[me].message, "of group 1: worker 3 is lost");
      assert_int_equal(s->infos[me].worker, 3);
    }
  }
  for (int w = 0; w < 3; ++w) {
    assert_ok(dist_group_destroy(s->a[w]));
    assert_ok(dist_group_destroy(s->b[w]));
  }
  s->all.n = 4;
  end_workers(&s->all);
}

static dist_status return_at_once(dist_replica *replica, void *user_data) {
  (void)replica;
  (void)user_data;
  return DIST_OK;
}

static dist_status without_the_group(dist_strategy *strategy, int worker, void *user_data) {
  replica_program p = {worker == 3 ? return_at_once : sum_in_group, user_data};
  return run_program(strategy, worker, &p);
}

static void who_has_ended_the_group_is_missed(void **state) {
  (void)state;
  void *made = NULL;
  (void)make_scene(&made);
  scene *s = made;
  assert_ok(dist_group_destroy(s->a[3]));
  s->a[3] = NULL;
  for (int again = 0; again < 2; ++again) {
    worker_thread threads[MOST_WORKERS];
    on_workers(&s->all, without_the_group, s, threads);
    for (int32_t me = 3; me < 5; ++me) {
      assert_int_equal(s->statuses[me], DIST_ABORTED);
      assert_has(s->reports[me].message, "of group 1: worker 3 returned early");
    }
  }
  (void)end_scene(&made);
}

/* ---- Rejected callers ---- */

static dist_status meet_elsewhere(dist_replica *replica, void *user_data) {
  scene *s = user_data;
  const int32_t me = dist_replica_id(replica);
  const int w = me / 2;
  dist_status status = add_one(replica, s->b[w], DIST_REDUCE_SUM, 0);
  if (me == 1 || me == 4) return status;
  (void)keep(s, replica, status);
  /* The handle of another worker belongs to another strategy. */
  status = add_one(replica, s->a[(w + 1) % WORKERS], DIST_REDUCE_SUM, 0);
  return status == DIST_INVALID_ARGUMENT ? DIST_OK : DIST_INTERNAL;
}

static void who_is_no_member_is_told_so(void **state) {
  scene *s = *state;
  run_on_workers(&s->all, meet_elsewhere, s);
  for (int32_t me = 0; me < ALL; ++me) {
    char words[64];
    if (me == 1 || me == 4) continue;
    snprintf(words, sizeof words, "replica %d is not a member of options->group", (int)me);
    assert_int_equal(s->statuses[me], DIST_INVALID_ARGUMENT);
    assert_has(s->reports[me].message, words);
  }
}

#define IN_SCENE(test) cmocka_unit_test_setup_teardown(test, make_scene, end_scene)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_SCENE(who_disagrees_is_named),
      IN_SCENE(who_leaves_is_named),
      IN_SCENE(who_fails_is_named),
      IN_SCENE(who_is_late_is_named),
      IN_SCENE(who_cancels_ends_it_for_all),
      IN_SCENE(groups_in_another_order_end),
      IN_SCENE(who_is_no_member_is_told_so),
      cmocka_unit_test(the_last_member_to_leave_is_missed_at_once),
      cmocka_unit_test(a_lost_worker_is_named),
      cmocka_unit_test(who_has_ended_the_group_is_missed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
