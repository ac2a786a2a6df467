/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices of strategies, the properties that a strategy reports, communication options, and names of
 * enumerators.
 */
#include <ctype.h>
#include <dist/tf.h>
#include "tests/abi/common.h"

#define FULL(device) "/job:localhost/replica:0/task:0/device:" device

static dist_strategy_options on_devices(int32_t kind, const char *const *devices, size_t n) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = kind;
  options.devices = devices;
  options.num_devices = n;
  return options;
}

static void assert_device(dist_strategy *strategy, int32_t replica, const char *name) {
  const char *is = NULL;
  assert_ok(dist_strategy_device(strategy, replica, &is));
  assert_string_equal(is, name);
}

static void names_are_canonical(void **state) {
  (void)state;
  static const struct {
    const char *given, *full;
  } names[] = {{"CPU:1", FULL("CPU:1")},
               {"cpu:1", FULL("CPU:1")},
               {"/cpu:2", FULL("CPU:2")},
               {"/device:CPU:3", FULL("CPU:3")},
               {"CPU", FULL("CPU:0")},
               {"CPU:*", FULL("CPU:0")},
               {"", FULL("CPU:0")},
               {"gpu:7", FULL("GPU:7")},
               {"/job:localhost/replica:0/task:0/device:TPU:99", FULL("TPU:99")},
               {FULL("CPU:4"), FULL("CPU:4")}};
  char text[128];
  for (size_t i = 0; i < COUNT_OF(names); i++) {
    assert_ok(dist_canonical_device(names[i].given, text, sizeof text));
    assert_string_equal(text, names[i].full);
  }
  static const char *const wrong[] = {"hello",      "C",         "CPU:",
                                      "CPU:-1",     "CPU:1x",    "CPU:0/GPU:0",
                                      "device:CPU", "CPU:0:1",   "/job:worker/task:1/CPU:0",
                                      "/task:1",    "replica:1", "CPU:99999999999999999999",
                                      "FPGA:0"};
  for (size_t i = 0; i < COUNT_OF(wrong); i++) {
    assert_fails(dist_canonical_device(wrong[i], text, sizeof text), DIST_INVALID_ARGUMENT, wrong[i]);
  }
  assert_fails(dist_canonical_device("CPU:0", text, 10), DIST_INVALID_ARGUMENT, "size_bytes is only 10");
  assert_fails(dist_canonical_device(NULL, text, sizeof text), DIST_INVALID_ARGUMENT, "name is NULL");
  assert_fails(dist_canonical_device("CPU:0", NULL, 1), DIST_INVALID_ARGUMENT, "out_name is NULL");
}

static void devices_are_in_replica_order(void **state) {
  (void)state;
  static const char *const devices[] = {"CPU:2", "cpu:0", "/device:CPU:1"};
  dist_strategy *strategy = strategy_with(on_devices(DIST_STRATEGY_MIRRORED, devices, 3));
  assert_int_equal(dist_strategy_num_replicas(strategy), 3);
  assert_int_equal(dist_strategy_kind_of(strategy), DIST_STRATEGY_MIRRORED);
  assert_device(strategy, 0, FULL("CPU:2"));
  assert_device(strategy, 1, FULL("CPU:0"));
  assert_device(strategy, 2, FULL("CPU:1"));
  const char *name = NULL;
  assert_ok(dist_strategy_parameter_device(strategy, 2, &name));
  assert_string_equal(name, FULL("CPU:1"));
  assert_fails(dist_strategy_device(strategy, 3, &name), DIST_INVALID_ARGUMENT, "0 to 2");
  assert_fails(dist_strategy_device(strategy, -1, &name), DIST_INVALID_ARGUMENT, "replica_id is -1");
  assert_fails(dist_strategy_device(NULL, 0, &name), DIST_INVALID_ARGUMENT, "strategy is NULL");
  assert_healthy(DIST_THREADS_CALLER, strategy);
  assert_ok(dist_strategy_destroy(strategy));
  assert_int_equal(dist_strategy_kind_of(NULL), 0);

  /* Without names, the devices are CPU:0, CPU:1 and so on. An empty list has the same effect. */
  dist_strategy_options options = on_devices(DIST_STRATEGY_MIRRORED, devices, 0);
  options.num_replicas = 2;
  strategy = strategy_with(options);
  assert_device(strategy, 1, FULL("CPU:1"));
  assert_ok(dist_strategy_destroy(strategy));
}

