/* SPDX-License-Identifier: Apache-2.0
 *
 * An object that a callback returns together with an error status is released exactly once. Objects that a
 * thread receives while it ends, in destructors of thread-specific data, are released with the thread.
 */
#include "tests/abi/common.h"

#include <unistd.h>

static dist_strategy *strategy;
static atomic_int live;

static void drop(void *object) {
  (void)object;
  atomic_fetch_sub(&live, 1);
}

/* Creates a value that reports when it is released. */
static dist_status make(dist_value **out) {
  static char object;
  const dist_status status = dist_value_wrap_object(strategy, &object, drop, out);
  if (status == DIST_OK) atomic_fetch_add(&live, 1);
  return status;
}

/* Returns a value and fails with the status in `user_data`. */
static dist_status failing(void *user_data, dist_value **out) {
  const dist_status made = make(out);
  return made != DIST_OK ? made : *(const dist_status *)user_data;
}

static dist_status source(dist_strategy *strategy, int64_t index, dist_value **out_element, void *user_data) {
  (void)strategy;
  return index < 2 ? make(out_element) : failing(user_data, out_element);
}
static dist_status file_source(dist_strategy *strategy, size_t file, const char *name, int64_t index,
                               dist_value **out_element, void *user_data) {
  (void)file, (void)name;
  return source(strategy, index, out_element, user_data);
}
static dist_status values(dist_replica *replica, dist_value *args, dist_value *kwargs,
                          dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs;
  return dist_replica_id(replica) == 1 ? failing(user_data, out_result) : make(out_result);
}
static dist_status merge(dist_strategy *in, dist_value *args, dist_value *kwargs, dist_value **out_result,
                         void *user_data) {
  (void)in, (void)args, (void)kwargs;
  return failing(user_data, out_result);
}
static dist_status merging(dist_replica *replica, void *user_data) {
  dist_value *result = NULL;
  return dist_merge_call(replica, merge, user_data, NULL, NULL, NULL, &result);
}
static dist_status component(dist_strategy *strategy, const dist_value_context *context,
                             dist_value **out_value, void *user_data) {
  (void)strategy;
  return context->replica_id_in_sync_group == 1 ? failing(user_data, out_value) : make(out_value);
}
static dist_status initial(dist_strategy *strategy, dist_value **out_value, void *user_data) {
  (void)strategy;
  return failing(user_data, out_value);
}
static dist_status update(dist_strategy *strategy, const dist_update_place *place, dist_value *args,
                          dist_value *kwargs, dist_value **out_result, void *user_data) {
  (void)strategy;
  (void)args, (void)kwargs;
  return place->replica == 1 ? failing(user_data, out_result) : make(out_result);
}
static dist_status fold(dist_dataset *dataset, dist_value *state, dist_value *batch, dist_value **out_state,
                        void *user_data) {
  (void)dataset, (void)state, (void)batch;
  return failing(user_data, out_state);
}

static int datasets; /* number of datasets whose user data were not released */
static void drop_dataset(void *user_data) {
  (void)user_data;
  datasets--;
}
static dist_status dataset(dist_strategy *strategy, const dist_input_context *context,
                           dist_dataset **out_dataset, void *user_data) {
  (void)strategy;
  (void)context;
  const dist_status made =
      dist_dataset_create_from_callback(strategy, source, user_data, drop_dataset, NULL, out_dataset);
  datasets += made == DIST_OK;
  return made != DIST_OK ? made : *(const dist_status *)user_data;
}

static int make_strategy(void **state) {
  (void)state;
  strategy = strategy_of(2, DIST_THREADS_CALLER);
  return 0;
}
static int end_strategy(void **state) {
  (void)state;
  return dist_strategy_destroy(strategy) == DIST_OK ? 0 : 1;
}

static void drain(dist_dataset *of, dist_status wanted) {
  dist_iterator *iterator = NULL;
  assert_ok(dist_iterator_create(of, &iterator));
  dist_status status = DIST_OK;
  for (int i = 0; i < 4 && status == DIST_OK; i++) {
    dist_value *batch = NULL;
    status = dist_iterator_next(iterator, &batch);
    if (status == DIST_OK) dist_value_release(batch);
  }
  assert_int_equal(status, wanted == DIST_OUT_OF_RANGE ? DIST_OK : wanted); /* the end is not an error */
  dist_iterator_destroy(iterator);
  dist_dataset_destroy(of);
  assert_int_equal(live, 0);
}

