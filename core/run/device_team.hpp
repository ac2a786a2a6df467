// SPDX-License-Identifier: Apache-2.0
// The logical devices of one replica. Each device is a thread; device 0 uses the replica's own. They run a
// function together while the replica's function waits for them.
//
// Invariant: whatever ends the run of replicas (a peer's failure, a deadline, a cancellation) also ends the
// device runs inside it, including those that start later in the same run. The reverse does not hold: a
// failing device ends only the device run, unless the replica's function returns that failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/run/inner_pool.hpp"
#include "core/run/nesting.hpp"
#include "core/run/replica_pool.hpp"

namespace dist {

// The logical devices of a replica as a grid with named axes in row-major order.
struct DeviceMesh {
  explicit DeviceMesh(Memory& memory) : names(&memory), sizes(&memory) {}

  std::size_t num_axes() const noexcept { return sizes.size(); }
  // Finds the axis with this name. `call` is the host's function, for messages.
  Status find(const char* name, const char* call, std::size_t* out_axis) const noexcept;
  // The distance between the ids of two devices that are neighbours along an axis.
  int32_t step(std::size_t axis) const noexcept;
  int32_t index(std::size_t axis, int32_t device) const noexcept { return device / step(axis) % sizes[axis]; }

  int32_t num_devices = 1;
  std::pmr::vector<std::pmr::string> names;
  std::pmr::vector<int32_t> sizes;  // their product is num_devices
};

class DeviceTeam final : public DeviceRuns {
 public:
  // `pool` and `mesh` must outlive the team. Throws std::bad_alloc and then leaves nothing behind.
  static Status create(Memory& memory, const ReplicaPool& pool, const DeviceMesh& mesh, LocalReplica replica,
                       DeviceTeam** out);
  // No device may be running.
  static void destroy(DeviceTeam* team) noexcept;

  LocalReplica replica() const noexcept { return replica_; }
  const DeviceMesh& mesh() const noexcept { return mesh_; }
  int num_devices() const noexcept { return mesh_.num_devices; }
  ReplicaPool& pool() noexcept { return devices_->pool(); }
  // The group of the devices that share all coordinates of `device` except the one along `axis`.
  Subgroup& along(std::size_t axis, int32_t device) noexcept;

  // Runs the body on every device, like ReplicaPool::run() on replicas. Must be called on the replica's
  // thread.
  Status run(const Body& body, const RunLimits& limits);

  // A run of replicas begins: forgets how the previous one ended.
  void begin_run(const OuterRun& outer) noexcept override;
  // The groups of the devices are clean and can be ended again. Applies an end that came in the meantime.
  void groups_have_begun() noexcept;
  // End the current device run and all later ones of this run of replicas. Callable from any thread.
  void condemn(const ErrorRecord& why) noexcept override;
  void cancel(const char* reason) noexcept override;
  bool is_inside(const Sight& of) const noexcept override { return devices_->pool().is_inside(of); }
  Status check_idle(const char* call, const char* advice) noexcept override {
    return pool().check_idle(call, advice);
  }
  void refuse_runs(const char* call) noexcept override { pool().refuse_runs(call); }
  void shut_down(int64_t deadline_ns, std::span<char> inside, const char* call) noexcept override {
    pool().shut_down(deadline_ns, inside, call);
  }

 private:
  enum class End { kNone, kCondemned, kCancelled };

  DeviceTeam(Memory& memory, const DeviceMesh& mesh, LocalReplica replica);
  ~DeviceTeam();
  Status make_groups();
  void end_with(End end, const ErrorRecord* why, const char* reason) noexcept;
  void end_devices() noexcept;

  Memory& memory_;
  const DeviceMesh& mesh_;
  const LocalReplica replica_;
  InnerPool* devices_ = nullptr;
  std::pmr::vector<Subgroup*> along_;  // by axis and device
  std::mutex mutex_;                   // protects the members below
  bool running_ = false;
  End end_ = End::kNone;
  ErrorRecord why_;
  char reason_[kReasonBytes] = "";  // for kCancelled; "": no reason
};

}  // namespace dist
