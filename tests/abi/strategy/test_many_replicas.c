/* SPDX-License-Identifier: Apache-2.0
 *
 * A strategy of 1,000 replicas in one process, on library threads with the smallest stacks. The results have
 * the bits that the equations in collective.h define, and reports name the replica at fault.
 */
#include "../common.h"
#include "../exact_sum.h"
#include "../fold.h"
#include "../tree_fold.h"

enum { MANY = 1000, LEAST_STACK = 576 << 10, LONGEST = 30000 };

#define TRY(call)                           \
  do {                                      \
    const dist_status status_ = (call);     \
    if (status_ != DIST_OK) return status_; \
  } while (0)

static dist_strategy *many_replicas(void) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
  options.cpu = &cpu;
  options.num_replicas = MANY;
  cpu.stack_size_bytes = LEAST_STACK;
  return strategy_with(options);
}

/* The value of element i in the tensor of replica r. */
static float number(int32_t r, int i) { return 1.0F / (float)(3 + r * 7 + i % 11) - (float)(i % 5) * 1e-3F; }

/* ---- Sums ---- */

typedef struct sum {
  int length;
  int32_t numerics;
  int weighted, work, strided;
  float expected[LONGEST];
  atomic_int wrong;
} sum;

static void expect(sum *s) {
  static float in[MANY];
  static double weights[MANY];
  static const void *sources[MANY];
  for (int r = 0; r < MANY; ++r) sources[r] = &in[r], weights[r] = 1 + r % 3;
  const dist_reduce_op op = s->weighted ? DIST_REDUCE_MEAN : DIST_REDUCE_SUM;
  for (int i = 0; i < s->length; ++i) {
    for (int r = 0; r < MANY; ++r) in[r] = number(r, i);
    if (s->numerics == DIST_NUMERICS_REPRODUCIBLE) {
      exact_element(op, DIST_F32, sources, s->weighted ? weights : NULL, MANY, &s->expected[i]);
    } else if (s->numerics == DIST_NUMERICS_TREE) {
      const tree_fold tree = {op, DIST_F32, sources, s->weighted ? weights : NULL, NULL, NULL};
      tree_element(&tree, MANY, &s->expected[i]);
    } else if (s->weighted) {
      float all = 0, total = 0;
      for (int r = 0; r < MANY; ++r) all += (float)weights[r] * in[r], total += (float)weights[r];
      s->expected[i] = all / total;
    } else {
      fold_element(op, DIST_F32, sources, MANY, 0, &s->expected[i]);
    }
  }
}

static dist_status add(dist_replica *replica, void *user_data) {
  sum *s = user_data;
  const int32_t me = dist_replica_id(replica);
  const int step = s->strided ? 2 : 1;
  const int64_t shape = s->length, stride = step;
  float *const in = malloc((size_t)(s->length * step) * sizeof(float));
  float *const out = malloc((size_t)(s->length * step) * sizeof(float));
  if (in == NULL || out == NULL) abort();
  for (int i = 0; i < s->length; ++i) in[i * step] = number(me, i);
  const dist_tensor from = {in, DIST_F32, 1, &shape, s->strided ? &stride : NULL};
  dist_tensor to = {out, DIST_F32, 1, &shape, s->strided ? &stride : NULL};
  const double weight = 1 + me % 3;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.numerics = s->numerics;
  if (s->weighted) options.weights = &weight;
  dist_work *work = NULL;
  options.planned = s->work == 2;
  dist_status status = dist_all_reduce(replica, s->weighted ? DIST_REDUCE_MEAN : DIST_REDUCE_SUM, &from, &to,
                                       1, &options, s->work != 0 ? &work : NULL);
  if (status == DIST_OK && s->work == 2) status = dist_work_start(work);
  if (status == DIST_OK && s->work != 0) status = dist_work_wait(work, DIST_NO_TIMEOUT);
  dist_work_destroy(work);
  for (int i = 0; status == DIST_OK && i < s->length; ++i)
    if (memcmp(&out[i * step], &s->expected[i], sizeof(float)) != 0) atomic_fetch_add(&s->wrong, 1);
  free(in), free(out);
  return status;
}

