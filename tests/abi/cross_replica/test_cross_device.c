/* SPDX-License-Identifier: Apache-2.0
 *
 * Cross-device operations: TensorFlow's kinds produce the same bits. Also the operations for which libdist
 * uses a host's operator, functions or strategy.
 */
#define _POSIX_C_SOURCE 200112L /* NOLINT(bugprone-reserved-identifier): posix_memalign() in strict C11 */

#include <dist/tf.h>
#include "reduce_support.h"

static dist_cross_device *ops_of(dist_cross_device_options options) {
  dist_cross_device *ops = NULL;
  assert_int_equal(dist_cross_device_create(&options, &ops), DIST_OK);
  return ops;
}

static dist_strategy *strategy_by(dist_cross_device *ops, const dist_strategy_functions *functions,
                                  void *user_data) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = R;
  options.cross_device = ops;
  options.functions = functions;
  options.functions_user_data = user_data;
  dist_strategy *strategy = NULL;
  assert_int_equal(dist_strategy_create(&options, &strategy), DIST_OK);
  return strategy;
}

/* The sum of these numbers depends on the order: 0.1f + 0.2f + 0.3f. */
static dist_value *thirds(dist_strategy *strategy) { return scalars(strategy, DIST_F32, 0.1, 0.2, 0.3); }

static uint32_t bits_of(const dist_value *value) {
  dist_tensor tensor;
  uint32_t bits;
  assert_int_equal(dist_value_tensor(value, &tensor), DIST_OK);
  memcpy(&bits, tensor.data, sizeof bits);
  return bits;
}

static void the_kinds_give_the_same_bits(void **state) {
  dist_value *spread = thirds(*state);
  dist_value *plain = NULL;
  const dist_destination place = {NULL, spread, NULL};
  assert_int_equal(dist_reduce(*state, DIST_REDUCE_MEAN, spread, NULL, 0, &plain), DIST_OK);
  for (int32_t kind = DIST_CROSS_DEVICE_DEFAULT; kind <= DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE; kind++) {
    dist_cross_device_options options = DIST_CROSS_DEVICE_OPTIONS_INIT;
    options.kind = kind;
    dist_cross_device *ops = ops_of(options);
    assert_int_equal(dist_cross_device_kind_of(ops), kind);
    assert_null(dist_cross_device_device(ops));
    dist_strategy *strategy = strategy_by(ops, NULL, NULL);
    dist_value *result = NULL;
    assert_int_equal(dist_cross_device_reduce(ops, DIST_REDUCE_MEAN, spread, &place, &result), DIST_OK);
    assert_int_equal(dist_value_kind_of(result), DIST_VALUE_MIRRORED);
    assert_int_equal(bits_of(dist_value_item(result, R - 1)), bits_of(plain));
    dist_value_release(result);
    dist_cross_device_destroy(ops); /* the strategy keeps it */
    assert_int_equal(dist_batch_reduce_to(strategy, DIST_REDUCE_MEAN, &spread, &place, 1, NULL, &result),
                     DIST_OK);
    assert_int_equal(bits_of(dist_value_item(result, 0)), bits_of(plain));
    dist_value_release(result);
    assert_int_equal(dist_strategy_destroy(strategy), DIST_OK);
  }
  dist_value_release(plain);
  dist_value_release(spread);
}

static void multiply(void *acc, const void *in, int64_t count, dist_dtype dtype, void *user_data) {
  assert_int_equal(dtype, DIST_F32);
  for (int64_t i = 0; i < count; i++) ((float *)acc)[i] *= ((const float *)in)[i];
  ++*(int *)user_data;
}

