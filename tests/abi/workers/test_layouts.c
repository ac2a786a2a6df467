/* SPDX-License-Identifier: Apache-2.0
 *
 * However replicas are distributed over workers, collectives produce the same bits as a single process with
 * all replicas, and reject the same calls. Covers every dtype, operator, collective, class of sizes, and
 * order of summation.
 *
 * DIST_TEST_SEED seeds the random choices: elements, weights, contributions, distributions and lists.
 */
#include "../layouts_support.h"

enum { CASES = 400, CLASSES = 7 };

/* ThreadSanitizer slows this test down by a factor of 30, and races do not depend on the dtype. */
#if defined(__SANITIZE_THREAD__)
enum { DTYPE_STEP = 6 };
#else
enum { DTYPE_STEP = 1 };
#endif

/* ---- Random values ---- */

/* Fills a view with numbers whose sums depend on the order. Some are NaN, infinite, or a zero of either
 * sign. */
static void fill(view *v, uint64_t seed) {
  fill_view(v, seed);
  const dist_dtype dtype = v->tensor.dtype;
  const int lanes = dtype == DIST_COMPLEX64 ? 2 : 1;
  const size_t size = size_of(dtype) / (size_t)lanes;
  if (dtype > DIST_F64 && dtype != DIST_COMPLEX64) return;
  for (int64_t i = 0; i < elements_in(v) * lanes; ++i) {
    unsigned char bytes[8] = {0};
    const uint64_t which = next_random(&seed) % 24;
    if (which > 2) continue;
    bytes[size - 1] = which == 0 ? 0x80 : 0; /* -0, +0 */
    if (which == 2) {                        /* the NaN that arithmetic on numbers produces */
      if (next_random(&seed) % 4 != 0) continue;
      bytes[size - 1] = dtype == DIST_F16 ? 0x7E : 0x7F;
      bytes[size - 2] = dtype == DIST_F16 ? 0 : dtype == DIST_F64 ? 0xF8 : 0xC0;
    }
    memcpy((char *)at(v, i / lanes) + (size_t)(i % lanes) * size, bytes, size);
  }
  save_view(v);
}

/* Divides `whole` elements into eight parts, some of which may be empty. */
static void cut(int64_t whole, uint64_t *seed, int64_t *parts) {
  int64_t left = whole;
  for (int r = 0; r < ALL; ++r) {
    const int64_t most = left < 2 * whole / ALL + 1 ? left : 2 * whole / ALL + 1;
    parts[r] = r == ALL - 1 ? left : (int64_t)draw_of(seed, (uint64_t)most + 1);
    left -= parts[r];
  }
}

/* Returns the number of elements of the largest tensor of a class. In one process, up to 96 bytes are in a
 * slot, and up to 219 next to it. Over workers, data that all members get are exchanged by owners from 32 KiB
 * per member on, in all layouts; other data always are. */
static int64_t elements_of_class(int k, int32_t collective, dist_dtype dtype) {
  static const int64_t bytes[CLASSES] = {0, 0, 88, 112, 208, 600, 4 << 10};
  const int to_all = collective == DIST_COLLECTIVE_ALL_REDUCE || collective == DIST_COLLECTIVE_SCAN;
  if (k == CLASSES - 1 && to_all) return (36 << 10) / (int64_t)size_of(dtype);
  return k == 1 ? 1 : bytes[k] / (int64_t)size_of(dtype);
}

typedef struct planned_case {
  exchange e;
  unsigned char *expected[ALL][TENSORS];
  dist_status status;
  char message[sizeof((report *)NULL)->message];
} planned_case;

