/* SPDX-License-Identifier: Apache-2.0
 *
 * Every memory request from the creation of a strategy to its destruction fails once. Each time, the result
 * is an error status or success, nothing leaks, and a retry of the failed call works. The same for threads,
 * with a limit on the address space.
 */
#include "tests/abi/alloc_support.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { R = 3 };

static dist_status keep_item(dist_strategy *strategy, dist_value *args, dist_value *kwargs,
                             dist_value **out_result, void *user_data) {
  (void)user_data, (void)kwargs;
  *out_result = dist_value_retain(dist_value_item(args, 0));
  return dist_run(strategy, healthy, NULL, NULL);
}

static void release_object(void *user_data) { ++*(int *)user_data; }

/* Creates (a text, none, an object, a ragged tensor). */
static dist_status of_every_kind(dist_strategy *owner, const dist_value_context *context,
                                 dist_value **out_value, void *user_data) {
  (void)owner;
  dist_strategy *strategy = user_data;
  static int released[R];
  int64_t splits[] = {0, 1, 3};
  float numbers[] = {1, 2, 3};
  const int64_t three = 3;
  const dist_tensor values = {numbers, DIST_F32, 1, &three, NULL}, rows = {splits, DIST_I64, 1, &three, NULL};
  int *const ended = &released[context->replica_id_in_sync_group];
  const int before = *ended;
  dist_value *items[4] = {NULL}, *parts[2] = {NULL};
  dist_status status = dist_value_create_text(strategy, "text", &items[0]);
  if (status == DIST_OK) status = dist_value_create_none(strategy, &items[1]);
  if (status == DIST_OK) status = dist_value_wrap_object(strategy, ended, release_object, &items[2]);
  if (status == DIST_OK) status = dist_value_create_tensor(strategy, &values, &parts[0]);
  if (status == DIST_OK) status = dist_value_create_tensor(strategy, &rows, &parts[1]);
  if (status == DIST_OK)
    status = dist_value_create_composite(strategy, DIST_VALUE_RAGGED, parts, 2, &items[3]);
  if (status == DIST_OK) status = dist_value_create_tuple(strategy, items, 4, out_value);
  const int wrapped = items[2] != NULL;
  for (size_t i = 0; i < 4; i++) dist_value_release(items[i]);
  for (size_t i = 0; i < 2; i++) dist_value_release(parts[i]);
  if (status != DIST_OK && *ended != before + wrapped) return dist_fail(DIST_INTERNAL, "the object is held");
  return status;
}

/* Creates a variable in the replicas, assigns values, scatters to it, and reads it. */
static dist_status use_variable(dist_replica *replica) {
  dist_strategy *strategy = dist_replica_strategy(replica);
  const int64_t two = 2, one = 1;
  float numbers[2] = {1, 2};
  int32_t index = 1;
  const dist_tensor pair = {numbers, DIST_F32, 1, &two, NULL};
  const dist_tensor row = {numbers, DIST_F32, 1, &one, NULL};
  const dist_tensor at = {&index, DIST_I32, 1, &one, NULL};
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.aggregation = DIST_AGGREGATION_SUM;
  dist_variable *variable = NULL;
  dist_value *value = NULL, *slices = NULL, *read = NULL, *parts[3] = {NULL, NULL, NULL};
  dist_status status = dist_replica_variable(replica, "a name too long to lie inside a string object", &pair,
                                             &options, &variable);
  if (status == DIST_OK) status = dist_value_create_tensor(strategy, &pair, &value);
  if (status == DIST_OK) status = dist_replica_assign_value(replica, variable, DIST_ASSIGN_ADD, value, NULL);
  if (status == DIST_OK) status = dist_value_create_tensor(strategy, &row, &parts[0]);
  if (status == DIST_OK) status = dist_value_create_tensor(strategy, &at, &parts[1]);
  if (status == DIST_OK) status = dist_value_create_none(strategy, &parts[2]);
  if (status == DIST_OK)
    status = dist_value_create_composite(strategy, DIST_VALUE_INDEXED_SLICES, parts, 3, &slices);
  if (status == DIST_OK) status = dist_replica_scatter(replica, variable, DIST_SCATTER_MUL, slices, NULL);
  if (status == DIST_OK) status = dist_replica_read(replica, variable, &read);
  dist_value_release(read);
  dist_value_release(slices);
  for (int i = 0; i < 3; i++) dist_value_release(parts[i]);
  dist_value_release(value);
  return status;
}

