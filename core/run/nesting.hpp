// SPDX-License-Identifier: Apache-2.0
// Nesting: the pools whose runs are inside the runs of a pool, from the viewpoint of that pool.
//
// Invariant: whatever ends a run also ends the runs inside it.
//
// | nested runs | of                                              | begin with the outer run | owner        |
// |-------------|-------------------------------------------------|--------------------------|--------------|
// | inner       | a merge function; at most one pool              | no                       | this pool    |
// | devices     | the logical devices of each replica             | yes                      | this pool    |
// | lent        | the logical devices of the replica of a request | yes                      | another pool |
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/comm/group.hpp"

namespace dist {

class RunPins;
class RunSight;

// Identifies the outermost run that a run is part of.
struct Sight {
  RunPins* pins;
  uint32_t run;
};

// What nested runs need to know about the run that contains them.
struct OuterRun {
  Group& group;
  const RunSight& sight;
};

// A pool whose runs are inside those of another one.
class NestedRuns {
 public:
  // Ends the current run. NULL: no reason. Callable from any thread.
  virtual void cancel(const char* reason) noexcept = 0;
  // Whether a function of a run that is part of that run is still running.
  virtual bool is_inside(const Sight& of) const noexcept = 0;
  // See the functions of ReplicaPool with these names.
  virtual Status check_idle(const char* call, const char* advice) noexcept = 0;
  virtual void refuse_runs(const char* call) noexcept = 0;
  virtual void shut_down(int64_t deadline_ns, std::span<char> inside, const char* call) noexcept = 0;

 protected:
  ~NestedRuns() = default;
};

// The runs of a replica's logical devices. cancel() also ends those that start later in the same outer run.
class DeviceRuns : public NestedRuns {
 public:
  // A run of replicas begins: forgets how the previous one ended.
  virtual void begin_run(const OuterRun& outer) noexcept = 0;
  // Like cancel(), with the report of a failure.
  virtual void condemn(const ErrorRecord& why) noexcept = 0;

 protected:
  ~DeviceRuns() = default;
};

class Nesting {
 public:
  Nesting(Memory& memory, DeviceRuns* lent) noexcept : devices_(&memory), lent_(lent) {}

  // Before the first run: the logical devices of the next replica. Throws std::bad_alloc.
  void add(DeviceRuns& devices) { devices_.push_back(&devices); }
  void set_inner(NestedRuns& inner) noexcept { inner_.store(&inner, std::memory_order_release); }

  // Inline like RunGroups::begin(), because every run calls it.
  void begin_run(const OuterRun& outer) noexcept {
    for (DeviceRuns* const each : devices_) each->begin_run(outer);
    if (lent_ != nullptr) lent_->begin_run(outer);
  }
  void cancel(const char* reason) noexcept;
  void condemn(const ErrorRecord& why) noexcept;
  // Ends the device runs of all replicas except one.
  void condemn_others(int rank, const ErrorRecord& why) noexcept;
  bool has_devices() const noexcept { return !devices_.empty(); }
  bool is_inside(const Sight& of) const noexcept;
  Status check_idle(const char* call, const char* advice) noexcept;
  void refuse_runs(const char* call) noexcept;
  void shut_down(int64_t deadline_ns, std::span<char> inside, const char* call) noexcept;

 private:
  NestedRuns* inner() const noexcept { return inner_.load(std::memory_order_acquire); }

  std::atomic<NestedRuns*> inner_{nullptr};
  std::pmr::vector<DeviceRuns*> devices_;  // by replica
  DeviceRuns* const lent_;
};

}  // namespace dist
