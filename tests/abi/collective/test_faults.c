/* SPDX-License-Identifier: Apache-2.0
 *
 * The fault matrix: one replica makes a mistake in one collective, on every kind of thread. Every caller
 * returns with the same report, which names the culprit. Afterwards, buffers can be freed immediately, the
 * next run works, and no thread is left behind.
 */
#include "tests/abi/common.h"

enum kind {
  REDUCE_INLINE,
  REDUCE_PARTS,
  REDUCE_TICKETS,
  REDUCE_LIST,
  BROADCAST,
  BROADCAST_LIST,
  BARRIER,
  MERGE,
  KINDS
};
static const char *const kind_names[] = {"all_reduce inline", "all_reduce in parts", "all_reduce by tickets",
                                         "all_reduce list",   "broadcast",           "broadcast list",
                                         "barrier",           "merge_call"};
static const int32_t kind_collective[] = {DIST_COLLECTIVE_ALL_REDUCE, DIST_COLLECTIVE_ALL_REDUCE,
                                          DIST_COLLECTIVE_ALL_REDUCE, DIST_COLLECTIVE_ALL_REDUCE,
                                          DIST_COLLECTIVE_BROADCAST,  DIST_COLLECTIVE_BROADCAST,
                                          DIST_COLLECTIVE_BARRIER,    DIST_COLLECTIVE_MERGE_CALL};

enum fault {
  RETURNS,
  FAILS,
  SKIPS,
  EXTRA,
  SWAPS,
  OTHER_DTYPE,
  OTHER_COUNT,
  OTHER_OP,
  OTHER_ROOT,
  OTHER_TAG,
  OTHER_FUNCTION,
  BAD_ARGUMENT,
  STALLS,
  CANCELS,
  GOES,
  FAULTS
};
static const char *const fault_names[] = {"returns",    "fails",       "skips",          "extra",
                                          "swaps",      "other dtype", "other count",    "other op",
                                          "other root", "other tag",   "other function", "bad argument",
                                          "stalls",     "cancels",     "thread ends"};

typedef struct scene {
  int32_t threads, num_replicas, culprit;
  enum kind kind;
  enum fault fault;
  atomic_int waiting[MOST]; /* STALLS: has read the clock inside the collective */
  atomic_llong now_ns;
  dist_status first[MOST]; /* status of the call that failed */
  report reports[MOST];
} scene;

static scene the_scene;
static _Thread_local int32_t waiting_as = -1;

static int64_t scene_clock(void *user_data) {
  scene *s = user_data;
  if (waiting_as >= 0) atomic_store(&s->waiting[waiting_as], 1);
  return atomic_load(&s->now_ns);
}

static dist_status merge_one(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                             dist_value **out_result, void *user_data) {
  (void)strategy, (void)args, (void)out_result, (void)user_data, (void)kwargs;
  return DIST_OK;
}
static dist_status merge_two(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                             dist_value **out_result, void *user_data) {
  (void)strategy, (void)args, (void)out_result, (void)user_data, (void)kwargs;
  return dist_fail(DIST_INTERNAL, "the culprit's function ran");
}

static int64_t length_of(enum kind kind) {
  return kind == REDUCE_INLINE ? 5 : kind == REDUCE_TICKETS ? 300000 : 20000;
}

/* Buffers of three tensors. They are freed before the status is checked. */
static dist_status on_tensors(dist_replica *replica, enum kind kind, enum fault change,
                              const dist_collective_options *options) {
  const size_t n = kind == REDUCE_LIST || kind == BROADCAST_LIST ? 3 : 1;
  int64_t *length = malloc(sizeof *length);
  *length = length_of(kind) + (change == OTHER_COUNT);
  dist_tensor *in = malloc(n * sizeof *in), *out = malloc(n * sizeof *out);
  for (size_t t = 0; t < n; t++) {
    const dist_dtype dtype = change == OTHER_DTYPE && t + 1 == n ? DIST_I32 : DIST_F32;
    in[t] = vector_of(calloc((size_t)*length, sizeof(float)), dtype, length);
    out[t] = vector_of(malloc((size_t)*length * sizeof(float)), dtype, length);
  }
  dist_status status;
  if (kind == BROADCAST || kind == BROADCAST_LIST) {
    const int32_t root = (change == OTHER_ROOT) + (change == BAD_ARGUMENT) * 999;
    status = dist_broadcast(replica, root, in, out, n, options, NULL);
  } else {
    const dist_reduce_op op = change == OTHER_OP       ? DIST_REDUCE_MAX
                              : change == BAD_ARGUMENT ? 77
                                                       : DIST_REDUCE_SUM;
    status = dist_all_reduce(replica, op, in, out, n, options, NULL);
  }
  for (size_t t = 0; t < n; t++) free(in[t].data), free(out[t].data);
  free(in), free(out), free(length);
  return status;
}

