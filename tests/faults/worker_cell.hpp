// SPDX-License-Identifier: Apache-2.0
// Cells of the fault matrix over workers: one replica, or all replicas of a worker, make one mistake in one
// of several collectives. Defines the axes and the meaningful combinations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/faults/cell.hpp"

namespace faults {

enum class WorkerFault : int {
  kEarlyReturn,
  kErrorReturned,
  kThrown,  // a C++ exception out of the replica function
  kOtherCollective,
  kOtherOp,
  kOtherDtype,
  kOtherShape,
  kOtherRoot,
  kLate,       // until the collective's deadline, on the clock of the test
  kCancelled,  // cancels its own strategy
  kShutDown,   // its strategy is shut down while it is inside, so the worker is lost
  kDestroyed,  // destroys the strategy instead of running
  // Only for processes.
  kOtherRank,   // as many elements, in one dimension
  kOtherOrder,  // a barrier first
  kKilled,
  kExited,  // _exit(0), without leaving
  kStopped,
  kNeverStarted,
  // Only for processes that the test connects by an Ethernet of its own.
  kCutOff,
  kNobody,  // no worker makes a mistake, but the link is bad
};
inline constexpr int kWorkerFaults = static_cast<int>(WorkerFault::kDestroyed) + 1;
inline constexpr int kProcessFaults = static_cast<int>(WorkerFault::kNeverStarted) + 1;

enum class When : int { kFirst, kMiddle, kLast };
inline constexpr int kWhens = 3;
inline constexpr int kSteps = 5;  // number of collectives in a run

inline constexpr int kMostWorkers = 4;

struct WorkerCell {
  WorkerFault fault = WorkerFault::kEarlyReturn;
  When when = When::kFirst;
  int32_t collective = DIST_COLLECTIVE_ALL_REDUCE;
  int workers = 2;
  int replicas = 1;  // of each worker
  int guilty = 0;    // the worker
  int local = 0;     // its replica; -1 = all of them
  dist_threads threads = DIST_THREADS_CALLER;
  Size size = Size::kSmall;
  Form form = Form::kBlocking;  // never kPolled
  bool checked = false;         // each collective is followed by a blocking sum whose result is checked

  int members() const { return workers * replicas; }
  int worker_of(int replica) const { return replica / replicas; }
  bool is_guilty(int replica) const {
    return worker_of(replica) == guilty && (local < 0 || replica % replicas == local);
  }
  // The first of the guilty replicas.
  int first_guilty() const { return guilty * replicas + (local < 0 ? 0 : local); }
  int step() const { return when == When::kFirst ? 0 : when == When::kMiddle ? kSteps / 2 : kSteps - 1; }
  // Changes the guilty member's call: its collective, or how it differs otherwise.
  void spoil(int32_t* kind, Fault* wrong) const;
  // The fault is detected when the plan is made, not in one of its rounds.
  bool at_planning() const {
    return form == Form::kPlanned &&
           (disagrees() || fault == WorkerFault::kDestroyed || fault == WorkerFault::kNeverStarted);
  }
  // The number of the step in reports. Asynchronous collectives have numbers of their own, and so do the
  // rounds of each plan. Making a plan counts as a blocking collective.
  int sequence() const {
    if (form == Form::kPlanned && !at_planning()) return 1;
    return (checked && form != Form::kAsynchronous ? 2 : 1) * step() + 1;
  }
  bool disagrees() const {
    return (fault >= WorkerFault::kOtherCollective && fault <= WorkerFault::kOtherRoot) ||
           fault == WorkerFault::kOtherRank || fault == WorkerFault::kOtherOrder;
  }
  // The worker is lost without an announcement.
  bool silent() const {
    return (fault >= WorkerFault::kKilled && fault <= WorkerFault::kStopped) || fault == WorkerFault::kCutOff;
  }
  // The worker does not come back.
  bool loses() const {
    return fault == WorkerFault::kShutDown || fault == WorkerFault::kDestroyed || silent();
  }
  bool timed() const { return fault == WorkerFault::kLate; }
  std::string text() const;
};

const char* worker_fault_name(WorkerFault fault);
const char* when_name(When when);

// Whether the cell's collective can have this fault and this size.
bool means_something(const WorkerCell& cell);
// Returns the cells of one fault, sorted by cluster. `seed` determines collective, size, form and threads.
// With `whole`, returns every collective; otherwise one cell of each {workers, replicas, who, when}, without
// the slow ones.
std::vector<WorkerCell> worker_cells_of(WorkerFault fault, bool whole, uint64_t seed);

}  // namespace faults