/* Draws a case of the table, with one-dimensional tensors. */
static void draw_case(planned_case *c, int32_t collective, dist_reduce_op op, dist_dtype dtype,
                      int32_t numerics, int64_t elements, uint64_t *seed) {
  exchange *e = &c->e;
  memset(c, 0, sizeof *c);
  e->collective = collective, e->op = op, e->numerics = numerics, e->members = ALL;
  e->root = (int32_t)draw_of(seed, ALL), e->kind = DIST_SCAN_INCLUSIVE + (int32_t)draw_of(seed, 2);
  const int large = elements * (int64_t)size_of(dtype) > 1024;
  e->n = collective == DIST_COLLECTIVE_BARRIER ? 0 : large ? 1 : 1 + draw_of(seed, TENSORS);
  e->weighted = op == DIST_REDUCE_MEAN && draw_of(seed, 2) == 0;
  draw_pairs(e, seed);
  const int several =
      reduces(collective) && collective != DIST_COLLECTIVE_SCAN && !large && draw_of(seed, 2) == 0;
  for (int r = 0; r < ALL; ++r) {
    e->contributions[r] = several ? 1 + draw_of(seed, LISTS) : 0;
    for (int j = 0; j < LISTS; ++j)
      e->weights[r][j] = draw_of(seed, 4) == 0 ? 0 : (double)draw_of(seed, 1000) / 7;
  }
  for (size_t t = 0; t < e->n; ++t) {
    const int64_t whole = t == 0 ? elements : (int64_t)draw_of(seed, (uint64_t)elements + 1);
    int64_t parts[ALL];
    int64_t in[ALL] = {0};
    int64_t out[ALL] = {0};
    cut(whole, seed, parts);
    for (int r = 0; r < ALL; ++r) {
      in[r] = joins(collective) ? parts[r] : whole;
      out[r] = cuts(collective) ? parts[r] : whole;
    }
    if (collective == DIST_COLLECTIVE_ALL_TO_ALL) {
      /* All tensors of a call have the same splits. */
      memset(out, 0, sizeof out);
      for (int p = 0; p < ALL; ++p) {
        e->has_splits[p] = 1;
        if (t == 0) cut(parts[p], seed, e->splits[p]);
        in[p] = 0;
        for (int r = 0; r < ALL; ++r) in[p] += e->splits[p][r], out[r] += e->splits[p][r];
      }
    }
    const dist_dtype result = reduces(collective) ? dtype_of_result(op, dtype) : dtype;
    for (int r = 0; r < ALL; ++r) {
      for (size_t j = 0; j < lists_of(e, r) && gives(e, r); ++j) {
        make_view(&e->in[r][j * e->n + t], dtype, 1, &in[r], DENSE);
        fill(&e->in[r][j * e->n + t], next_random(seed));
      }
      make_view(&e->out[r][t], result, 1, &out[r], DENSE);
    }
  }
}

/* ---- A sequence of cases ---- */

typedef struct batch {
  planned_case *cases;
  size_t n;
} batch;

/* Plays all cases in one run. A rejected call ends neither the run nor the cases after it. */
static dist_status play_batch(dist_replica *replica, void *user_data) {
  const batch *all = user_data;
  for (size_t k = 0; k < all->n; ++k) (void)do_exchange(replica, &all->cases[k].e);
  return dist_barrier(replica, NULL, NULL);
}

static void begin_batch(dist_replica *replica, const batch *all, int planned, dist_work **works) {
  const int32_t me = dist_replica_id(replica);
  for (size_t k = 0; k < all->n; ++k) {
    exchange *e = &all->cases[k].e;
    call c;
    prepare_call(e, me, &c);
    c.out_work = &works[k];
    c.options.planned = planned;
    e->statuses[me] = make_call(replica, &c);
    read_report(&e->reports[me]);
  }
}

/* Plays all cases at the same time. */
static dist_status play_batch_later(dist_replica *replica, void *user_data) {
  const batch *all = user_data;
  const int32_t me = dist_replica_id(replica);
  dist_work *works[CASES] = {0};
  begin_batch(replica, all, 0, works);
  /* From the middle on, so that the order of waiting differs from that of starting. */
  for (size_t i = 0; i < all->n; ++i) {
    const size_t k = (i + all->n / 2) % all->n;
    exchange *e = &all->cases[k].e;
    if (e->statuses[me] != DIST_OK) continue;
    e->statuses[me] = dist_work_wait(works[k], DIST_NO_TIMEOUT);
    read_report(&e->reports[me]);
    dist_work_destroy(works[k]);
  }
  return dist_barrier(replica, NULL, NULL);
}

