/* SPDX-License-Identifier: Apache-2.0
 *
 * Random programs of collectives, compared with a sequential oracle. Also the same with a random fault at a
 * random step: all replicas return, and the next program is not affected.
 *
 * A seed determines a program: every replica derives the same steps from it. DIST_TEST_SEED repeats one;
 * DIST_TEST_PROGRAMS sets their number.
 */
#include "tests/abi/common.h"

#include "tests/abi/fold.h"

enum { STEPS = 24, WIDEST = 5 };
enum step_kind { STEP_REDUCE, STEP_LIST, STEP_BROADCAST, STEP_BARRIER, STEP_MERGE, STEP_KINDS };
enum fault { NO_FAULT, RETURNS, FAILS, SKIPS, OTHER_TAG, CANCELS, FAULTS };

typedef struct program {
  uint64_t seed;
  int32_t replicas, culprit;
  int fault_step;
  enum fault fault;
  dist_status statuses[WIDEST];
} program;

static uint64_t draw(const program* p, uint64_t step, uint64_t what) {
  uint64_t seed = p->seed ^ step * 0xD1B54A32D192ED03u ^ what * 0x8CB92BA72F3D8DD7u;
  return next_random(&seed);
}

static int64_t length_at(const program* p, uint64_t step, uint64_t tensor) {
  static const int64_t most[] = {2, 30, 300, 20000, 300000};
  const uint64_t bits = draw(p, step, 10 + tensor);
  return (int64_t)((bits >> 8) % (uint64_t)most[bits % 64 == 0 ? 4 : bits % 4]);
}

static uint64_t data_seed(const program* p, uint64_t step, uint64_t tensor, int32_t replica) {
  return draw(p, step, 1000 + 16 * tensor) + (uint64_t)replica;
}

/* The oracle generates the inputs of all replicas again and reduces them. */
static int reduced_as_folded(const program* p, uint64_t step, uint64_t t, dist_reduce_op op, dist_dtype dtype,
                             int64_t length, const void* out) {
  void* in[WIDEST];
  for (int32_t r = 0; r < p->replicas; r++) {
    in[r] = malloc((size_t)length * size_of(dtype) + 1);
    fill_random(dtype, in[r], (size_t)length, data_seed(p, step, t, r));
  }
  const dist_dtype result = dtype_of_result(op, dtype);
  int same = 1;
  for (int64_t i = 0; i < length && same; i++) {
    unsigned char expected[16] = {0};
    fold_element(op, dtype, (const void* const*)in, (size_t)p->replicas, (size_t)i, expected);
    same = same_element(result, (const char*)out + (size_t)i * size_of(result), expected);
  }
  for (int32_t r = 0; r < p->replicas; r++) free(in[r]);
  return same;
}

static dist_status tensors_step(const program* p, dist_replica* replica, uint64_t step, enum step_kind kind,
                                const dist_collective_options* options) {
  const int32_t me = dist_replica_id(replica);
  const int32_t root = (int32_t)(draw(p, step, 2) % (uint64_t)p->replicas);
  const dist_reduce_op op =
      DIST_REDUCE_SUM + (dist_reduce_op)(draw(p, step, 3) % (DIST_REDUCE_USER - DIST_REDUCE_SUM));
  const size_t n = kind == STEP_REDUCE ? 1 : draw(p, step, 4) % 4;
  dist_tensor in[4], out[4];
  int64_t lengths[4];
  for (size_t t = 0; t < n; t++) {
    dist_dtype dtype = (dist_dtype)(1 + draw(p, step, 20 + t) % LAST_DTYPE);
    if (kind != STEP_BROADCAST && !allowed(op, dtype)) dtype = DIST_I32;
    const dist_dtype result = kind == STEP_BROADCAST ? dtype : dtype_of_result(op, dtype);
    lengths[t] = length_at(p, step, t);
    in[t] = vector_of(malloc((size_t)lengths[t] * size_of(dtype) + 1), dtype, &lengths[t]);
    fill_random(dtype, in[t].data, (size_t)lengths[t], data_seed(p, step, t, me));
    const int in_place = result == dtype && draw(p, step, 40 + (uint64_t)me) % 2 == 0;
    out[t] =
        in_place ? in[t] : vector_of(malloc((size_t)lengths[t] * size_of(result) + 1), result, &lengths[t]);
  }
  dist_status status = kind == STEP_BROADCAST ? dist_broadcast(replica, root, in, out, n, options, NULL)
                                              : dist_all_reduce(replica, op, in, out, n, options, NULL);
  for (size_t t = 0; t < n; t++) {
    int right = 1;
    if (status == DIST_OK && kind == STEP_BROADCAST) {
      const size_t bytes = (size_t)lengths[t] * size_of(out[t].dtype);
      void* expected = malloc(bytes + 1);
      fill_random(out[t].dtype, expected, (size_t)lengths[t], data_seed(p, step, t, root));
      right = memcmp(expected, out[t].data, bytes) == 0;
      free(expected);
    } else if (status == DIST_OK) {
      right = reduced_as_folded(p, step, t, op, in[t].dtype, lengths[t], out[t].data);
    }
    if (out[t].data != in[t].data) free(out[t].data);
    free(in[t].data);
    if (!right) status = dist_fail(DIST_INTERNAL, "a wrong result");
  }
  return status;
}

