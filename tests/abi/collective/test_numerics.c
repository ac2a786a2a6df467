/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests which inputs determine the bits of a sum. REPRODUCIBLE sums depend only on the contributions, however
 * they are distributed over replicas, and equal the rounded exact sum. ORDERED sums depend on the order of
 * replicas and on nothing else that varies between programs or machines.
 */
#include "tests/abi/common.h"

#include <fenv.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "tests/abi/exact_sum.h"
#include "tests/abi/fold.h"
#include "tests/abi/tree_fold.h"

enum { POOL = 96, ELEMENTS = 67, WIDEST = 32 };

/* A fixed pool of contributions, and their distribution: replica r has `count[r]` of them. */
typedef struct deal {
  dist_dtype dtype;
  dist_reduce_op op;
  int weighted;
  int32_t numerics;
  _Alignas(8) unsigned char data[POOL][ELEMENTS * 8];
  double weights[POOL];
  int order[POOL]; /* the order in which the pool is distributed */
  size_t first[WIDEST + 1];
  _Alignas(8) unsigned char out[WIDEST][ELEMENTS * 8];
} deal;

/* Numbers that are difficult to add: cancellation, a huge range, subnormals, ties, zeros of both signs. */
static double nasty_number(uint64_t bits, size_t i, size_t element) {
  const double sign = bits & 1 ? -1 : 1, unit = 1.0 + (double)(bits >> 12 & 0xFFFFF) / 1048576.0;
  switch (element % 8) {
    case 0: return sign * unit;
    case 1: return i % 2 == 0 ? ldexp(unit, 100) : i % 4 == 1 ? -ldexp(unit, 100) : 1.0; /* most cancel */
    case 2: return sign * ldexp(unit, (int)(bits >> 40 & 255) - 128);
    case 3: return sign * ldexp((double)(bits >> 50), -149);
    case 4: return i == 0 ? 16777216.0 : i % 3 == 0 ? 1.0 : ldexp(1.0, -40); /* ties, and tie breakers */
    case 5: return i % 2 == 0 ? -0.0 : 0.0;
    case 6: return -0.0;
    default: return i < 48 ? ldexp(unit, 127) : -ldexp(unit, 127);
  }
}
static double nasty_double(uint64_t bits, size_t i, size_t element) {
  const double sign = bits & 1 ? -1 : 1, unit = 1.0 + (double)(bits >> 12) / 4503599627370496.0;
  switch (element % 5) {
    case 0: return sign * ldexp(unit, (int)(bits >> 3 & 2047) - 1074);
    case 1: return i < 48 ? ldexp(unit, 1023) : -ldexp(unit, 1023); /* overflows, but not in the end */
    case 2: return sign * ldexp((double)(bits >> 60), -1074);
    case 3: return i == 0 ? 9007199254740992.0 : i == 1 ? 1.0 : ldexp(1.0, -1000 + (int)i);
    default: return nasty_number(bits, i, element / 5);
  }
}

static void fill_pool(deal *d, uint64_t seed) {
  for (size_t p = 0; p < POOL; p++) {
    d->weights[p] = next_random(&seed) % 5 == 0 ? 0 : (double)(next_random(&seed) % 4096) / 37;
    fill_random(d->dtype, d->data[p], ELEMENTS, next_random(&seed)); /* the last stay random: NaN, inf */
    for (size_t e = 0; e < ELEMENTS - 16; e++) {
      const uint64_t bits = next_random(&seed);
      const double x = d->dtype == DIST_F64 ? nasty_double(bits, p, e) : nasty_number(bits, p, e);
      const float narrow = (float)(d->dtype == DIST_F16 ? fmod(x, 60000.0) : x);
      const uint16_t half = d->dtype == DIST_F16 ? to_f16(narrow) : to_bf16(narrow);
      const size_t size = size_of(d->dtype);
      memcpy(d->data[p] + e * size,
             d->dtype == DIST_F64   ? (const void *)&x
             : d->dtype == DIST_F32 ? (const void *)&narrow
                                    : &half,
             size);
    }
  }
}

/* Distributes the pool: equal or growing numbers per replica, in order or shuffled. Each replica gets at
 * least one. */