static void sources_may_fail_with_an_element(void **state) {
  (void)state;
  dist_status ends[] = {DIST_OUT_OF_RANGE, DIST_NOT_FOUND};
  for (int32_t prefetch = -1; prefetch <= 1; prefetch += 2) {
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
      static const char *const names[] = {"one"};
      dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
      options.prefetch = prefetch;
      dist_dataset *of = NULL;
      assert_ok(dist_dataset_create_from_callback(strategy, source, &ends[i], NULL, &options, &of));
      drain(of, DIST_INVALID_ARGUMENT); /* an object cannot be divided between two replicas */
      options.global_batch_size = 3;
      assert_ok(dist_dataset_create_from_callback(strategy, source, &ends[i], NULL, &options, &of));
      drain(of, ends[i]);
      assert_ok(
          dist_dataset_create_from_files(strategy, names, 1, file_source, &ends[i], NULL, &options, &of));
      drain(of, ends[i]);
    }
  }
}

static void functions_may_fail_with_a_value(void **state) {
  (void)state;
  dist_status not_found = DIST_NOT_FOUND;
  dist_value *out = NULL;
  assert_int_equal(dist_run_values(strategy, values, &not_found, NULL, NULL, NULL, &out), DIST_NOT_FOUND);
  assert_int_equal(live, 0);
  assert_int_equal(dist_run(strategy, merging, &not_found, NULL), DIST_NOT_FOUND);
  assert_int_equal(live, 0);
  assert_int_equal(dist_values_from_function(strategy, component, &not_found, &out), DIST_NOT_FOUND);
  assert_int_equal(live, 0);
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.initial_fn = initial;
  options.initial_user_data = &not_found;
  dist_variable *variable = NULL;
  assert_int_equal(dist_variable_create(strategy, NULL, &options, &variable), DIST_NOT_FOUND);
  assert_int_equal(live, 0);
  assert_int_equal(dist_update_non_slot(strategy, update, &not_found, NULL, NULL, NULL, &out),
                   DIST_NOT_FOUND);
  assert_int_equal(live, 0);
  assert_null(out);
}

static void datasets_may_come_with_a_failure(void **state) {
  (void)state;
  dist_status not_found = DIST_NOT_FOUND;
  dist_dataset *of = NULL;
  assert_fails(dist_dataset_create_from_function(strategy, dataset, &not_found, NULL, &of), DIST_NOT_FOUND,
               "");
  assert_null(of);
  assert_int_equal(datasets, 0);
  float numbers[4] = {0};
  int64_t shape[] = {4};
  const dist_tensor tensor = {numbers, DIST_F32, 1, shape, NULL};
  dist_value *result = NULL;
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 2;
  assert_ok(dist_dataset_create_from_tensors(strategy, &tensor, 1, &options, &of));
  assert_fails(dist_dataset_reduce(of, NULL, fold, &not_found, &result), DIST_NOT_FOUND, "");
  dist_dataset_destroy(of);
  assert_int_equal(live, 0);
}

/* ---- The end of a thread ---- */

static pthread_key_t key;
static atomic_int given;

static void ask_at_the_end(void *early) {
  (void)early;
  atomic_fetch_add(&given, dist_get_strategy() != NULL && dist_get_replica() != NULL);
}

static void *main_of_thread(void *early) {
  if (early != NULL) (void)dist_get_replica();
  pthread_setspecific(key, &key);
  return NULL;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static long resident_kb(void) { return 0; } /* the sanitizer keeps freed memory, and detects leaks */
#else
static long resident_kb(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%*d %ld", &pages), 1);
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}
#endif

static void default_strategies_end_with_their_threads(void **state) {
  (void)state;
  enum { THREADS = 500, MOST_KB = 8000 }; /* one thread uses more than 50 KB */
  assert_int_equal(pthread_key_create(&key, ask_at_the_end), 0);
  for (int early = 0; early < 2; early++) {
    long before = 0;
    for (int i = 0; i < THREADS; i++) {
      pthread_t thread;
      assert_int_equal(pthread_create(&thread, NULL, main_of_thread, early ? &key : NULL), 0);
      assert_int_equal(pthread_join(thread, NULL), 0);
      if (i == THREADS / 10) before = resident_kb();
    }
    assert_in_range(resident_kb() - before + MOST_KB, 0, 2 * MOST_KB);
  }
  assert_int_equal(given, 2 * THREADS);
  pthread_key_delete(key);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sources_may_fail_with_an_element),
      cmocka_unit_test(functions_may_fail_with_a_value),
      cmocka_unit_test(datasets_may_come_with_a_failure),
      cmocka_unit_test(default_strategies_end_with_their_threads),
  };
  return cmocka_run_group_tests(tests, make_strategy, end_strategy);
}
