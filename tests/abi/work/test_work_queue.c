/* SPDX-License-Identifier: Apache-2.0
 *
 * Work: any number of collectives in progress. A thousand of each kind wait for a late peer. At the memory
 * limit, a member that issues another one waits until its deadline.
 */
#include "work_support.h"

enum { SIDES = 4, MANY = 1000, LEAST = 8 /* of a group, whatever the bound */ };

typedef struct queue {
  int32_t collective;
  enum ending how;
  int planned;
  int n;
  int misfit;   /* the late member's first collective has another tag */
  int fails_at; /* the late member fails before this collective; -1 = it does not fail */
  int64_t timeout_ns;
  dist_cancel *cancel;
  size_t tensors;    /* in each all_reduce; 0 = one */
  atomic_int issued; /* total of the members that are on time */
  atomic_int gone;   /* members on time that have finished */
  atomic_int failed; /* a member has failed, so no member waits here any more */
} queue;

static queue q;

typedef struct side {
  int32_t in[MANY][SIDES], out[MANY][SIDES];
  dist_work *works[MANY];
} side;

static int32_t value_of(int32_t p, int k, int32_t i) { return 1000000 * p + 100 * k + i; }

static dist_status issue_one(dist_replica *replica, side *s, int k, int planned) {
  const int32_t me = dist_replica_id(replica), n = dist_replica_num_replicas(replica), root = k % n;
  const int64_t all = n, one = 1;
  const int rooted = me == root;
  dist_tensor in = vector_of(s->in[k], DIST_I32, &all), out = vector_of(s->out[k], DIST_I32, &all);
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.planned = planned, options.timeout_ns = q.timeout_ns;
  options.cancel = q.cancel;
  options.tag = q.misfit && me == n - 1 ? "another" : "mine";
  /* Handles the collectives of `exchanged`.
     @every collective but NONE, RETURN, MERGE_CALL, REDUCE_APPLY, HALO_EXCHANGE, RESHARD */
  switch (q.collective) {
    case DIST_COLLECTIVE_ALL_REDUCE:
      return dist_all_reduce(replica, DIST_REDUCE_SUM, &in, &out, 1, &options, &s->works[k]);
    case DIST_COLLECTIVE_REDUCE:
      return dist_reduce_to_root(replica, DIST_REDUCE_SUM, root, &in, rooted ? &out : NULL, 1, &options,
                                 &s->works[k]);
    case DIST_COLLECTIVE_BROADCAST:
      return dist_broadcast(replica, root, rooted ? &in : NULL, &out, 1, &options, &s->works[k]);
    case DIST_COLLECTIVE_REDUCE_SCATTER:
      out.shape = &one;
      return dist_reduce_scatter(replica, DIST_REDUCE_SUM, &in, &out, 1, &options, &s->works[k]);
    case DIST_COLLECTIVE_SCATTER:
      out.shape = &one;
      return dist_scatter_from_root(replica, root, rooted ? &in : NULL, &out, 1, &options, &s->works[k]);
    case DIST_COLLECTIVE_ALL_GATHER:
      in.shape = &one;
      return dist_all_gather(replica, &in, &out, 1, &options, &s->works[k]);
    case DIST_COLLECTIVE_GATHER:
      in.shape = &one;
      return dist_gather_to_root(replica, root, &in, rooted ? &out : NULL, 1, &options, &s->works[k]);
    case DIST_COLLECTIVE_ALL_TO_ALL: return dist_all_to_all(replica, &in, &out, 1, &options, &s->works[k]);
    case DIST_COLLECTIVE_SCAN:
      return dist_scan(replica, DIST_REDUCE_SUM, DIST_SCAN_INCLUSIVE, &in, &out, 1, &options, &s->works[k]);
    case DIST_COLLECTIVE_PERMUTE:
      return dist_permute(replica, (me + 1) % n, (me + n - 1) % n, &in, &out, 1, &options, &s->works[k]);
    case DIST_COLLECTIVE_BARRIER:
    default: return dist_barrier(replica, &options, &s->works[k]);
  }
}

