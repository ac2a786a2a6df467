/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives other than all_reduce: broadcast, barrier, merge_call and parallel_for, and the arguments that
 * all of them reject.
 */
#include "tests/abi/common.h"

typedef struct job {
  int32_t root;
  int64_t length;
  int32_t n; /* number of tensors */
  int in_place, shared_out;
  int64_t *shared;
  int64_t *wrong; /* one per replica */
  atomic_int calls;
  dist_status statuses[MOST];
  report reports[MOST];
  dist_strategy *strategy;
  int round;
} job;

static int64_t element(int32_t replica, int32_t tensor, int64_t i) {
  return replica * 1000000007LL + tensor * 100003 + i;
}

/* Tensors of `length` elements, of none, and of a third. */
static int64_t length_of(const job *j, int32_t t) { return t == 0 ? j->length : t == 1 ? 0 : j->length / 3; }

static dist_status broadcast_one(dist_replica *replica, void *user_data) {
  job *j = user_data;
  const int32_t me = dist_replica_id(replica);
  dist_tensor in[3], out[3];
  int64_t lengths[3];
  for (int32_t t = 0; t < j->n; t++) {
    lengths[t] = length_of(j, t);
    const size_t bytes = (size_t)lengths[t] * sizeof(int64_t);
    int64_t *from = malloc(bytes + 1), *to = j->shared_out && t == 0 ? j->shared
                                             : j->in_place           ? from
                                                                     : malloc(bytes + 1);
    for (int64_t i = 0; i < lengths[t]; i++) from[i] = element(me, t, i);
    in[t] = vector_of(from, DIST_I64, &lengths[t]);
    out[t] = vector_of(to, DIST_I64, &lengths[t]);
  }
  const dist_status status =
      dist_broadcast(replica, j->root, me == j->root ? in : NULL, out, (size_t)j->n, NULL, NULL);
  int64_t wrong = 0;
  for (int32_t t = 0; t < j->n; t++) {
    const int64_t *to = out[t].data;
    for (int64_t i = 0; status == DIST_OK && i < lengths[t]; i++) wrong += to[i] != element(j->root, t, i);
    if (to != in[t].data && to != j->shared) free(out[t].data);
    free(in[t].data);
  }
  j->wrong[me] = wrong;
  /* All replicas read a shared output before the next call overwrites it. */
  return status != DIST_OK ? status : dist_barrier(replica, NULL, NULL);
}

