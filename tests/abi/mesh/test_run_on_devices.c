/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions on the logical devices of a replica: their inputs, their combined result, and how they end when
 * one of them, another replica, or the caller ends them.
 */
#include "tests/abi/clock.h"
#include "tests/abi/mesh_support.h"

/* A replica function that only runs another one on its devices. */
typedef struct on_devices {
  dist_values_fn fn;
  void *user_data;
  int64_t shape[2];
  int64_t parts[2];
} on_devices;

static dist_status run_on_split(dist_replica *replica, const on_devices *what, dist_value **out_result) {
  dist_strategy *strategy = dist_replica_strategy(replica);
  dist_value *whole = numbers(strategy, 0, what->shape, 2), *items[1] = {NULL};
  dist_status status = dist_split_to_logical_devices(replica, whole, what->parts, 2, NULL, &items[0]);
  dist_value_release(whole);
  if (status != DIST_OK) return status;
  dist_value *args = list_of(strategy, items, 1);
  status = dist_run_on_devices(replica, what->fn, what->user_data, args, NULL, NULL, out_result);
  dist_value_release(args);
  return status;
}

/* ---- Inputs and results of a device ---- */

/* Returns twice its shard, in new memory. */
static dist_status twice(dist_replica *device, dist_value *args, dist_value *kwargs, dist_value **out_result,
                         void *user_data) {
  (void)kwargs, (void)user_data;
  dist_tensor shard;
  TRY(dist_value_tensor(dist_value_item(args, 0), &shard));
  int64_t data[64];
  const int64_t n = product_of(shard.shape, shard.ndim);
  EXPECT(n <= 64);
  for (int64_t i = 0; i < n; i++) data[i] = 2 * element(&shard, i);
  const dist_tensor doubled = {data, DIST_I64, shard.ndim, shard.shape, NULL};
  return dist_value_create_tensor(dist_replica_strategy(device), &doubled, out_result);
}

static dist_status split_double_join(dist_replica *replica, void *user_data) {
  dist_value *result = NULL;
  const on_devices *what = user_data;
  TRY(run_on_split(replica, what, &result));
  EXPECT(dist_value_kind_of(result) == DIST_VALUE_SHARDED);
  dist_tensor whole;
  TRY(dist_value_tensor(result, &whole));
  EXPECT(whole.ndim == 2 && whole.shape[0] == what->shape[0] && whole.shape[1] == what->shape[1]);
  for (int64_t i = 0; i < product_of(whole.shape, 2); i++) EXPECT(element(&whole, i) == 2 * i);
  dist_partition partition = DIST_PARTITION_INIT;
  TRY(dist_value_partition(result, &partition));
  EXPECT(partition.dimensions[0] == what->parts[0] && partition.dimensions[1] == what->parts[1]);
  dist_value_release(result);
  return DIST_OK;
}

static void devices_get_shards_and_give_a_whole(void **state) {
  (void)state;
  static on_devices cases[] = {{twice, NULL, {4, 6}, {2, 2}},
                               {twice, NULL, {8, 3}, {4, 1}},
                               {twice, NULL, {3, 8}, {1, 4}},
                               {twice, NULL, {0, 8}, {2, 2}}};
  for (int32_t threads = DIST_THREADS_CALLER; threads <= DIST_THREADS_LIBRARY; threads++) {
    const int before = count_threads();
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.threads = threads;
    dist_strategy *strategy = mesh_with(2, 4, options);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
      for (int run = 0; run < 3; run++) assert_ok(dist_run(strategy, split_double_join, &cases[i], NULL));
    assert_ok(dist_strategy_destroy(strategy));
    await_threads(before);
  }
}

