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
  kThrown,  // a C++ exception, through the function
  kOtherCollective,
  kOtherOp,
  kOtherDtype,
  kOtherShape,
  kOtherRoot,
  kLate,       // until the collective's deadline, by a clock moved by hand
  kCancelled,  // its own strategy
  kShutDown,   // its strategy, while it is inside: the worker is lost
  kDestroyed,  // the strategy, instead of the run
  // Of processes alone.
  kOtherRank,   // as many elements, in one dimension
  kOtherOrder,  // a barrier first
  kKilled,
  kExited,  // _exit(0), without a word
  kStopped,
  kNeverStarted,
  // Of processes whose links are an Ethernet of the test's own.
  kCutOff,
  kNobody,  // does anything wrong: it is the link that is bad
};
inline constexpr int kWorkerFaults = static_cast<int>(WorkerFault::kDestroyed) + 1;
inline constexpr int kProcessFaults = static_cast<int>(WorkerFault::kNeverStarted) + 1;

enum class When : int { kFirst, kMiddle, kLast };
inline constexpr int kWhens = 3;
inline constexpr int kSteps = 5;  // collectives in a run

inline constexpr int kMostWorkers = 4;

struct WorkerCell {
  WorkerFault fault = WorkerFault::kEarlyReturn;
  When when = When::kFirst;
  int32_t collective = DIST_COLLECTIVE_ALL_REDUCE;
  int workers = 2;
  int replicas = 1;  // of each worker
  int guilty = 0;    // the worker
  int local = 0;     // its replica; -1: all of them
  dist_threads threads = DIST_THREADS_CALLER;
  Size size = Size::kSmall;
  Form form = Form::kBlocking;  // or kAsynchronous, kPlanned
  bool checked = false;         // a blocking sum that is looked at follows each collective

  int members() const { return workers * replicas; }
  int worker_of(int replica) const { return replica / replicas; }
  bool is_guilty(int replica) const {
    return worker_of(replica) == guilty && (local < 0 || replica % replicas == local);
  }
  // Of those who do it, the first.
  int first_guilty() const { return guilty * replicas + (local < 0 ? 0 : local); }
  int step() const { return when == When::kFirst ? 0 : when == When::kMiddle ? kSteps / 2 : kSteps - 1; }
  // What the guilty one's call is instead: its collective, and how it differs otherwise.
  void spoil(int32_t* kind, Fault* wrong) const;
  // Planned: the trouble comes to light where the plan is made, not in one of its rounds.
  bool at_planning() const {
    return form == Form::kPlanned &&
           (disagrees() || fault == WorkerFault::kDestroyed || fault == WorkerFault::kNeverStarted);
  }
  // Of the step, as reports have it: asynchronous ones are counted apart, and so are each plan's rounds; plans are made
  // among the blocking ones.
  int sequence() const {
    if (form == Form::kPlanned && !at_planning()) return 1;
    return (checked && form != Form::kAsynchronous ? 2 : 1) * step() + 1;
  }
  bool disagrees() const {
    return (fault >= WorkerFault::kOtherCollective && fault <= WorkerFault::kOtherRoot) ||
           fault == WorkerFault::kOtherRank || fault == WorkerFault::kOtherOrder;
  }
  // The worker is lost without having said anything.
  bool silent() const {
    return (fault >= WorkerFault::kKilled && fault <= WorkerFault::kStopped) || fault == WorkerFault::kCutOff;
  }
  // The worker cannot come back.
  bool loses() const {
    return fault == WorkerFault::kShutDown || fault == WorkerFault::kDestroyed || silent();
  }
  bool timed() const { return fault == WorkerFault::kLate; }
  std::string text() const;
};

const char* worker_fault_name(WorkerFault fault);
const char* when_name(When when);

// Whether its collective can have its fault and its size.
bool means_something(const WorkerCell& cell);
// The cells of one fault, those of one cluster in a row. `seed` draws collective, size, form and threads; `whole`: every
// collective, else one of each {workers, replicas, who, when}, without the slow ones.
std::vector<WorkerCell> worker_cells_of(WorkerFault fault, bool whole, uint64_t seed);

}  // namespace faults
