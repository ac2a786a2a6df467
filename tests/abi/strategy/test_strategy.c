/* SPDX-License-Identifier: Apache-2.0
 *
 * Strategies: kinds, numbers of replicas, options structs of other versions, and destruction.
 */
#include "tests/abi/common.h"

static dist_status create(dist_strategy_options options, dist_strategy **out) {
  return dist_strategy_create(&options, out);
}

static void every_kind(void **state) {
  (void)state;
  for (int32_t kind = DIST_STRATEGY_MIRRORED; kind <= DIST_STRATEGY_MESH; kind++) {
    const int many = kind != DIST_STRATEGY_ONE_DEVICE && kind != DIST_STRATEGY_DEFAULT;
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.kind = kind;
    options.num_replicas = many ? 3 : 0;
    dist_strategy *strategy = strategy_with(options);
    assert_int_equal(dist_strategy_num_replicas(strategy), many ? 3 : 1);
    assert_healthy(DIST_THREADS_CALLER, strategy);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void nothing_is_given(void **state) {
  (void)state;
  dist_strategy *strategy = NULL;
  assert_ok(dist_strategy_create(NULL, &strategy));
  assert_true(dist_strategy_num_replicas(strategy) >= 1);
  assert_healthy(DIST_THREADS_CALLER, strategy);
  assert_ok(dist_strategy_destroy(strategy));
  assert_fails(dist_strategy_create(NULL, NULL), DIST_INVALID_ARGUMENT, "out_strategy is NULL");
  assert_ok(dist_strategy_destroy(NULL));
  assert_int_equal(dist_strategy_num_replicas(NULL), 0);
  assert_fails(dist_strategy_cancel(NULL), DIST_INVALID_ARGUMENT, "strategy is NULL");
  dist_strategy_options_init(NULL, sizeof(dist_strategy_options));
}

static void *no_memory(size_t size, size_t align, void *user_data) {
  return (void)user_data, (void)size, (void)align, NULL;
}
static void no_free(void *memory, size_t size, size_t align, void *user_data) {
  (void)user_data, (void)memory, (void)size, (void)align;
}

static void options_out_of_range(void **state) {
  (void)state;
  static const int32_t wrong_counts[] = {-1, INT32_MIN, -256};
  const dist_strategy_options init = DIST_STRATEGY_OPTIONS_INIT;
  dist_strategy *strategy = (dist_strategy *)&state; /* must not change on failure */
  dist_strategy *const untouched = strategy;
  dist_strategy_options options;
  dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  for (size_t i = 0; i < COUNT_OF(wrong_counts); i++) {
    options = init;
    options.num_replicas = wrong_counts[i];
    assert_fails(create(options, &strategy), DIST_INVALID_ARGUMENT, "num_replicas is");
  }
  options = init;
  options.kind = DIST_STRATEGY_ONE_DEVICE;
  options.num_replicas = 2;
  assert_fails(create(options, &strategy), DIST_INVALID_ARGUMENT, "one replica");
  static const int32_t wrong[] = {-1, 7, INT32_MAX};
  for (size_t i = 0; i < COUNT_OF(wrong); i++) {
    options = init;
    options.kind = wrong[i];
    assert_fails(create(options, &strategy), DIST_INVALID_ARGUMENT, "kind is");
    options = init;
    options.threads = wrong[i];
    assert_fails(create(options, &strategy), DIST_INVALID_ARGUMENT, "threads is");
    options = init;
    options.cpu = &cpu;
    cpu.placement = wrong[i];
    assert_fails(create(options, &strategy), DIST_INVALID_ARGUMENT, "placement is");
  }
  options = init;
  options.reserved = 1;
  assert_fails(create(options, &strategy), DIST_INVALID_ARGUMENT, "reserved");
  options = init;
  options.host = &host;
  host.allocator.alloc = no_memory;
  assert_fails(create(options, &strategy), DIST_INVALID_ARGUMENT, "only one of alloc and free is set");
  host = (dist_host_options)DIST_HOST_OPTIONS_INIT;
  host.allocator.free = no_free;
  assert_fails(create(options, &strategy), DIST_INVALID_ARGUMENT, "only one of alloc and free is set");
  host.allocator.alloc = no_memory;
  assert_fails(create(options, &strategy), DIST_RESOURCE_EXHAUSTED, "out of memory");
  assert_ptr_equal(strategy, untouched);
}

/* An allocator with a limit. */
typedef struct pool {
  _Atomic size_t used;
  size_t most;
} pool;

static void *take(size_t size_bytes, size_t align_bytes, void *user_data) {
  pool *of = user_data;
  void *memory = NULL;
  if (of->used + size_bytes > of->most) return NULL;
  if (posix_memalign(&memory, align_bytes < sizeof(void *) ? sizeof(void *) : align_bytes, size_bytes) != 0)
    return NULL;
  of->used += size_bytes;
  return memory;
}

static void give(void *memory, size_t size_bytes, size_t align_bytes, void *user_data) {
  (void)align_bytes;
  ((pool *)user_data)->used -= size_bytes;
  free(memory);
}

static dist_status nothing(dist_replica *replica, void *user_data) {
  (void)replica, (void)user_data;
  return DIST_OK;
}

static void an_allocator_limits_the_memory(void **state) {
  (void)state;
  enum { COUNT = 1 << 20 };
  pool of = {0, 2 * 1024 * 1024};
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  host.allocator = (dist_allocator){take, give, &of};
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  options.host = &host;
  dist_strategy *strategy = NULL;
  assert_ok(dist_strategy_create(&options, &strategy));

  float *numbers = calloc(COUNT, sizeof *numbers);
  const int64_t shape[] = {COUNT};
  const dist_tensor initial = {numbers, DIST_F32, 1, shape, NULL};
  dist_variable *variable = NULL;
  assert_fails(dist_variable_create(strategy, &initial, NULL, &variable), DIST_RESOURCE_EXHAUSTED,
               "the allocator has no block of 8388608 bytes");
  assert_null(variable);
  assert_ok(dist_run(strategy, nothing, NULL, NULL));
  of.most = 32 * 1024 * 1024;
  assert_ok(dist_variable_create(strategy, &initial, NULL, &variable));
  dist_variable_destroy(variable);
  free(numbers);
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(of.used, 0);
}

static int64_t standing_clock(void *user_data) {
  (void)user_data;
  return 1;
}

static void options_of_other_versions(void **state) {
  (void)state;
  struct {
    dist_strategy_options known;
    unsigned char rest[32];
  } given;
  for (uint32_t size = 0; size <= sizeof given; size++) {
    memset(&given, 0, sizeof given);
    dist_strategy_options_init(&given.known, size);
    /* A size that no version has counts as the next lower one, so that no pointer is read partly. */
    const size_t counted = size / _Alignof(dist_strategy_options) * _Alignof(dist_strategy_options);
    if (counted >= offsetof(dist_strategy_options, threads)) given.known.num_replicas = 2;
    dist_host_options host = DIST_HOST_OPTIONS_INIT;
    host.clock = standing_clock;
    if (size > offsetof(dist_strategy_options, host)) given.known.host = &host;
    dist_strategy *strategy = NULL;
    if (size < sizeof(uint32_t)) {
      assert_fails(dist_strategy_create(&given.known, &strategy), DIST_INVALID_ARGUMENT, "struct_size is 0");
      continue;
    }
    assert_int_equal(given.known.struct_size, size);
    assert_ok(dist_strategy_create(&given.known, &strategy));
    if (counted >= offsetof(dist_strategy_options, threads))
      assert_int_equal(dist_strategy_num_replicas(strategy), 2);
    assert_ok(dist_strategy_destroy(strategy));
  }
  for (size_t i = 0; i < sizeof given.rest; i++) {
    memset(&given, 0, sizeof given);
    dist_strategy_options_init(&given.known, sizeof given);
    given.rest[i] = 1;
    dist_strategy *strategy = NULL;
    assert_fails(dist_strategy_create(&given.known, &strategy), DIST_INVALID_ARGUMENT, "newer library");
  }
  /* An uninitialized struct must not be read up to its "size". */
  dist_strategy_options wild = DIST_STRATEGY_OPTIONS_INIT;
  wild.struct_size = 0xA5A5A5A5u;
  dist_strategy *strategy = NULL;
  assert_fails(dist_strategy_create(&wild, &strategy), DIST_INVALID_ARGUMENT, "struct_size");
}

static dist_status try_to_destroy(dist_replica *replica, void *user_data) {
  dist_status *statuses = user_data;
  statuses[dist_replica_id(replica)] = dist_strategy_destroy(dist_replica_strategy(replica));
  return DIST_OK;
}

static void destroy_while_running(void **state) {
  (void)state;
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_HOST; threads++) {
    dist_strategy *strategy = strategy_of(3, threads);
    dist_status statuses[3] = {0, 0, 0};
    report error;
    assert_int_equal(run_on(threads, strategy, try_to_destroy, statuses, &error), DIST_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(statuses[i], DIST_FAILED_PRECONDITION);
    assert_healthy(threads, strategy);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

typedef struct destroyer {
  dist_strategy *strategy;
  atomic_int runs;
} destroyer;

static void *run_often(void *argument) {
  destroyer *self = argument;
  /* Set only after the last run has returned. */
  for (int i = 0; i < 200; i++) (void)!dist_run(self->strategy, healthy, NULL, NULL);
  atomic_store(&self->runs, 1);
  return NULL;
}

static void destroy_is_refused_and_harmless_beside_runs(void **state) {
  (void)state;
  destroyer self = {.strategy = strategy_of(2, DIST_THREADS_LIBRARY)};
  pthread_t thread;
  /* Each try starts with a run of this thread, so that destroy never finds the strategy idle. */
  assert_int_equal(pthread_create(&thread, NULL, run_often, &self), 0);
  dist_status statuses[2] = {0, 0};
  do {
    assert_ok(dist_run(self.strategy, try_to_destroy, statuses, NULL));
    for (int i = 0; i < 2; i++) assert_int_equal(statuses[i], DIST_FAILED_PRECONDITION);
  } while (!atomic_load(&self.runs));
  pthread_join(thread, NULL);
  assert_ok(dist_strategy_destroy(self.strategy));
}

static void many_side_by_side(void **state) {
  (void)state;
  enum { MANY = 24 };
  const int before = count_threads();
  dist_strategy *strategies[MANY];
  for (int i = 0; i < MANY; i++) strategies[i] = strategy_of(1 + i % 4, DIST_THREADS_CALLER + i % 2);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < MANY; i++) assert_healthy(i % 2, strategies[i]);
  }
  for (int i = 0; i < MANY; i++) assert_ok(dist_strategy_destroy(strategies[i]));
  await_threads(before);
}

static void sixty_four_replicas(void **state) {
  (void)state;
  const int before = count_threads();
  dist_strategy *strategy = strategy_of(64, DIST_THREADS_CALLER);
  assert_int_equal(count_threads(), before + 63);
  for (int i = 0; i < 5; i++) assert_healthy(DIST_THREADS_CALLER, strategy);
  assert_ok(dist_strategy_destroy(strategy));
  strategy = strategy_of(64, DIST_THREADS_HOST);
  assert_healthy(DIST_THREADS_HOST, strategy);
  assert_ok(dist_strategy_destroy(strategy));
  await_threads(before);
}

/* The default number of replicas is the number of CPUs that this thread may use. Runs do not change the
 * caller's mask. */
static void width_follows_affinity(void **state) {
  (void)state;
  cpu_set_t all, one, seen;
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  int first = 0;
  while (!CPU_ISSET(first, &all)) first++;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  dist_strategy *narrow = NULL;
  const dist_status created = dist_strategy_create(NULL, &narrow);
  dist_strategy *crowded = strategy_of(3, DIST_THREADS_CALLER);
  assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
  assert_int_equal(created, DIST_OK);
  assert_int_equal(dist_strategy_num_replicas(narrow), 1);
  assert_healthy(DIST_THREADS_CALLER, narrow);
  assert_healthy(DIST_THREADS_CALLER, crowded);
  assert_ok(dist_strategy_destroy(narrow));
  assert_ok(dist_strategy_destroy(crowded));

  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
  options.cpu = &cpu;
  cpu.placement = DIST_PLACEMENT_CORES;
  options.num_replicas = 3;
  dist_strategy *placed = strategy_with(options);
  assert_healthy(DIST_THREADS_CALLER, placed);
  assert_ok(dist_strategy_destroy(placed));
  assert_int_equal(sched_getaffinity(0, sizeof seen, &seen), 0);
  assert_true(CPU_EQUAL(&seen, &all));
}

/* ---- Stacks of library threads ---- */

static dist_status read_stack_size(dist_replica *replica, void *user_data) {
  size_t *sizes = user_data;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return DIST_INTERNAL;
  pthread_attr_getstacksize(&attributes, &sizes[dist_replica_id(replica)]);
  pthread_attr_destroy(&attributes);
  return healthy(replica, NULL);
}

static void keep_text(const char *text, size_t size, void *user_data) {
  char *const all = user_data;
  const size_t used = strlen(all);
  snprintf(all + used, 8192 - used, "%.*s", (int)size, text);
}

static void stacks(void **state) {
  (void)state;
  enum { ASKED = 1 << 19 };
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_cpu_options cpu = DIST_CPU_OPTIONS_INIT;
  options.cpu = &cpu;
  options.num_replicas = 3;
  options.threads = DIST_THREADS_LIBRARY;
  dist_strategy *strategy = NULL;
  const int64_t silly[] = {-1, 1, 1 << 16, INT64_MIN, INT64_MAX};
  for (size_t i = 0; i < COUNT_OF(silly); i++) {
    cpu.stack_size_bytes = silly[i];
    assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "stack_size_bytes is");
  }
  options.num_replicas = 2000;
  cpu.stack_size_bytes = 1 << 18;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT,
               "for this number of replicas");
  options.num_replicas = 3;
  cpu.stack_size_bytes = ASKED;
  options.threads = DIST_THREADS_HOST;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "no library threads");
  options.threads = DIST_THREADS_LIBRARY;
  strategy = strategy_with(options);
  size_t sizes[3] = {0};
  assert_ok(dist_run(strategy, read_stack_size, sizes, NULL));
#if defined(__SANITIZE_THREAD__)
  enum { ADDED = 1 << 20 }; /* added by the sanitizer */
#else
  enum { ADDED = 1 << 17 }; /* the system's guard pages, and rounding to pages */
#endif
  for (int i = 0; i < 3; i++) assert_in_range(sizes[i], ASKED, ASKED + ADDED);
  static char text[8192];
  assert_ok(dist_strategy_explain(strategy, keep_text, text));
  assert_has(text, "524288 bytes per library thread, as requested");
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_allocator_limits_the_memory),
      cmocka_unit_test(stacks),
      cmocka_unit_test(every_kind),
      cmocka_unit_test(nothing_is_given),
      cmocka_unit_test(options_out_of_range),
      cmocka_unit_test(options_of_other_versions),
      cmocka_unit_test(destroy_while_running),
      cmocka_unit_test(destroy_is_refused_and_harmless_beside_runs),
      cmocka_unit_test(many_side_by_side),
      cmocka_unit_test(sixty_four_replicas),
      cmocka_unit_test(width_follows_affinity),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