/* Checks a device's identity, and that its collectives include only the devices of its replica. */
static dist_status sum_ids(dist_replica *device, dist_value *args, dist_value *kwargs,
                           dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)user_data;
  const int32_t me = dist_replica_id(device), replica = dist_device_replica(device);
  EXPECT(dist_replica_num_replicas(device) == 4 && dist_get_replica() == device);
  int32_t at[4];
  TRY(dist_device_coordinates(device, at));
  EXPECT(at[0] == replica && at[1] == me && at[2] == 0 && at[3] == 0);
  int64_t one = 1, number = 100 * replica + me;
  dist_tensor tensor = vector_of(&number, DIST_I64, &one);
  TRY(dist_all_reduce(device, DIST_REDUCE_SUM, &tensor, &tensor, 1, NULL, NULL));
  return dist_value_create_tensor(dist_replica_strategy(device), &tensor, out_result);
}

static dist_status sum_on_devices(dist_replica *replica, void *user_data) {
  (void)user_data;
  EXPECT(dist_device_replica(replica) == -1);
  dist_value *result = NULL;
  TRY(dist_run_on_devices(replica, sum_ids, NULL, NULL, NULL, NULL, &result));
  dist_partition partition = DIST_PARTITION_INIT;
  TRY(dist_value_partition(result, &partition)); /* equal on all devices, so it is replicated */
  EXPECT(partition.kind == DIST_PARTITION_REPLICATE);
  dist_tensor sum;
  TRY(dist_value_tensor(result, &sum));
  EXPECT(element(&sum, 0) == 400 * dist_replica_id(replica) + 6);
  dist_value_release(result);
  EXPECT(dist_get_replica() == replica);
  return healthy(replica, NULL);
}

static void devices_meet_among_themselves(void **state) {
  (void)state;
  dist_strategy *strategy = mesh_of(3, 4);
  for (int run = 0; run < 10; run++) assert_ok(dist_run(strategy, sum_on_devices, NULL, NULL));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Axes ---- */

static dist_status sum_along_axes(dist_replica *device, dist_value *args, dist_value *kwargs,
                                  dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)out_result, (void)user_data;
  const int32_t me = dist_replica_id(device);
  int32_t row = -1, column = -1, size = -1;
  TRY(dist_device_axis(device, "row", &row, &size));
  EXPECT(row == me / 3 && size == 2);
  TRY(dist_device_axis(device, "column", &column, &size));
  EXPECT(column == me % 3 && size == 3);
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  int64_t one = 1, number = me, sum = 0;
  dist_tensor in = vector_of(&number, DIST_I64, &one), out = vector_of(&sum, DIST_I64, &one);
  TRY(dist_device_axis_group(device, "column", &options.group));
  EXPECT(dist_group_size(options.group) == 3 && dist_group_rank(options.group, me) == column);
  TRY(dist_all_reduce(device, DIST_REDUCE_SUM, &in, &out, 1, &options, NULL));
  EXPECT(sum == 9 * row + 3);
  TRY(dist_device_axis_group(device, "row", &options.group));
  TRY(dist_all_reduce(device, DIST_REDUCE_SUM, &in, &out, 1, &options, NULL));
  EXPECT(sum == 2 * column + 3);
  EXPECT(dist_group_destroy((dist_group *)options.group) == DIST_FAILED_PRECONDITION);
  EXPECT_FAILS(dist_device_axis(device, "z", &row, NULL), DIST_INVALID_ARGUMENT,
               "The axes are \"row\", \"column\"");
  return DIST_OK;
}

static dist_status only_on_devices(dist_replica *replica, void *user_data) {
  (void)user_data;
  int32_t index = 0;
  EXPECT_FAILS(dist_device_axis(replica, "row", &index, NULL), DIST_FAILED_PRECONDITION,
               "is for logical devices");
  return dist_run_on_devices(replica, sum_along_axes, NULL, NULL, NULL, NULL, NULL);
}