/* Plans all cases, and then runs all of them at the same time, twice. */
static dist_status play_batch_planned(dist_replica *replica, void *user_data) {
  const batch *all = user_data;
  const int32_t me = dist_replica_id(replica);
  dist_work *works[CASES] = {0};
  begin_batch(replica, all, 1, works);
  for (int round = 0; round < 2; ++round) {
    /* Replicas start them in different orders. */
    for (size_t i = 0; i < all->n; ++i) {
      const size_t k = (i + (size_t)me * 7) % all->n;
      exchange *e = &all->cases[k].e;
      if (e->statuses[me] == DIST_OK) e->statuses[me] = dist_work_start(works[k]);
    }
    for (size_t k = 0; k < all->n; ++k) {
      exchange *e = &all->cases[k].e;
      if (e->statuses[me] == DIST_OK)
        e->statuses[me] = dist_work_wait(works[k], DIST_NO_TIMEOUT);
      else if (works[k] == NULL)
        continue;
      read_report(&e->reports[me]);
    }
  }
  for (size_t k = 0; k < all->n; ++k) dist_work_destroy(works[k]);
  return dist_barrier(replica, NULL, NULL);
}

static void clear_outputs(const batch *all) {
  for (size_t k = 0; k < all->n; ++k) {
    for (int r = 0; r < ALL; ++r) {
      for (size_t t = 0; t < all->cases[k].e.n; ++t) {
        const view *out = &all->cases[k].e.out[r][t];
        memset(out->memory, UNTOUCHED, out->bytes);
      }
    }
  }
}

static void play_expected(batch *all, size_t *refused) {
  assert_ok(dist_run(one_process, play_batch, all, NULL));
  for (size_t k = 0; k < all->n; ++k) {
    planned_case *c = &all->cases[k];
    c->status = c->e.statuses[0];
    memcpy(c->message, c->e.reports[0].message, sizeof c->message);
    *refused += c->status != DIST_OK;
    for (int r = 0; r < ALL; ++r) {
      assert_int_equal(c->e.statuses[r], c->status);
      for (size_t t = 0; t < c->e.n; ++t) {
        const view *out = &c->e.out[r][t];
        c->expected[r][t] = malloc(out->bytes);
        memcpy(c->expected[r][t], out->memory, out->bytes);
      }
    }
  }
}

/* Returns the first position at which two results differ, or their size if they do not. */
static size_t first_difference(dist_dtype dtype, const unsigned char *a, const unsigned char *b,
                               size_t bytes) {
  if (memcmp(a, b, bytes) == 0) return bytes;
  for (size_t at = 0; at < bytes; at += size_of(dtype)) {
    if (!same_element(dtype, a + at, b + at)) return at;
  }
  return bytes;
}

static void compare(const planned_case *c, const char *layout) {
  const exchange *e = &c->e;
  for (int r = 0; r < ALL; ++r) {
    const char *what = NULL;
    size_t where = 0;
    if (e->statuses[r] != c->status) what = "the status";
    if (c->status != DIST_OK && strcmp(e->reports[r].message, c->message) != 0) what = "the message";
    for (size_t t = 0; c->status == DIST_OK && what == NULL && t < e->n; ++t) {
      where = first_difference(e->out[r][t].tensor.dtype, (const unsigned char *)e->out[r][t].memory,
                               (const unsigned char *)c->expected[r][t], e->out[r][t].bytes);
      if (where < e->out[r][t].bytes) what = "the result";
    }
    if (what == NULL) continue;
    fail_msg(
        "%s: collective %d, op %d, dtype %d, numerics %d, %zu tensors of %lld elements, root %d, kind %d, "
        "%s, "
        "weighted %d: replica %d has another %s than in one process, from byte %zu on; %s: %s; not %s: %s",
        layout, (int)e->collective, (int)e->op, (int)e->out[0][0].tensor.dtype, (int)e->numerics, e->n,
        (long long)elements_in(&e->out[0][0]), (int)e->root, (int)e->kind,
        e->contributions[0] != 0 ? "several contributions" : "one contribution", e->weighted, r, what + 4,
        where, dist_status_name(e->statuses[r]), e->reports[r].message, dist_status_name(c->status),
        c->message);
  }
}

static void free_batch(batch *all) {
  for (size_t k = 0; k < all->n; ++k) {
    for (int r = 0; r < ALL; ++r)
      for (size_t t = 0; t < TENSORS; ++t) free(all->cases[k].expected[r][t]);
    free_exchange(&all->cases[k].e);
  }
  all->n = 0;
}

typedef struct tally {
  size_t cases, refused;
} tally;

static void hold_layouts(batch *all, tally *counted) {
  play_expected(all, &counted->refused);
  counted->cases += all->n;
  for (size_t l = 0; l < COUNT_OF(layouts); ++l) {
    const dist_replica_fn plays[] = {play_batch, play_batch_later, play_batch_planned};
    for (size_t p = 0; p < COUNT_OF(plays); ++p) {
      clear_outputs(all);
      run_on_workers(&divided[l], plays[p], all);
      for (size_t k = 0; k < all->n; ++k) compare(&all->cases[k], layouts[l]);
    }
  }
  free_batch(all);
}