static void deal_out(deal *d, int32_t replicas, int way) {
  size_t at = 0;
  for (int32_t r = 0; r < replicas; r++) {
    d->first[r] = at;
    const size_t left = POOL - (size_t)replicas;
    const size_t more = way % 2 == 0 ? POOL / (size_t)replicas - 1 : r == way % replicas ? left : 0;
    at += 1 + more;
  }
  d->first[replicas] = POOL;
  uint64_t seed = (uint64_t)way * 977;
  for (int i = 0; i < POOL; i++) d->order[i] = way < 2 ? i : way == 2 ? POOL - 1 - i : i;
  for (int i = POOL - 1; way > 2 && i > 0; i--) {
    const int j = (int)(next_random(&seed) % (uint64_t)(i + 1)), kept = d->order[i];
    d->order[i] = d->order[j], d->order[j] = kept;
  }
}

static dist_status add_hand(dist_replica *replica, void *user_data) {
  deal *d = user_data;
  const int32_t me = dist_replica_id(replica);
  int64_t length = ELEMENTS;
  dist_tensor in[POOL], out = vector_of(d->out[me], d->dtype, &length);
  double weights[POOL];
  const size_t n = d->first[me + 1] - d->first[me];
  for (size_t j = 0; j < n; j++) {
    const int which = d->order[d->first[me] + j];
    in[j] = vector_of(d->data[which], d->dtype, &length);
    weights[j] = d->weights[which];
  }
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.numerics = d->numerics;
  options.contributions = n;
  options.weights = d->weighted ? weights : NULL;
  return dist_all_reduce(replica, d->op, in, &out, 1, &options, NULL);
}

/* Compares the sum of a distribution with the expected one. */
static void compare_hand(const deal *d, int32_t replicas, int way, unsigned char (*expected)[8]) {
  for (int32_t r = 0; r < replicas; r++) {
    for (size_t e = 0; e < ELEMENTS; e++) {
      if (!same_element(d->dtype, d->out[r] + e * size_of(d->dtype), expected[e]))
        fail_msg("numerics %d, dtype %d, op %d, weighted %d, R %d, dealt %d: element %zu is %a, expected %a",
                 (int)d->numerics, (int)d->dtype, (int)d->op, d->weighted, (int)replicas, way, e,
                 wide(d->dtype, d->out[r] + e * size_of(d->dtype)), wide(d->dtype, expected[e]));
    }
  }
}

