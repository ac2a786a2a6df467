/* SPDX-License-Identifier: Apache-2.0
 *
 * all_reduce: the bits of the result equal those of a plain fold from left to right for every size, number of
 * replicas, load of the machine, and floating-point environment of the host.
 */
#include "tests/abi/common.h"

#include <fenv.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "tests/abi/fold.h"

enum { TENSORS = 6 };

/* Inputs and outputs of one run. */
typedef struct job {
  dist_reduce_op op;
  size_t n;
  dist_dtype dtypes[TENSORS];
  int64_t lengths[TENSORS];
  void *in[TENSORS][MOST], *out[TENSORS][MOST];
  int in_place, one_out, rough_floating_point;
  dist_status statuses[MOST];
} job;

static void make_buffers(job *j, int32_t replicas, uint64_t seed) {
  for (size_t t = 0; t < j->n; t++) {
    const dist_dtype result = dtype_of_result(j->op, j->dtypes[t]);
    for (int32_t r = 0; r < replicas; r++) {
      j->in[t][r] = malloc((size_t)j->lengths[t] * size_of(j->dtypes[t]) + 1);
      fill_random(j->dtypes[t], j->in[t][r], (size_t)j->lengths[t], seed++);
      const int own = !j->in_place && !(j->one_out && r > 0);
      j->out[t][r] = own           ? malloc((size_t)j->lengths[t] * size_of(result) + 1)
                     : j->in_place ? j->in[t][r]
                                   : j->out[t][0];
    }
  }
}

static void free_buffers(job *j, int32_t replicas) {
  for (size_t t = 0; t < j->n; t++) {
    for (int32_t r = 0; r < replicas; r++) {
      if (!j->in_place && !(j->one_out && r > 0)) free(j->out[t][r]);
      free(j->in[t][r]);
    }
  }
}

static dist_status reduce_job(dist_replica *replica, void *user_data) {
  job *j = user_data;
  const int32_t me = dist_replica_id(replica);
  dist_tensor in[TENSORS], out[TENSORS];
  for (size_t t = 0; t < j->n; t++) {
    in[t] = vector_of(j->in[t][me], j->dtypes[t], &j->lengths[t]);
    out[t] = vector_of(j->out[t][me], dtype_of_result(j->op, j->dtypes[t]), &j->lengths[t]);
  }
#if defined(__x86_64__)
  const unsigned int standard = _mm_getcsr();
  if (j->rough_floating_point)
    _mm_setcsr(standard | 0x8040 | (unsigned)(me % 4) << 13); /* FTZ, DAZ, and another rounding mode */
  const unsigned int rough = _mm_getcsr();
#endif
  j->statuses[me] = dist_all_reduce(replica, j->op, in, j->in_place ? in : out, j->n, NULL, NULL);
#if defined(__x86_64__)
  const unsigned int after = _mm_getcsr();
  _mm_setcsr(standard);
  if ((after ^ rough) & ~0x3Fu)
    return dist_fail(DIST_INTERNAL, "the host's floating-point environment was changed");
#endif
  return j->statuses[me];
}

/* Makes buffers, computes the expected results, reduces, and compares. */
static void check_job(dist_strategy *strategy, int32_t threads, job *j, uint64_t seed) {
  const int32_t replicas = dist_strategy_num_replicas(strategy);
  make_buffers(j, replicas, seed);
  char *expected[TENSORS];
  for (size_t t = 0; t < j->n; t++) {
    const size_t size = size_of(dtype_of_result(j->op, j->dtypes[t]));
    expected[t] = malloc((size_t)j->lengths[t] * size + 1);
    for (int64_t i = 0; i < j->lengths[t]; i++) {
      fold_element(j->op, j->dtypes[t], (const void *const *)j->in[t], (size_t)replicas, (size_t)i,
                   expected[t] + (size_t)i * size);
    }
  }
  report error;
  if (run_on(threads, strategy, reduce_job, j, &error) != DIST_OK) fail_msg("%s", error.message);
  for (size_t t = 0; t < j->n; t++) {
    const dist_dtype result = dtype_of_result(j->op, j->dtypes[t]);
    const size_t size = size_of(result);
    for (int32_t r = 0; r < replicas; r++) {
      if (j->out[t][r] == NULL || (j->one_out && r > 0)) continue;
      if (memcmp(j->out[t][r], expected[t], (size_t)j->lengths[t] * size) == 0) continue;
      for (int64_t i = 0; i < j->lengths[t]; i++) {
        if (!same_element(result, (char *)j->out[t][r] + (size_t)i * size, expected[t] + (size_t)i * size)) {
          fail_msg(
              "op %d, dtype %d, R %d, %lld elements, tensor %zu, replica %d: element %lld differs (seed "
              "%llu)",
              (int)j->op, (int)j->dtypes[t], (int)replicas, (long long)j->lengths[t], t, (int)r, (long long)i,
              (unsigned long long)seed);
        }
      }
    }
    free(expected[t]);
  }
  free_buffers(j, replicas);
}

