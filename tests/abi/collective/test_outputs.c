/* SPDX-License-Identifier: Apache-2.0
 *
 * Two elements of an output tensor must not have the same address, and the strides of any tensor must not
 * exceed the address space. Inputs may be views that repeat an element.
 */
#include "tests/abi/common.h"
#include "tests/abi/dlpack.h"

static float memory[64], other[64];
static int64_t square[] = {4, 4}, line[] = {4}, zero[] = {0, 1}, interlocked[] = {1, 3},
               far[] = {INT64_MAX / 2, 1};

static dist_tensor dense(float *data) { return (dist_tensor){data, DIST_F32, 2, square, NULL}; }
static dist_tensor with(float *data, const int64_t *strides) {
  return (dist_tensor){data, DIST_F32, 2, square, strides};
}

typedef dist_status (*collective)(dist_replica *replica, const dist_tensor *in, dist_tensor *out);

static dist_status all_reduce(dist_replica *r, const dist_tensor *in, dist_tensor *out) {
  return dist_all_reduce(r, DIST_REDUCE_SUM, in, out, 1, NULL, NULL);
}
static dist_status reduce_to_root(dist_replica *r, const dist_tensor *in, dist_tensor *out) {
  return dist_reduce_to_root(r, DIST_REDUCE_SUM, 0, in, out, 1, NULL, NULL);
}
static dist_status reduce_scatter(dist_replica *r, const dist_tensor *in, dist_tensor *out) {
  return dist_reduce_scatter(r, DIST_REDUCE_SUM, in, out, 1, NULL, NULL);
}
static dist_status all_gather(dist_replica *r, const dist_tensor *in, dist_tensor *out) {
  return dist_all_gather(r, in, out, 1, NULL, NULL);
}
static dist_status gather_to_root(dist_replica *r, const dist_tensor *in, dist_tensor *out) {
  return dist_gather_to_root(r, 0, in, out, 1, NULL, NULL);
}
static dist_status broadcast(dist_replica *r, const dist_tensor *in, dist_tensor *out) {
  return dist_broadcast(r, 0, in, out, 1, NULL, NULL);
}
static dist_status scatter_from_root(dist_replica *r, const dist_tensor *in, dist_tensor *out) {
  return dist_scatter_from_root(r, 0, in, out, 1, NULL, NULL);
}
static dist_status all_to_all(dist_replica *r, const dist_tensor *in, dist_tensor *out) {
  return dist_all_to_all(r, in, out, 1, NULL, NULL);
}
static dist_status scan(dist_replica *r, const dist_tensor *in, dist_tensor *out) {
  return dist_scan(r, DIST_REDUCE_SUM, DIST_SCAN_INCLUSIVE, in, out, 1, NULL, NULL);
}
static dist_status permute(dist_replica *r, const dist_tensor *in, dist_tensor *out) {
  return dist_permute(r, 0, 0, in, out, 1, NULL, NULL);
}
static dist_status asynchronous(dist_replica *r, const dist_tensor *in, dist_tensor *out) {
  dist_work *work = NULL;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  dist_status status = dist_all_reduce(r, DIST_REDUCE_SUM, in, out, 1, &options, &work);
  if (status == DIST_OK) status = dist_work_wait(work, DIST_NO_TIMEOUT);
  dist_work_destroy(work);
  return status;
}
static dist_status planned(dist_replica *r, const dist_tensor *in, dist_tensor *out) {
  dist_work *work = NULL;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.planned = 1;
  const dist_status status = dist_all_reduce(r, DIST_REDUCE_SUM, in, out, 1, &options, &work);
  dist_work_destroy(work);
  return status;
}
static void no_change(const dist_block *block, void *user_data) { (void)block, (void)user_data; }
static dist_status reduce_apply(dist_replica *r, const dist_tensor *in, dist_tensor *out) {
  dist_apply_options apply = DIST_APPLY_OPTIONS_INIT;
  apply.kind = DIST_APPLY_CALLBACK;
  apply.fn = no_change;
  dist_tensor gradient = *in;
  return dist_reduce_apply(r, DIST_REDUCE_SUM, &gradient, out, 1, &apply, NULL, NULL);
}
static dist_status halo_exchange(dist_replica *r, const dist_tensor *in, dist_tensor *out) {
  static const int64_t parts[] = {1, 1};
  dist_halo halo = DIST_HALO_INIT;
  halo.ndim = 2;
  halo.parts = parts;
  return dist_halo_exchange(r, in, &halo, out, NULL);
}
static dist_status reshard(dist_replica *r, const dist_tensor *in, dist_tensor *out) {
  dist_partition whole = DIST_PARTITION_INIT;
  whole.kind = DIST_PARTITION_REPLICATE;
  whole.shape = square;
  whole.ndim = 2;
  whole.num_logical_devices = 1;
  return dist_reshard(r, &whole, &whole, in, out, NULL);
}