static void central_storage_has_a_device_of_its_own(void **state) {
  (void)state;
  static const char *const devices[] = {"CPU:1", "CPU:2"};
  dist_strategy_options options = on_devices(DIST_STRATEGY_CENTRAL_STORAGE, devices, 2);
  options.parameter_device = "cpu:5";
  dist_strategy *strategy = strategy_with(options);
  const char *name = NULL;
  assert_ok(dist_strategy_parameter_device(strategy, 0, &name));
  assert_string_equal(name, FULL("CPU:5"));
  assert_fails(dist_strategy_parameter_device(strategy, 1, &name), DIST_INVALID_ARGUMENT, "index is 1");
  dist_strategy_properties all = DIST_STRATEGY_PROPERTIES_INIT;
  assert_ok(dist_strategy_query(strategy, &all));
  assert_int_equal(all.kind, DIST_STRATEGY_CENTRAL_STORAGE);
  assert_int_equal(all.num_replicas, 2);
  assert_int_equal(all.num_parameter_devices, 1);
  assert_int_equal(all.between_graph, 1);
  assert_int_equal(all.num_workers, 1);
  assert_int_equal(all.in_multi_worker_mode, 0);
  all.struct_size = 4;
  assert_fails(dist_strategy_query(strategy, &all), DIST_INVALID_ARGUMENT, "struct_size is 4");
  assert_fails(dist_strategy_query(strategy, NULL), DIST_INVALID_ARGUMENT, "out_properties is NULL");
  assert_ok(dist_strategy_destroy(strategy));
}

static void devices_out_of_order(void **state) {
  (void)state;
  static const char *const twice[] = {"CPU:0", "CPU:1", "/device:cpu:0"};
  static const char *const bad[] = {"CPU:0", "hello"};
  static const char *const missing[] = {"CPU:0", NULL};
  dist_strategy *strategy = NULL;
  dist_strategy_options options = on_devices(DIST_STRATEGY_MIRRORED, twice, 3);
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "devices[0] and devices[2]");
  options.num_devices = 2;
  options.num_replicas = 3;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "num_replicas is 3");
  options = on_devices(DIST_STRATEGY_MIRRORED, bad, 2);
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "devices[1]");
  options.devices = missing;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "devices[1] is NULL");
  options.devices = NULL;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "devices is NULL");
  options = on_devices(DIST_STRATEGY_ONE_DEVICE, twice, 2);
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "num_devices is 2");
  options = on_devices(DIST_STRATEGY_DEFAULT, twice, 1);
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT,
               "default strategy has no devices");
  options = on_devices(DIST_STRATEGY_MIRRORED, twice, 2);
  options.parameter_device = "CPU:0";
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "only central storage");
  assert_null(strategy);

  options = on_devices(DIST_STRATEGY_DEFAULT, NULL, 0);
  strategy = strategy_with(options);
  const char *name = NULL;
  assert_fails(dist_strategy_device(strategy, 0, &name), DIST_FAILED_PRECONDITION, "has no devices");
  assert_fails(dist_strategy_parameter_device(strategy, 0, &name), DIST_FAILED_PRECONDITION,
               "has no devices");
  assert_ok(dist_strategy_destroy(strategy));
}

static dist_status ask_for_resolver(dist_replica *replica, void *user_data) {
  dist_cluster_resolver *resolver = user_data;
  const dist_status status = dist_strategy_cluster_resolver(dist_replica_strategy(replica), &resolver);
  if (status != DIST_OK) return status;
  return resolver == NULL ? DIST_OK : dist_fail(DIST_INTERNAL, "a cluster of one process");
}

