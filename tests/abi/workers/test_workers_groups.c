/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups of some replicas of several workers: collectives in groups of every shape, several at the same time,
 * and creating a group on all workers, with and without errors.
 *
 * DIST_TEST_SEED seeds the random choices: collectives, their tensors and numerics.
 */
#include "../layouts_support.h"

/* One handle per worker. */
typedef struct shared_group {
  int32_t ids[ALL];
  size_t n;
  dist_group *of[MOST_WORKERS];
} shared_group;

static dist_status create_it(dist_strategy *strategy, int worker, void *user_data) {
  shared_group *g = user_data;
  return dist_group_create(strategy, g->ids, g->n, &g->of[worker]);
}

static dist_status destroy_it(dist_strategy *strategy, int worker, void *user_data) {
  (void)strategy;
  return dist_group_destroy(((shared_group *)user_data)->of[worker]);
}

/* Makes a group of the replicas whose bits are set. */
static shared_group make_group(const workers *all, unsigned members) {
  shared_group g = {0};
  for (int32_t id = 0; id < ALL; ++id)
    if ((members >> id & 1) != 0) g.ids[g.n++] = id;
  all_workers(all, create_it, &g);
  return g;
}

static int worker_of(const workers *all, int32_t id) {
  int w = 0;
  for (int32_t first = 0; id >= first + all->replicas[w]; ++w) first += all->replicas[w];
  return w;
}

static int replicas_in(const workers *all) {
  int n = 0;
  for (int w = 0; w < all->n; ++w) n += all->replicas[w];
  return n;
}

/* ---- Collectives ---- */

enum { STEPS = 20, GROUPS = 4 };

enum { BLOCKING, ASYNCHRONOUS, PLANNED, WAYS };

typedef struct program {
  const workers *all;
  exchange steps[STEPS];
  const shared_group *groups[STEPS]; /* NULL = all replicas */
  int way;
} program;

static dist_status play(dist_replica *replica, void *user_data) {
  program *p = user_data;
  const int32_t id = dist_replica_id(replica);
  const int w = worker_of(p->all, id);
  dist_work *works[STEPS] = {0};
  dist_status status = DIST_OK;
  for (int k = 0; k < STEPS && status == DIST_OK; ++k) {
    const dist_group *const group = p->groups[k] == NULL ? NULL : p->groups[k]->of[w];
    const int32_t me = group == NULL ? id : dist_group_rank(group, id);
    if (me < 0) continue;
    call c;
    prepare_call(&p->steps[k], me, &c);
    c.options.group = group;
    c.out_work = p->way == BLOCKING ? NULL : &works[k];
    c.options.planned = p->way == PLANNED;
    status = make_call(replica, &c);
  }
  for (int k = STEPS - 1; k >= 0 && status == DIST_OK; --k) {
    if (works[k] != NULL && p->way == PLANNED) status = dist_work_start(works[k]);
  }
  for (int k = STEPS - 1; k >= 0 && status == DIST_OK; --k) {
    if (works[k] != NULL) status = dist_work_wait(works[k], DIST_NO_TIMEOUT);
  }
  for (int k = 0; k < STEPS; ++k) dist_work_destroy(works[k]);
  return status;
}

/* The results of a group equal the equations in the order of replica ids, like in one process. */
static void play_steps(const workers *all, const shared_group *groups, size_t num_groups, uint64_t *seed) {
  static program p;
  p.all = all;
  p.way = (int)draw_of(seed, WAYS);
  for (int k = 0; k < STEPS; ++k) {
    const size_t which = draw_of(seed, num_groups + 1);
    p.groups[k] = which == num_groups ? NULL : &groups[which];
    recipe given = draw_recipe(which == num_groups ? replicas_in(all) : (int32_t)groups[which].n, seed);
    given.one_out = 0;
    if (reduces(given.collective) && given.numerics != DIST_NUMERICS_REPRODUCIBLE && given.n > 0 &&
        draw_of(seed, 2) == 0)
      given.numerics = DIST_NUMERICS_TREE;
    make_exchange(&p.steps[k], &given);
  }
  run_on_workers(all, play, &p);
  for (int k = 0; k < STEPS; ++k) {
    char text[256];
    if (find_wrong(&p.steps[k], text, sizeof text) != NULL) fail_msg("step %d: %s", k, text);
    free_exchange(&p.steps[k]);
  }
}