/* Adds all sizes of one collective. */
static void add_cases(batch *all, int32_t collective, dist_reduce_op op, dist_dtype dtype, int32_t numerics,
                      uint64_t *seed) {
  for (int k = 0; k < CLASSES; ++k) {
    assert_true(all->n < CASES);
    draw_case(&all->cases[all->n++], collective, op, dtype, numerics, elements_of_class(k, collective, dtype),
              seed);
  }
}

static void every_layout_has_the_bits_of_one_process(void **state) {
  (void)state;
  uint64_t seed = seed_of_test();
  batch all = {malloc(CASES * sizeof(planned_case)), 0};
  tally counted = {0};
  for (dist_dtype dtype = 1; dtype <= LAST_DTYPE; dtype += DTYPE_STEP) {
    for (size_t k = 0; k < COUNT_OF(exchanged); ++k)
      if (!reduces(exchanged[k])) add_cases(&all, exchanged[k], 0, dtype, DIST_NUMERICS_ORDERED, &seed);
    for (dist_reduce_op op = DIST_REDUCE_SUM; op <= DIST_REDUCE_USER; ++op) {
      for (size_t k = 0; k < COUNT_OF(exchanged); ++k) {
        for (int32_t numerics = DIST_NUMERICS_ORDERED;
             numerics <= DIST_NUMERICS_TREE && reduces(exchanged[k]); ++numerics)
          add_cases(&all, exchanged[k], op, dtype, numerics, &seed);
      }
      hold_layouts(&all, &counted);
    }
  }
  free(all.cases);
  fprintf(stderr, "# %zu cases, of which %zu are refused, each in %zu layouts\n", counted.cases,
          counted.refused, COUNT_OF(layouts));
}

/* ---- Any memory layout, axis and placement ---- */

static dist_status play_one(dist_replica *replica, void *user_data) {
  return do_exchange(replica, user_data);
}

static void every_layout_gives_what_the_equations_say(void **state) {
  (void)state;
  enum { PROGRAMS = 150 };
  uint64_t seed = seed_of_test() + 1;
  exchange *e = malloc(sizeof *e);
  for (int k = 0; k < PROGRAMS; ++k) {
    recipe given = draw_recipe(ALL, &seed);
    given.one_out = 0; /* workers share no memory */
    for (size_t l = 0; l < COUNT_OF(layouts); ++l) {
      char text[256];
      make_exchange(e, &given);
      run_on_workers(&divided[l], play_one, e);
      if (find_wrong(e, text, sizeof text) != NULL) fail_msg("program %d, %s: %s", k, layouts[l], text);
      free_exchange(e);
    }
  }
  free(e);
}

/* ---- Large tensors ---- */

/* All replicas read from one tensor, each its lists from a different position. */
typedef struct large {
  int32_t collective;
  dist_reduce_op op;
  int32_t numerics;
  dist_dtype dtype;
  int64_t elements;
  size_t contributions;
  const unsigned char *in;
  unsigned char *out[ALL];
  size_t out_bytes[ALL];
} large;

enum { MOST_LISTS = 16 };

static size_t bytes_between_lists(const large *c) { return 8 * size_of(c->dtype); }

static dist_status play_large(dist_replica *replica, void *user_data) {
  const large *c = user_data;
  const int32_t me = dist_replica_id(replica);
  const int32_t root = ALL - 2;
  call made;
  memset(&made, 0, sizeof made);
  made.collective = c->collective, made.op = c->op, made.n = 1;
  made.root = root;
  made.kind = DIST_SCAN_INCLUSIVE;
  made.destination = (me + 3) % ALL, made.source = (me + ALL - 3) % ALL;
  const dist_collective_options defaults = DIST_COLLECTIVE_OPTIONS_INIT;
  made.options = defaults;
  made.options.numerics = c->numerics;
  made.options.contributions = c->contributions;
  const int64_t whole[] = {c->elements};
  const int64_t out_shape[] = {(int64_t)(c->out_bytes[me] / size_of(c->dtype))};
  dist_tensor in[MOST_LISTS];
  dist_tensor out = {c->out[me], c->dtype, 1, out_shape, NULL};
  const size_t lists = c->contributions == 0 ? 1 : c->contributions;
  for (size_t j = 0; j < lists; ++j) {
    const size_t at = ((size_t)me * lists + j) * bytes_between_lists(c);
    in[j] = (dist_tensor){(void *)(c->in + at), c->dtype, 1, whole, NULL};
  }
  made.in = in;
  made.out = c->out_bytes[me] == 0 ? NULL : &out;
  return make_call(replica, &made);
}