static void one_process_has_no_cluster(void **state) {
  (void)state;
  dist_strategy *strategy = strategy_of(2, DIST_THREADS_CALLER);
  dist_cluster_resolver *resolver = (dist_cluster_resolver *)&strategy;
  assert_ok(dist_strategy_cluster_resolver(strategy, &resolver));
  assert_null(resolver);
  assert_ok(dist_run(strategy, ask_for_resolver, &strategy, NULL));
  assert_fails(dist_strategy_cluster_resolver(strategy, NULL), DIST_INVALID_ARGUMENT, "out_resolver is NULL");
  assert_ok(dist_strategy_destroy(strategy));
}

static void communication_options_merge(void **state) {
  (void)state;
  dist_communication_options base = DIST_COMMUNICATION_OPTIONS_INIT;
  dist_communication_options over = DIST_COMMUNICATION_OPTIONS_INIT;
  dist_communication_options merged = DIST_COMMUNICATION_OPTIONS_INIT;
  base.bytes_per_pack = 7;
  base.timeout_ns = 2500000000;
  assert_ok(dist_communication_options_merge(&base, &over, &merged));
  assert_int_equal(merged.bytes_per_pack, 7);
  assert_int_equal(merged.timeout_ns, 2500000000);
  /* The result may be one of the two. */
  over.timeout_ns = DIST_NO_TIMEOUT;
  over.bytes_per_pack = 9;
  /* The result can be passed to another call, even if the library is older than the program. */
  struct {
    dist_communication_options known;
    int64_t later;
  } longer = {DIST_COMMUNICATION_OPTIONS_INIT, 7};
  longer.known.struct_size = sizeof longer;
  assert_ok(dist_communication_options_merge(&base, &over, &longer.known));
  assert_int_equal(longer.later, 0);
  assert_ok(dist_communication_options_merge(&base, &longer.known, &merged));
  merged.struct_size = UINT32_MAX;
  assert_fails(dist_communication_options_merge(&base, &over, &merged), DIST_INVALID_ARGUMENT, "INIT macro");
  merged.struct_size = sizeof merged;
  assert_ok(dist_communication_options_merge(&base, &over, &base));
  assert_int_equal(base.bytes_per_pack, 9);
  assert_int_equal(base.timeout_ns, DIST_NO_TIMEOUT);

  over.bytes_per_pack = -1;
  assert_fails(dist_communication_options_merge(&base, &over, &merged), DIST_INVALID_ARGUMENT,
               "bytes_per_pack is -1");
  over.bytes_per_pack = 0;
  over.timeout_ns = -2;
  assert_fails(dist_communication_options_merge(&over, NULL, &merged), DIST_INVALID_ARGUMENT,
               "timeout_ns is -2");
  assert_fails(dist_communication_options_merge(NULL, NULL, &merged), DIST_INVALID_ARGUMENT, "base is NULL");
}

static dist_status wait_alone(dist_replica *replica, void *user_data) {
  (void)user_data;
  return dist_replica_id(replica) == 0 ? dist_barrier(replica, NULL, NULL) : DIST_OK;
}

static dist_status plan_a_list(dist_replica *replica, void *user_data) {
  (void)user_data;
  int64_t length = 64;
  float numbers[2][64];
  for (int t = 0; t < 2; t++) {
    for (int i = 0; i < 64; i++) numbers[t][i] = 1;
  }
  const dist_tensor list[2] = {vector_of(numbers[0], DIST_F32, &length),
                               vector_of(numbers[1], DIST_F32, &length)};
  dist_tensor out[2] = {list[0], list[1]};
  dist_work *work = NULL;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.planned = 1;
  dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, list, out, 2, &options, &work);
  if (status == DIST_OK) status = dist_work_start(work);
  if (status == DIST_OK) status = dist_work_wait(work, DIST_NO_TIMEOUT);
  dist_work_destroy(work);
  if (status != DIST_OK) return status;
  return numbers[1][63] == (float)dist_replica_num_replicas(replica) ? DIST_OK
                                                                     : dist_fail(DIST_INTERNAL, "wrong");
}