static void axes_have_names_and_groups(void **state) {
  (void)state;
  const dist_mesh_axis axes[] = {{"row", 2}, {"column", 3}};
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_mesh_options mesh = DIST_MESH_OPTIONS_INIT;
  options.mesh = &mesh;
  mesh.axes = axes;
  mesh.num_axes = 2;
  dist_strategy *strategy = mesh_with(2, 6, options);
  assert_ok(dist_run(strategy, only_on_devices, NULL, NULL));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Results ---- */

enum shape_of_results { OWN_ID, ONE_ONLY, DIFFERENT, NOTHING, SHARED, SCALARS, KINDS };

static dist_status give(dist_replica *device, dist_value *args, dist_value *kwargs, dist_value **out_result,
                        void *user_data) {
  const int32_t me = dist_replica_id(device);
  int64_t number = me, one = 1, two[] = {me, me};
  const int64_t length = me == 1 ? 2 : 1;
  dist_tensor tensor = vector_of(&number, DIST_I64, &one);
  (void)kwargs;
  switch (*(enum shape_of_results *)user_data) {
    case OWN_ID: break;
    case ONE_ONLY:
      if (me != 2) return dist_value_create_none(dist_replica_strategy(device), out_result);
      break;
    case DIFFERENT: tensor = vector_of(two, DIST_I64, &length); break;
    case NOTHING: return DIST_OK;
    case SHARED: *out_result = dist_value_retain(dist_value_item(args, 0)); return DIST_OK;
    case SCALARS: tensor.ndim = 0; break;
    default:
      return me == 0 ? dist_value_create_text(dist_replica_strategy(device), "x", out_result) : DIST_OK;
  }
  return dist_value_create_tensor(dist_replica_strategy(device), &tensor, out_result);
}

static dist_status join(dist_replica *replica, enum shape_of_results kind, const dist_partition *how,
                        dist_value **out) {
  dist_value *items[] = {numbers(dist_replica_strategy(replica), 5, NULL, 0)};
  dist_value *args = list_of(dist_replica_strategy(replica), items, 1);
  dist_devices_options options = DIST_DEVICES_OPTIONS_INIT;
  options.results = &how;
  options.num_results = how != NULL;
  const dist_status status = dist_run_on_devices(replica, give, &kind, args, NULL, &options, out);
  dist_value_release(args);
  return status;
}

static dist_status join_results(dist_replica *replica, void *user_data) {
  (void)user_data;
  dist_value *result = NULL;
  dist_tensor tensor;
  dist_partition got = DIST_PARTITION_INIT, split = DIST_PARTITION_INIT, assign = DIST_PARTITION_INIT;
  const int64_t parts[] = {3}, wrong[] = {2};
  split.dimensions = parts;
  split.num_dimensions = 1;
  assign.kind = DIST_PARTITION_ASSIGN;
  assign.logical_device = 1;
  TRY(join(replica, OWN_ID, &split, &result));
  TRY(dist_value_tensor(result, &tensor));
  EXPECT(tensor.shape[0] == 3 && element(&tensor, 2) == 2);
  dist_value_release(result);
  TRY(join(replica, DIFFERENT, &split, &result)); /* tiles of different sizes: 1, 2 and 1 */
  TRY(dist_value_tensor(result, &tensor));
  EXPECT(tensor.shape[0] == 4 && element(&tensor, 2) == 1 && element(&tensor, 3) == 2);
  TRY(dist_value_partition(result, &got));
  EXPECT(got.uneven == 1);
  dist_value_release(result);
  TRY(join(replica, OWN_ID, &assign, &result));
  TRY(dist_value_tensor(result, &tensor));
  EXPECT(element(&tensor, 0) == 1);
  dist_value_release(result);
  TRY(join(replica, ONE_ONLY, NULL, &result));
  TRY(dist_value_partition(result, &got));
  EXPECT(got.kind == DIST_PARTITION_ASSIGN && got.logical_device == 2);
  dist_value_release(result);
  TRY(join(replica, SHARED, NULL, &result));
  EXPECT(dist_value_kind_of(result) == DIST_VALUE_TENSOR);
  dist_value_release(result);
  TRY(join(replica, NOTHING, NULL, &result));
  EXPECT(result == NULL);
  EXPECT_FAILS(join(replica, OWN_ID, NULL, &result), DIST_INVALID_ARGUMENT,
               "result: the results of the logical devices");
  EXPECT_FAILS(join(replica, SCALARS, &split, &result), DIST_INVALID_ARGUMENT, "do not match the given");
  EXPECT_FAILS(join(replica, KINDS, &split, &result), DIST_INVALID_ARGUMENT,
               "logical device 0 returned a text");
  split.dimensions = wrong;
  EXPECT_FAILS(join(replica, OWN_ID, &split, &result), DIST_INVALID_ARGUMENT, "number of logical devices, 3");
  assign.logical_device = 3;
  EXPECT_FAILS(join(replica, OWN_ID, &assign, &result), DIST_INVALID_ARGUMENT, "no logical device 3");
  return DIST_OK;
}

static void results_are_joined_as_said_or_as_fits(void **state) {
  (void)state;
  dist_strategy *strategy = mesh_of(2, 3);
  assert_ok(dist_run(strategy, join_results, NULL, NULL));
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- How they end ---- */

typedef struct scene {
  int32_t culprit;       /* a logical device, or a replica */
  atomic_int waiting;    /* devices that are about to wait for each other */
  atomic_int gone;       /* devices whose wait has ended */
  dist_status status[8]; /* what a device's collective returned */
  report seen[8];
} scene;

/* All devices except one call a barrier; that one fails. */
static dist_status one_fails(dist_replica *device, dist_value *args, dist_value *kwargs,
                             dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)out_result;
  scene *s = user_data;
  const int32_t me = dist_replica_id(device);
  if (me == s->culprit) return dist_fail(DIST_DATA_LOSS, "the disk is gone");
  s->status[me] = dist_barrier(device, NULL, NULL);
  read_report(&s->seen[me]);
  return s->status[me];
}

static dist_status survive_a_failure(dist_replica *replica, void *user_data) {
  scene *all = user_data, *s = &all[dist_replica_id(replica)];
  for (s->culprit = 0; s->culprit < 4; s->culprit++) {
    const dist_status status = dist_run_on_devices(replica, one_fails, s, NULL, NULL, NULL, NULL);
    dist_error_info info = DIST_ERROR_INFO_INIT;
    TRY(dist_last_error_info(&info));
    EXPECT(status == DIST_DATA_LOSS && strstr(info.message, "the disk is gone") != NULL);
    EXPECT(info.replica == dist_replica_id(replica) && info.logical_device == s->culprit);
    for (int32_t d = 0; d < 4; d++) {
      if (d == s->culprit) continue;
      EXPECT(s->status[d] == DIST_ABORTED);
      char words[64];
      snprintf(words, sizeof words, "logical device %d failed with DATA_LOSS", s->culprit);
      EXPECT(strstr(s->seen[d].message, words) != NULL);
    }
  }
  return healthy(replica, NULL); /* the replica has not failed */
}

static void a_failing_device_ends_the_others(void **state) {
  (void)state;
  static scene scenes[2];
  dist_strategy *strategy = mesh_of(2, 4);
  assert_ok(dist_run(strategy, survive_a_failure, scenes, NULL));
  assert_healthy(DIST_THREADS_CALLER, strategy);
  assert_ok(dist_strategy_destroy(strategy));
}

/* Device 0 does not call the barrier: it waits until the others have returned from it. */
static dist_status wait_for_the_end(dist_replica *device, dist_value *args, dist_value *kwargs,
                                    dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)out_result;
  scene *s = user_data;
  const int32_t me = dist_replica_id(device);
  if (me == 0) {
    while (atomic_load(&s->gone) != 3) sched_yield();
    return DIST_OK;
  }
  atomic_fetch_add(&s->waiting, 1);
  s->status[me] = dist_barrier(device, NULL, NULL);
  read_report(&s->seen[me]);
  atomic_fetch_add(&s->gone, 1);
  return s->status[me];
}