/* Returns the expected element i of member me's k-th output; -1 = unchanged. */
static int32_t expected(int32_t me, int32_t n, int k, int32_t i) {
  const int32_t root = k % n;
  int32_t sum = 0;
  /* Handles the collectives of `exchanged`.
     @every collective but NONE, RETURN, MERGE_CALL, REDUCE_APPLY, HALO_EXCHANGE, RESHARD */
  switch (q.collective) {
    case DIST_COLLECTIVE_REDUCE:
      if (me != root) return -1; /* fall through */
    case DIST_COLLECTIVE_ALL_REDUCE:
      for (int32_t p = 0; p < n; p++) sum += value_of(p, k, i);
      return sum;
    case DIST_COLLECTIVE_REDUCE_SCATTER:
      for (int32_t p = 0; p < n; p++) sum += value_of(p, k, me);
      return i == 0 ? sum : -1;
    case DIST_COLLECTIVE_BROADCAST: return value_of(root, k, i);
    case DIST_COLLECTIVE_SCATTER: return i == 0 ? value_of(root, k, me) : -1;
    case DIST_COLLECTIVE_GATHER: return me == root ? value_of(i, k, 0) : -1;
    case DIST_COLLECTIVE_ALL_GATHER: return value_of(i, k, 0);
    case DIST_COLLECTIVE_ALL_TO_ALL: return value_of(i, k, me);
    case DIST_COLLECTIVE_SCAN:
      for (int32_t p = 0; p <= me; p++) sum += value_of(p, k, i);
      return sum;
    case DIST_COLLECTIVE_PERMUTE: return value_of((me + n - 1) % n, k, i);
    case DIST_COLLECTIVE_BARRIER:
    default: return -1;
  }
}

static dist_status look_at_results(const side *s, int32_t me, int32_t n) {
  for (int k = 0; k < q.n; k++)
    for (int32_t i = 0; i < n; i++)
      if (s->out[k][i] != expected(me, n, k, i)) return dist_fail(DIST_INTERNAL, "a wrong element");
  return DIST_OK;
}

static side *make_side(int32_t me) {
  side *s = calloc(1, sizeof *s);
  memset(s->out, 0xff, sizeof s->out);
  for (int k = 0; k < MANY; k++)
    for (int32_t i = 0; i < SIDES; i++) s->in[k][i] = value_of(me, k, i);
  return s;
}

/* The last replica starts when all others have issued everything, or can issue no more. */
static int is_late(int32_t me, int32_t n) { return me == n - 1; }

static void await(atomic_int *number, int at_least) {
  while (atomic_load(number) < at_least && !atomic_load(&q.failed)) sched_yield();
}

static dist_status destroy_all(side *s, dist_status status) {
  if (status != DIST_OK) atomic_store(&q.failed, 1);
  for (int k = 0; k < q.n; k++) dist_work_destroy(s->works[k]);
  free(s);
  return status;
}

/* ---- A thousand of each kind ---- */

static dist_status issue_many(dist_replica *replica, void *user_data) {
  (void)user_data;
  const int32_t me = dist_replica_id(replica), n = dist_replica_num_replicas(replica);
  side *s = make_side(me);
  dist_status status = DIST_OK;
  for (int k = 0; k < q.n && status == DIST_OK && q.planned; k++) status = issue_one(replica, s, k, 1);
  if (is_late(me, n)) await(&q.issued, (n - 1) * q.n);
  for (int k = 0; k < q.n && status == DIST_OK; k++) {
    status = q.planned ? dist_work_start(s->works[k]) : issue_one(replica, s, k, 0);
    if (!is_late(me, n)) atomic_fetch_add(&q.issued, 1);
  }
  /* Members use different endings, so that some wait while others only poll. */
  const enum ending how = (q.how + me) % LEAVING;
  if (status == DIST_OK) status = end_works(s->works, (size_t)q.n, how);
  if (status == DIST_OK) status = look_at_results(s, me, n);
  return destroy_all(s, status);
}

