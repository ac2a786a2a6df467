// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/stage.hpp"

#include <cstdlib>

#include "tests/faults/runner.hpp"

namespace faults {
namespace {

void must(dist_status status) {
  if (status != DIST_OK) std::abort();
}

// Replica r gets the devices of row r of a mesh.
dist_device_assignment* assign(int32_t replicas, int32_t devices) {
  const int32_t mesh[] = {replicas, devices, 1, 1};
  const int32_t row[] = {1, devices, 1, 1};
  int32_t coordinates[kReplicasOfDevices * kMostMembers][4] = {};
  for (int32_t i = 0; i < replicas * devices; ++i) {
    coordinates[i][0] = i / devices;
    coordinates[i][1] = i % devices;
  }
  dist_topology* topology = nullptr;
  dist_device_assignment* assignment = nullptr;
  must(dist_topology_create(mesh, 4, coordinates[0], 1, replicas * devices, nullptr, &topology));
  must(
      dist_device_assignment_build(topology, row, nullptr, 4, replicas, DIST_DEVICE_ORDER_MESH, &assignment));
  dist_topology_destroy(topology);
  return assignment;
}

}  // namespace

Stage::Set Stage::make(dist_clock_fn clock) const {
  Set set;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  dist_mesh_options mesh = DIST_MESH_OPTIONS_INIT;
  options.mesh = &mesh;
  options.num_replicas = members_;
  options.threads = threads_;
  options.timeout_ns = -1;  // no deadline, so that a hang is noticed
  host.allocator = counting_allocator();
  host.clock = clock;
  const dist_mesh_axis axis{kAxis, members_};
  dist_device_assignment* assignment = nullptr;
  if (devices_) {
    assignment = assign(kReplicasOfDevices, members_);
    options.kind = DIST_STRATEGY_MESH;
    options.num_replicas = kReplicasOfDevices;
    mesh.device_assignment = assignment;
    mesh.axes = &axis;
    mesh.num_axes = 1;
  }
  must(dist_strategy_create(&options, &set.strategy));
  dist_device_assignment_destroy(assignment);
  if (devices_) return set;
  int32_t ids[kMostMembers];
  for (int r = 0; r < members_; ++r) ids[r] = r;
  for (dist_group*& group : set.groups)
    must(dist_group_create(set.strategy, ids, static_cast<size_t>(members_), &group));
  return set;
}

Stage::Stage(const Cell& cell, dist_clock_fn clock)
    : threads_(cell.threads),
      members_(cell.members),
      devices_(cell.devices()),
      plain_(make(nullptr)),
      timed_(make(clock)) {}

bool Stage::end() {
  bool well = true;
  for (const Set* set : {&plain_, &timed_}) {
    for (dist_group* const group : set->groups) well = dist_group_destroy(group) == DIST_OK && well;
    well = dist_strategy_destroy(set->strategy) == DIST_OK && well;
  }
  return well;
}

}  // namespace faults