/* As in TensorFlow: batch_reduce_to() uses the operator, reduce() and reduce_to() do not. */
static void an_operator_of_the_hosts(void **state) {
  (void)state;
  int calls = 0;
  dist_cross_device_options options = DIST_CROSS_DEVICE_OPTIONS_INIT;
  options.kind = DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE;
  options.reduce_to_device = "cpu:1";
  options.accumulate = multiply;
  options.accumulate_user_data = &calls;
  dist_cross_device *ops = ops_of(options);
  assert_string_equal(dist_cross_device_device(ops), "/job:localhost/replica:0/task:0/device:CPU:1");
  dist_strategy *strategy = strategy_by(ops, NULL, NULL);
  dist_value *spread = scalars(strategy, DIST_F32, 2, 3, 4);
  dist_value *result = NULL;
  const dist_destination cpu = {NULL, NULL, "CPU:0"};
  const double sum = 9, product = 24, mean = 8;
  assert_int_equal(dist_reduce(strategy, DIST_REDUCE_SUM, spread, NULL, 0, &result), DIST_OK);
  assert_tensor(result, DIST_F32, 1, &sum);
  dist_value_release(result);
  assert_int_equal(dist_reduce_to(strategy, DIST_REDUCE_SUM, spread, &cpu, NULL, &result), DIST_OK);
  assert_tensor(result, DIST_F32, 1, &sum);
  dist_value_release(result);
  assert_int_equal(calls, 0);
  assert_int_equal(dist_batch_reduce_to(strategy, DIST_REDUCE_SUM, &spread, &cpu, 1, NULL, &result), DIST_OK);
  assert_tensor(result, DIST_F32, 1, &product);
  dist_value_release(result);
  assert_int_equal(dist_batch_reduce_to(strategy, DIST_REDUCE_MEAN, &spread, &cpu, 1, NULL, &result),
                   DIST_OK);
  assert_tensor(result, DIST_F32, 1, &mean);
  dist_value_release(result);
  assert_int_equal(dist_cross_device_reduce(ops, DIST_REDUCE_SUM, spread, &cpu, &result), DIST_OK);
  assert_tensor(result, DIST_F32, 1, &product);
  assert_int_equal(calls, 3 * (R - 1));
  dist_value_release(result);
  dist_value_release(spread);
  dist_cross_device_destroy(ops);
  assert_int_equal(dist_strategy_destroy(strategy), DIST_OK);
}

/* The host's reductions return the largest magnitude, which neither SUM nor MEAN does. */
typedef struct host {
  int reductions, broadcasts, gathers;
  dist_status fail_with;
} host;

static dist_status keep_largest(dist_reduce_op op, const dist_tensor *components, size_t n, dist_tensor *out,
                                void *user_data) {
  host *self = user_data;
  (void)op;
  self->reductions++;
  if (self->fail_with == DIST_DATA_LOSS) return dist_fail(DIST_DATA_LOSS, "the link is down");
  float *to = out->data;
  *to = 0;
  for (size_t r = 0; r < n; r++) {
    const float number = *(const float *)components[r].data;
    if (number * number > *to * *to) *to = number;
  }
  return self->fail_with;
}

static dist_status copy_to_all(const dist_tensor *value, dist_tensor *copies, size_t n, void *user_data) {
  ((host *)user_data)->broadcasts++;
  for (size_t r = 0; r < n; r++) memcpy(copies[r].data, value->data, sizeof(float));
  return DIST_OK;
}

static dist_status join_backwards(const dist_tensor *components, size_t n, int32_t axis, dist_tensor *out,
                                  void *user_data) {
  ((host *)user_data)->gathers++;
  assert_int_equal(axis, 0);
  float *to = out->data;
  for (size_t r = n; r-- > 0;) {
    const size_t count = (size_t)components[r].shape[0];
    memcpy(to, components[r].data, count * sizeof(float));
    to += count;
  }
  return DIST_OK;
}

static dist_value *rows(dist_strategy *strategy) {
  static const int64_t sizes[R] = {1, 2, 1};
  static const double numbers[R][2] = {{1, 0}, {2, 3}, {4, 0}};
  dist_value *items[R];
  for (int r = 0; r < R; r++) items[r] = tensor_of(strategy, DIST_F32, 1, &sizes[r], numbers[r]);
  return spread_of(strategy, items);
}

