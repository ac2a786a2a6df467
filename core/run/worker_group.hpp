// SPDX-License-Identifier: Apache-2.0
// WorkerGroup: what a group of some replicas has of the other workers that have members in it. Its meeting is a part of
// that of all replicas (core/comm/workers.hpp), and the WorkerLink begins and ends its runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory_resource>
#include <mutex>
#include <span>
#include <vector>

#include "core/base/host.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/comm/workers.hpp"
#include "core/engine/shared_transport.hpp"
#include "core/engine/subset_transport.hpp"

namespace dist {

class WorkerLink;

// Who is in a group, of all workers and of this one.
struct GroupShape {
  // `ids` ascend, and are those of replicas. Throws std::bad_alloc.
  GroupShape(Memory& memory, std::span<const int32_t> ids, const WorkerMeeting& all);

  std::pmr::vector<int32_t> ids;
  std::pmr::vector<int32_t> seats;  // of the members that are here
  std::pmr::vector<int> workers;    // that have members
  std::pmr::vector<int> members;    // of each of these

  bool is_here() const noexcept { return !seats.empty(); }
  bool spans_workers() const noexcept { return workers.size() > 1; }
};

class WorkerGroup {
 public:
  // `group`: of the members that are here, of which there is one at least; it and the link outlive this. Between runs.
  // Throws std::bad_alloc.
  WorkerGroup(Memory& memory, WorkerLink& link, Group& group, const Host& host, const GroupShape& shape);
  ~WorkerGroup();
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  WorkerMeeting& meeting() noexcept { return meeting_; }

  void begin_run() noexcept;
  // A member has left its function. The others hear of the last one at once, if they may wait for it.
  void leave(Status returned, const ErrorRecord& failure) noexcept;
  // The run is over here; `parts` are those that the whole says have left.
  void end_run(uint64_t parts, Status outcome, const ErrorRecord& why) noexcept;

 private:
  WorkerLink& link_;
  const Group& group_;
  SharedTransport::Share share_;
  SubsetTransport transport_;
  WorkerMeeting meeting_;
  std::atomic<int> inside_{0};
  std::atomic<bool> closed_{false};  // by end_run()
  std::atomic<bool> failed_{false};  // a member has
  std::mutex mutex_;                 // of what follows, and of leaving against the next run
  Status returned_;                  // the members' first failure; one of their own, where there is any
  ErrorRecord failure_;
};

}  // namespace dist
