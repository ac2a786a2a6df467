/* SPDX-License-Identifier: Apache-2.0
 *
 * Work with faults: members that call a different collective, in another order, late, or never, or that do
 * not finish; cancellation; lack of memory. All members receive the same report, nothing hangs, no buffer is
 * used afterwards, and the next run works.
 */
#include "work_support.h"

enum { R = 3, CULPRIT = 1, LAST = 2 };

enum what {
  OTHER_TAG,
  OTHER_OP,
  OTHER_LENGTH,
  OTHER_COLLECTIVE,
  OTHER_ORDER, /* the blocking collective first */
  BLOCKS,
  PLANS,
  LEAVES,
  FAILS,
  FAILS_UNDER_WAY,
  CANCELS_WORK,
  CANCELS_RUN,
  LATE, /* later than options.timeout_ns */
  HALF_WAITS,
  HALF_LEAVES, /* not all tensors of a round are ready */
  FAULTS
};

typedef struct expectation {
  const char *name;
  dist_status run, peers;
  const char *words;
  int asynchronous, planned; /* whether the fault is possible there */
  int asking;                /* members that only poll also get the report */
} expectation;

static const expectation table[FAULTS] = {
    {"other tag", DIST_INVALID_ARGUMENT, DIST_INVALID_ARGUMENT, "replica 1 called", 1, 0, 1},
    {"other op", DIST_INVALID_ARGUMENT, DIST_INVALID_ARGUMENT, "replica 1 called", 1, 0, 1},
    {"other length", DIST_INVALID_ARGUMENT, DIST_INVALID_ARGUMENT, "replica 1 called", 1, 0, 1},
    {"other collective", DIST_INVALID_ARGUMENT, DIST_INVALID_ARGUMENT, "replica 1 called", 1, 0, 1},
    {"other order", DIST_ABORTED, DIST_ABORTED, "wait for each other", 1, 1, 0},
    {"blocks", DIST_ABORTED, DIST_ABORTED, "wait for each other", 1, 1, 0},
    {"plans", DIST_ABORTED, DIST_ABORTED, "wait for each other", 1, 1, 0},
    {"leaves", DIST_ABORTED, DIST_ABORTED, "replica 1 returned early", 1, 1, 1},
    {"fails", DIST_DATA_LOSS, DIST_ABORTED, "replica 1 failed with DATA_LOSS: no rows", 1, 1, 1},
    {"fails under way", DIST_DATA_LOSS, DIST_ABORTED, "replica 1 failed with DATA_LOSS: no rows", 1, 1, 1},
    {"cancels the work", DIST_CANCELLED, DIST_CANCELLED, "cancel", 1, 1, 1},
    {"cancels the run", DIST_CANCELLED, DIST_CANCELLED, "cancel", 1, 1, 1},
    {"late", DIST_DEADLINE_EXCEEDED, DIST_DEADLINE_EXCEEDED, "replica 1 did not arrive", 1, 1, 0},
    {"half waits", DIST_ABORTED, DIST_ABORTED, "wait for each other", 0, 1, 0},
    {"half leaves", DIST_ABORTED, DIST_ABORTED, "wait for each other", 0, 1, 0},
};

typedef struct scene {
  enum what what;
  int planned;
  enum ending how;
  int64_t length;
  atomic_llong now_ns;
  atomic_int failed, gone; /* peers that have their report; the fault has happened */
  dist_status statuses[R];
  report reports[R];
  float *data[R];
  int64_t lengths[R];
  dist_tensor tensors[R][2];
  dist_work *works[R];
} scene;

static scene s;

static int64_t scene_clock(void *user_data) {
  (void)user_data;
  return atomic_load(&s.now_ns);
}

static dist_status issue(dist_replica *replica, int32_t id, int planned, int spoilt, dist_work **out_work) {
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.planned = planned, options.bytes_per_pack = planned;
  options.tag = spoilt && s.what == OTHER_TAG ? "other" : "mine";
  if (s.what == LATE) options.timeout_ns = 5000000000;
  dist_tensor *list = s.tensors[id];
  if (spoilt && s.what == OTHER_LENGTH) s.lengths[id]--;
  if (spoilt && s.what == OTHER_COLLECTIVE)
    return dist_broadcast(replica, 0, list, list, 2, &options, out_work);
  const dist_reduce_op op = spoilt && s.what == OTHER_OP ? DIST_REDUCE_MAX : DIST_REDUCE_SUM;
  return dist_all_reduce(replica, op, list, list, 2, &options, out_work);
}