static dist_status fail_beside_devices(dist_replica *replica, void *user_data) {
  scene *s = user_data;
  if (dist_replica_id(replica) == s->culprit) {
    while (atomic_load(&s->waiting) != 3) sched_yield();
    return dist_fail(DIST_NOT_FOUND, "no such row");
  }
  const dist_status status = dist_run_on_devices(replica, wait_for_the_end, s, NULL, NULL, NULL, NULL);
  EXPECT(status == DIST_ABORTED);
  /* Later ones fail too. */
  EXPECT_FAILS(dist_run_on_devices(replica, sum_ids, NULL, NULL, NULL, NULL, NULL), DIST_ABORTED,
               "replica 1 failed with NOT_FOUND");
  return dist_run_on_devices(replica, sum_ids, NULL, NULL, NULL, NULL, NULL);
}

static void a_failing_replica_ends_its_peers_devices(void **state) {
  (void)state;
  dist_strategy *strategy = mesh_of(2, 4);
  for (int run = 0; run < 20; run++) {
    static scene s;
    memset(&s, 0, sizeof s);
    s.culprit = 1;
    assert_fails(dist_run(strategy, fail_beside_devices, &s, NULL), DIST_NOT_FOUND, "no such row");
    for (int32_t d = 1; d < 4; d++)
      assert_has(s.seen[d].message, "replica 1 failed with NOT_FOUND: no such row");
    assert_healthy(DIST_THREADS_CALLER, strategy);
  }
  assert_ok(dist_strategy_destroy(strategy));
}