static dist_status call(dist_replica *replica, enum kind kind, enum fault change, const char *tag) {
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.tag = change == OTHER_TAG ? "other" : tag;
  if (kind == BARRIER) {
    options.planned = change == BAD_ARGUMENT;
    return dist_barrier(replica, &options, NULL);
  }
  if (kind == MERGE) {
    dist_merge_fn fn = change == OTHER_FUNCTION ? merge_two : change == BAD_ARGUMENT ? NULL : merge_one;
    return dist_merge_call(replica, fn, NULL, NULL, NULL, &options, NULL);
  }
  return on_tensors(replica, kind, change, &options);
}

static dist_status then_barrier(dist_replica *replica, dist_status before) {
  return before != DIST_OK ? before : call(replica, BARRIER, FAULTS, "after");
}

static dist_status misbehave(dist_replica *replica, scene *s) {
  dist_status status;
  switch (s->fault) {
    case RETURNS: return DIST_OK;
    case FAILS: return dist_fail(DIST_NOT_FOUND, "no row 7");
    case SKIPS: return call(replica, BARRIER, FAULTS, "after");
    case EXTRA:
      status = call(replica, BARRIER, FAULTS, "extra");
      return status != DIST_OK ? status : call(replica, s->kind, FAULTS, "step");
    case SWAPS:
      status = call(replica, BARRIER, FAULTS, "after");
      return status != DIST_OK ? status : call(replica, s->kind, FAULTS, "step");
    case STALLS:
      for (int32_t i = 0; i < s->num_replicas; i++) {
        while (i != s->culprit && !atomic_load(&s->waiting[i])) sched_yield();
      }
      atomic_fetch_add(&s->now_ns, 2000000000);
      for (int32_t i = 0; i < s->num_replicas; i++) { /* they return without this one */
        while (i != s->culprit && atomic_load(&s->waiting[i]) != 2) sched_yield();
      }
      return call(replica, s->kind, FAULTS, "step");
    case CANCELS:
      if (dist_strategy_cancel(dist_replica_strategy(replica)) != DIST_OK) return DIST_INTERNAL;
      return call(replica, s->kind, FAULTS, "step");
    case GOES: pthread_exit(NULL);
    default: return call(replica, s->kind, s->fault, "step");
  }
}

static dist_status act(dist_replica *replica, void *user_data) {
  scene *s = user_data;
  const int32_t me = dist_replica_id(replica);
  dist_status status = call(replica, REDUCE_INLINE, FAULTS, "before");
  if (status != DIST_OK) return status;
  if (me == s->culprit) {
    status = misbehave(replica, s);
  } else {
    waiting_as = me;
    status = then_barrier(replica, call(replica, s->kind, FAULTS, "step"));
    waiting_as = -1;
    atomic_store(&s->waiting[me], 2);
  }
  s->first[me] = status;
  read_report(&s->reports[me]);
  return status;
}

/* Faults in which the culprit makes another call than its peers. */
static int disagrees(enum fault fault) { return fault >= SKIPS && fault <= OTHER_FUNCTION; }

static int applies(enum fault fault, enum kind kind, int32_t threads, int32_t culprit) {
  const int tensors = kind != BARRIER && kind != MERGE;
  const int broadcast = kind == BROADCAST || kind == BROADCAST_LIST;
  switch (fault) {
    case OTHER_DTYPE:
    case OTHER_COUNT: return tensors;
    case OTHER_OP: return tensors && !broadcast;
    case OTHER_ROOT: return broadcast;
    case OTHER_FUNCTION: return kind == MERGE;
    case GOES: return threads != DIST_THREADS_CALLER || culprit != 0; /* the test's own thread must not end */
    default: return 1;
  }
}

