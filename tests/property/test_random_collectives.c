/* SPDX-License-Identifier: Apache-2.0
 *
 * Random programs of every collective on 1 to 8 replicas, with random dtypes, shapes, layouts, axes, groups,
 * contributions, weights and numerics. Compares them with the equations of dist.h as plain loops
 * (tests/abi/exchange.h).
 *
 * A seed determines a program. DIST_TEST_SEED repeats one; DIST_TEST_PROGRAMS sets their number.
 */
#include "tests/abi/recipe.h"

enum { STEPS = 12, GROUPS = 4 };

typedef struct program {
  exchange steps[STEPS];
} program;

static dist_status play(dist_replica* replica, void* user_data) {
  program* p = user_data;
  dist_status status = DIST_OK;
  for (int k = 0; status == DIST_OK && k < STEPS; k++) status = do_exchange(replica, &p->steps[k]);
  return status;
}

static uint64_t number_from(const char* name, uint64_t otherwise) {
  const char* text = getenv(name);
  return text == NULL ? otherwise : strtoull(text, NULL, 0);
}

static void random_collectives(void** state) {
  (void)state;
  const uint64_t first = number_from("DIST_TEST_SEED", 20240607),
                 count = number_from("DIST_TEST_PROGRAMS", 120);
  fprintf(stderr, "# seeds %llu to %llu\n", (unsigned long long)first,
          (unsigned long long)(first + count - 1));
  dist_strategy* strategies[3][MEMBERS + 1];
  dist_group* groups[3][MEMBERS + 1][GROUPS];
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    for (int32_t n = 1; n <= MEMBERS; n++) {
      strategies[threads - DIST_THREADS_CALLER][n] = strategy_of(n, threads);
      for (int g = 0; g < GROUPS; g++) { /* any subset, by its bits; replica g % n is always in it */
        uint64_t seed = (uint64_t)n * GROUPS + (uint64_t)g;
        const uint64_t bits = next_random(&seed);
        int32_t ids[MEMBERS];
        size_t size = 0;
        for (int32_t id = 0; id < n; id++)
          if (id == g % n || bits >> id & 1) ids[size++] = id;
        assert_ok(dist_group_create(strategies[threads - DIST_THREADS_CALLER][n], ids, size,
                                    &groups[threads - DIST_THREADS_CALLER][n][g]));
      }
    }
  }
  static program p;
  for (uint64_t number = first; number < first + count; number++) {
    uint64_t seed = number * 0x9E3779B97F4A7C15u;
    const int32_t replicas = 1 + (int32_t)draw_of(&seed, MEMBERS),
                  threads = DIST_THREADS_CALLER + (int32_t)draw_of(&seed, 3);
    for (int k = 0; k < STEPS; k++) {
      const uint64_t which = draw_of(&seed, 2 * GROUPS);
      dist_group* group = which < GROUPS ? groups[threads - DIST_THREADS_CALLER][replicas][which] : NULL;
      const recipe given = draw_recipe(group == NULL ? replicas : dist_group_size(group), &seed);
      make_exchange(&p.steps[k], &given);
      p.steps[k].group = group;
    }
    report error;
    char text[256];
    if (run_on(threads, strategies[threads - DIST_THREADS_CALLER][replicas], play, &p, &error) != DIST_OK)
      fail_msg("seed %llu, R %d on %s: %s", (unsigned long long)number, (int)replicas, threads_name(threads),
               error.message);
    for (int k = 0; k < STEPS; k++) {
      if (find_wrong(&p.steps[k], text, sizeof text) != NULL)
        fail_msg("seed %llu, R %d on %s, step %d: %s", (unsigned long long)number, (int)replicas,
                 threads_name(threads), k, text);
      free_exchange(&p.steps[k]);
    }
  }
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    for (int32_t n = 1; n <= MEMBERS; n++) {
      for (int g = 0; g < GROUPS; g++)
        assert_ok(dist_group_destroy(groups[threads - DIST_THREADS_CALLER][n][g]));
      assert_ok(dist_strategy_destroy(strategies[threads - DIST_THREADS_CALLER][n]));
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_collectives)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