static void hold_large(large *c, const char *layout, const workers *all) {
  const int joined = joins(c->collective);
  unsigned char *expected[ALL] = {0};
  const size_t bytes = (size_t)c->elements * size_of(c->dtype);
  uint64_t seed = seed_of_test() + (uint64_t)c->collective;
  const size_t room = bytes + ALL * MOST_LISTS * bytes_between_lists(c);
  unsigned char *in = malloc(room);
  fill_random(c->dtype, in, room / size_of(c->dtype), next_random(&seed));
  c->in = in;
  for (int r = 0; r < ALL; ++r) {
    const int to_root = c->collective == DIST_COLLECTIVE_REDUCE || c->collective == DIST_COLLECTIVE_GATHER;
    c->out_bytes[r] = to_root && r != ALL - 2 ? 0
                      : joined                ? ALL * bytes
                      : cuts(c->collective)   ? bytes / ALL
                                              : bytes;
    c->out[r] = malloc(c->out_bytes[r] + 1);
    expected[r] = malloc(c->out_bytes[r] + 1);
  }
  assert_ok(dist_run(one_process, play_large, c, NULL));
  for (int r = 0; r < ALL; ++r) {
    memcpy(expected[r], c->out[r], c->out_bytes[r]);
    memset(c->out[r], UNTOUCHED, c->out_bytes[r]);
  }
  run_on_workers(all, play_large, c);
  for (int r = 0; r < ALL; ++r) {
    if (memcmp(c->out[r], expected[r], c->out_bytes[r]) != 0)
      fail_msg("%s: large tensors of collective %d, dtype %d, numerics %d: replica %d has other bits", layout,
               (int)c->collective, (int)c->dtype, (int)c->numerics, r);
    free(c->out[r]);
    free(expected[r]);
  }
  free(in);
}

static void large_tensors_go_by_owner(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT_OF(exchanged); ++k) {
    if (exchanged[k] == DIST_COLLECTIVE_BARRIER) continue;
    const dist_dtype dtype = k % 2 == 0 ? DIST_F32 : DIST_BF16;
    for (size_t l = 0; l < COUNT_OF(layouts); ++l) {
      large c = {.collective = exchanged[k], .op = DIST_REDUCE_SUM, .dtype = dtype};
      c.numerics = reduces(exchanged[k]) && l % 2 == 1 ? DIST_NUMERICS_TREE : DIST_NUMERICS_ORDERED;
      c.elements = (288 << 10) / (int64_t)size_of(dtype);
      hold_large(&c, layouts[l], &divided[l]);
    }
  }
}

/* More than the 64 MiB of a worker's staging memory, so that they are sent in two or more pieces. */
static void larger_ones_go_in_pieces(void **state) {
  (void)state;
  const struct {
    int32_t collective;
    size_t layout, contributions;
    int64_t bytes;
  } cases[] = {{DIST_COLLECTIVE_ALL_REDUCE, 3, MOST_LISTS, 1 << 20},
               {DIST_COLLECTIVE_REDUCE, 4, MOST_LISTS, 1 << 20},
               {DIST_COLLECTIVE_REDUCE_SCATTER, 5, MOST_LISTS, 1 << 20},
               {DIST_COLLECTIVE_PERMUTE, 3, 0, 9 << 20}};
  for (size_t k = 0; k < COUNT_OF(cases); ++k) {
    large c = {.collective = cases[k].collective, .op = DIST_REDUCE_SUM, .dtype = DIST_F32};
    c.contributions = cases[k].contributions;
    c.elements = cases[k].bytes / 4;
    hold_large(&c, layouts[cases[k].layout], &divided[cases[k].layout]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_layout_has_the_bits_of_one_process),
      cmocka_unit_test(every_layout_gives_what_the_equations_say),
      cmocka_unit_test(large_tensors_go_by_owner),
      cmocka_unit_test(larger_ones_go_in_pieces),
  };
  return cmocka_run_group_tests(tests, make_all, end_all);
}