static void run_many(int32_t members, int32_t threads, dist_strategy *strategy) {
  report error;
  atomic_store(&q.issued, 0);
  if (run_on(threads, strategy, issue_many, NULL, &error) != DIST_OK)
    fail_msg("%d members, %s, collective %d: %s", members, threads_name(threads), q.collective,
             error.message);
}

static void a_thousand_of_each(void **state) {
  (void)state;
  memset(&q, 0, sizeof q);
  q.n = MANY;
  for (int32_t pair = 0; pair < 3 * (SIDES - 1); pair++) {
    const int32_t members = 2 + pair / 3, threads = DIST_THREADS_CALLER + pair % 3;
    dist_strategy *strategy = strategy_of(members, threads);
    for (size_t c = 0; c < COUNT_OF(exchanged); c++) {
      q.collective = exchanged[c];
      q.how = (enum ending)(c % LEAVING);
      run_many(members, threads, strategy);
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void a_thousand_planned(void **state) {
  (void)state;
  memset(&q, 0, sizeof q);
  q.n = MANY, q.planned = 1;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_CALLER);
  for (size_t c = 0; c < COUNT_OF(exchanged); c += 3) {
    q.collective = exchanged[c];
    run_many(3, DIST_THREADS_CALLER, strategy);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- The memory limit ---- */

static dist_strategy *bounded(int32_t members, int32_t threads, int64_t async_bytes) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = members, options.threads = threads, options.async_bytes = async_bytes;
  return strategy_with(options);
}

/* No member can issue all of its collectives before the late one arrives, and none fails because of that. */
static dist_status issue_in_turns(dist_replica *replica, void *user_data) {
  (void)user_data;
  const int32_t me = dist_replica_id(replica), n = dist_replica_num_replicas(replica);
  side *s = make_side(me);
  dist_status status = DIST_OK;
  if (is_late(me, n)) await(&q.issued, (n - 1) * LEAST);
  for (int k = 0; k < q.n && status == DIST_OK; k++) {
    status = issue_one(replica, s, k, 0);
    if (!is_late(me, n)) atomic_fetch_add(&q.issued, 1);
  }
  if (status == DIST_OK) status = end_works(s->works, (size_t)q.n, (q.how + me) % LEAVING);
  if (status == DIST_OK) status = look_at_results(s, me, n);
  return destroy_all(s, status);
}

static void the_bound_waits(void **state) {
  (void)state;
  static const int64_t bounds[] = {1, 100000, 1000000};
  memset(&q, 0, sizeof q);
  q.n = MANY, q.collective = DIST_COLLECTIVE_ALL_REDUCE;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    for (size_t b = 0; b < COUNT_OF(bounds); b++) {
      dist_strategy *strategy = bounded(2 + threads - DIST_THREADS_CALLER, threads, bounds[b]);
      for (int run = 0; run < 2; run++) {
        report error;
        q.how = (enum ending)run;
        atomic_store(&q.issued, 0);
        if (run_on(threads, strategy, issue_in_turns, NULL, &error) != DIST_OK) fail_msg("%s", error.message);
      }
      assert_ok(dist_strategy_destroy(strategy));
    }
  }
}

enum trouble { STAYS_AWAY, BLOCKS_INSTEAD, RETURNS, CANCELS, SIGNALS, MISFITS, FAILS, TROUBLES };

static enum trouble trouble;
static dist_status told[SIDES];
static report reports[SIDES];

static dist_status make_trouble(dist_replica *replica, side *s) {
  dist_status status = DIST_OK;
  const int32_t n = dist_replica_num_replicas(replica);
  await(&q.issued, (n - 1) * LEAST);
  switch (trouble) {
    case STAYS_AWAY: await(&q.gone, n - 1); return DIST_OK;
    case BLOCKS_INSTEAD: return dist_barrier(replica, NULL, NULL);
    case CANCELS: return dist_strategy_cancel(dist_replica_strategy(replica));
    case SIGNALS: return dist_cancel_signal(q.cancel, "enough of it");
    case MISFITS: return issue_one(replica, s, 0, 0);
    case FAILS:
      for (int k = 0; k < q.fails_at && status == DIST_OK; k++) status = issue_one(replica, s, k, 0);
      return status == DIST_OK ? dist_fail(DIST_DATA_LOSS, "no rows") : status;
    default: return DIST_OK;
  }
}

static dist_status meet_trouble(dist_replica *replica, void *user_data) {
  (void)user_data;
  const int32_t me = dist_replica_id(replica), n = dist_replica_num_replicas(replica);
  side *s = make_side(me);
  dist_status status = DIST_OK;
  if (is_late(me, n)) {
    status = make_trouble(replica, s);
  } else {
    for (int k = 0; k < q.n && status == DIST_OK; k++) {
      status = issue_one(replica, s, k, 0);
      if (status == DIST_OK) atomic_fetch_add(&q.issued, 1);
    }
    for (int k = 0; k < q.n && status == DIST_OK; k++) status = dist_work_wait(s->works[k], DIST_NO_TIMEOUT);
  }
  told[me] = status;
  read_report(&reports[me]);
  if (!is_late(me, n)) atomic_fetch_add(&q.gone, 1);
  return destroy_all(s, status);
}

typedef struct outcome {
  const char *name;
  dist_status run, peers;
  const char *words;
} outcome;

static const outcome outcomes[TROUBLES] = {
    {"stays away", DIST_DEADLINE_EXCEEDED, DIST_DEADLINE_EXCEEDED, "replica 2 did not arrive"},
    {"blocks", DIST_ABORTED, DIST_ABORTED, "wait for each other"},
    {"returns", DIST_ABORTED, DIST_ABORTED, "replica 2 returned early"},
    {"cancels", DIST_CANCELLED, DIST_CANCELLED, "cancel"},
    {"signals", DIST_CANCELLED, DIST_CANCELLED, "enough of it"},
    {"misfits", DIST_INVALID_ARGUMENT, DIST_INVALID_ARGUMENT, "replica 2 called"},
    {"fails", DIST_DATA_LOSS, DIST_ABORTED, "replica 2 failed with DATA_LOSS: no rows"},
};

/* With enough memory for all, dist_work_wait() waits. With memory for few, the next call waits. */
static void trouble_ends_the_wait(void **state) {
  (void)state;
  enum { R = 3 };
  static const int64_t bounds[] = {1, 60000, 0};
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    for (size_t b = 0; b < COUNT_OF(bounds); b++) {
      dist_strategy *strategy = bounded(R, threads, bounds[b]);
      for (int t = 0; t < TROUBLES; t++) {
        const outcome *e = &outcomes[t];
        report error;
        memset(&q, 0, sizeof q);
        q.n = MANY, q.collective = DIST_COLLECTIVE_ALL_REDUCE, q.fails_at = 300;
        trouble = (enum trouble)t;
        q.misfit = trouble == MISFITS;
        if (trouble == SIGNALS) assert_ok(dist_cancel_create(NULL, &q.cancel));
        q.timeout_ns = trouble == STAYS_AWAY ? 20000000 : 0;
        const dist_status status = run_on(threads, strategy, meet_trouble, NULL, &error);
        dist_cancel_destroy(q.cancel);
        if (status != e->run) fail_msg("%s: %s: %s", e->name, dist_status_name(status), error.message);
        for (int r = 0; r < R - 1; r++) {
          if (told[r] != e->peers) fail_msg("%s: replica %d: %s", e->name, r, reports[r].message);
          assert_has(reports[r].message, e->words);
        }
        /* Nothing of the failure remains. */
        memset(&q, 0, sizeof q);
        q.n = 50, q.collective = DIST_COLLECTIVE_SCAN;
        if (run_on(threads, strategy, issue_in_turns, NULL, &error) != DIST_OK)
          fail_msg("after %s: %s", e->name, error.message);
      }
      assert_ok(dist_strategy_destroy(strategy));
    }
  }
}

/* ---- Memory ---- */

typedef struct meter {
  atomic_long now, most;
} meter;

static void *meter_alloc(size_t size, size_t align, void *user_data) {
  meter *m = user_data;
  void *memory = NULL;
  const size_t least = align < sizeof(void *) ? sizeof(void *) : align;
  if (posix_memalign(&memory, least, size) != 0) return NULL;
  const long now = atomic_fetch_add(&m->now, (long)size) + (long)size;
  for (long most = atomic_load(&m->most);
       most < now && !atomic_compare_exchange_weak(&m->most, &most, now);) {
  }
  return memory;
}

static void meter_free(void *memory, size_t size, size_t align, void *user_data) {
  meter *m = user_data;
  (void)align;
  atomic_fetch_sub(&m->now, (long)size);
  free(memory);
}

enum { LIST = 40 };

/* Lists whose descriptions are longer than an entry assumes. */
static dist_status issue_lists(dist_replica *replica, void *user_data) {
  const dist_group *group = user_data;
  const int32_t me = dist_replica_id(replica), n = dist_replica_num_replicas(replica);
  int32_t(*data)[LIST] = calloc(MANY, sizeof *data);
  dist_work **works = calloc(MANY, sizeof *works);
  const int64_t one = 1;
  dist_status status = DIST_OK;
  if (is_late(me, n)) await(&q.issued, 1);
  for (int k = 0; k < q.n && status == DIST_OK; k++) {
    dist_tensor list[LIST];
    for (int t = 0; t < LIST; t++) {
      data[k][t] = me + t + k;
      list[t] = vector_of(&data[k][t], DIST_I32, &one);
    }
    dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
    options.group = group;
    status = dist_all_reduce(replica, DIST_REDUCE_SUM, list, list, q.tensors, &options, &works[k]);
    if (status != DIST_OK) atomic_store(&q.failed, 1);
    if (!is_late(me, n)) atomic_fetch_add(&q.issued, 1);
  }
  for (int k = 0; k < q.n; k++) {
    if (status == DIST_OK) status = dist_work_wait(works[k], DIST_NO_TIMEOUT);
    dist_work_destroy(works[k]);
    works[k] = NULL;
    for (int t = 0; t < (int)q.tensors && status == DIST_OK; t++)
      if (data[k][t] != n * (t + k) + n * (n - 1) / 2) status = dist_fail(DIST_INTERNAL, "a wrong sum");
  }
  free(data), free(works);
  return status;
}

static void run_lists(dist_strategy *strategy, const dist_group *group, int n, size_t tensors) {
  memset(&q, 0, sizeof q);
  q.n = n, q.tensors = tensors;
  assert_ok(dist_run(strategy, issue_lists, (void *)(uintptr_t)group, NULL));
}

static void memory_stays_below_the_bound(void **state) {
  (void)state;
  enum { R = 2, BOUND = 500000 };
  static meter m;
  memset(&m, 0, sizeof m);
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options options_host = DIST_HOST_OPTIONS_INIT;
  options.host = &options_host;
  options.num_replicas = R, options.async_bytes = BOUND;
  options_host.allocator = (dist_allocator){meter_alloc, meter_free, &m};
  dist_strategy *strategy = strategy_with(options);
  dist_group *group = NULL;
  assert_ok(dist_group_create(strategy, (const int32_t[]){0, 1}, 2, &group));
  for (int round = 0; round < 3; round++) {
    /* Both channels use the whole limit in turn. Memory that one keeps is released for the other. */
    for (int g = 0; g < 2; g++) {
      for (size_t tensors = 1; tensors <= LIST; tensors += LIST - 1) {
        const long before = atomic_load(&m.now);
        atomic_store(&m.most, 0);
        run_lists(strategy, g == 0 ? NULL : group, MANY, tensors);
        /* Handles of completed works belong to the host: up to the last thousand of each member. */
        const long handles = 2L * R * MANY * (1024 + 130 * (long)tensors);
        assert_in_range(atomic_load(&m.most), 0, before + BOUND + handles);
        assert_in_range(atomic_load(&m.now), 0, before + BOUND + 100000);
      }
    }
  }
  assert_ok(dist_group_destroy(group));
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(atomic_load(&m.now), 0);
}

/* Allocates everything that a leader has when it must wait: handles, copies, entries and so on. */
static dist_status fill_up(dist_replica *replica, void *user_data) {
  (void)user_data;
  const int32_t me = dist_replica_id(replica);
  side *s = make_side(me);
  dist_status status = DIST_OK;
  if (me != 0) await(&q.gone, 1);
  for (int k = 0; k < q.n && me == 0 && status == DIST_OK; k++) status = issue_one(replica, s, k, 0);
  if (me == 0) atomic_fetch_add(&q.gone, 1);
  return destroy_all(s, status);
}

static void a_leader_stops_at_the_bound(void **state) {
  (void)state;
  enum { BOUND = 1 << 20 };
  static meter m;
  memset(&m, 0, sizeof m);
  memset(&q, 0, sizeof q);
  q.n = MANY, q.timeout_ns = 20000000, q.collective = DIST_COLLECTIVE_ALL_REDUCE;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = 2, options.async_bytes = BOUND;
  host.allocator = (dist_allocator){meter_alloc, meter_free, &m};
  dist_strategy *strategy = strategy_with(options);
  const long before = atomic_load(&m.now);
  assert_fails(dist_run(strategy, fill_up, NULL, NULL), DIST_DEADLINE_EXCEEDED, "replica 1 did not arrive");
  const long taken = atomic_load(&m.most) - before;
  assert_in_range(taken, BOUND / 4, BOUND + 4096);
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(atomic_load(&m.now), 0);
}

/* Every allocation for growth fails once. Only that call or the run fails, and nothing is left behind. */
static void growth_that_fails(void **state) {
  (void)state;
  for (size_t tensors = 1; tensors <= LIST; tensors += LIST - 1) {
    int refused = 1;
    for (long k = 0; refused; k++) {
      static ledger l;
      memset(&l, 0, sizeof l);
      atomic_store(&l.refuse_at, -1);
      dist_strategy *strategy = strategy_on(&l, 2, DIST_THREADS_CALLER);
      memset(&q, 0, sizeof q);
      q.n = 4 * LEAST, q.tensors = tensors;
      atomic_store(&q.issued, 1);
      atomic_store(&l.refuse_at, atomic_load(&l.requests) + k);
      const dist_status status = dist_run(strategy, issue_lists, NULL, NULL);
      refused = atomic_load(&l.requests) > atomic_load(&l.refuse_at);
      if (refused)
        assert_fails(status, DIST_RESOURCE_EXHAUSTED, "out of memory");
      else
        assert_ok(status);
      atomic_store(&l.refuse_at, -1);
      run_lists(strategy, NULL, 4 * LEAST, tensors);
      assert_ok(dist_strategy_destroy(strategy));
      assert_int_equal(atomic_load(&l.live), 0);
    }
  }
}

static void a_bound_below_zero(void **state) {
  (void)state;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_strategy *strategy = NULL;
  options.async_bytes = -1;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "async_bytes is -1");
  options.async_bytes = INT64_MAX;
  assert_ok(dist_strategy_create(&options, &strategy));
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_thousand_of_each),
      cmocka_unit_test(a_thousand_planned),
      cmocka_unit_test(the_bound_waits),
      cmocka_unit_test(trouble_ends_the_wait),
      cmocka_unit_test(memory_stays_below_the_bound),
      cmocka_unit_test(a_leader_stops_at_the_bound),
      cmocka_unit_test(growth_that_fails),
      cmocka_unit_test(a_bound_below_zero),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
