/* SPDX-License-Identifier: Apache-2.0
 *
 * One replica with 2 x 2 logical devices. A matrix is split over them, and each row of devices adds up its tiles.
 *
 *     cc devices.c $(pkg-config --cflags --libs dist) -o devices && ./devices
 */
#include <dist/dist.h>
#include <stdio.h>

/* Four devices in a line; dist_topology_from_host() would return the CPUs of this machine. */
static dist_status make_strategy(dist_strategy **out_strategy) {
  const int32_t line[] = {4, 1, 1, 1};
  const int32_t positions[] = {0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0};
  const dist_mesh_axis axes[] = {{"row", 2}, {"column", 2}};
  dist_topology *topology = NULL;
  dist_device_assignment *assignment = NULL;
  dist_status status = dist_topology_create(line, 4, positions, 1, 4, NULL, &topology);
  if (!status) {
    status = dist_device_assignment_build(topology, line, NULL, 4, 1, DIST_DEVICE_ORDER_AUTO, &assignment);
  }
  dist_mesh_options mesh = DIST_MESH_OPTIONS_INIT;
  mesh.device_assignment = assignment;
  mesh.axes = axes;
  mesh.num_axes = 2;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MESH;
  options.mesh = &mesh;
  if (!status) status = dist_strategy_create(&options, out_strategy);
  dist_device_assignment_destroy(assignment);
  dist_topology_destroy(topology);
  return status;
}

/* Runs on each device at the same time. args is the list (this device's tile), a view with strides. */
static dist_status add_rows(dist_replica *device, dist_value *args, dist_value *kwargs,
                            dist_value **out_result, void *user_data) {
  (void)kwargs, (void)user_data;
  dist_tensor tile;
  int32_t row = 0, column = 0;
  dist_status status = dist_value_tensor(dist_value_item(args, 0), &tile);
  if (!status) status = dist_device_axis(device, "row", &row, NULL);
  if (!status) status = dist_device_axis(device, "column", &column, NULL);
  if (status) return status;

  double sum = 0;
  for (int64_t i = 0; i < tile.shape[0]; i++) {
    for (int64_t k = 0; k < tile.shape[1]; k++) {
      sum += ((const double *)tile.data)[i * tile.strides[0] + k * tile.strides[1]];
    }
  }
  printf("device %d in row %d, column %d: %g\n", dist_replica_id(device), row, column, sum);

  /* The devices of a row differ in their column. */
  const int64_t one[] = {1, 1};
  const dist_tensor total = {&sum, DIST_F64, 2, one, NULL};
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  status = dist_device_axis_group(device, "column", &options.group);
  if (!status) status = dist_all_reduce(device, DIST_REDUCE_SUM, &total, &total, 1, &options, NULL);
  if (!status) status = dist_value_create_tensor(dist_replica_strategy(device), &total, out_result);
  return status;
}

/* Runs on the replica: splits the matrix, and joins the results of the devices. */
static dist_status step(dist_replica *replica, dist_value *args, dist_value *kwargs, dist_value **out_result,
                        void *user_data) {
  (void)kwargs, (void)user_data;
  const int64_t parts[] = {2, 2};
  dist_value *split = NULL, *tiles = NULL;
  dist_status status =
      dist_split_to_logical_devices(replica, dist_value_item(args, 0), parts, 2, NULL, &split);
  if (!status) status = dist_value_create_list(dist_replica_strategy(replica), &split, 1, &tiles);
  if (!status) status = dist_run_on_devices(replica, add_rows, NULL, tiles, NULL, NULL, out_result);
  dist_value_release(tiles);
  dist_value_release(split);
  return status;
}

static dist_status run(dist_strategy *strategy) {
  double numbers[16];
  for (int i = 0; i < 16; i++) numbers[i] = i;
  const int64_t shape[] = {4, 4};
  const dist_tensor matrix = {numbers, DIST_F64, 2, shape, NULL};
  dist_value *value = NULL, *result = NULL;
  dist_status status = dist_value_create_tensor(strategy, &matrix, &value);
  if (!status) status = dist_run_values(strategy, step, NULL, value, NULL, NULL, &result);
  dist_tensor sums;
  if (!status) status = dist_value_tensor(result, &sums); /* the tiles of all devices together */
  if (!status) {
    const double *s = sums.data;
    printf("result: [[%g, %g], [%g, %g]]\n", s[0], s[1], s[2], s[3]);
  }
  dist_value_release(result);
  dist_value_release(value);
  return status;
}

int main(void) {
  dist_strategy *strategy = NULL;
  dist_status status = make_strategy(&strategy);
  if (!status) status = run(strategy);
  if (status) fprintf(stderr, "devices: %s\n", dist_last_error());
  return dist_strategy_destroy(strategy) != DIST_OK || status != DIST_OK;
}