typedef struct row {
  const char *name;
  collective call;
  int dense_only; /* its inputs must be dense */
} row;
/* @every collective but NONE, RETURN, BARRIER, MERGE_CALL: they write no tensors */
static const row collectives[] = {
    {"all_reduce", all_reduce, 0},
    {"reduce", reduce_to_root, 0},
    {"reduce_scatter", reduce_scatter, 0},
    {"all_gather", all_gather, 0},
    {"gather", gather_to_root, 0},
    {"broadcast", broadcast, 0},
    {"scatter", scatter_from_root, 0},
    {"all_to_all", all_to_all, 0},
    {"scan", scan, 0},
    {"permute", permute, 0},
    {"asynchronous", asynchronous, 0},
    {"planned", planned, 0},
    {"reduce_apply", reduce_apply, 1},
    {"halo_exchange", halo_exchange, 0},
    {"reshard", reshard, 0},
};

static char fault[256];

static void expect(const char *name, const char *what, dist_status status, dist_status wanted) {
  if (status == wanted || fault[0] != '\0') return;
  snprintf(fault, sizeof fault, "%s, %s: %s: %.100s", name, what, dist_status_name(status),
           dist_last_error());
}

/* Inputs in the bytes of the output, but in another order: backwards, or with permuted rows. */
static dist_status in_over_out(dist_replica *replica, void *user_data) {
  (void)user_data;
  static float memory_of_both[64];
  static const int64_t n[] = {16}, forward[] = {1}, backward[] = {-1}, every_other[] = {2};
  const dist_tensor straight = {memory_of_both, DIST_F32, 1, n, forward};
  const dist_tensor reversed = {memory_of_both + 15, DIST_F32, 1, n, backward};
  const dist_tensor even = {memory_of_both, DIST_F32, 1, n, every_other};
  const dist_tensor odd = {memory_of_both + 1, DIST_F32, 1, n, every_other};
  const collective calls[] = {all_reduce, reduce_to_root, broadcast,    scan,
                              permute,    all_gather,     asynchronous, planned};
  for (size_t i = 0; i < COUNT_OF(calls); i++) {
    dist_tensor out = reversed;
    expect("in and out", "backwards", calls[i](replica, &straight, &out), DIST_INVALID_ARGUMENT);
    out = even;
    expect("in and out", "over each other", calls[i](replica, &straight, &out), DIST_INVALID_ARGUMENT);
    out = odd;
    expect("in and out", "interlocking", calls[i](replica, &even, &out), DIST_OK);
  }
  return DIST_OK;
}

static void inputs_and_outputs_are_the_same_or_apart(void **state) {
  (void)state;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 1;
  dist_strategy *strategy = strategy_with(options);
  fault[0] = '\0';
  assert_ok(dist_run(strategy, in_over_out, NULL, NULL));
  if (fault[0] != '\0') fail_msg("%s", fault);
  assert_ok(dist_strategy_destroy(strategy));
}

/* With one replica, no call waits for a peer, and each error belongs to the call. */
static dist_status call_all(dist_replica *replica, void *user_data) {
  (void)user_data;
  for (size_t i = 0; i < COUNT_OF(collectives); i++) {
    const char *name = collectives[i].name;
    const collective call = collectives[i].call;
    dist_tensor in = dense(memory), out = dense(other);
    expect(name, "dense", call(replica, &in, &out), DIST_OK);
    out = with(other, zero);
    expect(name, "out of stride 0", call(replica, &in, &out), DIST_INVALID_ARGUMENT);
    out = with(other, interlocked);
    expect(name, "out that interlocks", call(replica, &in, &out), DIST_INVALID_ARGUMENT);
    out = with(other, far);
    expect(name, "out that reaches too far", call(replica, &in, &out), DIST_INVALID_ARGUMENT);
    out = dense(other);
    in = with(memory, far);
    expect(name, "in that reaches too far", call(replica, &in, &out), DIST_INVALID_ARGUMENT);
    in = with(memory, zero);
    if (!collectives[i].dense_only) expect(name, "in of stride 0", call(replica, &in, &out), DIST_OK);
  }
  return DIST_OK;
}

