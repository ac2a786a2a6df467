// SPDX-License-Identifier: Apache-2.0
// DeviceTeam: the logical devices of one replica. Each is a thread, the replica's own that of device 0, which
// runs a function beside the others while the replica's function waits for them.
//
// What ends the run of replicas (a peer's failure, a deadline, cancel()) ends the runs of their devices too.
// A device's failure ends only the run on devices, unless the replica's function returns it.
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
#include "core/run/replica_pool.hpp"

namespace dist {

// The logical devices of a replica as a box with named axes, the last one running fastest.
struct DeviceMesh {
  explicit DeviceMesh(Memory& memory) : names(&memory), sizes(&memory) {}

  std::size_t num_axes() const noexcept { return sizes.size(); }
  // The axis of this name. `call` is the function's name in messages.
  Status find(const char* name, const char* call, std::size_t* out_axis) const noexcept;
  // How far apart two devices are that follow each other along an axis.
  int32_t step(std::size_t axis) const noexcept;
  int32_t index(std::size_t axis, int32_t device) const noexcept { return device / step(axis) % sizes[axis]; }

  int32_t num_devices = 1;
  std::pmr::vector<std::pmr::string> names;
  std::pmr::vector<int32_t> sizes;  // their product is num_devices
};

class DeviceTeam {
 public:
  // `pool` and `mesh` outlive the team. Throws std::bad_alloc, which leaves nothing behind.
  static Status create(Memory& memory, const ReplicaPool& pool, const DeviceMesh& mesh, LocalReplica replica,
                       DeviceTeam** out);
  // No device is running.
  static void destroy(DeviceTeam* team) noexcept;

  LocalReplica replica() const noexcept { return replica_; }
  const DeviceMesh& mesh() const noexcept { return mesh_; }
  int num_devices() const noexcept { return mesh_.num_devices; }
  ReplicaPool& pool() noexcept { return devices_->pool(); }
  // The devices that differ from `device` in their place along `axis` alone.
  Subgroup& along(std::size_t axis, int32_t device) noexcept;

  // On the replica's thread: runs the body on every device, as ReplicaPool::run() does on replicas.
  Status run(const Body& body, const RunLimits& limits);

  // A run of these replicas begins: what ended the last one is over.
  void begin_run(const ReplicaPool& outer) noexcept;
  // The groups of the devices are clean, and open to what ends their run.
  void groups_have_begun() noexcept;
  // Any thread: ends what the devices do, now and later in the run of replicas.
  void condemn(const ErrorRecord& why) noexcept;
  void cancel(const char* reason) noexcept;  // NULL: for none

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
  std::mutex mutex_;                   // what follows
  bool running_ = false;
  End end_ = End::kNone;
  ErrorRecord why_;
  char reason_[kReasonBytes] = "";  // kCancelled; "": none
};

}  // namespace dist