static void check_host_functions(dist_strategy *strategy, host *self) {
  dist_value *spread = scalars(strategy, DIST_F32, 2, -5, 4);
  dist_value *result = NULL;
  const dist_destination cpu = {NULL, NULL, "CPU:0"};
  const double largest = -5, one = 1, backwards[] = {4, 2, 3, 1};
  assert_int_equal(dist_reduce(strategy, DIST_REDUCE_SUM, spread, NULL, 0, &result), DIST_OK);
  assert_tensor(result, DIST_F32, 1, &largest);
  dist_value_release(result);
  assert_int_equal(dist_reduce_to(strategy, DIST_REDUCE_SUM, spread, &cpu, NULL, &result), DIST_OK);
  assert_tensor(result, DIST_F32, 1, &largest);
  dist_value_release(result);
  assert_int_equal(dist_batch_reduce_to(strategy, DIST_REDUCE_MEAN, &spread, NULL, 1, NULL, &result),
                   DIST_OK);
  assert_tensor(dist_value_item(result, 2), DIST_F32, 1, &largest);
  dist_value_release(result);
  assert_int_equal(self->reductions, 3);
  dist_value *tensor = tensor_of(strategy, DIST_F32, 0, NULL, &one);
  assert_int_equal(dist_broadcast_to(strategy, tensor, NULL, &result), DIST_OK);
  assert_tensor(dist_value_item(result, 1), DIST_F32, 1, &one);
  assert_ptr_not_equal(dist_value_item(result, 1), dist_value_item(result, 2));
  assert_int_equal(self->broadcasts, 1);
  dist_value_release(result);
  dist_value_release(tensor);
  dist_value *uneven = rows(strategy);
  assert_int_equal(dist_gather(strategy, uneven, -1, &result), DIST_OK);
  assert_tensor(result, DIST_F32, 4, backwards);
  assert_int_equal(self->gathers, 1);
  dist_value_release(result);
  dist_value_release(uneven);

  result = NULL;
  self->fail_with = DIST_DATA_LOSS;
  assert_fails_with(dist_reduce(strategy, DIST_REDUCE_SUM, spread, NULL, 0, &result), DIST_DATA_LOSS,
                    "the link is down");
  self->fail_with = DIST_UNAVAILABLE;
  assert_fails_with(
      dist_reduce_to(strategy, DIST_REDUCE_SUM, spread, &cpu, NULL, &result), DIST_UNAVAILABLE,
      "the host's reduce function returned UNAVAILABLE without a reason. Use dist_fail() to report one");
  assert_null(result);
  self->fail_with = DIST_OK;
  dist_value_release(spread);
}

static void functions_of_the_hosts(void **state) {
  (void)state;
  host self = {0, 0, 0, DIST_OK};
  dist_cross_device_functions functions = DIST_CROSS_DEVICE_FUNCTIONS_INIT;
  functions.reduce = keep_largest;
  functions.broadcast = copy_to_all;
  functions.gather = join_backwards;
  dist_cross_device_options options = DIST_CROSS_DEVICE_OPTIONS_INIT;
  options.kind = DIST_CROSS_DEVICE_HOST;
  options.functions = &functions;
  options.functions_user_data = &self;
  dist_cross_device *ops = ops_of(options);
  dist_strategy *strategy = strategy_by(ops, NULL, NULL);
  check_host_functions(strategy, &self);
  dist_cross_device_destroy(ops);
  assert_int_equal(dist_strategy_destroy(strategy), DIST_OK);
}