/* The strategy's options apply to its collectives: packs to plans, and the timeout to all. */
static void a_strategy_communicates_as_asked(void **state) {
  (void)state;
  dist_communication_options communication = DIST_COMMUNICATION_OPTIONS_INIT;
  communication.bytes_per_pack = 256;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = 2;
  options.communication = &communication;
  dist_strategy *strategy = strategy_with(options);
  assert_ok(dist_run(strategy, plan_a_list, NULL, NULL));
  assert_fails(dist_run(strategy, wait_alone, NULL, NULL), DIST_ABORTED, "");
  assert_healthy(DIST_THREADS_CALLER, strategy);
  assert_ok(dist_strategy_destroy(strategy));
  communication.bytes_per_pack = -5;
  strategy = NULL;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT, "bytes_per_pack is -5");
  communication.struct_size = 0;
  assert_fails(dist_strategy_create(&options, &strategy), DIST_INVALID_ARGUMENT,
               "dist_communication_options");
  assert_null(strategy);
}

static void names_and_numbers(void **state) {
  (void)state;
  static const struct {
    int32_t domain, first, last;
  } kinds[] = {{DIST_ENUM_STATUS, DIST_OK, LAST_STATUS},
               {DIST_ENUM_DTYPE, DIST_F16, LAST_DTYPE},
               {DIST_ENUM_REDUCE_OP, DIST_REDUCE_SUM, LAST_REDUCE},
               {DIST_ENUM_VALUE_REDUCTION, DIST_REDUCE_SUM, DIST_REDUCE_MEAN},
               {DIST_ENUM_COLLECTIVE, DIST_COLLECTIVE_ALL_REDUCE, LAST_COLLECTIVE},
               {DIST_ENUM_SYNCHRONIZATION, DIST_SYNCHRONIZATION_AUTO, LAST_SYNCHRONIZATION},
               {DIST_ENUM_AGGREGATION, DIST_AGGREGATION_NONE, LAST_AGGREGATION},
               {DIST_ENUM_CROSS_DEVICE, DIST_CROSS_DEVICE_DEFAULT, LAST_CROSS_DEVICE},
               {DIST_ENUM_INPUT_MODE, DIST_INPUT_PER_WORKER, LAST_INPUT_PER},
               {DIST_ENUM_SHARD_POLICY, DIST_SHARD_AUTO, LAST_SHARD}};
  assert_int_equal(COUNT_OF(kinds), LAST_ENUM - DIST_ENUM_STATUS + 1);
  for (size_t k = 0; k < COUNT_OF(kinds); k++) {
    const int32_t domain = kinds[k].domain;
    for (int32_t i = kinds[k].first; i <= kinds[k].last; i++) {
      int32_t number = -100;
      char other[32] = "";
      const char *name = dist_enum_name(domain, i);
      assert_non_null(name);
      for (size_t c = 0; name[c] != '\0'; c++)
        other[c] = (char)(isupper((unsigned char)name[c]) ? tolower((unsigned char)name[c])
                                                          : toupper((unsigned char)name[c]));
      assert_ok(dist_enum_from_name(domain, other, &number));
      assert_int_equal(number, i);
    }
    int32_t number = -100;
    assert_null(dist_enum_name(domain, kinds[k].first - 1));
    assert_null(dist_enum_name(domain, kinds[k].last + 1));
    assert_fails(dist_enum_from_name(domain, "MPI", &number), DIST_INVALID_ARGUMENT,
                 dist_enum_name(domain, kinds[k].last));
    assert_fails(dist_enum_from_name(domain, "", &number), DIST_INVALID_ARGUMENT,
                 "\"\" is not the name of a");
    assert_fails(dist_enum_from_name(domain, NULL, &number), DIST_INVALID_ARGUMENT, "name is NULL");
    assert_fails(dist_enum_from_name(domain, "AUTO", NULL), DIST_INVALID_ARGUMENT, "out_value is NULL");
    assert_int_equal(number, -100);
  }
  for (int32_t status = DIST_OK; status <= DIST_DATA_LOSS; status++)
    assert_string_equal(dist_enum_name(DIST_ENUM_STATUS, status), dist_status_name(status));
  assert_string_equal(dist_enum_name(DIST_ENUM_CROSS_DEVICE, DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE),
                      "REDUCTION_TO_ONE_DEVICE");
  assert_null(dist_enum_name(DIST_ENUM_CROSS_DEVICE, 4));
  assert_string_equal(dist_enum_name(DIST_ENUM_DTYPE, DIST_COMPLEX64), "complex64");
  assert_string_equal(dist_enum_name(DIST_ENUM_COLLECTIVE, DIST_COLLECTIVE_ALL_GATHER), "all_gather");
}