static void groups_of_every_shape(void **state) {
  (void)state;
  uint64_t seed = seed_of_test();
  const char *const shapes[] = {"2+2", "3+1", "1+2+1", "1+1+1+1"};
  for (size_t l = 0; l < COUNT_OF(shapes); ++l) {
    workers all = workers_of(shapes[l], (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
    for (unsigned members = 1; members < 16; ++members) {
      shared_group g = make_group(&all, members);
      play_steps(&all, &g, 1, &seed);
      all_workers(&all, destroy_it, &g);
    }
    end_workers(&all);
  }
}

/* Some groups overlap. Disjoint ones are used at the same time by replicas of one worker. */
static void many_groups_at_once(void **state) {
  (void)state;
  uint64_t seed = seed_of_test() + 1;
  const char *const shapes[] = {"2+2+2+2", "3+5", "5+2+1", "4+4"};
  for (size_t l = 0; l < COUNT_OF(shapes); ++l) {
    for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; ++threads) {
      dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
      dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
      options.worker = &worker;
      options.threads = threads;
      worker.staging_bytes = threads == DIST_THREADS_CALLER ? 0 : 4096; /* in pieces */
      workers all = workers_of(shapes[l], options);
      shared_group groups[GROUPS] = {make_group(&all, 0x55), make_group(&all, 0xAA), make_group(&all, 0x3C),
                                     make_group(&all, 0x83)};
      for (int again = 0; again < 4; ++again) play_steps(&all, groups, GROUPS, &seed);
      for (int g = 0; g < GROUPS; ++g) all_workers(&all, destroy_it, &groups[(g + 2) % GROUPS]);
      end_workers(&all);
    }
  }
}

static void threads_of_the_host_have_groups(void **state) {
  (void)state;
  uint64_t seed = seed_of_test() + 2;
  static program p;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.threads = DIST_THREADS_HOST;
  workers all = workers_of("2+2", options);
  const shared_group g = make_group(&all, 0xE);
  p.all = &all;
  for (int again = 0; again < 3; ++again) {
    for (int k = 0; k < STEPS; ++k) {
      recipe given = draw_recipe(3, &seed);
      given.one_out = 0;
      make_exchange(&p.steps[k], &given);
      p.groups[k] = &g;
    }
    host_thread threads[4];
    pthread_t ids[4];
    for (int r = 0; r < 4; ++r) {
      threads[r] = (host_thread){.strategy = all.strategies[r / 2], .id = r, .fn = play, .user_data = &p};
      assert_int_equal(pthread_create(&ids[r], NULL, host_thread_main, &threads[r]), 0);
    }
    for (int r = 0; r < 4; ++r) {
      assert_int_equal(pthread_join(ids[r], NULL), 0);
      assert_int_equal(threads[r].status, DIST_OK);
    }
    for (int k = 0; k < STEPS; ++k) {
      char text[256];
      if (find_wrong(&p.steps[k], text, sizeof text) != NULL) fail_msg("step %d: %s", k, text);
      free_exchange(&p.steps[k]);
    }
  }
  all_workers(&all, destroy_it, (void *)&g);
  end_workers(&all);
}

/* ---- Many replicas ---- */

enum { CROWD = 256 };

typedef struct crowd {
  dist_group *odd[MOST_WORKERS];
  int64_t sums[CROWD];
} crowd;

static dist_status make_odd(dist_strategy *strategy, int worker, void *user_data) {
  int32_t ids[CROWD / 2];
  for (int i = 0; i < CROWD / 2; ++i) ids[i] = 2 * i + 1;
  return dist_group_create(strategy, ids, CROWD / 2, &((crowd *)user_data)->odd[worker]);
}

static dist_status add_odd(dist_replica *replica, void *user_data) {
  crowd *c = user_data;
  const int32_t id = dist_replica_id(replica);
  if (id % 2 == 0) return DIST_OK;
  int64_t mine = id;
  const dist_tensor in = {&mine, DIST_I64, 0, NULL, NULL};
  dist_tensor out = {&c->sums[id], DIST_I64, 0, NULL, NULL};
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.group = c->odd[id / 16];
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &in, &out, 1, &options, NULL);
}

static dist_status destroy_odd(dist_strategy *strategy, int worker, void *user_data) {
  (void)strategy;
  return dist_group_destroy(((crowd *)user_data)->odd[worker]);
}