static dist_status all_of_it(dist_replica *replica, dist_value *args, dist_value *kwargs,
                             dist_value **out_result, void *user_data) {
  (void)kwargs, (void)user_data;
  dist_strategy *strategy = dist_replica_strategy(replica);
  int64_t lengths[] = {3, 40000};
  float *memory = calloc(40003, sizeof *memory);
  dist_tensor list[] = {vector_of(memory, DIST_F32, &lengths[0]),
                        vector_of(memory + 3, DIST_F32, &lengths[1])};
  dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, list, list, 2, NULL, NULL);
  dist_value *mine = NULL, *named = NULL, *merge_args = NULL, *merged = NULL;
  static const char *const keys[] = {"step"};
  if (status == DIST_OK) status = dist_value_create_tensor(strategy, &list[0], &mine);
  if (status == DIST_OK) status = dist_value_create_dict(strategy, keys, &mine, 1, &named);
  if (status == DIST_OK) status = dist_value_create_list(strategy, &named, 1, &merge_args);
  if (status == DIST_OK) status = dist_merge_call(replica, keep_item, NULL, merge_args, NULL, NULL, &merged);
  dist_value *items[] = {merged, args};
  if (status == DIST_OK) status = dist_value_create_list(strategy, items, 2, out_result);
  if (status == DIST_OK) status = use_variable(replica);
  if (status == DIST_OK) status = dist_barrier(replica, NULL, NULL);
  dist_value_release(merged);
  dist_value_release(merge_args);
  dist_value_release(named);
  dist_value_release(mine);
  free(memory);
  return status;
}

static dist_status give_back(dist_strategy *strategy, const dist_update_place *place, dist_value *args,
                             dist_value *kwargs, dist_value **out_result, void *user_data) {
  (void)strategy, (void)place, (void)kwargs, (void)user_data;
  *out_result = dist_value_retain(dist_value_item(args, 0));
  return DIST_OK;
}

/* Updates a variable in both modes. It is small, because with oneTBB's threads this would take minutes. */
static dist_status update_both_ways(dist_strategy *strategy, dist_value *own) {
  static float zeros[4];
  const int64_t length = 4;
  const dist_tensor initial = {zeros, DIST_F32, 1, &length, NULL};
  dist_update_options options = DIST_UPDATE_OPTIONS_INIT;
  dist_variable *variable = NULL;
  dist_value *args = NULL;
  dist_status status = dist_variable_create(strategy, &initial, NULL, &variable);
  if (status == DIST_OK) status = dist_value_create_list(strategy, &own, 1, &args);
  for (options.parallel = 0; status == DIST_OK && options.parallel < 2; options.parallel++) {
    dist_value *result = NULL;
    status = dist_update(strategy, variable, give_back, NULL, args, NULL, &options, &result);
    dist_value_release(result);
  }
  dist_value_release(args);
  dist_variable_destroy(variable);
  return status;
}

static dist_status use(dist_strategy *strategy) {
  float number = 1;
  const dist_tensor scalar = {&number, DIST_F32, 0, NULL, NULL};
  dist_value *items[R] = {NULL}, *own = NULL, *made = NULL, *args = NULL, *result = NULL;
  dist_status status = DIST_OK;
  for (int r = 0; r < R && status == DIST_OK; r++)
    status = dist_value_create_tensor(strategy, &scalar, &items[r]);
  if (status == DIST_OK) status = dist_value_create_per_replica(strategy, items, R, &own);
  if (status == DIST_OK) status = dist_values_from_function(strategy, of_every_kind, strategy, &made);
  dist_value *both[] = {own, made};
  if (status == DIST_OK) status = dist_value_create_list(strategy, both, 2, &args);
  if (status == DIST_OK) status = dist_run_values(strategy, all_of_it, NULL, args, NULL, NULL, &result);
  if (status == DIST_OK && dist_value_size(result) != 2) status = DIST_INTERNAL;
  if (status == DIST_OK) status = update_both_ways(strategy, own);
  dist_value_release(result);
  dist_value_release(args);
  dist_value_release(made);
  dist_value_release(own);
  for (int r = 0; r < R; r++) dist_value_release(items[r]);
  return status;
}

