// SPDX-License-Identifier: Apache-2.0
#include "core/run/worker_group.hpp"

#include "core/run/worker_link.hpp"

namespace dist {

GroupShape::GroupShape(Memory& memory, std::span<const int32_t> given, const WorkerCommunicator& all)
    : ids(given.begin(), given.end(), &memory), local_ranks(&memory), workers(&memory), members(&memory) {
  int worker = 0;
  for (const int32_t id : ids) {
    while (id >= all.members().first_of(worker + 1)) ++worker;
    if (workers.empty() || workers.back() != worker) {
      workers.push_back(worker);
      members.push_back(0);
    }
    ++members.back();
    if (worker == all.me()) local_ranks.push_back(id - all.first());
  }
}

WorkerGroup::WorkerGroup(Memory& memory, WorkerLink& link, Group& group, const Host& host,
                         const GroupShape& shape)
    : link_(link),
      group_(group),
      share_(link.transport()),
      transport_(memory, share_, shape.workers),
      communicator_(memory, transport_, group, host,
                    {shape.members,
                     group.timeout_ns(),
                     link.communicator().own_staging_bytes(),
                     &link.crossings(),
                     {},
                     &link.communicator(),
                     shape.workers,
                     shape.ids}) {
  link_.add(*this);
}

WorkerGroup::~WorkerGroup() { link_.remove(*this); }

void WorkerGroup::begin_run() noexcept {
  // Functions of an abandoned run may be about to return. If the group has not been used, none of them is in
  // it.
  if (communicator_.joined() || failed_.load(std::memory_order_relaxed)) {
    const std::lock_guard lock(mutex_);
    failed_.store(false, std::memory_order_relaxed);
    returned_ = kOk;
    communicator_.begin_run();
  } else {
    communicator_.begin_run();
  }
  inside_.store(group_.size(), std::memory_order_relaxed);
  closed_.store(false, std::memory_order_relaxed);
}

void WorkerGroup::leave(Status returned, const ErrorRecord& failure) noexcept {
  if (!returned.ok()) {
    const std::lock_guard lock(mutex_);
    if (returned_.ok() || (returned_.code() == DIST_ABORTED && returned.code() != DIST_ABORTED)) {
      returned_ = returned;
      failure_ = failure;
    }
    failed_.store(true, std::memory_order_relaxed);
  }
  // acq_rel: the last one sees the results of the others.
  if (inside_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (!communicator_.joined() && !failed_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  // If the run was cancelled, its end is more informative than members that returned OK.
  if (closed_.load(std::memory_order_relaxed) || (returned_.ok() && group_.cancelled())) return;
  communicator_.leave(returned_, failure_);
}

void WorkerGroup::end_run(uint64_t parts, Status outcome, const ErrorRecord& why) noexcept {
  if (!communicator_.is_in(parts)) return closed_.store(true, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  communicator_.leave(outcome, why);
  closed_.store(true, std::memory_order_relaxed);
}

}  // namespace dist