static void domains_that_are_none(void **state) {
  (void)state;
  static const int32_t none[] = {0, -1, DIST_ENUM_SHARD_POLICY + 1, INT32_MIN, INT32_MAX};
  for (size_t i = 0; i < COUNT_OF(none); i++) {
    int32_t number = -100;
    assert_null(dist_enum_name(none[i], 1));
    assert_fails(
        dist_enum_from_name(none[i], "SUM", &number), DIST_INVALID_ARGUMENT,
        "must be one of DIST_ENUM_STATUS, DTYPE, REDUCE_OP, VALUE_REDUCTION, COLLECTIVE, SYNCHRONIZATION, "
        "AGGREGATION, CROSS_DEVICE, INPUT_MODE, SHARD_POLICY");
    assert_int_equal(number, -100);
  }
}

static void reductions_by_name(void **state) {
  (void)state;
  dist_reduce_op op = 0;
  assert_ok(dist_enum_from_name(DIST_ENUM_REDUCE_OP, "max", &op));
  assert_int_equal(op, DIST_REDUCE_MAX);
  static const char *const wrong[] = {"MAX", "", "SUM ", "SU", "SUMS", "ONLY_FIRST_REPLICA"};
  for (size_t i = 0; i < COUNT_OF(wrong); i++) {
    assert_fails(dist_enum_from_name(DIST_ENUM_VALUE_REDUCTION, wrong[i], &op), DIST_INVALID_ARGUMENT,
                 "use \"SUM\" or \"MEAN\"");
  }
  assert_int_equal(op, DIST_REDUCE_MAX);
  assert_ok(dist_reduce_op_from_aggregation(DIST_AGGREGATION_SUM, &op));
  assert_int_equal(op, DIST_REDUCE_SUM);
  assert_fails(dist_reduce_op_from_aggregation(DIST_AGGREGATION_NONE, &op), DIST_INVALID_ARGUMENT, "NONE");
  assert_fails(dist_reduce_op_from_aggregation(17, &op), DIST_INVALID_ARGUMENT,
               "aggregation 17 cannot be used as a reduction");
  assert_int_equal(op, DIST_REDUCE_SUM);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_are_canonical),
      cmocka_unit_test(devices_are_in_replica_order),
      cmocka_unit_test(devices_out_of_order),
      cmocka_unit_test(central_storage_has_a_device_of_its_own),
      cmocka_unit_test(one_process_has_no_cluster),
      cmocka_unit_test(communication_options_merge),
      cmocka_unit_test(names_and_numbers),
      cmocka_unit_test(domains_that_are_none),
      cmocka_unit_test(a_strategy_communicates_as_asked),
      cmocka_unit_test(reductions_by_name),
  };
  return cmocka_run_group_tests_name("devices", tests, NULL, NULL);
}
