/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_host_options.recorded_events: it limits the events of each replica in a trace, memory is allocated
 * as events arrive, and invalid values are rejected.
 */
#include "tests/abi/alloc_support.h"

#include <sys/mman.h>
#include <unistd.h>

enum { R = 2, STEPS = 60000, LONGEST = 1 << 20, EVENT_BYTES = 128 };

typedef struct text {
  char *data;
  size_t size, room;
} text;

static void append(const char *piece, size_t size, void *user_data) {
  text *to = user_data;
  if (to->size + size >= to->room) {
    to->room = 2 * (to->size + size + 1);
    to->data = realloc(to->data, to->room);
    if (to->data == NULL) abort();
  }
  memcpy(to->data + to->size, piece, size);
  to->size += size;
  to->data[to->size] = '\0';
}

static dist_strategy_options recording(int32_t events) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  static dist_host_options host;
  host = (dist_host_options)DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = R;
  host.recorded_events = events;
  return options;
}

static dist_status meet(dist_replica *replica, void *user_data) {
  for (int i = *(const int *)user_data; i > 0; i--) {
    const dist_status status = dist_barrier(replica, NULL, NULL);
    if (status != DIST_OK) return status;
  }
  return DIST_OK;
}

static dist_strategy *met(dist_strategy_options options, int steps) {
  dist_strategy *strategy = strategy_with(options);
  assert_ok(dist_run(strategy, meet, &steps, NULL));
  return strategy;
}

static void assert_explains(dist_strategy *strategy, const char *words) {
  text all = {NULL, 0, 0};
  assert_ok(dist_strategy_explain(strategy, append, &all));
  assert_has(all.data, words);
  free(all.data);
}

/* Finds the next event of a trace. Under AddressSanitizer, strstr() always reads the whole rest of the
 * text. */
static char *event_from(char *at) {
  do at = strchr(at + 1, '{');
  while (at != NULL && strncmp(at, "{\"ph\":", 6) != 0);
  return at;
}

/* For each replica, the trace contains the run, and the barriers number `first` to `last`, each once and in
 * order. */
static void assert_trace(dist_strategy *strategy, int first, int last) {
  text trace = {NULL, 0, 0};
  assert_ok(dist_strategy_write_trace(strategy, append, &trace));
  int next[R] = {0}, runs[R] = {0};
  for (int r = 0; r < R; r++) next[r] = first;
  static const char slice[] = "{\"ph\":\"X\"", barrier[] = "\"name\":\"barrier\"", run[] = "\"name\":\"run\"";
  for (char *at = event_from(trace.data), *next_at; at != NULL; at = next_at) {
    next_at = event_from(at);
    if (next_at != NULL) next_at[-1] = '\0';
    if (strncmp(at, slice, sizeof slice - 1) != 0) continue;
    int replica = -1, sequence = -1;
    const char *tid = strstr(at, "\"tid\":"), *number = strstr(at, "\"sequence\":");
    assert_true(tid != NULL && sscanf(tid, "\"tid\":%d", &replica) == 1 && replica >= 0 && replica < R);
    if (strstr(at, run) != NULL) runs[replica]++;
    if (strstr(at, barrier) != NULL) {
      assert_true(number != NULL && sscanf(number, "\"sequence\":%d", &sequence) == 1);
      assert_int_equal(sequence, next[replica]++);
    }
  }
  for (int r = 0; r < R; r++) {
    assert_int_equal(next[r], last + 1);
    assert_int_equal(runs[r], 1);
  }
  free(trace.data);
}

static int64_t rounds_that_had_a_last(dist_strategy *strategy) {
  dist_straggler rows[R];
  size_t n = 0;
  assert_ok(dist_strategy_stragglers(strategy, rows, sizeof rows[0], R, &n));
  assert_true(n >= 1 && n <= R);
  return rows[0].rounds;
}

static void a_long_trace_has_all(void **state) {
  (void)state;
  dist_strategy *strategy = met(recording(1 << 16), STEPS);
  assert_trace(strategy, 1, STEPS);
  assert_int_equal(rounds_that_had_a_last(strategy), STEPS);
  assert_explains(strategy, "\n  flight recorder: the last 65536 events of each replica");
  assert_ok(dist_strategy_destroy(strategy));
}

static void without_it_there_are_1024(void **state) {
  (void)state;
  dist_strategy *strategy = met(recording(0), 3000);
  assert_trace(strategy, 3000 - 1022, 3000); /* the run is one of the events */
  assert_int_equal(rounds_that_had_a_last(strategy), 1023);
  assert_explains(strategy, "\n  flight recorder: the last 1024 events of each replica");
  assert_ok(dist_strategy_destroy(strategy));
}

