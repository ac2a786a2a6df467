/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: a serialized topology. A valid one must be consistent, produce the same bytes again, and
 * support assignments. Others must be rejected with INVALID_ARGUMENT.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>
#include <dist/dist.h>

#include "tests/fuzz/bytes.h"

static void check_places(const dist_topology* topology) {
  const int32_t* mesh = dist_topology_mesh_shape(topology);
  const int32_t tasks = dist_topology_num_tasks(topology);
  const int32_t per_task = dist_topology_num_devices_per_task(topology);
  const int32_t* at = dist_topology_device_coordinates(topology);
  const int64_t devices = (int64_t)tasks * per_task;
  assert_true(tasks >= 0 && per_task >= 0 && devices <= DIST_MAX_MESH_POSITIONS);
  int64_t positions = 1;
  for (int i = 0; i < 4; i++) positions *= mesh[i];
  assert_true(positions >= 1 && positions <= DIST_MAX_MESH_POSITIONS);
  assert_true((int64_t)dist_topology_num_missing_devices(topology) >= positions - devices);
  for (int64_t i = 0; i < devices; i++, at += 4) {
    int32_t task = -1, device = -1;
    for (int axis = 0; axis < 4; axis++) assert_true(at[axis] >= 0 && at[axis] < mesh[axis]);
    assert_int_equal(dist_topology_task_at(topology, at, &task), DIST_OK);
    assert_int_equal(dist_topology_device_at(topology, at, &device), DIST_OK);
    /* The last device at this place. */
    const int64_t there = (int64_t)task * per_task + device;
    assert_true(task >= 0 && device >= 0 && there >= i && there < devices);
    assert_memory_equal(dist_topology_device_coordinates(topology) + 4 * there, at, 4 * sizeof *at);
  }
}

static void build_on(dist_topology* topology) {
  dist_device_assignment* assignment = NULL;
  const dist_status status =
      dist_device_assignment_build(topology, NULL, NULL, 4, 1, DIST_DEVICE_ORDER_AUTO, &assignment);
  assert_true(status == DIST_OK || status == DIST_INVALID_ARGUMENT);
  if (status == DIST_OK) {
    assert_int_equal(dist_device_assignment_num_replicas(assignment), 1);
    dist_device_assignment_destroy(assignment);
  } else {
    assert_true(dist_topology_num_missing_devices(topology) > 0);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dist_topology *topology = NULL, *again = NULL;
  static const uint8_t nothing;
  const dist_status status =
      dist_topology_from_serialized(data == NULL ? &nothing : data, size, NULL, &topology);
  if (status != DIST_OK) {
    assert_int_equal(status, DIST_INVALID_ARGUMENT);
    assert_null(topology);
    return 0;
  }
  size_t bytes = 0;
  const uint8_t* serialized = dist_topology_serialized(topology, &bytes);
  assert_int_equal(bytes, size);
  assert_memory_equal(serialized, data, size);
  check_places(topology);
  build_on(topology);
  /* Made by hand of the same numbers, it is the same. */
  assert_int_equal(
      dist_topology_create(dist_topology_mesh_shape(topology), 4, dist_topology_device_coordinates(topology),
                           dist_topology_num_tasks(topology), dist_topology_num_devices_per_task(topology),
                           NULL, &again),
      DIST_OK);
  assert_int_equal(dist_topology_num_missing_devices(again), dist_topology_num_missing_devices(topology));
  dist_topology_destroy(topology);
  topology = NULL;
  serialized = dist_topology_serialized(again, &bytes);
  assert_int_equal(dist_topology_from_serialized(serialized, bytes, NULL, &topology), DIST_OK);
  check_places(topology);
  dist_topology_destroy(topology);
  dist_topology_destroy(again);
  return 0;
}
