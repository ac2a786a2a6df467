/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers that programs are compiled with: every constant, and the size and offsets of every public
 * struct on 64-bit systems. They never change. What is appended to an options struct is appended here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <dist/dist.h>

typedef struct {
  const char *name;
  long long is, must_be;
} number;

#define VALUE(name, value) \
  { #name, name, value }
#define SIZE(type, bytes) \
  { "sizeof " #type, sizeof(type), bytes }
#define OFFSET(type, field, bytes) \
  { #type "." #field, offsetof(type, field), bytes }

static const number constants[] = {
    VALUE(DIST_OK, 0),
    VALUE(DIST_CANCELLED, 1),
    VALUE(DIST_UNKNOWN, 2),
    VALUE(DIST_INVALID_ARGUMENT, 3),
    VALUE(DIST_DEADLINE_EXCEEDED, 4),
    VALUE(DIST_NOT_FOUND, 5),
    VALUE(DIST_ALREADY_EXISTS, 6),
    VALUE(DIST_PERMISSION_DENIED, 7),
    VALUE(DIST_RESOURCE_EXHAUSTED, 8),
    VALUE(DIST_FAILED_PRECONDITION, 9),
    VALUE(DIST_ABORTED, 10),
    VALUE(DIST_OUT_OF_RANGE, 11),
    VALUE(DIST_UNIMPLEMENTED, 12),
    VALUE(DIST_INTERNAL, 13),
    VALUE(DIST_UNAVAILABLE, 14),
    VALUE(DIST_DATA_LOSS, 15),
    VALUE(DIST_F16, 1),
    VALUE(DIST_BF16, 2),
    VALUE(DIST_F32, 3),
    VALUE(DIST_F64, 4),
    VALUE(DIST_I8, 5),
    VALUE(DIST_U8, 6),
    VALUE(DIST_I16, 7),
    VALUE(DIST_U16, 8),
    VALUE(DIST_I32, 9),
    VALUE(DIST_U32, 10),
    VALUE(DIST_I64, 11),
    VALUE(DIST_U64, 12),
    VALUE(DIST_COMPLEX64, 13),
    VALUE(DIST_BOOL, 14),
    VALUE(DIST_REDUCE_SUM, 1),
    VALUE(DIST_REDUCE_MEAN, 2),
    VALUE(DIST_REDUCE_MIN, 3),
    VALUE(DIST_REDUCE_MAX, 4),
    VALUE(DIST_REDUCE_PROD, 5),
    VALUE(DIST_COLLECTIVE_NONE, 0),
    VALUE(DIST_COLLECTIVE_ALL_REDUCE, 1),
    VALUE(DIST_COLLECTIVE_BROADCAST, 2),
    VALUE(DIST_COLLECTIVE_BARRIER, 3),
    VALUE(DIST_COLLECTIVE_MERGE_CALL, 4),
    VALUE(DIST_COLLECTIVE_RETURN, 5),
    VALUE(DIST_COLLECTIVE_HALO_EXCHANGE, 15),
    VALUE(DIST_COLLECTIVE_RESHARD, 16),
    VALUE(DIST_PARTITION_SPLIT, 0),
    VALUE(DIST_PARTITION_ASSIGN, 1),
    VALUE(DIST_PARTITION_REPLICATE, 2),
    VALUE(DIST_EDGE_ZERO, 0),
    VALUE(DIST_EDGE_WRAP, 1),
    VALUE(DIST_EDGE_CLAMP, 2),
    VALUE(DIST_EDGE_REFLECT, 3),
    VALUE(DIST_EDGE_NONE, 4),
    VALUE(DIST_STRATEGY_MIRRORED, 0),
    VALUE(DIST_STRATEGY_ONE_DEVICE, 1),
    VALUE(DIST_STRATEGY_DEFAULT, 2),
    VALUE(DIST_STRATEGY_CENTRAL_STORAGE, 3),
    VALUE(DIST_STRATEGY_MESH, 4),
    VALUE(DIST_THREADS_CALLER, 0),
    VALUE(DIST_THREADS_LIBRARY, 1),
    VALUE(DIST_THREADS_HOST, 2),
    VALUE(DIST_PLACEMENT_FREE, 0),
    VALUE(DIST_PLACEMENT_CORES, 1),
    VALUE(DIST_VALUE_TENSOR, 1),
    VALUE(DIST_VALUE_PER_REPLICA, 2),
    VALUE(DIST_VALUE_MIRRORED, 3),
    VALUE(DIST_VALUE_LIST, 4),
    VALUE(DIST_VALUE_DICT, 5),
    VALUE(DIST_VALUE_VARIABLE, 6),
    VALUE(DIST_VALUE_SHARDED, 14),
    VALUE(DIST_AGGREGATION_NONE, 0),
    VALUE(DIST_AGGREGATION_SUM, 1),
    VALUE(DIST_AGGREGATION_MEAN, 2),
    VALUE(DIST_AGGREGATION_ONLY_FIRST_REPLICA, 3),
    VALUE(DIST_ASSIGN, 1),
    VALUE(DIST_ASSIGN_ADD, 2),
    VALUE(DIST_ASSIGN_SUB, 3),
    VALUE(DIST_SYNCHRONIZATION_AUTO, 0),
    VALUE(DIST_SYNCHRONIZATION_NONE, 1),
    VALUE(DIST_SYNCHRONIZATION_ON_WRITE, 2),
    VALUE(DIST_SYNCHRONIZATION_ON_READ, 3),
    VALUE(DIST_SCATTER_ADD, 1),
    VALUE(DIST_SCATTER_SUB, 2),
    VALUE(DIST_SCATTER_UPDATE, 3),
    VALUE(DIST_SCATTER_MUL, 4),
    VALUE(DIST_SCATTER_DIV, 5),
    VALUE(DIST_SCATTER_MIN, 6),
    VALUE(DIST_SCATTER_MAX, 7),
    VALUE(DIST_SCATTER_BATCH_UPDATE, 8),
    VALUE(DIST_MAX_REPLICAS, 256),
    VALUE(DIST_MAX_NDIM, 16),
    VALUE(DIST_MAX_TAG_BYTES, 48),
    VALUE(DIST_LOG_ERROR, 1),
    VALUE(DIST_LOG_WARNING, 2),
    VALUE(DIST_LOG_INFO, 3),
};

static const number layout[] = {
    SIZE(dist_tensor, 32),
    OFFSET(dist_tensor, data, 0),
    OFFSET(dist_tensor, dtype, 8),
    OFFSET(dist_tensor, ndim, 12),
    OFFSET(dist_tensor, shape, 16),
    OFFSET(dist_tensor, strides, 24),
    SIZE(dist_allocator, 24),
    OFFSET(dist_allocator, user_data, 0),
    OFFSET(dist_allocator, alloc, 8),
    OFFSET(dist_allocator, free, 16),
    SIZE(dist_error_info, 80),
    OFFSET(dist_error_info, struct_size, 0),
    OFFSET(dist_error_info, code, 4),
    OFFSET(dist_error_info, worker, 8),
    OFFSET(dist_error_info, replica, 12),
    OFFSET(dist_error_info, collective, 16),
    OFFSET(dist_error_info, group, 20),
    OFFSET(dist_error_info, sequence, 24),
    OFFSET(dist_error_info, message, 32),
    OFFSET(dist_error_info, tag, 40),
    OFFSET(dist_error_info, expected, 48),
    OFFSET(dist_error_info, received, 56),
    OFFSET(dist_error_info, hint, 64),
    OFFSET(dist_error_info, logical_device, 72),
    OFFSET(dist_error_info, inside, 76),
    SIZE(dist_strategy_options, 192),
    OFFSET(dist_strategy_options, struct_size, 0),
    OFFSET(dist_strategy_options, kind, 4),
    OFFSET(dist_strategy_options, num_replicas, 8),
    OFFSET(dist_strategy_options, threads, 12),
    OFFSET(dist_strategy_options, placement, 16),
    OFFSET(dist_strategy_options, reserved, 20),
    OFFSET(dist_strategy_options, timeout_ns, 24),
    OFFSET(dist_strategy_options, allocator, 32),
    OFFSET(dist_strategy_options, log, 56),
    OFFSET(dist_strategy_options, log_user_data, 64),
    OFFSET(dist_strategy_options, clock, 72),
    OFFSET(dist_strategy_options, clock_user_data, 80),
    OFFSET(dist_strategy_options, devices, 88),
    OFFSET(dist_strategy_options, num_devices, 96),
    OFFSET(dist_strategy_options, parameter_device, 104),
    OFFSET(dist_strategy_options, communication, 112),
    OFFSET(dist_strategy_options, cross_device, 120),
    OFFSET(dist_strategy_options, functions, 128),
    OFFSET(dist_strategy_options, functions_user_data, 136),
    OFFSET(dist_strategy_options, device_assignment, 144),
    OFFSET(dist_strategy_options, axes, 152),
    OFFSET(dist_strategy_options, num_axes, 160),
    OFFSET(dist_strategy_options, use_spmd_partitioning, 168),
    OFFSET(dist_strategy_options, reserved2, 172),
    OFFSET(dist_strategy_options, stack_size_bytes, 176),
    OFFSET(dist_strategy_options, async_bytes, 184),
    SIZE(dist_communication_options, 32),
    OFFSET(dist_communication_options, struct_size, 0),
    OFFSET(dist_communication_options, implementation, 4),
    OFFSET(dist_communication_options, bytes_per_pack, 8),
    OFFSET(dist_communication_options, timeout_ns, 16),
    OFFSET(dist_communication_options, has_timeout, 24),
    SIZE(dist_cross_device_functions, 32),
    OFFSET(dist_cross_device_functions, reduce, 8),
    OFFSET(dist_cross_device_functions, broadcast, 16),
    OFFSET(dist_cross_device_functions, gather, 24),
    SIZE(dist_cross_device_options, 88),
    OFFSET(dist_cross_device_options, kind, 4),
    OFFSET(dist_cross_device_options, num_packs, 8),
    OFFSET(dist_cross_device_options, reduce_to_device, 16),
    OFFSET(dist_cross_device_options, accumulate, 24),
    OFFSET(dist_cross_device_options, functions, 40),
    OFFSET(dist_cross_device_options, allocator, 56),
    OFFSET(dist_cross_device_options, accumulate_element_bytes, 80),
    SIZE(dist_strategy_functions, 48),
    OFFSET(dist_strategy_functions, copy_of_replica, 8),
    OFFSET(dist_strategy_functions, device_of_replica, 16),
    OFFSET(dist_strategy_functions, reduce, 24),
    SIZE(dist_strategy_properties, 56),
    OFFSET(dist_strategy_properties, global_batch_size, 48),
    SIZE(dist_update_place, 24),
    OFFSET(dist_update_place, replica, 4),
    OFFSET(dist_update_place, device, 8),
    OFFSET(dist_update_place, copy, 16),
    SIZE(dist_update_options, 8),
    OFFSET(dist_update_options, ungrouped, 4),
    SIZE(dist_run_options, 32),
    OFFSET(dist_run_options, struct_size, 0),
    OFFSET(dist_run_options, reserved, 4),
    OFFSET(dist_run_options, timeout_ns, 8),
    OFFSET(dist_run_options, enable_dynamic_batch_size, 16),
    OFFSET(dist_run_options, bucketizing_dynamic_shape, 20),
    OFFSET(dist_run_options, cancel, 24),
    SIZE(dist_value_context, 8),
    OFFSET(dist_value_context, replica_id_in_sync_group, 0),
    OFFSET(dist_value_context, num_replicas_in_sync, 4),
    SIZE(dist_collective_options, 120),
    OFFSET(dist_collective_options, struct_size, 0),
    OFFSET(dist_collective_options, numerics, 4),
    OFFSET(dist_collective_options, tag, 8),
    OFFSET(dist_collective_options, timeout_ns, 16),
    OFFSET(dist_collective_options, group, 24),
    OFFSET(dist_collective_options, weights, 32),
    OFFSET(dist_collective_options, contributions, 40),
    OFFSET(dist_collective_options, reduce_fn, 48),
    OFFSET(dist_collective_options, reduce_user_data, 56),
    OFFSET(dist_collective_options, splits, 64),
    OFFSET(dist_collective_options, axis, 72),
    OFFSET(dist_collective_options, planned, 76),
    OFFSET(dist_collective_options, out_work, 80),
    OFFSET(dist_collective_options, bytes_per_pack, 88),
    OFFSET(dist_collective_options, implementation, 96),
    OFFSET(dist_collective_options, cancel, 104),
    OFFSET(dist_collective_options, reduce_element_bytes, 112),
    SIZE(dist_variable_options, 48),
    OFFSET(dist_variable_options, struct_size, 0),
    OFFSET(dist_variable_options, aggregation, 4),
    OFFSET(dist_variable_options, name, 8),
    OFFSET(dist_variable_options, synchronization, 16),
    OFFSET(dist_variable_options, trainable, 20),
    OFFSET(dist_variable_options, partitions, 24),
    OFFSET(dist_variable_options, reserved, 28),
    OFFSET(dist_variable_options, initial_fn, 32),
    OFFSET(dist_variable_options, initial_user_data, 40),
    SIZE(dist_destination, 24),
    OFFSET(dist_destination, variable, 0),
    OFFSET(dist_destination, value, 8),
    OFFSET(dist_destination, device, 16),
    SIZE(dist_dataset_options, 88),
    OFFSET(dist_dataset_options, struct_size, 0),
    OFFSET(dist_dataset_options, drop_remainder, 4),
    OFFSET(dist_dataset_options, global_batch_size, 8),
    OFFSET(dist_dataset_options, shuffle, 16),
    OFFSET(dist_dataset_options, prefetch, 20),
    OFFSET(dist_dataset_options, seed, 24),
    OFFSET(dist_dataset_options, shard_policy, 32),
    OFFSET(dist_dataset_options, num_workers, 36),
    OFFSET(dist_dataset_options, worker_index, 40),
    OFFSET(dist_dataset_options, worker_batches, 44),
    OFFSET(dist_dataset_options, shard_hint, 48),
    OFFSET(dist_dataset_options, interleave, 52),
    OFFSET(dist_dataset_options, static_shapes, 56),
    OFFSET(dist_dataset_options, replication_mode, 60),
    OFFSET(dist_dataset_options, fetch_to_device, 64),
    OFFSET(dist_dataset_options, place_dataset_on_device, 68),
    OFFSET(dist_dataset_options, batch_sizes, 72),
    OFFSET(dist_dataset_options, num_batch_sizes, 80),
    SIZE(dist_input_context, 12),
    SIZE(dist_position, 40),
    OFFSET(dist_position, struct_size, 0),
    OFFSET(dist_position, pass, 8),
    OFFSET(dist_position, elements, 16),
    OFFSET(dist_position, examples, 24),
    OFFSET(dist_position, batches, 32),
    SIZE(dist_checkpoint_options, 48),
    OFFSET(dist_checkpoint_options, struct_size, 0),
    OFFSET(dist_checkpoint_options, names, 8),
    OFFSET(dist_checkpoint_options, position, 16),
    OFFSET(dist_checkpoint_options, metadata_keys, 24),
    OFFSET(dist_checkpoint_options, metadata_texts, 32),
    OFFSET(dist_checkpoint_options, num_metadata, 40),
    SIZE(dist_mesh_axis, 16),
    OFFSET(dist_mesh_axis, name, 0),
    OFFSET(dist_mesh_axis, size, 8),
    SIZE(dist_topology_options, 32),
    OFFSET(dist_topology_options, struct_size, 0),
    OFFSET(dist_topology_options, allocator, 8),
    SIZE(dist_partition, 56),
    OFFSET(dist_partition, struct_size, 0),
    OFFSET(dist_partition, kind, 4),
    OFFSET(dist_partition, shape, 8),
    OFFSET(dist_partition, ndim, 16),
    OFFSET(dist_partition, dimensions, 24),
    OFFSET(dist_partition, num_dimensions, 32),
    OFFSET(dist_partition, num_logical_devices, 40),
    OFFSET(dist_partition, logical_device, 44),
    OFFSET(dist_partition, uneven, 48),
    OFFSET(dist_partition, spmd, 52),
    SIZE(dist_split_options, 8),
    OFFSET(dist_split_options, struct_size, 0),
    OFFSET(dist_split_options, uneven, 4),
    SIZE(dist_devices_options, 40),
    OFFSET(dist_devices_options, struct_size, 0),
    OFFSET(dist_devices_options, timeout_ns, 8),
    OFFSET(dist_devices_options, results, 16),
    OFFSET(dist_devices_options, num_results, 24),
    OFFSET(dist_devices_options, cancel, 32),
    SIZE(dist_halo, 40),
    OFFSET(dist_halo, struct_size, 0),
    OFFSET(dist_halo, ndim, 4),
    OFFSET(dist_halo, parts, 8),
    OFFSET(dist_halo, low, 16),
    OFFSET(dist_halo, high, 24),
    OFFSET(dist_halo, edges, 32),
};

static void check(const number *numbers, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (numbers[i].is != numbers[i].must_be)
      fail_msg("%s is %lld, was %lld", numbers[i].name, numbers[i].is, numbers[i].must_be);
  }
}

static void constants_keep_their_values(void **state) {
  (void)state;
  check(constants, sizeof(constants) / sizeof(constants[0]));
}

static void structs_keep_their_layout(void **state) {
  (void)state;
  if (sizeof(void *) != 8) skip();
  check(layout, sizeof(layout) / sizeof(layout[0]));
}

#define CHECK_INIT(type, initializer)                          \
  do {                                                         \
    static const type expected = initializer;                  \
    type options;                                              \
    memset(&options, 0xff, sizeof(options));                   \
    type##_init(&options, sizeof(options));                    \
    assert_memory_equal(&options, &expected, sizeof(options)); \
  } while (0)

/* Languages without macros begin with the function, C with the macro. */
static void init_functions_give_what_the_macros_give(void **state) {
  (void)state;
  CHECK_INIT(dist_strategy_options, DIST_STRATEGY_OPTIONS_INIT);
  CHECK_INIT(dist_communication_options, DIST_COMMUNICATION_OPTIONS_INIT);
  CHECK_INIT(dist_cross_device_functions, DIST_CROSS_DEVICE_FUNCTIONS_INIT);
  CHECK_INIT(dist_cross_device_options, DIST_CROSS_DEVICE_OPTIONS_INIT);
  CHECK_INIT(dist_strategy_functions, DIST_STRATEGY_FUNCTIONS_INIT);
  CHECK_INIT(dist_partition, DIST_PARTITION_INIT);
  CHECK_INIT(dist_split_options, DIST_SPLIT_OPTIONS_INIT);
  CHECK_INIT(dist_devices_options, DIST_DEVICES_OPTIONS_INIT);
  CHECK_INIT(dist_halo, DIST_HALO_INIT);
  CHECK_INIT(dist_update_options, DIST_UPDATE_OPTIONS_INIT);
  CHECK_INIT(dist_run_options, DIST_RUN_OPTIONS_INIT);
  CHECK_INIT(dist_checkpoint_options, DIST_CHECKPOINT_OPTIONS_INIT);
  CHECK_INIT(dist_collective_options, DIST_COLLECTIVE_OPTIONS_INIT);
  CHECK_INIT(dist_variable_options, DIST_VARIABLE_OPTIONS_INIT);
  CHECK_INIT(dist_dataset_options, DIST_DATASET_OPTIONS_INIT);
}

/* The size is the caller's: one compiled with an earlier, shorter struct owns no byte more. */
static void init_functions_write_no_further_than_asked(void **state) {
  (void)state;
  dist_run_options options;
  memset(&options, 0xff, sizeof(options));
  dist_run_options_init(&options, offsetof(dist_run_options, timeout_ns));
  assert_int_equal(options.struct_size, offsetof(dist_run_options, timeout_ns));
  assert_int_equal(options.reserved, 0);
  assert_int_equal(options.timeout_ns, -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(constants_keep_their_values),
      cmocka_unit_test(structs_keep_their_layout),
      cmocka_unit_test(init_functions_give_what_the_macros_give),
      cmocka_unit_test(init_functions_write_no_further_than_asked),
  };
  return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