typedef struct canceller {
  dist_strategy *strategy;
  scene scene;
} canceller;

static void *cancel_when_waiting(void *argument) {
  canceller *self = argument;
  while (atomic_load(&self->scene.waiting) != 3) sched_yield();
  if (dist_strategy_cancel(self->strategy) != DIST_OK) abort();
  return NULL;
}

static dist_status wait_on_devices(dist_replica *replica, void *user_data) {
  canceller *self = user_data;
  if (dist_replica_id(replica) != 0) return DIST_OK;
  const dist_status status =
      dist_run_on_devices(replica, wait_for_the_end, &self->scene, NULL, NULL, NULL, NULL);
  EXPECT(status == DIST_CANCELLED);
  EXPECT(dist_run_on_devices(replica, sum_ids, NULL, NULL, NULL, NULL, NULL) == DIST_CANCELLED);
  return status;
}

static void cancelling_ends_devices(void **state) {
  (void)state;
  dist_strategy *strategy = mesh_of(2, 4);
  for (int run = 0; run < 20; run++) {
    static canceller self;
    memset(&self, 0, sizeof self);
    self.strategy = strategy;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel_when_waiting, &self), 0);
    assert_int_equal(dist_run(strategy, wait_on_devices, &self, NULL), DIST_CANCELLED);
    pthread_join(thread, NULL);
    for (int32_t d = 1; d < 4; d++) assert_int_equal(self.scene.status[d], DIST_CANCELLED);
    assert_ok(dist_run(strategy, sum_on_devices, NULL, NULL));
  }
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Past the deadline ---- */

typedef struct lateness {
  atomic_int inside, released;
  dist_status first;
  int of_the_run; /* the deadline is that of the replicas' run */
  stepping_clock clock;
} lateness;

static dist_status stay(dist_replica *device, dist_value *args, dist_value *kwargs, dist_value **out_result,
                        void *user_data) {
  (void)args, (void)kwargs, (void)out_result;
  lateness *late = user_data;
  if (dist_replica_id(device) != 1) {
    while (!atomic_load(&late->inside)) sched_yield();
    return dist_barrier(device, NULL, NULL);
  }
  atomic_store(&late->clock.step_ns, 2000000);
  atomic_store(&late->inside, 1);
  while (!atomic_load(&late->released)) sched_yield();
  return DIST_OK;
}

static dist_status leave_a_device_behind(dist_replica *replica, void *user_data) {
  lateness *late = user_data;
  if (dist_replica_id(replica) != 0) return DIST_OK;
  dist_devices_options options = DIST_DEVICES_OPTIONS_INIT;
  options.timeout_ns = late->of_the_run ? 0 : 1000000;
  late->first = dist_run_on_devices(replica, stay, late, NULL, NULL, &options, NULL);
  /* On a busy machine, device 2 may be about to return. */
  EXPECT(strstr(dist_last_error(), "have not returned from their functions: logical device") != NULL);
  EXPECT(strstr(dist_last_error(), " of replica 0") != NULL);
  /* In a run that has ended, nothing can start. */
  EXPECT_FAILS(dist_run_on_devices(replica, stay, late, NULL, NULL, NULL, NULL),
               late->of_the_run ? DIST_DEADLINE_EXCEEDED : DIST_FAILED_PRECONDITION,
               late->of_the_run ? "the run's deadline" : "have not returned from their functions");
  return DIST_OK;
}