static int32_t one_copy(int32_t replica_id, int32_t num_replicas, void *user_data) {
  (void)replica_id, (void)num_replicas, (void)user_data;
  return 0;
}
static int32_t own_copy(int32_t replica_id, int32_t num_replicas, void *user_data) {
  (void)num_replicas, (void)user_data;
  return replica_id;
}
static int32_t halves(int32_t replica_id, int32_t num_replicas, void *user_data) {
  (void)num_replicas, (void)user_data;
  return replica_id / 2;
}
static int32_t beyond(int32_t replica_id, int32_t num_replicas, void *user_data) {
  (void)replica_id, (void)user_data;
  return num_replicas;
}
static const char *named(int32_t replica_id, void *user_data) {
  static const char *const names[R] = {"CPU:4", "CPU:5", "CPU:6"};
  (void)user_data;
  return names[replica_id];
}

/* A host strategy whose replicas share their variables and use the devices that it specifies. */
static void a_strategy_of_the_hosts(void **state) {
  (void)state;
  host self = {0, 0, 0, DIST_OK};
  dist_strategy_functions functions = DIST_STRATEGY_FUNCTIONS_INIT;
  functions.copy_of_replica = one_copy;
  functions.device_of_replica = named;
  functions.reduce = keep_largest;
  functions.broadcast = copy_to_all;
  functions.gather = join_backwards;
  dist_strategy *strategy = strategy_by(NULL, &functions, &self);
  memset(&functions, 0, sizeof functions); /* the table has been copied */
  check_host_functions(strategy, &self);
  assert_int_equal(dist_strategy_kind_of(strategy), DIST_STRATEGY_CENTRAL_STORAGE);
  const char *name = NULL;
  assert_int_equal(dist_strategy_device(strategy, 2, &name), DIST_OK);
  assert_string_equal(name, "/job:localhost/replica:0/task:0/device:CPU:6");
  float zero = 0;
  const dist_tensor initial = {&zero, DIST_F32, 0, NULL, NULL};
  dist_variable *variable = NULL;
  assert_int_equal(dist_variable_create(strategy, &initial, NULL, &variable), DIST_OK);
  dist_tensor first, last;
  assert_int_equal(dist_variable_component(variable, 0, &first), DIST_OK);
  assert_int_equal(dist_variable_component(variable, R - 1, &last), DIST_OK);
  assert_ptr_equal(first.data, last.data);
  dist_variable_destroy(variable);
  assert_int_equal(dist_strategy_destroy(strategy), DIST_OK);

  dist_strategy_functions_init(&functions, sizeof functions);
  functions.copy_of_replica = own_copy;
  strategy = strategy_by(NULL, &functions, NULL);
  assert_int_equal(dist_strategy_kind_of(strategy), DIST_STRATEGY_MIRRORED);
  assert_int_equal(dist_strategy_destroy(strategy), DIST_OK);
}

static void bad_strategies_of_the_hosts(void **state) {
  (void)state;
  dist_strategy_functions functions = DIST_STRATEGY_FUNCTIONS_INIT;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = R;
  options.functions = &functions;
  dist_strategy *strategy = NULL;
  functions.copy_of_replica = halves;
  assert_int_equal(dist_strategy_create(&options, &strategy), DIST_UNIMPLEMENTED);
  functions.copy_of_replica = beyond;
  assert_fails_with(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT,
                    "functions.copy_of_replica() returned 3 for replica 0, but copies are 0 to 2");
  functions.copy_of_replica = NULL;
  functions.gather = join_backwards; /* gather without reduce */
  assert_int_equal(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT);
  functions.gather = NULL;
  functions.device_of_replica = named;
  static const char *const devices[R] = {"CPU:0", "CPU:1", "CPU:2"};
  options.devices = devices;
  options.num_devices = R;
  assert_int_equal(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT);
  options.num_devices = 0;
  functions.reserved = 1;
  assert_int_equal(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT);
  functions.reserved = 0;
  options.kind = DIST_STRATEGY_ONE_DEVICE;
  options.num_replicas = 0;
  assert_int_equal(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT);
  assert_null(strategy);
}

