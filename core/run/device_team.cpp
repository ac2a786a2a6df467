// SPDX-License-Identifier: Apache-2.0
#include "core/run/device_team.hpp"

#include <algorithm>
#include <cstdio>
#include <new>

namespace dist {

Status DeviceMesh::find(const char* name, const char* call, std::size_t* out_axis) const noexcept {
  *out_axis = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  if (*out_axis < num_axes()) return kOk;
  char known[256] = "";
  std::size_t used = 0;
  for (const auto& each : names) {
    const int more =
        std::snprintf(known + used, sizeof known - used, "%s\"%s\"", used == 0 ? "" : ", ", each.c_str());
    used = std::min(sizeof known - 1, used + static_cast<std::size_t>(std::max(0, more)));
  }
  return invalid_argument("`%s()`: there is no axis \"%.50s\". The `axes` are %s.", call, name, known);
}

int32_t DeviceMesh::step(std::size_t axis) const noexcept {
  int32_t step = 1;
  for (std::size_t i = axis + 1; i < sizes.size(); ++i) step *= sizes[i];
  return step;
}

DeviceTeam::DeviceTeam(Memory& memory, const DeviceMesh& mesh, LocalReplica replica)
    : memory_(memory), mesh_(mesh), replica_(replica), along_(&memory) {}

DeviceTeam::~DeviceTeam() {
  if (devices_ == nullptr) return;
  for (std::size_t i = 0; i < along_.size(); ++i) {
    // Each group is stored once per member, in ascending order: destroy it at the last one.
    if (std::find(along_.begin() + static_cast<std::ptrdiff_t>(i) + 1, along_.end(), along_[i]) ==
        along_.end()) {
      pool().groups().destroy(along_[i]);
    }
  }
  InnerPool::destroy(devices_);
}

Status DeviceTeam::create(Memory& memory, const ReplicaPool& pool, const DeviceMesh& mesh,
                          LocalReplica replica, DeviceTeam** out) {
  void* const place = memory.allocate(sizeof(DeviceTeam), alignof(DeviceTeam));
  auto* const team = new (place) DeviceTeam(memory, mesh, replica);
  Status made;
  try {
    made = pool.beneath(replica, *team, &team->devices_);
    if (made.ok()) made = team->make_groups();
  } catch (...) {
    destroy(team);
    throw;
  }
  if (!made.ok()) {
    destroy(team);
    return made;
  }
  *out = team;
  return kOk;
}

void DeviceTeam::destroy(DeviceTeam* team) noexcept {
  if (team == nullptr) return;
  Memory& memory = team->memory_;
  team->~DeviceTeam();
  memory.free(team, sizeof(DeviceTeam), alignof(DeviceTeam));
}

Status DeviceTeam::make_groups() {
  const auto n = static_cast<std::size_t>(mesh_.num_devices);
  along_.reserve(mesh_.num_axes() * n);
  std::pmr::vector<int32_t> ids(&memory_);
  for (std::size_t axis = 0; axis < mesh_.num_axes(); ++axis) {
    const int32_t step = mesh_.step(axis);
    for (int32_t device = 0; device < mesh_.num_devices; ++device) {
      const int32_t index = mesh_.index(axis, device);
      if (index != 0) {
        along_.push_back(along_[axis * n + static_cast<std::size_t>(device - index * step)]);
        continue;
      }
      ids.clear();
      for (int32_t i = 0; i < mesh_.sizes[axis]; ++i) ids.push_back(device + i * step);
      Subgroup* group = nullptr;
      DIST_TRY(pool().create_group(ids, &group));
      along_.push_back(group);
    }
  }
  return kOk;
}

Subgroup& DeviceTeam::along(std::size_t axis, int32_t device) noexcept {
  return *along_[axis * static_cast<std::size_t>(mesh_.num_devices) + static_cast<std::size_t>(device)];
}

Status DeviceTeam::run(const Body& body, const RunLimits& limits) {
  struct Running {
    explicit Running(DeviceTeam& team) noexcept : team_(team) {}
    ~Running() {
      const std::lock_guard lock(team_.mutex_);
      team_.running_ = false;
    }
    DeviceTeam& team_;
  };
  const Running running(*this);
  return pool().run(body, limits);
}

void DeviceTeam::begin_run(const OuterRun& outer) noexcept {
  const std::lock_guard lock(mutex_);
  pool().run_inside(outer);
  end_ = End::kNone;
}

void DeviceTeam::groups_have_begun() noexcept {
  const std::lock_guard lock(mutex_);
  running_ = true;
  end_devices();
}

void DeviceTeam::condemn(const ErrorRecord& why) noexcept { end_with(End::kCondemned, &why, nullptr); }
void DeviceTeam::cancel(const char* reason) noexcept { end_with(End::kCancelled, nullptr, reason); }

// Only the first reason counts.
void DeviceTeam::end_with(End end, const ErrorRecord* why, const char* reason) noexcept {
  const std::lock_guard lock(mutex_);
  if (end_ != End::kNone) return;
  end_ = end;
  if (why != nullptr) why_ = *why;
  copy_text(reason_, reason);
  // Not between two runs, when the groups are being made clean.
  if (running_) end_devices();
}

void DeviceTeam::end_devices() noexcept {
  if (end_ == End::kCondemned) pool().condemn(why_);
  if (end_ == End::kCancelled) pool().cancel(reason_[0] == '\0' ? nullptr : reason_);
}

}  // namespace dist
