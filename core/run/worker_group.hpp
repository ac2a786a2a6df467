// SPDX-License-Identifier: Apache-2.0
// The connection of a group to its members in other workers. Its communicator (WorkerCommunicator) uses a subset of
// the connections of the group of all replicas (core/comm/worker_communicator.hpp). WorkerLink begins and ends its runs.
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
#include "core/comm/worker_communicator.hpp"
#include "core/net/shared_transport.hpp"
#include "core/net/subset_transport.hpp"

namespace dist {

class WorkerLink;

// The members of a group: in all workers, and in this one.
struct GroupShape {
  // `ids` must be ascending and valid. Throws std::bad_alloc.
  GroupShape(Memory& memory, std::span<const int32_t> ids, const WorkerCommunicator& all);

  std::pmr::vector<int32_t> ids;
  std::pmr::vector<int32_t> local_ranks;  // local ranks of the members in this worker
  std::pmr::vector<int> workers;          // workers that have members
  std::pmr::vector<int> members;          // number of members in each of these workers

  bool is_here() const noexcept { return !local_ranks.empty(); }
  bool spans_workers() const noexcept { return workers.size() > 1; }
};

class WorkerGroup {
 public:
  // `group` has the members of this worker, at least one; it and the link must outlive this object. Must be
  // called between runs. Throws std::bad_alloc.
  WorkerGroup(Memory& memory, WorkerLink& link, Group& group, const Host& host, const GroupShape& shape);
  ~WorkerGroup();
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  WorkerCommunicator& communicator() noexcept { return communicator_; }

  void begin_run() noexcept;
  // A member has left its function. When the last one leaves, workers that may wait for it are notified
  // immediately.
  void leave(Status returned, const ErrorRecord& failure) noexcept;
  // The run has ended here. `parts` is the set of workers that have left, according to the group of all
  // replicas.
  void end_run(uint64_t parts, Status outcome, const ErrorRecord& why) noexcept;

 private:
  WorkerLink& link_;
  const Group& group_;
  SharedTransport::Share share_;
  SubsetTransport transport_;
  WorkerCommunicator communicator_;
  std::atomic<int> inside_{0};
  std::atomic<bool> closed_{false};  // by end_run()
  std::atomic<bool> failed_{false};  // a member has failed
  std::mutex mutex_;                 // protects the members below, and orders leave() before the next run
  Status returned_;  // first failure of a member; preferably one that was not caused by a peer
  ErrorRecord failure_;
};

}  // namespace dist
