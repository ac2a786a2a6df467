/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_cpu_options.cpus: the CPUs on which a strategy's threads may run. The caller's own affinity does
 * not change.
 */
#include "tests/abi/common.h"

#include <dist/serve.h>

/* The first two CPUs of the process. Most strategies get the second one. */
typedef struct machine {
  cpu_set_t all;
  int32_t cpus[2];
} machine;

static machine m;

static int set_up(void **state) {
  if (sched_getaffinity(0, sizeof m.all, &m.all) != 0) return -1;
  int found = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++) {
    if (CPU_ISSET(cpu, &m.all)) m.cpus[found++] = cpu;
  }
  *state = found == 2 ? &m : NULL;
  return 0;
}

static int is_only(const cpu_set_t *set, int32_t cpu) { return CPU_COUNT(set) == 1 && CPU_ISSET(cpu, set); }

static void assert_unmoved(void) {
  cpu_set_t now;
  assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
  assert_true(CPU_EQUAL(&now, &m.all));
}

static dist_strategy_options on_second(int32_t num_replicas, int32_t threads) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  static dist_cpu_options cpu;
  cpu = (dist_cpu_options)DIST_CPU_OPTIONS_INIT;
  options.cpu = &cpu;
  options.num_replicas = num_replicas;
  options.threads = threads;
  cpu.cpus = &m.cpus[1];
  cpu.num_cpus = 1;
  return options;
}

typedef struct masks {
  cpu_set_t of[4];
} masks;

static dist_status see_mask(dist_replica *replica, void *user_data) {
  cpu_set_t *mine = &((masks *)user_data)->of[dist_replica_id(replica)];
  return sched_getaffinity(0, sizeof *mine, mine) == 0 ? DIST_OK : DIST_INTERNAL;
}

static void threads_stay_on_the_set(void **state) {
  if (*state == NULL) skip_because("needs two CPUs");
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; threads++) {
    for (int32_t placement = DIST_PLACEMENT_FREE; placement <= DIST_PLACEMENT_CORES; placement++) {
      dist_strategy_options options = on_second(3, threads);
      dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
      if (options.cpu != NULL) cpu = *options.cpu;
      options.cpu = &cpu;
      cpu.placement = placement;
      dist_strategy *strategy = strategy_with(options);
      masks seen;
      for (int round = 0; round < 3; round++) {
        assert_ok(dist_run(strategy, see_mask, &seen, NULL));
        for (int r = 0; r < 3; r++) {
          if (r == 0 && threads == DIST_THREADS_CALLER) {
            assert_true(CPU_EQUAL(&seen.of[r], &m.all));
          } else {
            assert_true(is_only(&seen.of[r], m.cpus[1]));
          }
        }
      }
      assert_ok(dist_strategy_destroy(strategy));
      assert_unmoved();
    }
  }
}

/* Creates a strategy on a thread that has only one CPU. */
static void *create_there(void *out_strategy) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(m.cpus[0], &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) return NULL;
  dist_strategy_options options = on_second(0, DIST_THREADS_LIBRARY);
  dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
  if (options.cpu != NULL) cpu = *options.cpu;
  options.cpu = &cpu;
  cpu.cpus = m.cpus;
  cpu.num_cpus = 2;
  cpu.placement = DIST_PLACEMENT_CORES;
  if (dist_strategy_create(&options, out_strategy) != DIST_OK) return NULL;
  cpu_set_t now;
  return sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &one) ? out_strategy : NULL;
}

static void a_set_is_not_the_callers(void **state) {
  if (*state == NULL) skip_because("needs two CPUs");
  dist_strategy *strategy = NULL;
  pthread_t thread;
  void *result = NULL;
  assert_int_equal(pthread_create(&thread, NULL, create_there, &strategy), 0);
  assert_int_equal(pthread_join(thread, &result), 0);
  assert_non_null(result);
  assert_int_equal(dist_strategy_num_replicas(strategy), 2);
  masks seen;
  assert_ok(dist_run(strategy, see_mask, &seen, NULL));
  assert_true((is_only(&seen.of[0], m.cpus[0]) && is_only(&seen.of[1], m.cpus[1])) ||
              (is_only(&seen.of[0], m.cpus[1]) && is_only(&seen.of[1], m.cpus[0])));
  assert_ok(dist_strategy_destroy(strategy));
}

static void the_set_counts_the_replicas(void **state) {
  if (*state == NULL) skip_because("needs two CPUs");
  dist_strategy *strategy = strategy_with(on_second(0, DIST_THREADS_LIBRARY));
  assert_int_equal(dist_strategy_num_replicas(strategy), 1);
  assert_ok(dist_strategy_destroy(strategy));
}