static void a_late_device_holds_up_its_strategy_only(void **state) {
  (void)state;
  for (int of_the_run = 0; of_the_run < 2; of_the_run++) {
    static lateness late;
    late = (lateness){.of_the_run = of_the_run};
    dist_strategy *strategy = mesh_with(2, 3, by_clock(&late.clock, 0, DIST_THREADS_CALLER));
    dist_run_options options = DIST_RUN_OPTIONS_INIT;
    options.timeout_ns = of_the_run ? 1000000 : 0;
    const dist_status status = dist_run(strategy, leave_a_device_behind, &late, &options);
    /* Replica 1, which does nothing, may also miss the deadline. */
    if (!of_the_run || status != DIST_DEADLINE_EXCEEDED) assert_int_equal(status, DIST_OK);
    assert_int_equal(late.first, DIST_DEADLINE_EXCEEDED);
    assert_int_equal(dist_strategy_destroy(strategy), DIST_FAILED_PRECONDITION);
    atomic_store(&late.released, 1);
    while (dist_strategy_destroy(strategy) != DIST_OK) sched_yield(); /* up to the test's time limit */
  }
}

/* ---- Asynchronous collectives ---- */

static dist_status sum_in_the_background(dist_replica *device, dist_value *args, dist_value *kwargs,
                                         dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)out_result, (void)user_data;
  enum { N = 20000 };
  const int32_t me = dist_replica_id(device);
  int64_t length = N;
  float *in = malloc(2 * N * sizeof *in);
  EXPECT(in != NULL);
  for (int i = 0; i < N; i++) in[i] = 1.0f / (float)(1 + me + i), in[N + i] = 0;
  dist_tensor given = vector_of(in, DIST_F32, &length), sum = vector_of(in + N, DIST_F32, &length);
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  dist_work *work = NULL;
  dist_status status = dist_all_reduce(device, DIST_REDUCE_SUM, &given, &sum, 1, &options, &work);
  if (status == DIST_OK) status = dist_work_wait(work, DIST_NO_TIMEOUT);
  dist_work_destroy(work);
  for (int i = 0; i < N && status == DIST_OK; i++) {
    float expected = 1.0f / (float)(1 + i); /* from left to right by logical device */
    for (int d = 1; d < 4; d++) expected += 1.0f / (float)(1 + d + i);
    if (memcmp(&in[N + i], &expected, sizeof expected) != 0) status = dist_fail(DIST_INTERNAL, "other bits");
  }
  free(in);
  return status;
}
static dist_status run_in_the_background(dist_replica *replica, void *user_data) {
  return dist_run_on_devices(replica, sum_in_the_background, user_data, NULL, NULL, NULL, NULL);
}

static void works_go_on_among_devices(void **state) {
  (void)state;
  dist_strategy *strategy = mesh_of(2, 4);
  for (int run = 0; run < 5; run++) assert_ok(dist_run(strategy, run_in_the_background, NULL, NULL));
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(devices_get_shards_and_give_a_whole),
      cmocka_unit_test(devices_meet_among_themselves),
      cmocka_unit_test(axes_have_names_and_groups),
      cmocka_unit_test(results_are_joined_as_said_or_as_fits),
      cmocka_unit_test(a_failing_device_ends_the_others),
      cmocka_unit_test(a_failing_replica_ends_its_peers_devices),
      cmocka_unit_test(cancelling_ends_devices),
      cmocka_unit_test(a_late_device_holds_up_its_strategy_only),
      cmocka_unit_test(works_go_on_among_devices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