/* Sizes around those where the algorithm changes: 96 bytes, 1.5 KiB for these numbers of peers, 64 KiB and 1
 * MiB. */
static void every_op_and_dtype(void **state) {
  (void)state;
  static const int32_t sizes[] = {1, 2, 3, 4, 7, 8};
  for (size_t s = 0; s < COUNT_OF(sizes); s++) {
    dist_strategy *strategy = strategy_of(sizes[s], DIST_THREADS_CALLER);
    for (dist_reduce_op op = DIST_REDUCE_SUM; op <= DIST_REDUCE_PROD; op++) {
      for (dist_dtype dtype = DIST_F16; dtype <= LAST_DTYPE; dtype++) {
        if (!allowed(op, dtype)) continue;
        const int64_t line = (int64_t)(96 / size_of(dtype));
        const int64_t lengths[] = {0, 1, line - 1, line, line + 1, 1000};
        for (size_t l = 0; l < COUNT_OF(lengths); l++) {
          for (int variant = 0; variant < 3; variant++) {
            job j = {.op = op, .n = 1, .dtypes = {dtype}, .lengths = {lengths[l]}};
            j.in_place = variant == 1 && dtype_of_result(op, dtype) == dtype;
            j.one_out = variant == 2;
            check_job(strategy, DIST_THREADS_CALLER, &j, 1000 * (uint64_t)l + (uint64_t)variant);
          }
        }
      }
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void sizes_of_every_algorithm(void **state) {
  (void)state;
  static const int32_t sizes[] = {1, 2, 3, 4, 8};
  static const int64_t bytes[] = {92,    96,     100,     508,     512,     516,    764,
                                  768,   772,    1532,    1536,    1540,    65532,  65536,
                                  65540, 131072, 1048572, 1048576, 1048580, 3000000};
  for (size_t s = 0; s < COUNT_OF(sizes); s++) {
    for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
      dist_strategy *strategy = strategy_of(sizes[s], threads);
      for (size_t b = 0; b < COUNT_OF(bytes); b++) {
        job j = {.op = DIST_REDUCE_SUM, .n = 1, .dtypes = {DIST_F32}, .lengths = {bytes[b] / 4}};
        j.in_place = b % 3 == 1;
        j.one_out = b % 3 == 2;
        check_job(strategy, threads, &j, bytes[b] > 0 ? (uint64_t)bytes[b] : 0);
      }
      assert_ok(dist_strategy_destroy(strategy));
    }
  }
}

static void lists_of_mixed_tensors(void **state) {
  (void)state;
  static const int32_t sizes[] = {1, 2, 3, 4, 8};
  for (size_t s = 0; s < COUNT_OF(sizes); s++) {
    dist_strategy *strategy = strategy_of(sizes[s], DIST_THREADS_LIBRARY);
    for (int variant = 0; variant < 12; variant++) {
      const int64_t big = variant < 6 ? 700 : 70000; /* 70,000 elements are more than 1 MiB in total */
      job j = {.op = variant % 2 == 0 ? DIST_REDUCE_SUM : DIST_REDUCE_MEAN,
               .n = TENSORS,
               .dtypes = {DIST_F32, DIST_F64, DIST_I8, DIST_BF16, DIST_COMPLEX64, DIST_I32},
               .lengths = {big, 0, big + 1, 3, big / 3, big * 2}};
      j.in_place = variant % 3 == 1 && j.op == DIST_REDUCE_SUM;
      j.one_out = variant % 3 == 2;
      check_job(strategy, DIST_THREADS_LIBRARY, &j, (uint64_t)variant);
    }
    job none = {.op = DIST_REDUCE_SUM, .n = 0};
    check_job(strategy, DIST_THREADS_LIBRARY, &none, 0);
    job empty = {.op = DIST_REDUCE_SUM, .n = 2, .dtypes = {DIST_F32, DIST_I8}};
    check_job(strategy, DIST_THREADS_LIBRARY, &empty, 0);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* More replicas than the single CPU of this thread. They wait and divide the work in another way. */
static void crowded_replicas(void **state) {
  (void)state;
  cpu_set_t all, one;
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  int first = 0;
  while (!CPU_ISSET(first, &all)) first++;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  dist_strategy *strategy = strategy_of(4, DIST_THREADS_CALLER);
  assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
  static const int64_t lengths[] = {0, 1, 24, 25, 1000, 16384, 16385, 300000};
  for (size_t l = 0; l < COUNT_OF(lengths); l++) {
    for (int variant = 0; variant < 3; variant++) {
      job j = {.op = DIST_REDUCE_MEAN, .n = 1, .dtypes = {DIST_F32}, .lengths = {lengths[l]}};
      j.in_place = variant == 1;
      j.one_out = variant == 2;
      check_job(strategy, DIST_THREADS_CALLER, &j, l);
    }
  }
  assert_ok(dist_strategy_destroy(strategy));
}

static void the_hosts_floating_point_environment(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(4, DIST_THREADS_LIBRARY);
  static const dist_dtype dtypes[] = {DIST_F16, DIST_BF16, DIST_F32, DIST_F64, DIST_COMPLEX64};
  static const int64_t lengths[] = {5, 24, 1000, 20000, 300000};
  for (size_t d = 0; d < COUNT_OF(dtypes); d++) {
    for (dist_reduce_op op = DIST_REDUCE_SUM; op <= DIST_REDUCE_PROD; op++) {
      for (size_t l = 0; allowed(op, dtypes[d]) && l < COUNT_OF(lengths); l++) {
        if (lengths[l] > 1000 && (op != DIST_REDUCE_SUM || dtypes[d] == DIST_F16)) continue;
        job j = {.op = op, .n = 1, .dtypes = {dtypes[d]}, .lengths = {lengths[l]}, .rough_floating_point = 1};
        check_job(strategy, DIST_THREADS_LIBRARY, &j, l);
      }
    }
  }
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Arguments ---- */

typedef struct attempt {
  const dist_tensor *in;
  dist_tensor *out;
  size_t n;
  dist_reduce_op op;
  dist_status status;
  report error;
} attempt;

static dist_status try_it(dist_replica *replica, void *user_data) {
  attempt *a = user_data;
  a->status = dist_all_reduce(replica, a->op, a->in, a->out, a->n, NULL, NULL);
  read_report(&a->error);
  return dist_barrier(replica, NULL, NULL); /* only the argument was wrong, so the run continues */
}

static dist_strategy *single;

static void refused(dist_reduce_op op, dist_tensor in, dist_tensor out, const char *words) {
  attempt a = {.in = &in, .out = &out, .n = 1, .op = op};
  assert_ok(dist_run(single, try_it, &a, NULL));
  assert_int_equal(a.status, DIST_INVALID_ARGUMENT);
  assert_has(a.error.message, words);
}

static void wrong_arguments(void **state) {
  (void)state;
  single = strategy_of(1, DIST_THREADS_CALLER);
  float data[16] = {0};
  double wide[16];
  int32_t whole[16] = {0};
  int64_t four = 4, five = 5, minus = -1, two_two[] = {2, 2}, huge[] = {INT64_C(1) << 40, INT64_C(1) << 40},
          gaps[] = {2};
  int64_t too_many[17] = {0};
  const dist_tensor good = vector_of(data, DIST_F32, &four);
  dist_tensor bad = good, ints = vector_of(whole, DIST_I32, &four);
  refused(0, good, good, "op is 0");
  refused(7, good, good, "op is 7");
  refused(DIST_REDUCE_USER, good, good, "reduce_fn is NULL");
  refused(DIST_REDUCE_MIN, vector_of(data, DIST_COMPLEX64, &four), vector_of(data, DIST_COMPLEX64, &four),
          "complex");
  refused(DIST_REDUCE_SUM, vector_of(data, DIST_BOOL, &four), vector_of(data, DIST_BOOL, &four), "bool");
  bad.dtype = 99;
  refused(DIST_REDUCE_SUM, bad, bad, "99 is not a dtype");
  bad.dtype = 0;
  refused(DIST_REDUCE_SUM, bad, bad, "0 is not a dtype");
  refused(DIST_REDUCE_SUM, good, vector_of(wide, DIST_F64, &four), "out must be f32");
  refused(DIST_REDUCE_SUM, good, vector_of(data + 8, DIST_F32, &five), "shapes must be equal");
  refused(DIST_REDUCE_SUM, good, (dist_tensor){data + 8, DIST_F32, 2, two_two, NULL}, "shapes must be equal");
  refused(DIST_REDUCE_SUM, vector_of(data, DIST_F32, &minus), vector_of(data, DIST_F32, &minus),
          "shape[0] is -1");
  bad = (dist_tensor){data, DIST_F32, 2, huge, NULL};
  refused(DIST_REDUCE_SUM, bad, bad, "2^63");
  bad = (dist_tensor){data, DIST_F32, 17, too_many, NULL};
  refused(DIST_REDUCE_SUM, bad, bad, "ndim is 17");
  refused(DIST_REDUCE_SUM, vector_of(NULL, DIST_F32, &four), vector_of(NULL, DIST_F32, &four),
          "data is NULL");
  refused(DIST_REDUCE_SUM, vector_of(data, DIST_F32, NULL), good, "shape is NULL");
  bad = good;
  bad.strides = gaps;
  refused(DIST_REDUCE_SUM, bad, good, "different strides");
  refused(DIST_REDUCE_SUM, good, vector_of(data + 2, DIST_F32, &four), "overlap");
  refused(DIST_REDUCE_MEAN, ints, ints, "f64"); /* of integers only out of place */
  attempt none = {.op = DIST_REDUCE_SUM, .n = 1, .out = &bad};
  assert_ok(dist_run(single, try_it, &none, NULL));
  assert_has(none.error.message, "all_reduce: in is NULL");
  none = (attempt){.op = DIST_REDUCE_SUM, .n = 1, .in = &good};
  assert_ok(dist_run(single, try_it, &none, NULL));
  assert_has(none.error.message, "out is NULL");
  assert_ok(dist_strategy_destroy(single));
}

/* ---- Calls that repeat a valid one: every error in them must be found ---- */

typedef struct repeated {
  float data[3][16];
  double wide[16];
  int32_t other_shape; /* passed by this replica; -1 = by none */
  dist_status statuses[MOST];
  report reports[MOST];
} repeated;

static dist_status sum_of(dist_replica *replica, const dist_tensor *in, dist_tensor *out, const char *tag) {
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.tag = tag;
  return dist_all_reduce(replica, DIST_REDUCE_SUM, in, out, 1, tag == NULL ? NULL : &options, NULL);
}

static dist_status passed(int line, const char *words) {
  char text[1024];
  snprintf(text, sizeof text, "line %d: \"%.800s\" does not say \"%s\"", line, dist_last_error(), words);
  return dist_fail(DIST_INTERNAL, text);
}

#define GOOD(call)                             \
  do {                                         \
    const dist_status status_of_good = (call); \
    if (status_of_good) return status_of_good; \
  } while (0)
#define WRONG(call, words)                                                           \
  do {                                                                               \
    if ((call) != DIST_INVALID_ARGUMENT || strstr(dist_last_error(), words) == NULL) \
      return passed(__LINE__, words);                                                \
  } while (0)

static dist_status repeat(dist_replica *replica, void *user_data) {
  repeated *r = (repeated *)user_data + dist_replica_id(replica);
  int64_t shape[2] = {2, 2};
  dist_tensor in = {r->data[0], DIST_F32, 2, shape, NULL}, out = in;
  for (int i = 0; i < 3; i++) GOOD(sum_of(replica, &in, &out, NULL));
  for (int i = 0; i < 3; i++) GOOD(sum_of(replica, &in, &out, "a tag"));
  out.data = r->data[1]; /* out of place, otherwise like the in-place call */
  for (int i = 0; i < 2; i++) GOOD(sum_of(replica, &in, &out, NULL));

  out.data = r->data[0] + 2;
  WRONG(sum_of(replica, &in, &out, NULL), "overlap");
  out.data = NULL;
  WRONG(sum_of(replica, &in, &out, NULL), "data is NULL");
  out.data = r->wide, out.dtype = DIST_F64;
  WRONG(sum_of(replica, &in, &out, NULL), "out must be f32");
  out = in;
  in.dtype = 99;
  WRONG(sum_of(replica, &in, &out, NULL), "99 is not a dtype");
  in.dtype = DIST_F32;
  int64_t transposed[2] = {1, 2};
  out.strides = transposed;
  WRONG(sum_of(replica, &in, &out, NULL), "different strides");
  out.strides = NULL;
  int64_t other[2] = {4, 2};
  out.shape = other, out.data = r->data[1];
  WRONG(sum_of(replica, &in, &out, NULL), "shapes must be equal");
  in.shape = other, out.shape = shape;
  WRONG(sum_of(replica, &in, &out, NULL), "shapes must be equal");
  in.shape = shape;
  out = in;
  shape[1] = -2; /* changed behind the same pointer */
  WRONG(sum_of(replica, &in, &out, NULL), "shape[1] is -2");
  shape[1] = 2;
  in.ndim = out.ndim = 17;
  WRONG(sum_of(replica, &in, &out, NULL), "ndim is 17");
  in.ndim = out.ndim = 2;
  WRONG(dist_all_reduce(replica, 7, &in, &out, 1, NULL, NULL), "op is 7");
  GOOD(sum_of(replica, &in, &out, NULL)); /* a rejected call changes nothing */

  dist_tensor scalar = {r->data[0], DIST_F32, 0, NULL, NULL};
  for (int i = 0; i < 3; i++) GOOD(sum_of(replica, &scalar, &scalar, NULL));
  scalar.ndim = 1;
  WRONG(sum_of(replica, &scalar, &scalar, NULL), "shape is NULL");

  /* MEAN of integers has another dtype, so it cannot be in place. */
  int64_t four = 4;
  dist_tensor whole = {r->data[2], DIST_I32, 1, &four, NULL}, mean = {r->wide, DIST_F64, 1, &four, NULL};
  for (int i = 0; i < 3; i++) GOOD(dist_all_reduce(replica, DIST_REDUCE_MEAN, &whole, &mean, 1, NULL, NULL));
  mean.data = whole.data;
  WRONG(dist_all_reduce(replica, DIST_REDUCE_MEAN, &whole, &mean, 1, NULL, NULL), "f64");

  if (r->other_shape) shape[0] = 1;
  return sum_of(replica, &in, &out, NULL);
}

static dist_status repeat_and_tell(dist_replica *replica, void *user_data) {
  repeated *r = (repeated *)user_data + dist_replica_id(replica);
  r->statuses[0] = repeat(replica, user_data);
  read_report(&r->reports[0]);
  return r->statuses[0];
}

static void repeated_calls(void **state) {
  (void)state;
  for (int32_t replicas = 1; replicas <= 3; replicas++) {
    dist_strategy *strategy = strategy_of(replicas, DIST_THREADS_CALLER);
    repeated *all = calloc((size_t)replicas, sizeof *all);
    for (int run = 0; run < 2; run++) assert_ok(dist_run(strategy, repeat, all, NULL));
    if (replicas == 3) { /* a call that was not checked again is still compared with those of the peers */
      all[1].other_shape = 1;
      assert_fails(dist_run(strategy, repeat_and_tell, all, NULL), DIST_INVALID_ARGUMENT, "f32[1, 2]");
      for (int32_t i = 0; i < replicas; i++) assert_int_equal(all[i].reports[0].replica, 1);
      assert_healthy(DIST_THREADS_CALLER, strategy);
    }
    free(all);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

/* ---- Overlapping buffers of replicas ---- */

typedef struct overlaps {
  float *memory;
  int64_t length, apart; /* replica r's output begins at r * apart; its input is separate */
  int64_t alike;         /* replicas below this number share replica 0's output */
  size_t n;
  int64_t spacing; /* distance between the tensors of a list */
  dist_status statuses[MOST];
  report reports[MOST];
} overlaps;

static dist_status overlapping(dist_replica *replica, void *user_data) {
  overlaps *o = user_data;
  const int32_t me = dist_replica_id(replica);
  float *mine = calloc((size_t)o->length, sizeof *mine);
  dist_tensor *in = malloc(o->n * sizeof *in), *out = malloc(o->n * sizeof *out);
  for (size_t t = 0; t < o->n; t++) {
    in[t] = vector_of(mine, DIST_F32, &o->length);
    const int64_t at = (me < o->alike ? 0 : me * o->apart) + (int64_t)t * o->spacing;
    out[t] = vector_of(o->memory + at, DIST_F32, &o->length);
  }
  const dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, in, out, o->n, NULL, NULL);
  free(mine), free(in), free(out);
  o->statuses[me] = status;
  read_report(&o->reports[me]);
  return status;
}

static void overlapping_replicas(void **state) {
  (void)state;
  float *memory = malloc(4000000 * sizeof *memory);
  static const int64_t lengths[] = {5, 24, 25, 1200, 10000, 20000, 300000};
  for (int32_t replicas = 2; replicas <= 4; replicas++) {
    dist_strategy *strategy = strategy_of(replicas, DIST_THREADS_CALLER);
    for (size_t l = 0; l < COUNT_OF(lengths); l++) {
      static const size_t counts[] = {1, 2, 20};
      for (size_t c = 0; c < COUNT_OF(counts); c++) {
        const size_t n = counts[c];
        const int64_t spacing = n <= 2 ? 2000000 : 8000;
        if (n > 2 && 4 * lengths[l] > spacing) continue;
        /* All outputs overlap partly; or two replicas share an output and the others do not. */
        overlaps some[] = {{.apart = lengths[l] - 1}, {.apart = lengths[l], .alike = 2}};
        for (size_t k = 0; MAY_OVERLAP && k < COUNT_OF(some); k++) {
          if (k == 1 && replicas == 2) continue;
          overlaps *o = &some[k];
          o->memory = memory, o->length = lengths[l], o->n = n, o->spacing = spacing;
          assert_fails(dist_run(strategy, overlapping, o, NULL), DIST_INVALID_ARGUMENT,
                       "overlapping buffers");
          assert_healthy(DIST_THREADS_CALLER, strategy);
        }
        overlaps none = {
            .memory = memory, .length = lengths[l], .apart = lengths[l], .n = n, .spacing = spacing};
        assert_ok(dist_run(strategy, overlapping, &none, NULL)); /* next to each other */
      }
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
  free(memory);
}

/* ---- Replicas that reduce in place next to others that do not ---- */

enum { MIXED_STEPS = 4 };

typedef struct mixed {
  int64_t length;
  int32_t replicas;
  int32_t in_place[MIXED_STEPS][MOST]; /* by step and replica */
  int wrong[MOST];
} mixed;

static dist_status mixed_steps(dist_replica *replica, void *user_data) {
  mixed *m = user_data;
  const int32_t me = dist_replica_id(replica);
  float *in = malloc((size_t)m->length * sizeof *in), *out = malloc((size_t)m->length * sizeof *out);
  dist_status status = DIST_OK;
  for (int step = 0; step < MIXED_STEPS && status == DIST_OK; step++) {
    for (int64_t i = 0; i < m->length; i++) in[i] = (float)(i % 7 + me + step);
    float *const to = m->in_place[step][me] ? in : out;
    const dist_tensor from = vector_of(in, DIST_F32, &m->length);
    dist_tensor result = vector_of(to, DIST_F32, &m->length);
    status = dist_all_reduce(replica, DIST_REDUCE_SUM, &from, &result, 1, NULL, NULL);
    for (int64_t i = 0; i < m->length && status == DIST_OK; i++) {
      const int32_t sum = m->replicas * (int32_t)(i % 7 + step) + m->replicas * (m->replicas - 1) / 2;
      if (to[i] != (float)sum) m->wrong[me] = 1;
    }
  }
  free(in), free(out);
  return status;
}

static void some_replicas_in_place(void **state) {
  (void)state;
  static const int64_t lengths[] = {8, 16, 17, 600, 1200, 2048, 2049};
  for (int32_t replicas = 2; replicas <= 4; replicas++) {
    dist_strategy *strategy = strategy_of(replicas, DIST_THREADS_CALLER);
    for (size_t l = 0; l < COUNT_OF(lengths); l++) {
      mixed m = {.length = lengths[l], .replicas = replicas};
      for (int32_t r = 0; r < replicas; r++) {
        m.in_place[1][r] = r == 0;
        m.in_place[2][r] = 1;
        m.in_place[3][r] = r == replicas - 1;
      }
      assert_ok(dist_run(strategy, mixed_steps, &m, NULL));
      for (int32_t r = 0; r < replicas; r++) assert_int_equal(m.wrong[r], 0);
    }
    assert_ok(dist_strategy_destroy(strategy));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_op_and_dtype),
      cmocka_unit_test(sizes_of_every_algorithm),
      cmocka_unit_test(lists_of_mixed_tensors),
      cmocka_unit_test(crowded_replicas),
      cmocka_unit_test(the_hosts_floating_point_environment),
      cmocka_unit_test(wrong_arguments),
      cmocka_unit_test(repeated_calls),
      cmocka_unit_test(overlapping_replicas),
      cmocka_unit_test(some_replicas_in_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