/* Returns the merged list unchanged, so that every replica receives its own item. */
static dist_status give_back(dist_strategy* strategy, dist_value* args, dist_value* kwargs,
                             dist_value** out_result, void* user_data) {
  (void)strategy, (void)user_data, (void)kwargs;
  *out_result = dist_value_retain(args);
  return DIST_OK;
}

static dist_status merge_step(const program* p, dist_replica* replica, uint64_t step,
                              const dist_collective_options* options) {
  dist_strategy* strategy = dist_replica_strategy(replica);
  int64_t number = (int64_t)draw(p, step, 60 + (uint64_t)dist_replica_id(replica));
  const dist_tensor scalar = {&number, DIST_I64, 0, NULL, NULL};
  dist_value *mine = NULL, *args = NULL, *result = NULL;
  dist_status status = dist_value_create_tensor(strategy, &scalar, &mine);
  if (status == DIST_OK) status = dist_value_create_list(strategy, &mine, 1, &args);
  if (status == DIST_OK) status = dist_merge_call(replica, give_back, NULL, args, NULL, options, &result);
  if (status == DIST_OK && dist_value_item(result, 0) != mine)
    status = dist_fail(DIST_INTERNAL, "another's argument");
  dist_value_release(result);
  dist_value_release(args);
  dist_value_release(mine);
  return status;
}

static dist_status play_step(const program* p, dist_replica* replica, uint64_t step, const char* tag) {
  const enum step_kind kind = (enum step_kind)(draw(p, step, 1) % STEP_KINDS);
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.tag = tag;
  switch (kind) {
    case STEP_BARRIER: return dist_barrier(replica, &options, NULL);
    case STEP_MERGE: return merge_step(p, replica, step, &options);
    default: return tensors_step(p, replica, step, kind, &options);
  }
}

static dist_status play(dist_replica* replica, void* user_data) {
  program* p = user_data;
  const int32_t me = dist_replica_id(replica);
  dist_status status = DIST_OK;
  for (int step = 0; step < STEPS && status == DIST_OK; step++) {
    const enum fault fault = me == p->culprit && step == p->fault_step ? p->fault : NO_FAULT;
    char tag[16];
    snprintf(tag, sizeof tag, "step %d", step);
    if (fault == RETURNS) break;
    if (fault == SKIPS) continue;
    if (fault == FAILS) {
      status = dist_fail(DIST_DATA_LOSS, "the culprit's own");
    } else {
      if (fault == CANCELS) status = dist_strategy_cancel(dist_replica_strategy(replica));
      if (status == DIST_OK)
        status = play_step(p, replica, (uint64_t)step, fault == OTHER_TAG ? "other" : tag);
    }
  }
  p->statuses[me] = status;
  return status;
}

static dist_status expected_status(const program* p) {
  switch (p->fault) {
    case RETURNS: return DIST_ABORTED;
    case FAILS: return DIST_DATA_LOSS;
    /* Skipping the last step is an early return. */
    case SKIPS: return p->fault_step == STEPS - 1 ? DIST_ABORTED : DIST_INVALID_ARGUMENT;
    case OTHER_TAG: return DIST_INVALID_ARGUMENT;
    case CANCELS: return DIST_CANCELLED;
    default: return DIST_OK;
  }
}

static uint64_t number_from(const char* name, uint64_t otherwise) {
  const char* text = getenv(name);
  return text == NULL ? otherwise : strtoull(text, NULL, 0);
}

static void random_programs(void** state) {
  (void)state;
  const uint64_t first = number_from("DIST_TEST_SEED", 20240607),
                 count = number_from("DIST_TEST_PROGRAMS", 60);
  fprintf(stderr, "# seeds %llu to %llu\n", (unsigned long long)first,
          (unsigned long long)(first + count - 1));
  dist_strategy* strategies[3][WIDEST + 1];
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    for (int32_t n = 2; n <= WIDEST; n++)
      strategies[threads - DIST_THREADS_CALLER][n] = strategy_of(n, threads);
  }
  for (uint64_t seed = first; seed < first + count; seed++) {
    program p = {.seed = seed * 0x9E3779B97F4A7C15u};
    p.replicas = 2 + (int32_t)(draw(&p, 99, 1) % (WIDEST - 1));
    p.culprit = (int32_t)(draw(&p, 99, 2) % (uint64_t)p.replicas);
    p.fault_step = (int)(draw(&p, 99, 3) % STEPS);
    const int32_t threads = DIST_THREADS_CALLER + (int32_t)(draw(&p, 99, 4) % 3);
    for (int round = 0; round < 2; round++) { /* with a fault, then without */
      p.fault = round == 0 ? (enum fault)(draw(&p, 99, 5) % FAULTS) : NO_FAULT;
      report error;
      const dist_status status =
          run_on(threads, strategies[threads - DIST_THREADS_CALLER][p.replicas], play, &p, &error);
      if (status != expected_status(&p)) {
        fail_msg("seed %llu, R %d on %s, replica %d, fault %d at step %d: %s: %s", (unsigned long long)seed,
                 (int)p.replicas, threads_name(threads), (int)p.culprit, (int)p.fault, p.fault_step,
                 dist_status_name(status), error.message);
      }
    }
  }
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    for (int32_t n = 2; n <= WIDEST; n++)
      assert_ok(dist_strategy_destroy(strategies[threads - DIST_THREADS_CALLER][n]));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
