// SPDX-License-Identifier: Apache-2.0
// Stragglers: how often each replica arrived last at a round, and by how much.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <vector>

#include "core/trace/snapshot.hpp"

namespace dist {

// A replica that arrived last at some of the rounds of one kind, that is of one tag, collective and group.
struct Straggler {
  char tag[DIST_MAX_TAG_BYTES];
  int32_t collective;
  int32_t group;
  GlobalReplica replica;  // kNoReplica: the worker, outside its replicas
  int32_t worker;
  int64_t rounds;  // number of rounds of this kind
  int64_t times_last;
  int64_t late_ns;  // total time that the others, all of which had arrived, waited for it
  int64_t max_late_ns;

  int64_t mean_late_ns() const noexcept { return late_ns / times_last; }
};

// Counts successful rounds; if other workers take part, as far as this worker knows about them
// (attendance.hpp). Sorted by the number of times that the replica was last, in descending order. Throws
// std::bad_alloc.
std::pmr::vector<Straggler> stragglers(const Snapshot& snapshot, Memory& memory);

}  // namespace dist