static void collectives_write_each_element_once(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_CALLER);
  assert_ok(dist_run(strategy, call_all, NULL, NULL));
  if (fault[0] != '\0') fail_msg("%s", fault);
  assert_ok(dist_strategy_destroy(strategy));
}

/* Alternates with calls that differ only in the strides. */
static dist_status alternate(dist_replica *replica, void *user_data) {
  (void)user_data;
  static int64_t one_place[] = {0};
  for (int i = 0; i < 4; i++) {
    dist_tensor in = {memory, DIST_F32, 1, line, NULL},
                out = {other, DIST_F32, 1, line, i % 2 ? one_place : NULL};
    expect("all_reduce", "again", all_reduce(replica, &in, &out), i % 2 ? DIST_INVALID_ARGUMENT : DIST_OK);
  }
  return DIST_OK;
}

static void calls_that_repeat_are_checked(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_CALLER);
  assert_ok(dist_run(strategy, alternate, NULL, NULL));
  if (fault[0] != '\0') fail_msg("%s", fault);
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_status on_replica(dist_replica *replica, void *user_data) {
  dist_variable *variable = user_data;
  const dist_tensor far_in = with(memory, far);
  expect("replica_assign", "too far", dist_replica_assign(replica, variable, DIST_ASSIGN, &far_in, NULL),
         DIST_INVALID_ARGUMENT);
  dist_tensor scalar = {other, DIST_F32, 0, NULL, NULL};
  expect("average_loss", "too far", dist_average_loss(replica, &far_in, NULL, 0, &scalar),
         DIST_INVALID_ARGUMENT);
  return DIST_OK;
}

static void what_is_kept_lies_in_memory(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_CALLER);
  const dist_tensor good = with(memory, zero), bad = with(memory, far);
  dist_value *value = NULL;
  dist_variable *variable = NULL;
  dist_dataset *dataset = NULL;
  assert_fails(dist_value_create_tensor(strategy, &bad, &value), DIST_INVALID_ARGUMENT, "strides[0]");
  assert_fails(dist_value_wrap_tensor(strategy, &bad, NULL, NULL, &value), DIST_INVALID_ARGUMENT,
               "strides[0]");
  assert_fails(dist_variable_create(strategy, &bad, NULL, &variable), DIST_INVALID_ARGUMENT, "strides[0]");
  assert_fails(dist_dataset_create_from_tensors(strategy, &bad, 1, NULL, &dataset), DIST_INVALID_ARGUMENT,
               "strides[0]");
  assert_ok(dist_value_create_tensor(strategy, &good, &value));
  dist_value_release(value);
  assert_ok(dist_value_wrap_tensor(strategy, &good, NULL, NULL, &value));
  dist_value_release(value);
  assert_ok(dist_variable_create(strategy, &good, NULL, &variable));
  assert_ok(dist_run(strategy, on_replica, variable, NULL));
  if (fault[0] != '\0') fail_msg("%s", fault);
  dist_variable_destroy(variable);
  assert_ok(dist_strategy_destroy(strategy));
}

static void imports_lie_in_memory(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(1, DIST_THREADS_CALLER);
  DLManagedTensor managed = {{memory, {1, 0}, 2, {2, 32, 1}, square, far, 0}, NULL, NULL};
  dist_value *value = NULL;
  assert_fails(dist_value_from_dlpack(strategy, &managed, &value), DIST_INVALID_ARGUMENT, "strides[0]");
  managed.tensor.strides = zero;
  assert_ok(dist_value_from_dlpack(strategy, &managed, &value));
  dist_value_release(value);
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(inputs_and_outputs_are_the_same_or_apart),
      cmocka_unit_test(collectives_write_each_element_once),
      cmocka_unit_test(calls_that_repeat_are_checked),
      cmocka_unit_test(what_is_kept_lies_in_memory),
      cmocka_unit_test(imports_lie_in_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
