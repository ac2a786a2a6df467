/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: a mesh of a few hundred positions, the devices that exist, and an assignment of computations
 * to them, with mostly small numbers and some near the limits. A valid assignment uses no device twice and no
 * missing device, and its functions agree with its arrays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dist/dist.h>

#include "tests/fuzz/bytes.h"

enum { MOST_POSITIONS = 512, MOST_CORES = 64 };

static int32_t take_int(bytes* in) {
  const int64_t number = take_hostile(in);
  return number < INT32_MIN || number > INT32_MAX ? (int32_t)(uint32_t)(uint64_t)number : (int32_t)number;
}

static int32_t position(const int32_t* mesh, const int32_t* at) {
  int32_t place = 0;
  for (int i = 0; i < 4; i++) place = place * mesh[i] + (at[i] < 0 ? at[i] + mesh[i] : at[i]);
  return place;
}

/* Puts devices at positions in row-major order, `step` positions apart, starting at `first`. With more
 * devices than positions, some share a position. */
static dist_topology* make_topology(bytes* in, int32_t* mesh, int* distinct) {
  int32_t positions = 1;
  for (int i = 0; i < 4; i++) {
    mesh[i] = 1 + take_below(in, 8);
    if (positions * mesh[i] > MOST_POSITIONS) mesh[i] = 1;
    positions *= mesh[i];
  }
  const int32_t tasks = 1 + take_below(in, 8), first = take(in), step = 1 + 2 * take_below(in, 4);
  const int32_t per_task = take(in) % 2 == 0 ? (positions + tasks - 1) / tasks : take_below(in, 40);
  const int32_t devices = tasks * per_task;
  int32_t(*at)[4] = malloc(sizeof *at * (size_t)(devices + 1));
  assert_non_null(at);
  uint8_t used[MOST_POSITIONS] = {0};
  *distinct = 1;
  for (int32_t i = 0; i < devices; i++) {
    const int32_t place = (first + i * step) % positions;
    int32_t rest = place;
    for (int axis = 3; axis >= 0; axis--) {
      at[i][axis] = rest % mesh[axis];
      rest /= mesh[axis];
    }
    if (used[place]++ != 0) *distinct = 0;
    if (take(in) > 240) at[i][3] -= mesh[3]; /* a negative index of the same position */
  }
  dist_topology* topology = NULL;
  assert_int_equal(dist_topology_create(mesh, 4, at[0], tasks, per_task, NULL, &topology), DIST_OK);
  free(at);
  return topology;
}

static void check_lookups(const dist_device_assignment* assignment, int32_t r, int32_t d, const int32_t* at) {
  dist_topology* topology = dist_device_assignment_topology(assignment);
  int32_t got[4], device = -7, task = -7, wanted = -7;
  assert_int_equal(dist_device_assignment_coordinates(assignment, r, d, got), DIST_OK);
  assert_memory_equal(got, at, sizeof got);
  assert_int_equal(dist_device_assignment_device(assignment, r, d, &device), DIST_OK);
  assert_int_equal(dist_topology_device_at(topology, at, &wanted), DIST_OK);
  assert_int_equal(device, wanted);
  assert_int_equal(dist_topology_task_at(topology, at, &task), DIST_OK);
  int32_t* replicas = calloc((size_t)dist_device_assignment_num_replicas(assignment), sizeof *replicas);
  size_t n = 0;
  int found = 0;
  assert_non_null(replicas);
  assert_int_equal(
      dist_device_assignment_lookup_replicas(assignment, task, d, replicas,
                                             (size_t)dist_device_assignment_num_replicas(assignment), &n),
      DIST_OK);
  for (size_t i = 0; i < n; i++) found += replicas[i] == r;
  assert_int_equal(found, 1);
  free(replicas);
}

static void check_assignment(dist_device_assignment* assignment, const int32_t* mesh, int once) {
  const int32_t replicas = dist_device_assignment_num_replicas(assignment);
  const int32_t logical = dist_device_assignment_num_logical_devices(assignment);
  const int32_t* at = dist_device_assignment_core_assignment(assignment);
  uint8_t used[MOST_POSITIONS] = {0};
  for (int32_t r = 0; r < replicas; r++) {
    for (int32_t d = 0; d < logical; d++, at += 4) {
      for (int i = 0; i < 4; i++) assert_true(at[i] >= -mesh[i] && at[i] < mesh[i]);
      const int before = used[position(mesh, at)]++;
      if (once) assert_int_equal(before, 0);
      used[position(mesh, at)] = 1;
      if (r < 3 && d < 3) check_lookups(assignment, r, d, at);
    }
  }
  dist_device_assignment_destroy(assignment);
}

static void take_sizes(bytes* in, const int32_t* mesh, int32_t* sizes) {
  for (int i = 0; i < 4; i++) {
    const uint8_t kind = take(in);
    sizes[i] = kind < 100 ? 1 : kind < 160 ? mesh[i] : kind < 240 ? 1 + kind % mesh[i] : take_int(in);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bytes in = {data, size};
  int32_t mesh[4], shape[4], stride[4];
  int distinct;
  dist_topology* topology = make_topology(&in, mesh, &distinct);
  dist_device_assignment* assignment = NULL;
  const uint8_t flags = take(&in);
  take_sizes(&in, mesh, shape);
  take_sizes(&in, mesh, stride);
  const int32_t replicas = flags & 1 ? take(&in) : take_int(&in),
                order = DIST_DEVICE_ORDER_AUTO + take_below(&in, 4);
  const size_t rank = flags & 2 ? 4 : flags & 4 ? take_below(&in, 7) : 4;
  dist_status status =
      dist_device_assignment_build(topology, flags & 8 ? NULL : shape, flags & 16 ? stride : NULL,
                                   rank > 4 ? 3 : rank, replicas, order, &assignment);
  assert_true(status == DIST_OK || (status == DIST_INVALID_ARGUMENT && assignment == NULL));
  if (status == DIST_OK) {
    assert_int_equal(dist_device_assignment_num_replicas(assignment), replicas);
    check_assignment(assignment, mesh, distinct || dist_topology_num_missing_devices(topology) == 0);
  }
  int32_t cores[MOST_CORES][4];
  for (int i = 0; i < MOST_CORES; i++) {
    for (int axis = 0; axis < 4; axis++) cores[i][axis] = in.left == 0 ? 0 : take_int(&in);
  }
  assignment = NULL;
  status =
      dist_device_assignment_create(topology, cores[0], 1 + flags % 8, 1 + flags / 8 % 8, 4, &assignment);
  assert_true(status == DIST_OK || (status == DIST_INVALID_ARGUMENT && assignment == NULL));
  if (status == DIST_OK) check_assignment(assignment, mesh, 0);
  dist_topology_destroy(topology);
  return 0;
}
