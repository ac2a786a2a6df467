// SPDX-License-Identifier: Apache-2.0
//
// The TPUStrategy.run() example with values from a function, from the tf.distribute documentation, in C. It
// runs on the CPUs of this machine. Each replica doubles the number of replicas, and the program prints the
// results.
//
//     resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu='')
//     tf.config.experimental_connect_to_cluster(resolver)
//     topology = tf.tpu.experimental.initialize_tpu_system(resolver)
//     strategy = tf.distribute.TPUStrategy(resolver)
//
//     def value_fn(value_context):
//       return value_context.num_replicas_in_sync
//     distributed_values = strategy.experimental_distribute_values_from_function(value_fn)
//     def replica_fn(input):
//       return input * 2
//     result = strategy.run(replica_fn, args=(distributed_values,))
#include <dist/dist.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

// TPUStrategy(resolver): one replica per device.
static dist_status make_strategy(dist_topology *topology, dist_strategy **out_strategy) {
  dist_device_assignment *assignment = NULL;
  dist_status status =
      dist_device_assignment_build(topology, NULL, NULL, 0, dist_topology_num_devices_per_task(topology),
                                   DIST_DEVICE_ORDER_AUTO, &assignment);
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_mesh_options mesh = DIST_MESH_OPTIONS_INIT;
  options.mesh = &mesh;
  options.kind = DIST_STRATEGY_MESH;
  mesh.device_assignment = assignment;
  if (!status) status = dist_strategy_create(&options, out_strategy);
  dist_device_assignment_destroy(assignment);  // the strategy holds its own reference
  return status;
}

static dist_status value_fn(dist_strategy *strategy, const dist_value_context *context,
                            dist_value **out_value, void *user_data) {
  (void)user_data;
  int64_t replicas = context->num_replicas_in_sync;
  const dist_tensor tensor = {&replicas, DIST_I64, 0, NULL, NULL};
  return dist_value_create_tensor(strategy, &tensor, out_value);
}

// Runs on every replica. args is the list (input).
static dist_status replica_fn(dist_replica *replica, dist_value *args, dist_value *kwargs,
                              dist_value **out_result, void *user_data) {
  (void)kwargs;
  (void)user_data;
  dist_tensor input;
  dist_status status = dist_value_tensor(dist_value_item(args, 0), &input);
  if (status) return status;
  int64_t twice = *(const int64_t *)input.data * 2;
  const dist_tensor output = {&twice, DIST_I64, 0, NULL, NULL};
  return dist_value_create_tensor(dist_replica_strategy(replica), &output, out_result);
}

static dist_status print(dist_strategy *strategy, dist_value *result) {
  dist_value *results = NULL;
  dist_status status = dist_strategy_local_results(strategy, result, &results);
  for (size_t r = 0; r < dist_value_size(results) && !status; r++) {
    dist_tensor tensor;
    status = dist_value_tensor(dist_value_item(results, r), &tensor);
    if (!status) printf("replica %zu: %" PRId64 "\n", r, *(const int64_t *)tensor.data);
  }
  dist_value_release(results);
  return status;
}

static dist_status run_program(dist_strategy *strategy) {
  dist_value *distributed_values = NULL, *args = NULL, *result = NULL;
  dist_status status = dist_values_from_function(strategy, value_fn, NULL, &distributed_values);
  if (!status) status = dist_value_create_list(strategy, &distributed_values, 1, &args);
  if (!status) status = dist_run_values(strategy, replica_fn, NULL, args, NULL, NULL, &result);
  if (!status) status = print(strategy, result);
  dist_value_release(distributed_values);
  dist_value_release(args);
  dist_value_release(result);
  return status;
}

int main(void) {
  dist_topology *topology = NULL;
  dist_strategy *strategy = NULL;
  // Stands for resolve, connect and initialize: the devices are this machine's CPUs.
  dist_status status = dist_topology_from_host(NULL, &topology);
  if (!status) status = make_strategy(topology, &strategy);
  if (!status) status = run_program(strategy);
  if (status) fprintf(stderr, "tpu_run: %s\n", dist_last_error());
  if (dist_strategy_destroy(strategy)) status = DIST_INTERNAL;
  dist_topology_destroy(topology);
  return status ? EXIT_FAILURE : EXIT_SUCCESS;
}