static void broadcast_from_every_root(void **state) {
  (void)state;
  static const int32_t sizes[] = {1, 2, 3, 4, 8};
  static const int64_t lengths[] = {0, 1, 13, 14, 1000, 65536, 200000};
  for (size_t s = 0; s < COUNT_OF(sizes); s++) {
    dist_strategy *strategy = strategy_of(sizes[s], DIST_THREADS_CALLER);
    for (size_t l = 0; l < COUNT_OF(lengths); l++) {
      for (int variant = 0; variant < 6; variant++) {
        const int32_t step = lengths[l] > 1000 && sizes[s] > 4 ? 3 : 1;
        for (int32_t root = 0; root < sizes[s]; root += step) {
          int64_t wrong[MOST] = {0};
          job j = {.root = root,
                   .length = lengths[l],
                   .n = variant < 3 ? 1 : 3,
                   .in_place = variant % 3 == 1,
                   .shared_out = variant % 3 == 2,
                   .wrong = wrong};
          j.shared = malloc((size_t)j.length * sizeof(int64_t) + 1);
          assert_ok(dist_run(strategy, broadcast_one, &j, NULL));
          for (int32_t r = 0; r < sizes[s]; r++) assert_int_equal(wrong[r], 0);
          free(j.shared);
        }
      }
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static dist_status write_then_read(dist_replica *replica, void *user_data) {
  job *j = user_data;
  const int32_t me = dist_replica_id(replica), n = dist_replica_num_replicas(replica);
  for (int round = 1; round <= 300; round++) {
    j->shared[me * 16] = round; /* plain memory, one cache line per replica */
    dist_status status = dist_barrier(replica, NULL, NULL);
    for (int32_t r = 0; r < n; r++) j->wrong[me] += j->shared[r * 16] != round;
    if (status == DIST_OK) status = dist_barrier(replica, NULL, NULL);
    if (status != DIST_OK) return status;
  }
  return DIST_OK;
}

static void a_barrier_makes_writes_visible(void **state) {
  (void)state;
  for (int32_t n = 1; n <= 8; n *= 2) {
    for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
      int64_t wrong[MOST] = {0}, shared[MOST * 16] = {0};
      job j = {.wrong = wrong, .shared = shared};
      dist_strategy *strategy = strategy_of(n, threads);
      report error;
      assert_int_equal(run_on(threads, strategy, write_then_read, &j, &error), DIST_OK);
      for (int32_t r = 0; r < n; r++) assert_int_equal(wrong[r], 0);
      assert_ok(dist_strategy_destroy(strategy));
    }
  }
}

/* ---- merge_call ---- */

static dist_status scalar(dist_strategy *strategy, int64_t n, dist_value **out) {
  dist_tensor tensor = {&n, DIST_I64, 0, NULL, NULL};
  return dist_value_create_tensor(strategy, &tensor, out);
}

static int64_t number_in(const dist_value *value) {
  dist_tensor tensor;
  return value == NULL || dist_value_tensor(value, &tensor) != DIST_OK ? -1 : *(int64_t *)tensor.data;
}

/* args is [per-replica]. The result is a per-replica value of twice the sum plus the id. */
static dist_status sum_and_share(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                 dist_value **out_result, void *user_data) {
  (void)kwargs;
  job *j = user_data;
  atomic_fetch_add(&j->calls, 1);
  const int32_t n = dist_strategy_num_replicas(strategy);
  if (strategy != j->strategy || dist_value_kind_of(args) != DIST_VALUE_LIST || dist_value_size(args) != 1)
    return DIST_INTERNAL;
  const dist_value *given = dist_value_item(args, 0);
  int64_t sum = 0;
  for (int32_t r = 0; r < n; r++) sum += number_in(n == 1 ? given : dist_value_item(given, (size_t)r));
  dist_value *items[MOST];
  dist_status status = DIST_OK;
  int32_t made = 0;
  for (; made < n && status == DIST_OK; made++) status = scalar(strategy, 2 * sum + made, &items[made]);
  if (status == DIST_OK) {
    status = n == 1 ? DIST_OK : dist_value_create_per_replica(strategy, items, (size_t)n, out_result);
    if (n == 1) *out_result = dist_value_retain(items[0]);
  }
  for (int32_t r = 0; r < made; r++) dist_value_release(items[r]);
  return status;
}

static dist_status merge_often(dist_replica *replica, void *user_data) {
  job *j = user_data;
  const int32_t me = dist_replica_id(replica), n = dist_replica_num_replicas(replica);
  for (int round = 0; round < 50; round++) {
    dist_value *mine = NULL, *args = NULL, *result = NULL;
    dist_status status = scalar(j->strategy, me + round, &mine);
    if (status == DIST_OK) status = dist_value_create_list(j->strategy, &mine, 1, &args);
    if (status == DIST_OK)
      status = dist_merge_call(replica, sum_and_share, j, args, NULL, NULL, round % 5 == 4 ? NULL : &result);
    const int64_t expected = 2 * (n * (n - 1) / 2 + n * round) + me;
    if (status == DIST_OK && round % 5 != 4) j->wrong[me] += number_in(result) != expected;
    dist_value_release(result);
    dist_value_release(args);
    dist_value_release(mine);
    if (status != DIST_OK) return status;
  }
  return DIST_OK;
}

static void a_merge_function_runs_once_for_all(void **state) {
  (void)state;
  for (int32_t n = 1; n <= 8; n *= 2) {
    for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
      int64_t wrong[MOST] = {0};
      job j = {.wrong = wrong, .strategy = strategy_of(n, threads)};
      report error;
      const dist_status status = run_on(threads, j.strategy, merge_often, &j, &error);
      if (status != DIST_OK) fail_msg("%s", error.message);
      assert_int_equal(atomic_load(&j.calls), 50);
      for (int32_t r = 0; r < n; r++) assert_int_equal(wrong[r], 0);
      assert_ok(dist_strategy_destroy(j.strategy));
    }
  }
}

static dist_status refuses(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                           dist_value **out_result, void *user_data) {
  (void)user_data, (void)kwargs;
  *out_result = dist_value_retain(args); /* must not leak or reach any replica */
  return dist_value_size(args) == 0 && dist_strategy_num_replicas(strategy) == 3
             ? dist_fail(DIST_OUT_OF_RANGE, "no more")
             : DIST_INTERNAL;
}
static dist_status refuses_silently(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                    dist_value **out_result, void *user_data) {
  (void)strategy, (void)args, (void)out_result, (void)user_data, (void)kwargs;
  return DIST_UNAVAILABLE;
}

static dist_status merge_with_errors(dist_replica *replica, void *user_data) {
  job *j = user_data;
  const int32_t me = dist_replica_id(replica);
  dist_value *result = NULL;
  j->statuses[me] = dist_merge_call(replica, refuses, NULL, NULL, NULL, NULL, &result);
  read_report(&j->reports[me]);
  if (result != NULL) return DIST_INTERNAL;
  if (dist_merge_call(replica, refuses_silently, NULL, NULL, NULL, NULL, &result) != DIST_UNAVAILABLE)
    return DIST_INTERNAL;
  if (strstr(dist_last_error(), "merge function returned UNAVAILABLE") == NULL) return DIST_INTERNAL;
  return dist_barrier(replica, NULL, NULL); /* the function failed, but the collective did not */
}

static void a_merge_functions_error_goes_to_all(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_CALLER);
  static job j;
  assert_ok(dist_run(strategy, merge_with_errors, &j, NULL));
  for (int r = 0; r < 3; r++) {
    assert_int_equal(j.statuses[r], DIST_OUT_OF_RANGE);
    assert_string_equal(j.reports[r].message, "no more");
  }
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_status collectives_inside(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                      dist_value **out_result, void *user_data) {
  (void)strategy, (void)args, (void)out_result, (void)kwargs;
  dist_replica *replica = *(dist_replica **)user_data;
  if (dist_barrier(replica, NULL, NULL) != DIST_FAILED_PRECONDITION) return DIST_INTERNAL;
  if (strstr(dist_last_error(), "merge function") == NULL) return DIST_INTERNAL;
  if (dist_merge_call(replica, collectives_inside, NULL, NULL, NULL, NULL, NULL) != DIST_FAILED_PRECONDITION)
    return DIST_INTERNAL;
  return DIST_OK;
}

static dist_status merge_and_try(dist_replica *replica, void *user_data) {
  (void)user_data;
  const dist_status status = dist_merge_call(replica, collectives_inside, &replica, NULL, NULL, NULL, NULL);
  return status != DIST_OK ? status : dist_barrier(replica, NULL, NULL);
}

static void no_collectives_inside_a_merge_function(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_LIBRARY);
  assert_ok(dist_run(strategy, merge_and_try, NULL, NULL));
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_status ends_its_thread(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                                   dist_value **out_result, void *user_data) {
  (void)strategy, (void)args, (void)out_result, (void)user_data, (void)kwargs;
  pthread_exit(NULL);
}
static dist_status merge_and_go(dist_replica *replica, void *user_data) {
  (void)user_data;
  return dist_merge_call(replica, ends_its_thread, NULL, NULL, NULL, NULL, NULL);
}

static void a_thread_ends_inside_a_merge_function(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_LIBRARY; threads <= DIST_THREADS_HOST; threads++) {
    dist_strategy *strategy = strategy_of(3, threads);
    for (int i = 0; i < 5; i++) {
      report error;
      assert_int_equal(run_on(threads, strategy, merge_and_go, NULL, &error), DIST_FAILED_PRECONDITION);
      assert_has(error.message, "ended inside");
      assert_healthy(threads, strategy);
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* A cancelled merge_call never returns the result of an earlier run in the same place. */
static dist_status merge_beside_cancel(dist_replica *replica, void *user_data) {
  job *j = user_data;
  const int32_t me = dist_replica_id(replica);
  if (j->round % 2 == 1 && me == 2 && dist_strategy_cancel(j->strategy) != DIST_OK) return DIST_INTERNAL;
  dist_value *mine = NULL, *args = NULL, *result = NULL;
  dist_status status = scalar(j->strategy, me + j->round, &mine);
  if (status == DIST_OK) status = dist_value_create_list(j->strategy, &mine, 1, &args);
  if (status == DIST_OK) status = dist_merge_call(replica, sum_and_share, j, args, NULL, NULL, &result);
  if (status == DIST_OK) j->wrong[me] += number_in(result) != 2 * (3 + 3 * j->round) + me;
  dist_value_release(result);
  dist_value_release(args);
  dist_value_release(mine);
  return status;
}

static void no_stale_result(void **state) {
  (void)state;
  int64_t wrong[MOST] = {0};
  job j = {.wrong = wrong, .strategy = strategy_of(3, DIST_THREADS_CALLER)};
  for (j.round = 0; j.round < 400; j.round++) {
    const dist_status status = dist_run(j.strategy, merge_beside_cancel, &j, NULL);
    assert_int_equal(status, j.round % 2 == 1 ? DIST_CANCELLED : DIST_OK);
    for (int r = 0; r < 3; r++) assert_int_equal(wrong[r], 0);
  }
  assert_ok(dist_strategy_destroy(j.strategy));
}

/* ---- parallel_for ---- */

static void count_up(int64_t begin, int64_t end, void *user_data) {
  atomic_int *counts = user_data;
  for (int64_t i = begin; i < end; i++) atomic_fetch_add(&counts[i], 1);
}

enum { ITERATIONS = 5000 };

static dist_status loop(dist_replica *replica, void *user_data) {
  (void)user_data;
  atomic_int *counts = calloc(ITERATIONS, sizeof *counts);
  dist_status status = dist_replica_parallel_for(replica, 7, ITERATIONS - 3, 16, count_up, counts);
  if (status == DIST_OK) status = dist_replica_parallel_for(replica, 7, 7, 1, count_up, counts);
  for (int i = 0; status == DIST_OK && i < ITERATIONS; i++) {
    if (atomic_load(&counts[i]) != (i >= 7 && i < ITERATIONS - 3))
      status = dist_fail(DIST_INTERNAL, "an iteration ran too often, or never");
  }
  free(counts);
  if (status != DIST_OK) return status;
  if (dist_replica_parallel_for(replica, 1, 0, 1, count_up, NULL) != DIST_INVALID_ARGUMENT)
    return DIST_INTERNAL;
  if (dist_replica_parallel_for(replica, 0, 1, 0, count_up, NULL) != DIST_INVALID_ARGUMENT)
    return DIST_INTERNAL;
  if (dist_replica_parallel_for(replica, INT64_MIN, 1, 1, count_up, NULL) != DIST_INVALID_ARGUMENT)
    return DIST_INTERNAL;
  if (dist_replica_parallel_for(replica, 0, 1, 1, NULL, NULL) != DIST_INVALID_ARGUMENT) return DIST_INTERNAL;
  if (dist_replica_parallel_for(NULL, 0, 1, 1, count_up, NULL) != DIST_INVALID_ARGUMENT) return DIST_INTERNAL;
  return DIST_OK;
}

static void a_loop_covers_its_range_once(void **state) {
  (void)state;
  for (int32_t n = 1; n <= 4; n++) {
    dist_strategy *strategy = strategy_of(n, DIST_THREADS_CALLER);
    assert_ok(dist_run(strategy, loop, NULL, NULL));
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* ---- Options ---- */

static dist_status odd_options(dist_replica *replica, void *user_data) {
  (void)user_data;
  struct {
    dist_collective_options known;
    unsigned char rest[8];
  } given;
  for (uint32_t size = sizeof(uint32_t); size <= sizeof given; size++) {
    memset(&given, 0, sizeof given);
    dist_collective_options_init(&given.known, size);
    if (size >= offsetof(dist_collective_options, timeout_ns)) given.known.tag = "a tag";
    const dist_status status = dist_barrier(replica, &given.known, NULL);
    if (status != DIST_OK) return status;
  }
  given.rest[7] = 1;
  if (dist_barrier(replica, &given.known, NULL) != DIST_INVALID_ARGUMENT) return DIST_INTERNAL;
  given.known.struct_size = 0;
  if (dist_barrier(replica, &given.known, NULL) != DIST_INVALID_ARGUMENT) return DIST_INTERNAL;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.timeout_ns = -1; /* no limit */
  dist_status status = dist_barrier(replica, &options, NULL);
  options.timeout_ns = INT64_MAX;
  if (status == DIST_OK) status = dist_barrier(replica, &options, NULL);
  /* A tag above the limit is truncated, and still equal on all replicas. */
  options.tag = "a tag of more than forty-eight bytes, which says more than a report has room for";
  return status != DIST_OK ? status : dist_barrier(replica, &options, NULL);
}

static void options_of_a_collective(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_CALLER);
  assert_ok(dist_run(strategy, odd_options, NULL, NULL));
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(broadcast_from_every_root),
      cmocka_unit_test(a_barrier_makes_writes_visible),
      cmocka_unit_test(a_merge_function_runs_once_for_all),
      cmocka_unit_test(a_merge_functions_error_goes_to_all),
      cmocka_unit_test(no_collectives_inside_a_merge_function),
      cmocka_unit_test(a_thread_ends_inside_a_merge_function),
      cmocka_unit_test(no_stale_result),
      cmocka_unit_test(a_loop_covers_its_range_once),
      cmocka_unit_test(options_of_a_collective),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