static void lengths_are_rounded_up(void **state) {
  (void)state;
  static const struct {
    int32_t given, kept;
  } cases[] = {{1, 1},
               {2, 2},
               {3, 4},
               {1000, 1024},
               {1025, 2048},
               {60000, 1 << 16},
               {LONGEST / 2 + 1, LONGEST},
               {LONGEST, LONGEST}};
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    char words[64];
    dist_strategy *strategy = met(recording(cases[i].given), 10);
    snprintf(words, sizeof words, "\n  flight recorder: the last %d events of each replica", cases[i].kept);
    assert_explains(strategy, words);
    if (cases[i].kept > 1) assert_trace(strategy, cases[i].kept < 11 ? 10 - cases[i].kept + 2 : 1, 10);
    assert_ok(dist_strategy_destroy(strategy));
  }
}

static void what_is_no_length(void **state) {
  (void)state;
  static const int32_t wrong[] = {-1, LONGEST + 1, INT32_MAX, INT32_MIN};
  for (size_t i = 0; i < COUNT_OF(wrong); i++) {
    char words[64];
    dist_strategy *strategy = NULL;
    const dist_strategy_options options = recording(wrong[i]);
    snprintf(words, sizeof words, "recorded_events is %d: use 1 to 1048576", wrong[i]);
    assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, words);
    assert_null(strategy);
  }
  dist_strategy_options options = recording(0);
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  if (options.host != NULL) host = *options.host;
  options.host = &host;
  dist_strategy *strategy = NULL;
  host.late_destroys = 2;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "late_destroys");
  /* A caller that was compiled before the option existed gets the default. */
  host = (dist_host_options)DIST_HOST_OPTIONS_INIT;
  host.recorded_events = 1 << 16;
  host.struct_size = offsetof(dist_host_options, recorded_events);
  strategy = strategy_with(options);
  assert_explains(strategy, "\n  flight recorder: the last 1024 events of each replica");
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Memory ---- */

/* A host allocator that takes blocks as large as the rings from the system, or rejects them. */
typedef struct rings {
  void *memory;
  size_t bytes;
  int refuse;
  long live;
} rings;

static void *ring_alloc(size_t size, size_t align, void *user_data) {
  rings *a = user_data;
  void *memory = NULL;
  if (size >= (size_t)R * LONGEST * EVENT_BYTES) {
    if (a->refuse) return NULL;
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    a->memory = memory;
    a->bytes = size;
  } else if (posix_memalign(&memory, align < sizeof(void *) ? sizeof(void *) : align, size) != 0) {
    return NULL;
  }
  __atomic_add_fetch(&a->live, 1, __ATOMIC_RELAXED);
  return memory;
}

static void ring_free(void *memory, size_t size, size_t align, void *user_data) {
  rings *a = user_data;
  (void)align;
  if (memory == a->memory)
    munmap(memory, size);
  else
    free(memory);
  __atomic_sub_fetch(&a->live, 1, __ATOMIC_RELAXED);
}

static size_t bytes_in_memory(const rings *a) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = a->bytes / page;
  unsigned char *map = calloc(pages + 1, 1);
  size_t resident = 0;
  assert_int_equal(mincore(a->memory, a->bytes, map), 0);
  for (size_t i = 0; i < pages; i++) resident += map[i] & 1;
  free(map);
  return resident * page;
}

static void memory_is_taken_as_events_come(void **state) {
  (void)state;
  rings a = {0};
  dist_strategy_options options = recording(LONGEST);
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  if (options.host != NULL) host = *options.host;
  options.host = &host;
  host.allocator = (dist_allocator){ring_alloc, ring_free, &a};
  dist_strategy *strategy = met(options, 0);
  assert_true(a.bytes == (size_t)R * LONGEST * EVENT_BYTES);
  assert_explains(strategy, ", 256 MiB of it by the flight recorder");
  enum { HUGE_PAGES = R * 2 * (2 << 20) }; /* huge pages at the ends of written parts */
  assert_true(bytes_in_memory(&a) <= HUGE_PAGES);
  int steps = STEPS;
  assert_ok(dist_run(strategy, meet, &steps, NULL));
  const size_t written = (size_t)R * (STEPS + 2) * EVENT_BYTES, taken = bytes_in_memory(&a);
  assert_true(taken >= written && taken <= written + HUGE_PAGES);
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(a.live, 0);
}

static void no_memory_for_it_is_a_status(void **state) {
  (void)state;
  rings a = {.refuse = 1};
  dist_strategy_options options = recording(LONGEST);
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  if (options.host != NULL) host = *options.host;
  options.host = &host;
  dist_strategy *strategy = NULL;
  host.allocator = (dist_allocator){ring_alloc, ring_free, &a};
  assert_fails(dist_strategy_create(&options, &strategy), DIST_RESOURCE_EXHAUSTED, "out of memory");
  assert_null(strategy);
  assert_int_equal(a.live, 0);
  host.recorded_events = LONGEST / 2;
  strategy = met(options, 10);
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(a.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_long_trace_has_all),           cmocka_unit_test(without_it_there_are_1024),
      cmocka_unit_test(lengths_are_rounded_up),         cmocka_unit_test(what_is_no_length),
      cmocka_unit_test(memory_is_taken_as_events_come), cmocka_unit_test(no_memory_for_it_is_a_status),
  };
  return cmocka_run_group_tests_name("trace length", tests, NULL, NULL);
}