static void bad_options(void **state) {
  (void)state;
  dist_cross_device *ops = NULL;
  dist_cross_device_options options = DIST_CROSS_DEVICE_OPTIONS_INIT;
  assert_int_equal(dist_cross_device_create(&options, NULL), DIST_INVALID_ARGUMENT);
  options.kind = DIST_CROSS_DEVICE_HOST + 1;
  assert_int_equal(dist_cross_device_create(&options, &ops), DIST_INVALID_ARGUMENT);
  options.kind = DIST_CROSS_DEVICE_DEFAULT;
  options.accumulate = multiply;
  assert_fails_with(
      dist_cross_device_create(&options, &ops), DIST_INVALID_ARGUMENT,
      "DEFAULT does not use an accumulate function; only DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE does");
  options.accumulate = NULL;
  dist_cross_device_functions functions = DIST_CROSS_DEVICE_FUNCTIONS_INIT;
  functions.reduce = keep_largest;
  options.functions = &functions;
  assert_int_equal(dist_cross_device_create(&options, &ops), DIST_INVALID_ARGUMENT);
  functions.reduce = NULL; /* an empty table counts as a table */
  assert_fails_with(dist_cross_device_create(&options, &ops), DIST_INVALID_ARGUMENT,
                    "DEFAULT does not use host functions. Use DIST_CROSS_DEVICE_HOST.");
  options.kind = DIST_CROSS_DEVICE_HOST;
  assert_int_equal(dist_cross_device_create(&options, &ops), DIST_INVALID_ARGUMENT);
  options.functions = NULL;
  options.kind = DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE;
  options.reduce_to_device = "nowhere";
  assert_int_equal(dist_cross_device_create(&options, &ops), DIST_INVALID_ARGUMENT);
  assert_null(ops);
  dist_cross_device_destroy(NULL);
  assert_int_equal(dist_cross_device_kind_of(NULL), 0);
  assert_null(dist_cross_device_device(NULL));
}

static void without_a_strategy(void **state) {
  const dist_cross_device_options init = DIST_CROSS_DEVICE_OPTIONS_INIT;
  dist_cross_device *ops = ops_of(init);
  dist_value *spread = scalars(*state, DIST_I32, 1, 2, 4);
  dist_value *uneven = rows(*state);
  const double three = 3, numbers[] = {1, 2, 3, 4};
  dist_value *tensor = tensor_of(*state, DIST_F32, 0, NULL, &three);
  const dist_destination at_spread = {NULL, spread, NULL}, at_cpu = {NULL, NULL, "CPU:9"};
  const double mean = 7.0 / 3;
  dist_value *result = NULL;
  assert_int_equal(dist_cross_device_reduce(ops, DIST_REDUCE_MEAN, spread, &at_cpu, &result), DIST_OK);
  assert_tensor(result, DIST_F64, 1, &mean);
  dist_value_release(result);
  /* With one contribution, the operator does not matter. */
  assert_int_equal(dist_cross_device_reduce(ops, DIST_REDUCE_SUM, tensor, &at_spread, &result), DIST_OK);
  assert_ptr_equal(result, tensor);
  dist_value_release(result);
  assert_int_equal(dist_cross_device_broadcast(ops, tensor, &at_spread, &result), DIST_OK);
  assert_int_equal(dist_value_size(result), R);
  dist_value_release(result);
  assert_int_equal(dist_cross_device_broadcast(ops, tensor, &at_cpu, &result), DIST_OK);
  assert_ptr_equal(result, tensor);
  dist_value_release(result);
  assert_int_equal(dist_cross_device_gather(ops, uneven, 0, &result), DIST_OK);
  assert_tensor(result, DIST_F32, 4, numbers);
  dist_value_release(result);
  assert_int_equal(dist_cross_device_batch_reduce(ops, DIST_REDUCE_SUM, NULL, NULL, 0, NULL), DIST_OK);
  result = NULL;
  assert_int_equal(dist_cross_device_batch_reduce(ops, DIST_REDUCE_SUM, &spread, NULL, 1, &result),
                   DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_cross_device_reduce(ops, DIST_REDUCE_SUM, spread, NULL, &result),
                   DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_cross_device_reduce(ops, DIST_REDUCE_SUM, NULL, &at_cpu, &result),
                   DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_cross_device_reduce(NULL, DIST_REDUCE_SUM, spread, &at_cpu, &result),
                   DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_cross_device_reduce(ops, DIST_REDUCE_MAX, spread, &at_cpu, &result),
                   DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_cross_device_broadcast(ops, tensor, NULL, &result), DIST_INVALID_ARGUMENT);
  assert_int_equal(dist_cross_device_gather(ops, spread, 0, &result), DIST_INVALID_ARGUMENT);
  assert_null(result);
  dist_value_release(tensor);
  dist_value_release(uneven);
  dist_value_release(spread);
  dist_cross_device_destroy(ops);
}

