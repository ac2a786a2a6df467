// SPDX-License-Identifier: Apache-2.0
// The properties of every collective, in one table. All code that several collectives share reads this table,
// so that adding a collective means adding a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "dist/types.h"

namespace dist {

// @every collective
enum class Collective : int32_t {
  kNone = DIST_COLLECTIVE_NONE,
  kAllReduce = DIST_COLLECTIVE_ALL_REDUCE,
  kBroadcast = DIST_COLLECTIVE_BROADCAST,
  kBarrier = DIST_COLLECTIVE_BARRIER,
  kMergeCall = DIST_COLLECTIVE_MERGE_CALL,
  kReturn = DIST_COLLECTIVE_RETURN,
  kReduce = DIST_COLLECTIVE_REDUCE,
  kReduceScatter = DIST_COLLECTIVE_REDUCE_SCATTER,
  kAllGather = DIST_COLLECTIVE_ALL_GATHER,
  kGather = DIST_COLLECTIVE_GATHER,
  kScatter = DIST_COLLECTIVE_SCATTER,
  kAllToAll = DIST_COLLECTIVE_ALL_TO_ALL,
  kScan = DIST_COLLECTIVE_SCAN,
  kPermute = DIST_COLLECTIVE_PERMUTE,
  kReduceApply = DIST_COLLECTIVE_REDUCE_APPLY,
  kHaloExchange = DIST_COLLECTIVE_HALO_EXCHANGE,
  kReshard = DIST_COLLECTIVE_RESHARD,
};

// A collective's index in tables, from 0; kNone has 0.
constexpr std::size_t index_of(Collective collective) noexcept {
  return static_cast<std::size_t>(collective) & 0xFF;
}

// The collective with an index.
constexpr Collective collective_at(std::size_t index) noexcept {
  return index == 0 ? Collective::kNone
                    : static_cast<Collective>(DIST_COLLECTIVE_ALL_REDUCE - 1 + static_cast<int32_t>(index));
}

// The number of tasks into which the exchange of one tensor is divided.
enum class Tasks : uint8_t { kOne, kMembers };
// Whose tensors a task reads or writes: those of all members, of the root, of the member with the task's
// number, or of the peer that this member names.
enum class Ends : uint8_t { kAll, kRoot, kMember, kPeer };

struct CollectiveTraits {
  const char* name;  // the function's name without "dist_"
  bool reduces = false;
  Tasks tasks = Tasks::kOne;
  Ends sources = Ends::kAll;
  Ends destinations = Ends::kAll;
  bool cuts = false;      // outputs are parts of inputs along the axis
  bool joins = false;     // inputs are parts of outputs
  bool prefixes = false;  // each member's output is computed from the inputs up to its own
  bool fused = false;     // reduces into a buffer in the cache and continues from there
  // How reports describe a difference between calls whose descriptions are equal.
  const char* beyond_words = "other shapes or dtypes";

  constexpr bool rooted() const noexcept { return sources == Ends::kRoot || destinations == Ends::kRoot; }
  // Members name the peers from which they receive and to which they send.
  constexpr bool pairs() const noexcept { return sources == Ends::kPeer; }
  // Every member has a part of each peer's whole, and vice versa.
  constexpr bool swaps() const noexcept { return cuts && joins; }
  // Inputs and outputs have the same shape, in one member and on all members.
  constexpr bool whole() const noexcept { return !cuts && !joins && !pairs(); }
  // Whether an input may be at its own place in the output, or an output at its own place in the input.
  constexpr bool may_lie_inside() const noexcept { return cuts != joins && !reduces; }
  // All members that get a result get the same one.
  constexpr bool alike() const noexcept {
    return !prefixes && (destinations == Ends::kAll || destinations == Ends::kRoot);
  }
};

// Indexed by index_of(). Collectives that exchange no lists of tensors have only a name.
inline constexpr CollectiveTraits kTraits[] = {
    {.name = "none"},
    {.name = "all_reduce", .reduces = true},
    {.name = "broadcast", .sources = Ends::kRoot},
    {.name = "barrier"},
    {.name = "merge_call", .beyond_words = "another variable, function or kind of arguments"},
    {.name = "return"},
    {.name = "reduce_to_root", .reduces = true, .destinations = Ends::kRoot},
    {.name = "reduce_scatter",
     .reduces = true,
     .tasks = Tasks::kMembers,
     .destinations = Ends::kMember,
     .cuts = true},
    {.name = "all_gather", .tasks = Tasks::kMembers, .sources = Ends::kMember, .joins = true},
    {.name = "gather_to_root",
     .tasks = Tasks::kMembers,
     .sources = Ends::kMember,
     .destinations = Ends::kRoot,
     .joins = true},
    {.name = "scatter_from_root",
     .tasks = Tasks::kMembers,
     .sources = Ends::kRoot,
     .destinations = Ends::kMember,
     .cuts = true},
    {.name = "all_to_all",
     .tasks = Tasks::kMembers,
     .destinations = Ends::kMember,
     .cuts = true,
     .joins = true},
    {.name = "scan", .reduces = true, .prefixes = true},
    {.name = "permute", .tasks = Tasks::kMembers, .sources = Ends::kPeer, .destinations = Ends::kMember},
    {.name = "reduce_apply", .reduces = true, .fused = true},
    {.name = "halo_exchange", .beyond_words = "other widths or edges"},
    {.name = "reshard", .beyond_words = "other partitions"},
};
inline constexpr Collective kLastCollective = Collective::kReshard;
static_assert(std::size(kTraits) == index_of(kLastCollective) + 1, "kTraits has a row for each collective");

constexpr const CollectiveTraits& traits_of(Collective collective) noexcept {
  return kTraits[index_of(collective)];
}

}  // namespace dist