static dist_status expected_status(enum fault fault) {
  if (disagrees(fault)) return DIST_INVALID_ARGUMENT;
  switch (fault) {
    case STALLS: return DIST_DEADLINE_EXCEEDED;
    case CANCELS: return DIST_CANCELLED;
    default: return DIST_ABORTED;
  }
}

#define check(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fail_msg("%s, R %d, replica %d %s in %s: %s; replica %d says: %s", threads_name(s->threads), \
               (int)s->num_replicas, (int)s->culprit, fault_names[s->fault], kind_names[s->kind],  \
               #condition, (int)r, e->message);                                                    \
    }                                                                                              \
  } while (0)

static void check_reports(const scene *s, dist_status run, const report *error) {
  /* If two replicas disagree, it is a tie: the one that differs from the lowest id is the culprit. */
  const int32_t blamed = disagrees(s->fault) && s->num_replicas == 2 ? 1 : s->culprit;
  const int tie_with_culprit_first = disagrees(s->fault) && s->num_replicas == 2 && s->culprit == 0;
  for (int32_t r = 0; r < s->num_replicas; r++) {
    const report *e = &s->reports[r];
    if (r == s->culprit && !disagrees(s->fault) && s->fault != STALLS && s->fault != CANCELS) continue;
    check(s->first[r] == expected_status(s->fault));
    check(e->code == expected_status(s->fault));
    if (s->fault == CANCELS) continue;
    check(e->replica == blamed);
    check(e->sequence == 2);
    if (tie_with_culprit_first) continue;
    check(e->collective == kind_collective[s->kind]);
    check(strcmp(e->tag, "step") == 0);
    check(e->expected[0] != '\0' && e->received[0] != '\0' && e->hint[0] != '\0');
  }
  const int32_t r = -1;
  const report *e = error;
  switch (s->fault) {
    case FAILS:
      check(run == DIST_NOT_FOUND);
      check(strcmp(e->message, "no row 7") == 0 && e->replica == s->culprit);
      break;
    case BAD_ARGUMENT: check(run == DIST_INVALID_ARGUMENT && e->replica == s->culprit); break;
    case GOES: check(run == DIST_FAILED_PRECONDITION && e->replica == s->culprit); break;
    default: check(run == expected_status(s->fault)); break;
  }
}

static void play(dist_strategy *strategy, int32_t threads, int32_t num_replicas, enum kind kind,
                 enum fault fault, int32_t culprit) {
  scene *s = &the_scene;
  memset(s, 0, sizeof *s);
  *s = (scene){
      .threads = threads, .num_replicas = num_replicas, .culprit = culprit, .kind = kind, .fault = fault};
  report error;
  const dist_status status = run_on(threads, strategy, act, s, &error);
  check_reports(s, status, &error);
  assert_healthy(threads, strategy);
}

static void matrix(int32_t threads) {
  static const int32_t sizes[] = {2, 3, 4, 8};
  const int before = count_threads();
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    const int32_t n = sizes[i];
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    dist_host_options host = DIST_HOST_OPTIONS_INIT;
    options.host = &host;
    options.num_replicas = n;
    options.threads = threads;
    dist_strategy *plain = strategy_with(options);
    options.timeout_ns = 1000000000;
    host.clock = scene_clock;
    host.clock_user_data = &the_scene;
    dist_strategy *timed = strategy_with(options);
    for (int kind = 0; kind < KINDS; kind++) {
      for (int fault = 0; fault < FAULTS; fault++) {
        for (int32_t culprit = 0; culprit < n; culprit += n - 1) {
          if (!applies(fault, kind, threads, culprit)) continue;
          play(fault == STALLS ? timed : plain, threads, n, kind, fault, culprit);
        }
      }
    }
    assert_ok(dist_strategy_destroy(plain));
    assert_ok(dist_strategy_destroy(timed));
  }
  await_threads(before);
}

static void caller_threads(void **state) {
  (void)state;
  matrix(DIST_THREADS_CALLER);
}
static void library_threads(void **state) {
  (void)state;
  matrix(DIST_THREADS_LIBRARY);
}
static void host_threads(void **state) {
  (void)state;
  matrix(DIST_THREADS_HOST);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(caller_threads),
      cmocka_unit_test(library_threads),
      cmocka_unit_test(host_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