/* ---- Each allocation is rejected in turn ---- */

typedef struct accounts {
  long requests, refuse_at, live;
} accounts;

static void *counted_alloc(size_t size, size_t align, void *user_data) {
  accounts *a = user_data;
  if (a->requests++ == a->refuse_at) return NULL;
  void *memory = NULL;
  if (posix_memalign(&memory, align < sizeof(void *) ? sizeof(void *) : align, size) != 0) return NULL;
  a->live++;
  return memory;
}

static void counted_free(void *memory, size_t size, size_t align, void *user_data) {
  (void)size, (void)align;
  ((accounts *)user_data)->live--;
  free(memory);
}

static dist_status use_operations(accounts *a, dist_value *spread, dist_value *uneven) {
  int calls = 0;
  dist_cross_device_options options = DIST_CROSS_DEVICE_OPTIONS_INIT;
  options.kind = DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE;
  options.accumulate = multiply;
  options.accumulate_user_data = &calls;
  options.allocator = (dist_allocator){counted_alloc, counted_free, a};
  dist_cross_device *ops = NULL;
  dist_value *results[3] = {NULL, NULL, NULL};
  const dist_destination at_spread = {NULL, spread, NULL};
  dist_status status = dist_cross_device_create(&options, &ops);
  if (status == DIST_OK)
    status = dist_cross_device_reduce(ops, DIST_REDUCE_MEAN, spread, &at_spread, &results[0]);
  if (status == DIST_OK) status = dist_cross_device_gather(ops, uneven, 0, &results[1]);
  if (status == DIST_OK)
    status = dist_cross_device_broadcast(ops, dist_value_item(spread, 0), &at_spread, &results[2]);
  for (int k = 0; k < 3; k++) dist_value_release(results[k]);
  dist_cross_device_destroy(ops);
  return status;
}

static void every_allocation_fails_once(void **state) {
  dist_value *spread = scalars(*state, DIST_F32, 1, 2, 3);
  dist_value *uneven = rows(*state);
  long refused = 0;
  for (long k = 0;; k++) {
    accounts a = {0, k, 0};
    const dist_status status = use_operations(&a, spread, uneven);
    assert_int_equal(a.live, 0);
    if (a.requests <= k) {
      assert_int_equal(status, DIST_OK);
      break;
    }
    assert_int_equal(status, DIST_RESOURCE_EXHAUSTED);
    refused++;
  }
  assert_true(refused > 10);
  dist_value_release(uneven);
  dist_value_release(spread);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_kinds_give_the_same_bits), cmocka_unit_test(an_operator_of_the_hosts),
      cmocka_unit_test(functions_of_the_hosts),       cmocka_unit_test(a_strategy_of_the_hosts),
      cmocka_unit_test(bad_strategies_of_the_hosts),  cmocka_unit_test(bad_options),
      cmocka_unit_test(without_a_strategy),           cmocka_unit_test(every_allocation_fails_once),
  };
  return cmocka_run_group_tests_name("cross_device", tests, make_strategy, end_strategy);
}