static void every_allocation_fails_once(void **state) {
  (void)state;
  const int before = count_threads();
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; threads++) {
    long k = 0;
    for (int refused = 1; refused; k++) {
      static refusals a;
      a = (refusals){.refuse_at = k};
      dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
      dist_host_options host = DIST_HOST_OPTIONS_INIT;
      options.host = &host;
      options.num_replicas = R;
      options.threads = threads;
      host.allocator = refusing(&a);
      dist_strategy *strategy = NULL;
      dist_status status = dist_strategy_create(&options, &strategy);
      if (status == DIST_OK) {
        status = use(strategy);
        if (status == DIST_RESOURCE_EXHAUSTED) assert_has(dist_last_error(), "out of memory");
        refused = atomic_load(&a.requests) > k;
        atomic_store(&a.refuse_at, -1);
        assert_ok(use(strategy)); /* the failure has left nothing behind */
        assert_ok(dist_strategy_destroy(strategy));
      } else {
        assert_null(strategy);
      }
      if (status != DIST_OK && !(refused && status == DIST_RESOURCE_EXHAUSTED)) {
        fail_msg("request %ld: %s: %s", k, dist_status_name(status), dist_last_error());
      }
      assert_int_equal(atomic_load(&a.live_blocks), 0);
      assert_int_equal(atomic_load(&a.live_bytes), 0);
    }
    assert_true(k > 20); /* it must have used the host's allocator */
    await_threads(before);
  }
}

/* Collectives on tensors request no memory. */
static dist_status steady(dist_replica *replica, void *user_data) {
  refusals *a = user_data;
  int64_t length = 100000;
  float *memory = calloc((size_t)length, sizeof *memory);
  dist_tensor tensor = vector_of(memory, DIST_F32, &length);
  dist_status status = dist_barrier(replica, NULL, NULL);
  const long requests = atomic_load(&a->requests);
  for (int i = 0; status == DIST_OK && i < 20; i++) {
    length = i % 2 == 0 ? 3 : 100000;
    status = dist_all_reduce(replica, DIST_REDUCE_MEAN, &tensor, &tensor, 1, NULL, NULL);
    if (status == DIST_OK) status = dist_broadcast(replica, i % R, &tensor, &tensor, 1, NULL, NULL);
    if (status == DIST_OK) status = dist_barrier(replica, NULL, NULL);
  }
  free(memory);
  if (status == DIST_OK && atomic_load(&a->requests) != requests)
    status = dist_fail(DIST_INTERNAL, "it allocates");
  return status;
}

static void collectives_do_not_allocate(void **state) {
  (void)state;
  static refusals a = {.refuse_at = -1};
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = R;
  host.allocator = refusing(&a);
  dist_strategy *strategy = strategy_with(options);
  const long requests = atomic_load(&a.requests);
  for (int i = 0; i < 10; i++) assert_ok(dist_run(strategy, steady, &a, NULL));
  assert_int_equal(atomic_load(&a.requests), requests); /* dist_run() requests none either */
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(atomic_load(&a.live_blocks), 0);
}

/* A sanitizer uses more address space than any limit allows. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ADDRESS_SPACE_CAN_END 1

/* Runs in a child whose address space has room for only a few more stacks. */
static int child_without_threads(void) {
  pthread_attr_t stacks;
  if (pthread_attr_init(&stacks) != 0 || pthread_attr_setstacksize(&stacks, (size_t)8 << 20) != 0) return 10;
  if (pthread_setattr_default_np(&stacks) != 0) return 11;
  struct rlimit limit;
  FILE *file = fopen("/proc/self/statm", "r");
  long pages = 0;
  if (file == NULL || fscanf(file, "%ld", &pages) != 1) return 1;
  fclose(file);
  limit.rlim_cur = limit.rlim_max = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)200 << 20);
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
  const int before = count_threads();
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 256;
  dist_strategy *strategy = NULL;
  for (int i = 0; i < 3; i++) {
    if (dist_strategy_create(&options, &strategy) != DIST_RESOURCE_EXHAUSTED || strategy != NULL) return 3;
    if (strstr(dist_last_error(), "cannot create a thread") == NULL) return 4;
    await_threads(before);
  }
  options.num_replicas = 2; /* a strategy that fits still works */
  if (dist_strategy_create(&options, &strategy) != DIST_OK) return 5;
  if (dist_run(strategy, healthy, NULL, NULL) != DIST_OK) return 6;
  return dist_strategy_destroy(strategy) == DIST_OK ? 0 : 7;
}

static void no_further_thread(void **state) {
  (void)state;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) _exit(child_without_threads());
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_allocation_fails_once),
      cmocka_unit_test(collectives_do_not_allocate),
#ifdef ADDRESS_SPACE_CAN_END
      cmocka_unit_test(no_further_thread),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