static void sums_have_the_bits_of_the_equations(void **state) {
  (void)state;
  static sum s;
  dist_strategy *strategy = many_replicas();
  assert_int_equal(dist_strategy_num_replicas(strategy), MANY);
  static const int lengths[] = {1, 700, LONGEST}; /* two by the last member, one in blocks */
  for (size_t k = 0; k < COUNT_OF(lengths); ++k) {
    for (int32_t numerics = DIST_NUMERICS_ORDERED; numerics <= DIST_NUMERICS_TREE; ++numerics) {
      for (int kind = 0; kind < 4; ++kind) {
        if (kind != 0 && lengths[k] == LONGEST) continue;
        s = (sum){.length = lengths[k], .numerics = numerics};
        s.weighted = kind == 1;
        s.work = kind == 2 ? 1 + numerics % 2 : 0;
        s.strided = kind == 3;
        expect(&s);
        assert_ok(dist_run(strategy, add, &s, NULL));
        if (s.wrong != 0)
          fail_msg("%d elements, numerics %d, kind %d: %d are wrong", s.length, numerics, kind, s.wrong);
      }
    }
  }
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- The other collectives ---- */

static atomic_int wrong;
static void check(int right) {
  if (!right) atomic_fetch_add(&wrong, 1);
}

static dist_status move(dist_replica *replica, void *user_data) {
  (void)user_data;
  const int32_t me = dist_replica_id(replica);
  const int64_t one = 1, all = MANY;
  int32_t own = me + 1, other = 0;
  int32_t *const from_all = malloc(MANY * sizeof *from_all);
  int32_t *const to_all = malloc(MANY * sizeof *to_all);
  if (from_all == NULL || to_all == NULL) abort();
  for (int32_t r = 0; r < MANY; ++r) to_all[r] = me * 3 + r;
  const dist_tensor in = {&own, DIST_I32, 1, &one, NULL}, many_in = {to_all, DIST_I32, 1, &all, NULL};
  dist_tensor out = {&other, DIST_I32, 1, &one, NULL}, many_out = {from_all, DIST_I32, 1, &all, NULL};

  TRY(dist_all_gather(replica, &in, &many_out, 1, NULL, NULL));
  for (int32_t r = 0; r < MANY; ++r) check(from_all[r] == r + 1);
  TRY(dist_all_to_all(replica, &many_in, &many_out, 1, NULL, NULL));
  for (int32_t r = 0; r < MANY; ++r) check(from_all[r] == r * 3 + me);
  TRY(dist_permute(replica, (me + 1) % MANY, (me + MANY - 1) % MANY, &in, &out, 1, NULL, NULL));
  check(other == (me + MANY - 1) % MANY + 1);
  TRY(dist_broadcast(replica, MANY - 1, me == MANY - 1 ? &in : NULL, &out, 1, NULL, NULL));
  check(other == MANY);
  TRY(dist_scan(replica, DIST_REDUCE_SUM, DIST_SCAN_INCLUSIVE, &in, &out, 1, NULL, NULL));
  check(other == (me + 1) * (me + 2) / 2);
  TRY(dist_reduce_scatter(replica, DIST_REDUCE_SUM, &many_in, &out, 1, NULL, NULL));
  check(other == MANY * (MANY - 1) / 2 * 3 + MANY * me);
  TRY(dist_reduce_to_root(replica, DIST_REDUCE_MAX, MANY - 1, &in, me == MANY - 1 ? &out : NULL, 1, NULL,
                          NULL));
  check(me != MANY - 1 || other == MANY);
  TRY(dist_scatter_from_root(replica, 3, me == 3 ? &many_in : NULL, &out, 1, NULL, NULL));
  check(other == 9 + me);
  TRY(dist_gather_to_root(replica, 5, &in, me == 5 ? &many_out : NULL, 1, NULL, NULL));
  for (int32_t r = 0; me == 5 && r < MANY; ++r) check(from_all[r] == r + 1);
  const dist_tensor list_in[] = {in, many_in};
  dist_tensor list_out[] = {out, many_out};
  TRY(dist_all_reduce(replica, DIST_REDUCE_SUM, list_in, list_out, 2, NULL, NULL));
  check(other == MANY * (MANY + 1) / 2);
  for (int32_t r = 0; r < MANY; ++r) check(from_all[r] == MANY * (MANY - 1) / 2 * 3 + MANY * r);
  /* Parts of different sizes: each replica sends everything to itself. */
  int64_t *const splits = calloc(MANY, sizeof *splits);
  if (splits == NULL) abort();
  splits[me] = MANY;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.splits = splits;
  TRY(dist_all_to_all(replica, &many_in, &many_out, 1, &options, NULL));
  check(memcmp(from_all, to_all, MANY * sizeof *to_all) == 0);
  free(from_all), free(to_all), free(splits);
  return dist_barrier(replica, NULL, NULL);
}

static void other_collectives_reach_all(void **state) {
  (void)state;
  dist_strategy *strategy = many_replicas();
  wrong = 0;
  assert_ok(dist_run(strategy, move, NULL, NULL));
  assert_int_equal(wrong, 0);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Contributions ---- */

enum { EACH = 16 };

static dist_status contribute(dist_replica *replica, void *user_data) {
  const size_t each = *(const size_t *)user_data;
  int64_t values[EACH + 1], result = 0;
  dist_tensor in[EACH + 1], out = {&result, DIST_I64, 0, NULL, NULL};
  for (size_t k = 0; k < each; ++k) {
    values[k] = dist_replica_id(replica) * EACH + (int64_t)k;
    in[k] = (dist_tensor){&values[k], DIST_I64, 0, NULL, NULL};
  }
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.contributions = each;
  for (int32_t numerics = DIST_NUMERICS_ORDERED; numerics <= DIST_NUMERICS_TREE; ++numerics) {
    options.numerics = numerics;
    TRY(dist_all_reduce(replica, DIST_REDUCE_SUM, in, &out, 1, &options, NULL));
    check(result == (int64_t)MANY * EACH * (MANY * EACH - 1) / 2);
  }
  return DIST_OK;
}

static void each_may_bring_sixteen_contributions(void **state) {
  (void)state;
  dist_strategy *strategy = many_replicas();
  wrong = 0;
  size_t each = EACH;
  assert_ok(dist_run(strategy, contribute, &each, NULL));
  assert_int_equal(wrong, 0);
  each = EACH + 1;
  assert_fails(dist_run(strategy, contribute, &each, NULL), DIST_INVALID_ARGUMENT,
               "17000 contributions to one sum, but at most 16000 are allowed");
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Steps and groups ---- */

static dist_group *thirds;

static dist_status step(dist_replica *replica, void *user_data) {
  (void)user_data;
  const int32_t me = dist_replica_id(replica);
  float gradient[3] = {1, 2, (float)me}, parameter[3] = {5, 5, 5}, velocity[3] = {0, 0, 0};
  const int64_t shape = 3;
  dist_tensor in = {gradient, DIST_F32, 1, &shape, NULL};
  const dist_tensor state = {velocity, DIST_F32, 1, &shape, NULL};
  dist_tensor out = {parameter, DIST_F32, 1, &shape, NULL};
  dist_apply_options apply = DIST_APPLY_OPTIONS_INIT;
  apply.kind = DIST_APPLY_SGD;
  apply.learning_rate = 1;
  apply.momentum = 0.5;
  apply.states = &state;
  apply.num_states = 1;
  TRY(dist_reduce_apply(replica, DIST_REDUCE_MEAN, &in, &out, 1, &apply, NULL, NULL));
  check(parameter[0] == 4 && parameter[1] == 3 && parameter[2] == 5 - (MANY - 1) / 2.0F);
  if (me % 3 != 0) return DIST_OK;
  int64_t value = me, sum_of = 0;
  const dist_tensor one = {&value, DIST_I64, 0, NULL, NULL};
  dist_tensor result = {&sum_of, DIST_I64, 0, NULL, NULL};
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.group = thirds;
  TRY(dist_all_reduce(replica, DIST_REDUCE_SUM, &one, &result, 1, &options, NULL));
  check(sum_of == 3 * (333 * 334 / 2));
  return DIST_OK;
}

static void steps_and_groups_work(void **state) {
  (void)state;
  dist_strategy *strategy = many_replicas();
  int32_t ids[334];
  for (int32_t i = 0; i < (int32_t)COUNT_OF(ids); ++i) ids[i] = 3 * i;
  assert_ok(dist_group_create(strategy, ids, COUNT_OF(ids), &thirds));
  wrong = 0;
  assert_ok(dist_run(strategy, step, NULL, NULL));
  assert_int_equal(wrong, 0);
  assert_ok(dist_group_destroy(thirds));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Variables ---- */

static void variables_have_a_copy_for_each(void **state) {
  (void)state;
  dist_strategy *strategy = many_replicas();
  float value = 3;
  const dist_tensor initial = {&value, DIST_F32, 0, NULL, NULL};
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.name = "w";
  dist_variable *variable = NULL;
  assert_ok(dist_variable_create(strategy, &initial, &options, &variable));
  assert_string_equal(dist_variable_copy_name(variable, MANY - 1), "w/replica_999");
  dist_variable_destroy(variable);
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Reports ---- */

static dist_status err(dist_replica *replica, void *user_data) {
  const char *const fault = user_data;
  const int32_t me = dist_replica_id(replica);
  double value = 1;
  dist_tensor t = {&value, DIST_F64, 0, NULL, NULL};
  const int64_t shape = me + 1;
  static double zeros[MANY];
  if (me == 777 && strcmp(fault, "returns") == 0) return DIST_OK;
  if (me == 998 && strcmp(fault, "dtype") == 0) t.dtype = DIST_I64;
  const dist_tensor odd = {zeros, DIST_F64, 1, &shape, NULL};
  double *const own = malloc(MANY * sizeof(double));
  dist_tensor odd_out = {own, DIST_F64, 1, &shape, NULL};
  const int shapes = strcmp(fault, "shapes") == 0;
  const dist_status status =
      dist_all_reduce(replica, DIST_REDUCE_SUM, shapes ? &odd : &t, shapes ? &odd_out : &t, 1, NULL, NULL);
  free(own);
  return status;
}

static void reports_name_the_culprit(void **state) {
  (void)state;
  dist_strategy *strategy = many_replicas();
  assert_fails(dist_run(strategy, err, "returns", NULL), DIST_ABORTED, "replica 777 returned early");
  assert_fails(dist_run(strategy, err, "dtype", NULL), DIST_INVALID_ARGUMENT, "replica 998 passed i64");
  /* All replicas differ. */
  assert_fails(dist_run(strategy, err, "shapes", NULL), DIST_INVALID_ARGUMENT, "passed f64[");
  assert_ok(dist_strategy_destroy(strategy));
}

static void the_machine_limits_their_number(void **state) {
  (void)state;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = INT32_MAX;
  dist_strategy *strategy = NULL;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_RESOURCE_EXHAUSTED,
               "num_replicas is 2147483647, but this system runs at most");
  assert_null(strategy);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_have_the_bits_of_the_equations),  cmocka_unit_test(other_collectives_reach_all),
      cmocka_unit_test(each_may_bring_sixteen_contributions), cmocka_unit_test(steps_and_groups_work),
      cmocka_unit_test(variables_have_a_copy_for_each),       cmocka_unit_test(reports_name_the_culprit),
      cmocka_unit_test(the_machine_limits_their_number),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