static void wrong_sets_are_refused(void **state) {
  (void)state;
  dist_strategy *strategy = NULL;
  dist_strategy_options options = on_second(2, DIST_THREADS_CALLER);
  dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
  if (options.cpu != NULL) cpu = *options.cpu;
  options.cpu = &cpu;
  int32_t cpus[2] = {m.cpus[0], m.cpus[0]};
  cpu.cpus = cpus;
  cpu.num_cpus = 2;
  char words[64];
  snprintf(words, sizeof words, "cpus contains CPU %d twice", m.cpus[0]);
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, words);
  static const int32_t strange[] = {-1, 1023, 1024, INT32_MAX, INT32_MIN};
  for (size_t i = 0; i < COUNT_OF(strange); i++) {
    if (strange[i] == 1023 && CPU_ISSET(1023, &m.all)) continue;
    cpus[1] = strange[i];
    snprintf(words, sizeof words, "cpus contains CPU %d, which this process may not use", strange[i]);
    assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, words);
  }
  cpu.cpus = NULL;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "options->cpu->cpus");
  cpu.num_cpus = 0;
  assert_ok(dist_strategy_create(&options, &strategy));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Other threads than the replicas' ---- */

typedef struct seen_once {
  cpu_set_t mask;
  atomic_int seen;
} seen_once;

static void note(seen_once *out) {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0 || atomic_load(&out->seen)) return;
  out->mask = mask;
  atomic_store(&out->seen, 1);
}

static void tell(dist_request *work, void *user_data) {
  (void)work;
  note(user_data);
}

static dist_status nothing(dist_replica *replica, void *user_data) {
  (void)replica, (void)user_data;
  return DIST_OK;
}

static void the_teller_is_on_the_set(void **state) {
  if (*state == NULL) skip_because("needs two CPUs");
  dist_strategy *strategy = strategy_with(on_second(1, DIST_THREADS_LIBRARY));
  seen_once told = {{{0}}, 0};
  dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
  options.done = tell;
  dist_request *work = NULL;
  assert_ok(dist_submit(strategy, nothing, &told, &options, &work));
  while (!atomic_load(&told.seen)) sched_yield();
  assert_true(is_only(&told.mask, m.cpus[1]));
  assert_ok(dist_request_wait(work, DIST_NO_TIMEOUT));
  dist_request_destroy(work);
  assert_ok(dist_instances_close(strategy, -1));
  assert_ok(dist_strategy_destroy(strategy));
  assert_unmoved();
}

typedef struct source {
  dist_strategy *strategy;
  pthread_t caller;
  seen_once ahead;
} source;

static dist_status next_element(dist_strategy *strategy, int64_t index, dist_value **out_element,
                                void *user_data) {
  (void)strategy;
  source *s = user_data;
  if (!pthread_equal(pthread_self(), s->caller)) note(&s->ahead);
  const dist_tensor tensor = {&index, DIST_I64, 0, NULL, NULL};
  return dist_value_create_tensor(s->strategy, &tensor, out_element);
}

static void batches_are_made_on_the_set(void **state) {
  if (*state == NULL) skip_because("needs two CPUs");
  source s = {strategy_with(on_second(1, DIST_THREADS_LIBRARY)), pthread_self(), {{{0}}, 0}};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 1;
  dist_dataset *dataset = NULL;
  dist_iterator *iterator = NULL;
  assert_ok(dist_dataset_create_from_callback(s.strategy, next_element, &s, NULL, &options, &dataset));
  assert_ok(dist_iterator_create(dataset, &iterator));
  while (!atomic_load(&s.ahead.seen)) {
    dist_value *batch = NULL;
    assert_ok(dist_iterator_next(iterator, &batch));
    dist_value_release(batch);
    sched_yield();
  }
  assert_true(is_only(&s.ahead.mask, m.cpus[1]));
  dist_iterator_destroy(iterator);
  dist_dataset_destroy(dataset);
  assert_ok(dist_strategy_destroy(s.strategy));
}

static void collect(const char *text, size_t length, void *user_data) {
  char *all = user_data;
  const size_t used = strlen(all);
  if (used + length < 8192) memcpy(all + used, text, length), all[used + length] = '\0';
}

static void explanations_have_the_set(void **state) {
  if (*state == NULL) skip_because("needs two CPUs");
  static char text[8192];
  char words[128];
  dist_strategy *strategy = strategy_with(on_second(2, DIST_THREADS_LIBRARY));
  assert_ok(dist_strategy_explain(strategy, collect, text));
  snprintf(words, sizeof words,
           "CPUs: 1 usable when the strategy was created: the option `cpus` names 1 (%d), with", m.cpus[1]);
  assert_has(text, words);
  assert_has(text, "placement: library threads run on any CPU of the option `cpus`");
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(threads_stay_on_the_set),     cmocka_unit_test(a_set_is_not_the_callers),
      cmocka_unit_test(the_set_counts_the_replicas), cmocka_unit_test(wrong_sets_are_refused),
      cmocka_unit_test(the_teller_is_on_the_set),    cmocka_unit_test(batches_are_made_on_the_set),
      cmocka_unit_test(explanations_have_the_set),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