/* The tree covers all contributions in order, regardless of how many each replica has. */
static void tree_however_it_is_dealt(void **state) {
  (void)state;
  static const int32_t sizes[] = {1, 2, 3, 4, 5, 8, 16, 32};
  static const dist_dtype dtypes[] = {DIST_F16, DIST_BF16, DIST_F32, DIST_F64};
  static const dist_reduce_op ops[] = {DIST_REDUCE_SUM, DIST_REDUCE_MEAN, DIST_REDUCE_MEAN, DIST_REDUCE_PROD};
  static deal d;
  d.numerics = DIST_NUMERICS_TREE;
  for (size_t s = 0; s < COUNT_OF(sizes); s++) {
    dist_strategy *strategy = strategy_of(sizes[s], DIST_THREADS_CALLER);
    for (size_t k = 0; k < COUNT_OF(dtypes) * COUNT_OF(ops); k++) {
      d.dtype = dtypes[k / COUNT_OF(ops)];
      d.op = ops[k % COUNT_OF(ops)];
      d.weighted = k % COUNT_OF(ops) == 2;
      fill_pool(&d, 42);
      for (int way = 0; way < 5; way++) {
        deal_out(&d, sizes[s], way);
        _Alignas(8) unsigned char expected[ELEMENTS][8];
        for (size_t e = 0; e < ELEMENTS; e++) {
          const void *in[POOL];
          double weights[POOL];
          for (size_t p = 0; p < POOL; p++) {
            in[p] = d.data[d.order[p]] + e * size_of(d.dtype);
            weights[p] = d.weights[d.order[p]];
          }
          const tree_fold tree = {d.op, d.dtype, in, d.weighted ? weights : NULL, NULL, NULL};
          tree_element(&tree, POOL, expected[e]);
        }
        assert_ok(dist_run(strategy, add_hand, &d, NULL));
        compare_hand(&d, sizes[s], way, expected);
      }
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void reproducible_however_it_is_dealt(void **state) {
  (void)state;
  static const int32_t sizes[] = {1, 2, 3, 4, 5, 8, 16, 32};
  static const dist_dtype dtypes[] = {DIST_F16, DIST_BF16, DIST_F32, DIST_F64};
  static deal d;
  d.numerics = DIST_NUMERICS_REPRODUCIBLE;
  for (size_t s = 0; s < COUNT_OF(sizes); s++) {
    dist_strategy *strategy = strategy_of(sizes[s], DIST_THREADS_CALLER);
    for (size_t k = 0; k < COUNT_OF(dtypes) * 3; k++) {
      d.dtype = dtypes[k / 3];
      d.op = k % 3 == 0 ? DIST_REDUCE_SUM : DIST_REDUCE_MEAN;
      d.weighted = k % 3 == 2;
      fill_pool(&d, 42);
      _Alignas(8) unsigned char expected[ELEMENTS][8];
      for (size_t e = 0; e < ELEMENTS; e++) {
        const void *in[POOL];
        for (size_t p = 0; p < POOL; p++) in[p] = d.data[p] + e * size_of(d.dtype);
        exact_element(d.op, d.dtype, in, d.weighted ? d.weights : NULL, POOL, expected[e]);
      }
      for (int way = 0; way < 5; way++) {
        deal_out(&d, sizes[s], way);
        assert_ok(dist_run(strategy, add_hand, &d, NULL));
        compare_hand(&d, sizes[s], way, expected);
      }
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* NaN has a single bit pattern, which is equal on all replicas. */
static void reproducible_nan(void **state) {
  (void)state;
  static deal d;
  static const dist_dtype dtypes[] = {DIST_F16, DIST_BF16, DIST_F32, DIST_F64};
  static const uint64_t quiet[] = {0x7E00, 0x7FC0, 0x7FC00000, 0x7FF8000000000000u};
  dist_strategy *strategy = strategy_of(3, DIST_THREADS_CALLER);
  for (size_t k = 0; k < COUNT_OF(dtypes); k++) {
    d.dtype = dtypes[k], d.op = DIST_REDUCE_SUM, d.weighted = 0, d.numerics = DIST_NUMERICS_REPRODUCIBLE;
    const size_t size = size_of(d.dtype);
    for (int both_infinities = 0; both_infinities < 2; both_infinities++) {
      memset(d.data, 0, sizeof d.data);
      for (size_t e = 0; e < ELEMENTS; e++) {
        static const uint64_t infinity[] = {0x7C00, 0x7F80, 0x7F800000, 0x7FF0000000000000u};
        const uint64_t first = both_infinities ? infinity[k] : quiet[k] | 1 | UINT64_C(1) << (8 * size - 1);
        const uint64_t second = both_infinities ? infinity[k] | UINT64_C(1) << (8 * size - 1) : 0;
        memcpy(d.data[5] + e * size, &first, size);
        memcpy(d.data[90] + e * size, &second, size);
      }
      deal_out(&d, 3, 0);
      assert_ok(dist_run(strategy, add_hand, &d, NULL));
      for (int32_t r = 0; r < 3; r++)
        for (size_t e = 0; e < ELEMENTS; e++) assert_memory_equal(d.out[r] + e * size, &quiet[k], size);
    }
  }
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- ORDERED: all variations give one hash ---- */

enum { TOTAL = 70000, MOST_PIECES = 7 };

typedef struct ordered {
  int32_t numerics;
  size_t pieces;    /* number of tensors into which the data are divided, perhaps unevenly */
  int one_by_one;   /* a separate collective for each tensor */
  uint64_t arrival; /* seed of the delays before each collective */
  int rough;        /* the host flushes subnormals to zero and uses another rounding mode */
  float *in[WIDEST], *out[WIDEST];
  int changed[WIDEST];
} ordered;

/* Delays without a clock: some yields, some spins, or nothing. */
static void come_late(uint64_t *seed) {
  const uint64_t bits = next_random(seed);
  for (uint64_t i = 0; i < bits % 7; i++) sched_yield();
  for (volatile uint64_t i = 0; i < (bits >> 8) % 2000; i = i + 1) {
  }
}

static dist_status reduce_cut(dist_replica *replica, void *user_data) {
  ordered *o = user_data;
  const int32_t me = dist_replica_id(replica);
  uint64_t seed = o->arrival + (uint64_t)me * 7919;
  dist_tensor in[MOST_PIECES], out[MOST_PIECES];
  int64_t lengths[MOST_PIECES], begin = 0;
  for (size_t k = 0; k < o->pieces; k++) {
    const int64_t left = TOTAL - begin;
    lengths[k] = k + 1 == o->pieces ? left : left / 3 + (int64_t)k;
    in[k] = vector_of(o->in[me] + begin, DIST_F32, &lengths[k]);
    out[k] = vector_of(o->out[me] + begin, DIST_F32, &lengths[k]);
    begin += lengths[k];
  }
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.numerics = o->numerics;
  fenv_t standard;
  fegetenv(&standard);
#if defined(__x86_64__)
  if (o->rough) _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
  static const int modes[] = {FE_UPWARD, FE_TOWARDZERO, FE_DOWNWARD};
  if (o->rough) fesetround(modes[me % 3]);
  dist_status status = DIST_OK;
  for (size_t k = 0; status == DIST_OK && k < (o->one_by_one ? o->pieces : 1); k++) {
    come_late(&seed);
    status = dist_all_reduce(replica, DIST_REDUCE_SUM, in + k, out + k, o->one_by_one ? 1 : o->pieces,
                             &options, NULL);
  }
  o->changed[me] = o->rough && fegetround() != modes[me % 3];
  fesetenv(&standard);
  return status;
}

static uint64_t hash_of(const float *data) {
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < TOTAL; i++) hash = (hash ^ float_as_bits(data[i])) * 1099511628211u;
  return hash;
}

static void the_same_bits_whatever_varies(void **state) {
  (void)state;
  static const int32_t sizes[] = {2, 3, 8};
  for (size_t s = 0; s < COUNT_OF(sizes); s++) {
    static ordered o;
    for (int32_t r = 0; r < sizes[s]; r++) {
      o.in[r] = malloc(TOTAL * sizeof(float));
      o.out[r] = malloc(TOTAL * sizeof(float));
      uint64_t seed = (uint64_t)r + 5;
      for (size_t i = 0; i < TOTAL; i++)
        o.in[r][i] =
            ldexpf((float)(next_random(&seed) >> 40) - 8388608.0f, (int)(next_random(&seed) % 60) - 150);
    }
    for (int32_t numerics = DIST_NUMERICS_ORDERED; numerics <= DIST_NUMERICS_TREE; numerics++) {
      uint64_t first = 0;
      o.numerics = numerics;
      for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
        dist_strategy *strategy = strategy_of(sizes[s], threads);
        for (int variant = 0; variant < 12; variant++) {
          o.pieces = 1 + (size_t)variant % MOST_PIECES;
          o.one_by_one = variant % 3 == 1;
          o.arrival = (uint64_t)variant * 31337;
          o.rough = variant % 4 == 2;
          report error;
          if (run_on(threads, strategy, reduce_cut, &o, &error) != DIST_OK) fail_msg("%s", error.message);
          if (first == 0) first = hash_of(o.out[0]);
          for (int32_t r = 0; r < sizes[s]; r++) {
            assert_int_equal(o.changed[r], 0);
            if (hash_of(o.out[r]) != first)
              fail_msg("numerics %d, R %d on %s, variant %d: other bits on replica %d", (int)numerics,
                       (int)sizes[s], threads_name(threads), variant, (int)r);
          }
        }
        assert_ok(dist_strategy_destroy(strategy));
      }
    }
    for (int32_t r = 0; r < sizes[s]; r++) free(o.in[r]), free(o.out[r]);
  }
}

/* ---- Maximum size of elements of a host operator, with TREE ---- */

typedef struct large {
  size_t bytes, contributions;
  dist_status status;
  report error;
} large;

/* Changes all bytes in a way that depends on the order of the calls. */
static void mingle(void *acc, const void *in, int64_t count, dist_dtype dtype, void *user_data) {
  (void)dtype;
  const size_t bytes = count * *(const size_t *)user_data;
  unsigned char *a = acc;
  for (size_t i = 0; i < bytes; i++)
    a[i] = (unsigned char)(a[i] * 31 - (((const unsigned char *)in)[i] ^ 0x5A));
}

static dist_status fold_large(dist_replica *replica, void *user_data) {
  large *l = user_data;
  static unsigned char data[1024][2 * 4096], out[2 * 4096];
  static dist_tensor in[1024];
  static const void *sources[1024];
  int64_t length = (int64_t)(2 * l->bytes);
  for (size_t j = 0; j < l->contributions; j++) {
    for (size_t i = 0; i < 2 * l->bytes; i++) data[j][i] = (unsigned char)(j * 7 + i * 13 + 1);
    in[j] = vector_of(data[j], DIST_U8, &length);
  }
  dist_tensor to = vector_of(out, DIST_U8, &length);
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.numerics = DIST_NUMERICS_TREE;
  options.contributions = l->contributions;
  options.reduce_fn = mingle;
  options.reduce_user_data = &l->bytes;
  options.reduce_element_bytes = l->bytes;
  l->status = dist_all_reduce(replica, DIST_REDUCE_USER, in, &to, 1, &options, NULL);
  read_report(&l->error);
  if (l->status != DIST_OK) return DIST_OK;
  size_t one = 1;
  for (size_t i = 0; i < 2 * l->bytes; i++) {
    for (size_t j = 0; j < l->contributions; j++) sources[j] = &data[j][i];
    const tree_fold tree = {DIST_REDUCE_USER, DIST_U8, sources, NULL, mingle, &one};
    unsigned char expected[8];
    tree_element(&tree, l->contributions, expected);
    if (out[i] != expected[0]) return DIST_DATA_LOSS;
  }
  return DIST_OK;
}

static void large_elements_of_the_host(void **state) {
  (void)state;
  /* The maximum number of contributions for elements of a size, as documented in collective.h. */
  static const struct {
    size_t bytes, most;
  } limits[] = {{4096, 3}, {3072, 7}, {2048, 15}, {1536, 31}, {1216, 63}, {576, 1024}, {8, 1024}};
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_CALLER);
  for (size_t k = 0; k < COUNT_OF(limits); k++) {
    large l = {.bytes = limits[k].bytes, .contributions = limits[k].most};
    assert_ok(dist_run(strategy, fold_large, &l, NULL));
    if (l.status != DIST_OK) fail_msg("%s", l.error.message);
    if (limits[k].most == 1024) continue;
    l.contributions++;
    (void)!dist_run(strategy, fold_large, &l, NULL);
    assert_int_equal(l.status, DIST_INVALID_ARGUMENT);
    assert_has(l.error.message, "reduce_element_bytes");
    assert_has(l.error.message, "numerics TREE of");
  }
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Unsupported with REPRODUCIBLE ---- */

typedef struct refusal {
  dist_reduce_op op;
  dist_dtype dtype;
  int scan, weighted;
  dist_status statuses[2];
  report reports[2];
} refusal;

static void plus(void *acc, const void *in, int64_t count, dist_dtype dtype, void *user_data) {
  (void)acc, (void)in, (void)count, (void)dtype, (void)user_data;
}

static dist_status ask_for(dist_replica *replica, void *user_data) {
  refusal *q = user_data;
  const int32_t me = dist_replica_id(replica);
  int64_t length = 1;
  double in[2] = {0}, out[2], weight = 1;
  dist_tensor from = vector_of(in, q->dtype, &length);
  dist_tensor to = vector_of(out, dtype_of_result(q->op, q->dtype), &length);
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.numerics = DIST_NUMERICS_REPRODUCIBLE;
  if (q->op == DIST_REDUCE_USER) options.reduce_fn = plus;
  options.weights = q->weighted ? &weight : NULL;
  q->statuses[me] = q->scan ? dist_scan(replica, q->op, DIST_SCAN_INCLUSIVE, &from, &to, 1, &options, NULL)
                            : dist_all_reduce(replica, q->op, &from, &to, 1, &options, NULL);
  read_report(&q->reports[me]);
  return dist_barrier(replica, NULL, NULL);
}

static void what_cannot_be_reproducible(void **state) {
  (void)state;
  static refusal table[] = {
      {.op = DIST_REDUCE_PROD, .dtype = DIST_F32},
      {.op = DIST_REDUCE_PROD, .dtype = DIST_F64},
      {.op = DIST_REDUCE_SUM, .dtype = DIST_COMPLEX64},
      {.op = DIST_REDUCE_USER, .dtype = DIST_F32},
      {.op = DIST_REDUCE_MEAN, .dtype = DIST_I32, .weighted = 1},
      {.op = DIST_REDUCE_SUM, .dtype = DIST_F32, .scan = 1},
  };
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  for (size_t k = 0; k < COUNT_OF(table); k++) {
    assert_ok(dist_run(strategy, ask_for, &table[k], NULL));
    for (int r = 0; r < 2; r++) {
      if (table[k].statuses[r] != DIST_UNIMPLEMENTED)
        fail_msg("case %zu: %s", k, dist_status_name(table[k].statuses[r]));
      assert_has(table[k].reports[r].message, "REPRODUCIBLE");
    }
  }
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reproducible_however_it_is_dealt), cmocka_unit_test(reproducible_nan),
      cmocka_unit_test(tree_however_it_is_dealt),         cmocka_unit_test(large_elements_of_the_host),
      cmocka_unit_test(the_same_bits_whatever_varies),    cmocka_unit_test(what_cannot_be_reproducible),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