static dist_status begin(dist_replica *replica, int32_t id, int spoilt) {
  return s.planned ? dist_work_start(s.works[id]) : issue(replica, id, 0, spoilt, &s.works[id]);
}

static dist_status end(int32_t id) { return end_works(&s.works[id], 1, s.how); }

/* The member at fault. */
static dist_status misbehave(dist_replica *replica, int32_t id) {
  dist_status status = DIST_OK;
  switch (s.what) {
    case LEAVES: return DIST_OK;
    case FAILS: return dist_fail(DIST_DATA_LOSS, "no rows");
    case BLOCKS: return dist_barrier(replica, NULL, NULL);
    case OTHER_ORDER:
      status = dist_barrier(replica, NULL, NULL);
      return status == DIST_OK ? begin(replica, id, 0) : status;
    case PLANS: {
      dist_work *plan = NULL;
      status = issue(replica, id, 1, 0, &plan);
      dist_work_destroy(plan);
      return status;
    }
    case LATE:
      while (atomic_load(&s.failed) < R - 1) {
        atomic_fetch_add(&s.now_ns, 1000000000);
        sched_yield();
      }
      return begin(replica, id, 0);
    case HALF_WAITS:
    case HALF_LEAVES:
      status = dist_work_ready(s.works[id], 1);
      return status == DIST_OK && s.what == HALF_WAITS ? end(id) : status;
    default: break;
  }
  status = begin(replica, id, 1);
  if (status != DIST_OK) return status;
  if (s.what == FAILS_UNDER_WAY) return dist_fail(DIST_DATA_LOSS, "no rows");
  if (s.what == CANCELS_WORK) status = dist_work_cancel(s.works[id]);
  if (s.what == CANCELS_RUN) status = dist_strategy_cancel(dist_replica_strategy(replica));
  atomic_store(&s.gone, 1);
  return status == DIST_OK ? end(id) : status;
}

static dist_status act(dist_replica *replica, void *user_data) {
  (void)user_data;
  const int32_t id = dist_replica_id(replica);
  dist_status status = DIST_OK;
  if (s.planned) status = issue(replica, id, 1, 0, &s.works[id]);
  if (status != DIST_OK) {
    /* The culprit has continued and left before this member returned from their common round. */
  } else if (id == CULPRIT) {
    status = misbehave(replica, id);
  } else {
    /* Ensures that the culprit's own work is in progress. */
    const int cancels = s.what == CANCELS_WORK || s.what == CANCELS_RUN;
    while (id == LAST && cancels && !atomic_load(&s.gone)) sched_yield();
    /* Ensures that the work is not complete before the culprit fails. */
    while (id == LAST && s.what == FAILS_UNDER_WAY && !atomic_load(&s.failed)) sched_yield();
    status = begin(replica, id, 0);
    if (status == DIST_OK) status = end(id);
    if (status == DIST_OK && s.what == OTHER_ORDER) status = dist_barrier(replica, NULL, NULL);
  }
  read_report(&s.reports[id]);
  s.statuses[id] = status;
  if (id != CULPRIT) atomic_fetch_add(&s.failed, 1);
  return status;
}

/* A run in which entries are reused several times, for small and large tensors. */
static dist_status slide(dist_replica *replica, void *user_data) {
  (void)user_data;
  enum { MANY = 40 };
  const int32_t id = dist_replica_id(replica), n = dist_replica_num_replicas(replica);
  int64_t length = 0;
  int32_t *data = malloc(20000 * sizeof *data);
  dist_tensor tensor = vector_of(data, DIST_I32, &length);
  dist_status status = DIST_OK;
  for (int k = 0; k < MANY && status == DIST_OK; k++) {
    dist_work *work = NULL;
    dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
    length = k % 3 == 0 ? 20000 : k % 4;
    for (int64_t i = 0; i < length; i++) data[i] = id + k;
    status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &options, &work);
    if (status == DIST_OK) status = dist_work_wait(work, DIST_NO_TIMEOUT);
    dist_work_destroy(work);
    for (int64_t i = 0; i < length && status == DIST_OK; i++)
      if (data[i] != n * k + n * (n - 1) / 2) status = dist_fail(DIST_INTERNAL, "a wrong sum");
  }
  free(data);
  return status;
}

static void assert_clean(int32_t threads, dist_strategy *strategy, const char *after) {
  report error;
  if (run_on(threads, strategy, slide, NULL, &error) != DIST_OK)
    fail_msg("after %s: %s", after, error.message);
}

