/* SPDX-License-Identifier: Apache-2.0
 *
 * Datasets over several workers: which rows each worker's replicas receive.
 */
#include "input_support.h"

/* Plays `p` on the workers of the layout, and `alone` on one process with the same number of replicas. */
static void play_both(const char *layout, passing *p, passing *alone) {
  workers all = workers_of(layout, (dist_strategy_options)DIST_STRATEGY_OPTIONS_INIT);
  for (int w = 0; w < all.n; ++w) {
    if (p->kind != FILES) p->totals[w] = p->total;
  }
  *alone = *p;
  alone->options.as_one_process = 0;
  p->all = &all;
  all_workers(&all, play, p);
  dist_strategy *const one = strategy_of(first_of(&all, all.n), DIST_THREADS_CALLER);
  assert_ok(play(one, 0, alone));
  assert_ok(dist_strategy_destroy(one));
  for (int w = 1; w < all.n; ++w) assert_int_equal(p->steps[w], p->steps[0]);
  end_workers(&all);
}

static const char *const kLayouts[] = {"1+1", "2+2", "3+1", "1+3", "1+2+1", "2+1+3", "1+1+1+1"};
static const int64_t kTotals[] = {0, 1, 4, 7, 8, 19};
static const int64_t kBatches[] = {1, 3, 4, 6, 13};

/* ---- Like one process ---- */

static void play_as_one(const char *layout, passing p) {
  static passing alone;
  static passing many;
  many = p;
  many.options.as_one_process = 1;
  many.passes = 2; /* the second pass has a different order */
  play_both(layout, &many, &alone);
  char what[160];
  snprintf(what, sizeof what, "%s, source %d, %d rows, batches of %d, shuffle %d, policy %d: steps", layout,
           (int)p.kind, (int)p.total, (int)p.options.global_batch_size, p.options.shuffle,
           p.options.shard_policy);
  if (many.steps[0] != alone.steps[0]) fail_msg("%s: %d for %d", what, many.steps[0], alone.steps[0]);
  for (int32_t k = 0; k < alone.steps[0]; ++k) {
    for (int32_t r = 0; r < local_of(&alone, 0); ++r) check_rows(what, &many.got[k][r], &alone.got[k][r]);
  }
}

static void replicas_get_what_those_of_one_process_get(void **state) {
  (void)state;
  static const int64_t sizes[] = {2, 0, 3, 1, 5};
  for (size_t l = 0; l < COUNT_OF(kLayouts); ++l) {
    for (size_t t = 0; t < COUNT_OF(kTotals); ++t) {
      for (size_t b = 0; b < COUNT_OF(kBatches); ++b) {
        passing p = {.total = kTotals[t], .options = DIST_DATASET_OPTIONS_INIT};
        p.options.global_batch_size = kBatches[b];
        p.options.shuffle = b % 2 == 0;
        p.options.seed = 7;
        p.options.drop_remainder = b == 1;
        p.options.shard_policy = t % 2 == 0 ? DIST_SHARD_AUTO : DIST_SHARD_DATA;
        play_as_one(kLayouts[l], p);
        p.kind = CALLBACK;
        p.options.shuffle = 0;
        play_as_one(kLayouts[l], p);
      }
      passing p = {.total = kTotals[t], .kind = BATCHES, .options = DIST_DATASET_OPTIONS_INIT};
      play_as_one(kLayouts[l], p);
      p.options.batch_sizes = sizes;
      p.options.num_batch_sizes = COUNT_OF(sizes);
      play_as_one(kLayouts[l], p);
      p.kind = ROWS;
      p.options.global_batch_size = 1;
      play_as_one(kLayouts[l], p);
    }
  }
}

/* ---- Like TensorFlow's workers ---- */

static workers layout_of(const char *layout) {
  workers all = {0};
  for (const char *at = layout; *at != 0; ++at) {
    if (*at != '+') all.replicas[all.n++] = *at - '0';
  }
  return all;
}

/* The turn of replica r of worker w: the number of replicas before it, if workers take turns. */
static int64_t turn_of(const workers *all, int worker, int32_t replica) {
  int64_t before = 0;
  for (int w = 0; w < all->n; ++w) {
    for (int32_t r = 0; r < all->replicas[w]; ++r) before += r < replica || (r == replica && w < worker);
  }
  return before;
}

static void workers_take_turns_at_the_pieces(void **state) {
  (void)state;
  for (size_t l = 0; l < COUNT_OF(kLayouts); ++l) {
    for (size_t t = 0; t < COUNT_OF(kTotals); ++t) {
      for (size_t b = 0; b < COUNT_OF(kBatches); ++b) {
        static passing p;
        static passing alone;
        p = (passing){.total = kTotals[t], .passes = 1, .kind = t % 2, .options = DIST_DATASET_OPTIONS_INIT};
        p.options.global_batch_size = kBatches[b];
        play_both(kLayouts[l], &p, &alone);
        assert_int_equal(p.steps[0], alone.steps[0]);
        const workers all = layout_of(kLayouts[l]);
        for (int32_t k = 0; k < p.steps[0]; ++k) {
          for (int w = 0; w < all.n; ++w) {
            for (int32_t r = 0; r < all.replicas[w]; ++r) {
              check_rows(kLayouts[l], &p.got[k][first_of(&all, w) + r], &alone.got[k][turn_of(&all, w, r)]);
            }
          }
        }
      }
    }
  }
}

/* Every worker reads all elements, in steps that add up to a batch. */
static void sizes_add_up_in_each_step(void **state) {
  (void)state;
  for (size_t l = 0; l < COUNT_OF(kLayouts); ++l) {
    for (size_t b = 0; b < COUNT_OF(kBatches); ++b) {
      static passing p;
      static passing alone;
      p = (passing){.total = 40, .passes = 1, .options = DIST_DATASET_OPTIONS_INIT};
      p.options.global_batch_size = kBatches[b] + 4;
      p.options.shard_policy = DIST_SHARD_OFF;
      play_both(kLayouts[l], &p, &alone);
      const workers all = layout_of(kLayouts[l]);
      int64_t read[MOST_WORKERS] = {0};
      int over[MOST_WORKERS] = {0};
      int ended = 0; /* workers that have read all elements */
      for (int32_t k = 0; k < p.steps[0]; ++k) {
        int64_t step = 0;
        for (int w = 0; w < all.n; ++w) {
          for (int32_t r = 0; r < all.replicas[w]; ++r) {
            const rows *const got = &p.got[k][first_of(&all, w) + r];
            for (int64_t i = 0; i < got->n; ++i) assert_int_equal(got->numbers[i], read[w]++);
            step += got->n;
          }
          if (read[w] == p.total && !over[w]) over[w] = 1, ++ended;
        }
        if (ended == 0) assert_int_equal(step, p.options.global_batch_size);
        assert_true(step <= p.options.global_batch_size);
      }
      assert_int_equal(ended, all.n);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(replicas_get_what_those_of_one_process_get),
      cmocka_unit_test(workers_take_turns_at_the_pieces),
      cmocka_unit_test(sizes_add_up_in_each_step),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
