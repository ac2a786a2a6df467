// SPDX-License-Identifier: Apache-2.0
#include "layout.h"

#include <stdlib.h>

layout layout_parse(const char *text) {
  char *end = NULL;
  long numbers[2] = {1, strtol(text, &end, 10)};
  if (*end == 'x') {
    numbers[0] = numbers[1];
    numbers[1] = strtol(end + 1, &end, 10);
  }
  const int wrong = *end != '\0' || numbers[0] < 1 || numbers[1] < 1 || numbers[0] > LAYOUT_MOST_DEVICES ||
                    numbers[1] > LAYOUT_MOST_DEVICES || numbers[0] * numbers[1] > LAYOUT_MOST_DEVICES;
  return wrong ? (layout){0, 0} : (layout){(int32_t)numbers[0], (int32_t)numbers[1]};
}

dist_status layout_strategy(layout of, dist_strategy **out_strategy) {
  const int32_t mesh[] = {of.replicas, 1, 1, of.devices}, block[] = {1, 1, 1, of.devices};
  int32_t coordinates[LAYOUT_MOST_DEVICES][4] = {{0}};
  for (int32_t d = 0; d < of.replicas * of.devices; d++) {
    coordinates[d][0] = d / of.devices;
    coordinates[d][3] = d % of.devices;
  }
  dist_topology *topology = NULL;
  dist_device_assignment *assignment = NULL;
  dist_status status =
      dist_topology_create(mesh, 4, coordinates[0], 1, of.replicas * of.devices, NULL, &topology);
  if (!status)
    status = dist_device_assignment_build(topology, block, NULL, 4, of.replicas, DIST_DEVICE_ORDER_MESH,
                                          &assignment);
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_mesh_options mesh_options = DIST_MESH_OPTIONS_INIT;
  options.mesh = &mesh_options;
  options.kind = DIST_STRATEGY_MESH;
  mesh_options.device_assignment = assignment;
  if (!status) status = dist_strategy_create(&options, out_strategy);
  dist_device_assignment_destroy(assignment);
  dist_topology_destroy(topology);
  return status;
}