static void set_scene(enum what what, int planned, enum ending how, int64_t length) {
  memset(&s, 0, sizeof s);
  s.what = what, s.planned = planned, s.how = how, s.length = length;
  for (int r = 0; r < R; r++) {
    s.lengths[r] = length;
    s.data[r] = calloc((size_t)(2 * length), sizeof(float));
    for (int t = 0; t < 2; t++) s.tensors[r][t] = vector_of(s.data[r] + t * length, DIST_F32, &s.lengths[r]);
  }
}

static void look_at_scene(const expectation *e, dist_status got, const report *error) {
  if (got != e->run) fail_msg("%s: %s: %s", e->name, dist_status_name(got), error->message);
  if (e->run == DIST_DATA_LOSS)
    assert_has(error->message, "no rows");
  else
    assert_has(error->message, e->words);
  for (int r = 0; r < R; r += 2) {
    if (s.how == LEAVING) continue; /* its function has already returned */
    if (s.statuses[r] != e->peers)
      fail_msg("%s: replica %d: %s: %s", e->name, r, dist_status_name(s.statuses[r]), s.reports[r].message);
    assert_has(s.reports[r].message, e->words);
  }
}

static void every_fault(void **state) {
  (void)state;
  static const enum ending endings[] = {FIRST_FIRST, ANY, ASKING, LEAVING};
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = R;
  host.clock = scene_clock;
  for (options.threads = DIST_THREADS_CALLER; options.threads <= DIST_THREADS_HOST; options.threads++) {
    dist_strategy *strategy = strategy_with(options);
    for (int what = 0; what < FAULTS; what++) {
      const expectation *e = &table[what];
      for (int k = 0; k < 2 * 2 * (int)COUNT_OF(endings); k++) {
        const enum ending how = endings[k / 4];
        const int planned = k % 2;
        const int leaving = what != LATE && what != OTHER_ORDER; /* if no member waits, there is no error */
        if (!(planned ? e->planned : e->asynchronous)) continue;
        if ((how == ASKING && !e->asking) || (how == LEAVING && !leaving)) continue;
        set_scene((enum what)what, planned, how, k / 2 % 2 == 0 ? 3 : 30000);
        report error;
        const dist_status got = run_on(options.threads, strategy, act, NULL, &error);
        for (int r = 0; r < R; r++) free(s.data[r]); /* libdist does not use them any more */
        look_at_scene(e, got, &error);
        for (int r = 0; r < R; r++) dist_work_destroy(s.works[r]);
        assert_clean(options.threads, strategy, e->name);
      }
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* ---- Cancelling at any moment ---- */

typedef struct race {
  int64_t length;
  int32_t who;
  int turns, of_a_work;
} race;

static dist_status cancel_somewhere(dist_replica *replica, void *user_data) {
  const race *c = user_data;
  enum { MANY = 4 };
  const int32_t id = dist_replica_id(replica);
  dist_work *works[MANY] = {NULL};
  int64_t length = c->length;
  float *data = calloc((size_t)(length * MANY), sizeof *data);
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  dist_status status = DIST_OK;
  for (int k = 0; k < MANY && status == DIST_OK; k++) {
    dist_tensor tensor = vector_of(data + k * length, DIST_F32, &length);
    status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &options, &works[k]);
  }
  if (id == c->who && status == DIST_OK) {
    for (int turn = 0; turn < c->turns; turn++) sched_yield();
    status = c->of_a_work ? dist_work_cancel(works[MANY - 1])
                          : dist_strategy_cancel(dist_replica_strategy(replica));
  }
  for (int k = MANY - 1; k >= 0; k--) {
    if (works[k] == NULL) continue;
    const dist_status ended = dist_work_wait(works[k], DIST_NO_TIMEOUT);
    if (status == DIST_OK) status = ended;
    dist_work_destroy(works[k]);
  }
  free(data);
  return status;
}

static void cancelling_at_any_moment(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    dist_strategy *strategy = strategy_of(R, threads);
    for (int k = 0; k < 60; k++) {
      race c = {k % 2 == 0 ? 60000 : 500, k % R, k % 9, k % 4 < 2};
      report error;
      const dist_status status = run_on(threads, strategy, cancel_somewhere, &c, &error);
      if (status != DIST_OK && status != DIST_CANCELLED) fail_msg("%s", error.message);
      assert_clean(threads, strategy, "a race with a cancel");
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* ---- Failures of earlier runs ---- */

static void a_work_keeps_how_it_ended(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(R, DIST_THREADS_CALLER);
  report error;
  set_scene(LEAVES, 0, LEAVING, 3);
  assert_int_equal(dist_run(strategy, act, NULL, NULL), DIST_ABORTED);
  dist_work *old = s.works[0];
  for (int r = 0; r < R; r++) free(s.data[r]);
  dist_work_destroy(s.works[LAST]);
  assert_fails(dist_work_wait(old, DIST_NO_TIMEOUT), DIST_ABORTED, "returned early");
  set_scene(CANCELS_RUN, 0, FIRST_FIRST, 3);
  assert_int_equal(run_on(DIST_THREADS_CALLER, strategy, act, NULL, &error), DIST_CANCELLED);
  for (int r = 0; r < R; r++) free(s.data[r]), dist_work_destroy(s.works[r]);
  int32_t done = 7;
  assert_fails(dist_work_wait(old, DIST_NO_TIMEOUT), DIST_ABORTED,
               "earlier run"); /* not the report of the later run */
  assert_fails(dist_work_test(old, &done), DIST_ABORTED, "earlier run");
  dist_work_destroy(old);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Lack of memory ---- */

static dist_status use_memory(dist_replica *replica, void *user_data) {
  const dist_group *group = user_data;
  enum { N = 3 };
  int64_t lengths[N] = {2, 0, 300};
  float *data = calloc(2 * 302, sizeof *data);
  dist_tensor list[N], parameters[N];
  for (int t = 0; t < N; t++) {
    list[t] = vector_of(data + t, DIST_F32, &lengths[t]);
    parameters[t] = vector_of(data + 302 + t, DIST_F32, &lengths[t]);
  }
  list[2].data = data + 2, parameters[2].data = data + 304;
  dist_work *works[3] = {NULL};
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.tag = "memory";
  dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, list, list, N, &options, &works[0]);
  options.group = group;
  if (status == DIST_OK) status = dist_barrier(replica, &options, &works[1]);
  if (status == DIST_OK) status = end_works(works, 2, FIRST_FIRST);
  options.planned = 1, options.bytes_per_pack = 8;
  if (status == DIST_OK)
    status = dist_all_reduce(replica, DIST_REDUCE_SUM, list, list, N, &options, &works[2]);
  for (int round = 0; round < 2 && status == DIST_OK; round++) {
    status = dist_work_start(works[2]);
    if (status == DIST_OK) status = dist_work_wait(works[2], DIST_NO_TIMEOUT);
  }
  dist_apply_options apply = DIST_APPLY_OPTIONS_INIT;
  apply.kind = DIST_APPLY_SGD, apply.clip_norm = 1;
  if (status == DIST_OK)
    status = dist_reduce_apply(replica, DIST_REDUCE_MEAN, list, parameters, N, &apply, NULL, NULL);
  for (int k = 0; k < 3; k++) dist_work_destroy(works[k]);
  free(data);
  return status;
}

static void every_allocation_fails_once(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; threads++) {
    long refusals = 0;
    int refused = 1;
    for (long k = 0; refused; k++) {
      static ledger l;
      memset(&l, 0, sizeof l);
      atomic_store(&l.refuse_at, -1);
      dist_strategy *strategy = strategy_on(&l, R, threads);
      dist_group *group = NULL;
      assert_ok(dist_group_create(strategy, (const int32_t[]){0, 1, 2}, 3, &group));
      atomic_store(&l.refuse_at, atomic_load(&l.requests) + k);
      const dist_status status = dist_run(strategy, use_memory, group, NULL);
      refused = atomic_load(&l.requests) > atomic_load(&l.refuse_at);
      refusals += refused;
      if (status != DIST_OK) {
        assert_true(refused);
        assert_fails(status, DIST_RESOURCE_EXHAUSTED, "out of memory");
      }
      atomic_store(&l.refuse_at, -1);
      assert_ok(dist_run(strategy, use_memory, group, NULL)); /* the failure has left nothing behind */
      assert_ok(dist_group_destroy(group));
      assert_ok(dist_strategy_destroy(strategy));
      assert_int_equal(atomic_load(&l.live), 0);
    }
    assert_true(refusals > 20);
  }
}

/* ---- Waits with a timeout of their own ---- */

typedef struct patience {
  int64_t each_ns; /* timeout of each wait */
  int64_t pause_ns;
  int any;
  int waits; /* number of waits until the work ended */
  dist_status status;
  report error;
} patience;

static atomic_llong ticks_ns;
static atomic_int has_left, is_at_barrier;

/* Advances with each reading. */
static int64_t ticking_clock(void *user_data) {
  (void)user_data;
  return atomic_fetch_add(&ticks_ns, 1000000);
}

static dist_strategy *ticking_strategy(int32_t threads) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = 2;
  options.threads = threads;
  host.clock = ticking_clock;
  return strategy_with(options);
}

static dist_status begin_sum(dist_replica *replica, float *number, int64_t timeout_ns, dist_work **out_work) {
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.timeout_ns = timeout_ns;
  const dist_tensor tensor = {number, DIST_F32, 0, NULL, NULL};
  return dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &options, out_work);
}

static dist_status wait_in_pieces(dist_replica *replica, void *user_data) {
  enum { MANY = 10000 };
  patience *p = user_data;
  float number = 1;
  dist_work *work = NULL;
  if (dist_replica_id(replica) == 1) {
    while (!atomic_load(&has_left)) sched_yield();
    return DIST_OK;
  }
  dist_status status = begin_sum(replica, &number, 300000000, &work);
  int32_t done = 0;
  for (p->waits = 0; status == DIST_OK && !done && p->waits < MANY; p->waits++) {
    size_t index = 0;
    p->status = p->any ? dist_work_wait_any(&work, 1, p->each_ns, &index) : dist_work_wait(work, p->each_ns);
    read_report(&p->error);
    if (p->status != DIST_DEADLINE_EXCEEDED) status = p->status;
    if (dist_work_test(work, &done) != DIST_OK) done = 1;
    atomic_fetch_add(&ticks_ns, p->pause_ns);
  }
  atomic_store(&has_left, 1);
  dist_work_destroy(work);
  return p->status;
}

static void short_waits_reach_the_timeout(void **state) {
  (void)state;
  enum { MS = 1000000 };
  static const patience cases[] = {{.each_ns = 0},
                                   {.each_ns = MS},
                                   {.each_ns = 50 * MS},
                                   {.each_ns = 299 * MS},
                                   {.each_ns = 0, .pause_ns = 1000 * (int64_t)MS},
                                   {.each_ns = 10 * MS, .pause_ns = 1000 * (int64_t)MS, .any = 1}};
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    dist_strategy *strategy = ticking_strategy(threads);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
      patience p = cases[i];
      atomic_store(&has_left, 0);
      report error;
      assert_int_equal(run_on(threads, strategy, wait_in_pieces, &p, &error), DIST_DEADLINE_EXCEEDED);
      assert_int_equal(p.status, DIST_DEADLINE_EXCEEDED);
      assert_has(p.error.message, "replica 1 did not arrive within");
      if (p.pause_ns > 0) assert_int_equal(p.waits, 2);
      if (p.waits > 400) fail_msg("%d waits of %lld ns", p.waits, (long long)p.each_ns);
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* Replica 0 does other things between its waits. Replica 1 waits for that first. */
static dist_status wait_on_and_off(dist_replica *replica, void *user_data) {
  (void)user_data;
  enum { TIMES = 20 };
  float number = 1;
  dist_work *work = NULL;
  dist_status status = DIST_OK;
  if (dist_replica_id(replica) == 1) {
    atomic_store(&is_at_barrier, 1);
    status = dist_barrier(replica, NULL, NULL);
    if (status == DIST_OK) status = begin_sum(replica, &number, 0, &work);
    return status == DIST_OK ? wait_and_destroy(&work) : status;
  }
  status = begin_sum(replica, &number, 0, &work);
  while (!atomic_load(&is_at_barrier)) sched_yield();
  for (int i = 0; status == DIST_OK && i < TIMES; i++) {
    const dist_status waited = dist_work_wait(work, 5000000);
    if (waited != DIST_DEADLINE_EXCEEDED) status = waited;
  }
  if (status == DIST_OK) status = dist_barrier(replica, NULL, NULL);
  if (status == DIST_OK) return wait_and_destroy(&work);
  dist_work_destroy(work);
  return status;
}

static void a_wait_that_ends_is_no_deadlock(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    dist_strategy *strategy = ticking_strategy(threads);
    atomic_store(&is_at_barrier, 0);
    report error;
    if (run_on(threads, strategy, wait_on_and_off, NULL, &error) != DIST_OK) fail_msg("%s", error.message);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(short_waits_reach_the_timeout),
      cmocka_unit_test(a_wait_that_ends_is_no_deadlock),
      cmocka_unit_test(every_fault),
      cmocka_unit_test(cancelling_at_any_moment),
      cmocka_unit_test(a_work_keeps_how_it_ended),
      cmocka_unit_test(every_allocation_fails_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
