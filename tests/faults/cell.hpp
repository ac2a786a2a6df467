// SPDX-License-Identifier: Apache-2.0
// Cells of the fault matrix: one member, a replica or one of its logical devices, makes one mistake in one
// collective. Defines the axes, the meaningful combinations, and the order of cells.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dist/dist.h>

namespace faults {

enum class Fault : int {
  kEarlyReturn,
  kErrorReturned,
  kErrorUnderWay,  // returned right after the collective, while kernels of peers may still run
  kSkipped,
  kExtra,
  kSwappedOrder,
  kWrongDtype,
  kWrongCount,
  kWrongOp,
  kWrongRoot,
  kOtherSplit,     // the whole tensor is divided differently
  kOtherFunction,  // another merge function, or another operator of the host
  kStalled,
  kCancelled,         // by a member
  kCancelledOutside,  // by another thread
  kWorkCancelled,     // dist_work_cancel()
  kPastDeadline,      // the deadline of the run, or of the devices' run
  kThreadGone,
  kOppositeGroups,
};
inline constexpr int kFaults = static_cast<int>(Fault::kOppositeGroups) + 1;

enum class Form : int {
  kBlocking,
  kAsynchronous,  // dist_work_wait()
  kPolled,        // asynchronous, and only polled with dist_work_test(), which has no deadline
  kPlanned,
};
inline constexpr int kForms = 4;

enum class Size : int {
  kSmall,  // fits a cache line
  kList,   // three tensors
  kLarge,  // over 1 MiB in total, so many blocks
};
inline constexpr int kSizes = 3;

enum class Order : int {
  kPeersFirst,  // the guilty member acts when its peers have arrived
  kRace,        // all act at any time
};

// @every collective but NONE, RETURN, REDUCE_APPLY: the first two are not calls, and the last meets like
// ALL_REDUCE
inline constexpr int32_t kCollectives[] = {
    DIST_COLLECTIVE_ALL_REDUCE,    DIST_COLLECTIVE_REDUCE,     DIST_COLLECTIVE_REDUCE_SCATTER,
    DIST_COLLECTIVE_ALL_GATHER,    DIST_COLLECTIVE_GATHER,     DIST_COLLECTIVE_BROADCAST,
    DIST_COLLECTIVE_SCATTER,       DIST_COLLECTIVE_ALL_TO_ALL, DIST_COLLECTIVE_SCAN,
    DIST_COLLECTIVE_PERMUTE,       DIST_COLLECTIVE_BARRIER,    DIST_COLLECTIVE_MERGE_CALL,
    DIST_COLLECTIVE_HALO_EXCHANGE, DIST_COLLECTIVE_RESHARD};
inline constexpr int kMembers[] = {2, 3, 4, 8};
inline constexpr int kMostMembers = 8;
// If the members are logical devices, they belong to one of this number of replicas. The other replica makes
// no mistake.
inline constexpr int kReplicasOfDevices = 2;

struct Cell {
  Fault fault = Fault::kEarlyReturn;
  int32_t collective = DIST_COLLECTIVE_ALL_REDUCE;
  Form form = Form::kBlocking;
  int members = 2;
  int guilty = 0;
  dist_threads threads = DIST_THREADS_CALLER;
  Size size = Size::kSmall;
  Order order = Order::kPeersFirst;
  bool grouped = false;  // in a group of all members, instead of without a group
  int part_of = -1;      // the replica whose logical devices the members are; -1: they are replicas

  bool devices() const { return part_of >= 0; }
  bool tensors() const;
  bool reduces() const;
  bool rooted() const;
  // The fault is detected when the plan is made, not in one of its rounds.
  bool at_planning() const;
  // The guilty member makes another call than its peers.
  bool disagrees() const;
  // Replicas wait for each other, because the guilty one is in another round than its peers.
  bool cycle() const;
  // The cell uses the clock that the test advances.
  bool timed() const;
  // The guilty member is on the thread that called the members' run.
  bool guilty_calls() const { return guilty == 0 && (devices() || threads == DIST_THREADS_CALLER); }
  // The thread that calls dist_run() ends inside it.
  bool ends_caller() const {
    return fault == Fault::kThreadGone && threads == DIST_THREADS_CALLER && guilty == 0 && part_of <= 0;
  }
  std::string text() const;
};

const char* fault_name(Fault fault);
const char* form_name(Form form);
const char* threads_name(dist_threads threads);
const char* collective_name(int32_t collective);
// Whether logical devices can do this collective.
bool among_devices(int32_t collective);

// Returns the cells of one fault, sorted by strategy. `seed` determines the size, whether the members form a
// group, and whose logical devices they are. Unless `whole` is set, it determines everything except the
// collective and the form.
std::vector<Cell> cells_of(Fault fault, bool whole, uint64_t seed);

}  // namespace faults