static void a_crowd_has_groups(void **state) {
  (void)state;
  static crowd c;
  workers all = workers_of("16+16+16+16+16+16+16+16+16+16+16+16+16+16+16+16",
                           (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  all_workers(&all, make_odd, &c);
  for (int again = 0; again < 2; ++again) run_on_workers(&all, add_odd, &c);
  for (int id = 1; id < CROWD; id += 2) assert_int_equal(c.sums[id], CROWD * CROWD / 4);
  assert_int_equal(dist_group_size(c.odd[0]), CROWD / 2);
  assert_int_equal(dist_group_rank(c.odd[0], 255), CROWD / 2 - 1);
  all_workers(&all, destroy_odd, &c);
  end_workers(&all);
}

/* ---- Creating groups ---- */

static void sizes_and_ranks_are_those_of_all(void **state) {
  (void)state;
  workers all = workers_of("2+1+2", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  const shared_group g = make_group(&all, 0x1A); /* 1, 3, 4: none on worker 1 */
  static const int32_t ranks[] = {-1, 0, -1, 1, 2, -1};
  for (int w = 0; w < 3; ++w) {
    assert_int_equal(dist_group_size(g.of[w]), 3);
    for (int32_t id = 0; id < 6; ++id) assert_int_equal(dist_group_rank(g.of[w], id), ranks[id]);
    assert_int_equal(dist_group_rank(g.of[w], -1), -1);
    assert_int_equal(dist_group_rank(g.of[w], INT32_MAX), -1);
    assert_fails(dist_strategy_destroy(all.strategies[w]), DIST_FAILED_PRECONDITION, "groups");
  }
  all_workers(&all, destroy_it, (void *)&g);
  end_workers(&all);
}

static dist_status create_own(dist_strategy *strategy, int worker, void *user_data) {
  shared_group *each = (shared_group *)user_data + worker;
  return dist_group_create(strategy, each->ids, each->n, &each->of[worker]);
}

static dist_status return_at_once(dist_replica *replica, void *user_data) {
  (void)replica;
  (void)user_data;
  return DIST_OK;
}

static dist_status create_or_run(dist_strategy *strategy, int worker, void *user_data) {
  if (worker == 1) return dist_run(strategy, return_at_once, NULL, NULL);
  return create_it(strategy, worker, user_data);
}

typedef struct group_numbers {
  const workers *all;
  const shared_group *group;
  int32_t found[ALL];
} group_numbers;

/* Provokes a report that contains the group's number: the first replica makes another call than the
 * others. */
static dist_status disagree(dist_replica *replica, void *user_data) {
  group_numbers *n = user_data;
  const int32_t id = dist_replica_id(replica);
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.group = n->group->of[worker_of(n->all, id)];
  options.tag = id == n->group->ids[0] ? "mine" : "theirs";
  const dist_status status = dist_barrier(replica, &options, NULL);
  dist_error_info info = DIST_ERROR_INFO_INIT;
  n->found[id] = status != DIST_OK && dist_last_error_info(&info) == DIST_OK ? info.group : -1;
  return status;
}

static void expect_number(const workers *all, const shared_group *g, int32_t number) {
  group_numbers n = {.all = all, .group = g};
  replica_program p = {disagree, &n};
  worker_thread threads[MOST_WORKERS];
  on_workers(all, run_program, &p, threads);
  for (size_t i = 0; i < g->n; ++i) assert_int_equal(n.found[g->ids[i]], number);
}

static void who_does_not_make_the_same_group_is_told(void **state) {
  (void)state;
  workers all = workers_of("2+2+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  shared_group first = make_group(&all, 0x1F);
  expect_number(&all, &first, 1);
  worker_thread threads[MOST_WORKERS];

  /* Different ids on worker 1. */
  shared_group own[3] = {{{0, 2, 4}, 3, {0}}, {{0, 2, 3}, 3, {0}}, {{0, 2, 4}, 3, {0}}};
  on_workers(&all, create_own, own, threads);
  for (int w = 0; w < 3; ++w) {
    assert_int_equal(threads[w].status, DIST_INVALID_ARGUMENT);
    assert_null(own[w].of[w]);
    assert_has(threads[w].error.message, "dist_group_create(): ");
    assert_has(threads[w].error.message, "worker 1 called all_reduce with tag \"group of replicas 0, 2-3\"");
    assert_has(threads[w].error.message, "called all_reduce with tag \"group of replicas 0, 2, 4\"");
    assert_string_equal(threads[w].error.message, threads[0].error.message);
    assert_has(threads[w].error.hint, "same groups on every worker");
  }
  /* Ids that do not exist, on one worker. */
  own[1] = (shared_group){{0, 2, 5}, 3, {0}};
  on_workers(&all, create_own, own, threads);
  assert_int_equal(threads[1].status, DIST_INVALID_ARGUMENT);
  assert_has(threads[1].error.message, "replica_ids[2] is 5, but this strategy's replicas are 0 to 4");
  for (int w = 0; w < 3; w += 2) {
    assert_int_equal(threads[w].status, DIST_ABORTED);
    assert_has(threads[w].error.message, "replica_ids[2] is 5");
  }
  /* One worker makes another call. */
  on_workers(&all, create_or_run, &own[0], threads);
  assert_int_equal(threads[1].status, DIST_OK);
  for (int w = 0; w < 3; w += 2) {
    assert_int_equal(threads[w].status, DIST_ABORTED);
    assert_has(threads[w].error.message, "worker 1 returned early");
  }
  /* None of these has consumed a number. */
  shared_group second = make_group(&all, 0x1A);
  expect_number(&all, &second, 2);
  all_workers(&all, destroy_it, &first);
  all_workers(&all, destroy_it, &second);
  end_workers(&all);
}

static dist_status create_where_others_are(dist_strategy *strategy, int worker, void *user_data) {
  return worker == 1 ? DIST_OK : create_it(strategy, worker, user_data);
}

static void who_is_missing_is_waited_for_until_the_deadline(void **state) {
  (void)state;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.timeout_ns = 50000000;
  workers all = workers_of("1+1", options);
  shared_group g = {{0, 1}, 2, {0}};
  worker_thread threads[MOST_WORKERS];
  on_workers(&all, create_where_others_are, &g, threads);
  assert_int_equal(threads[0].status, DIST_DEADLINE_EXCEEDED);
  assert_has(threads[0].error.message, "worker 1 did not arrive");
  end_workers(&all);
}

static dist_status create_inside(dist_replica *replica, void *user_data) {
  (void)replica;
  int32_t ids[] = {0, 1};
  dist_group *group = NULL;
  return dist_group_create(user_data, ids, 2, &group);
}

static void not_inside_a_run(void **state) {
  (void)state;
  workers all = workers_of("1+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  for (int w = 0; w < 2; ++w) {
    assert_fails(dist_run(all.strategies[w], create_inside, all.strategies[w], NULL),
                 DIST_FAILED_PRECONDITION, "dist_group_create");
  }
  end_workers(&all);
}

/* ---- Asynchronous collectives ---- */

typedef struct begun {
  const workers *all;
  const shared_group *here, *across;
  dist_status statuses[2][ALL];
  int64_t sums[ALL];
} begun;

static dist_status begin_works(dist_replica *replica, void *user_data) {
  begun *b = user_data;
  const int32_t id = dist_replica_id(replica);
  int64_t mine = id + 1;
  const dist_tensor in = {&mine, DIST_I64, 0, NULL, NULL};
  dist_tensor out = {&b->sums[id], DIST_I64, 0, NULL, NULL};
  const shared_group *const groups[] = {b->here, b->across};
  for (int k = 0; k < 2; ++k) {
    dist_work *work = NULL;
    dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
    options.group = groups[k]->of[worker_of(b->all, id)];
    dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, &in, &out, 1, &options, &work);
    if (status == DIST_OK) status = dist_work_wait(work, -1);
    if (work != NULL) dist_work_destroy(work);
    b->statuses[k][id] = status;
  }
  return DIST_OK;
}

static void works_have_groups_too(void **state) {
  (void)state;
  workers all = workers_of("2+1", (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  const shared_group here = make_group(&all, 0x3);
  const shared_group across = make_group(&all, 0x6);
  begun b = {.all = &all, .here = &here, .across = &across};
  run_on_workers(&all, begin_works, &b);
  static const dist_status wanted[2][3] = {{DIST_OK, DIST_OK, DIST_INVALID_ARGUMENT},
                                           {DIST_INVALID_ARGUMENT, DIST_OK, DIST_OK}};
  for (int id = 0; id < 3; ++id) {
    for (int k = 0; k < 2; ++k) assert_int_equal(b.statuses[k][id], wanted[k][id]);
  }
  assert_int_equal(b.sums[0], 3);
  assert_int_equal(b.sums[1], 5);
  assert_int_equal(b.sums[2], 5);
  all_workers(&all, destroy_it, (void *)&here);
  all_workers(&all, destroy_it, (void *)&across);
  end_workers(&all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(groups_of_every_shape),
      cmocka_unit_test(many_groups_at_once),
      cmocka_unit_test(threads_of_the_host_have_groups),
      cmocka_unit_test(a_crowd_has_groups),
      cmocka_unit_test(sizes_and_ranks_are_those_of_all),
      cmocka_unit_test(who_does_not_make_the_same_group_is_told),
      cmocka_unit_test(who_is_missing_is_waited_for_until_the_deadline),
      cmocka_unit_test(not_inside_a_run),
      cmocka_unit_test(works_have_groups_too),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
