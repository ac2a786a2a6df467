// SPDX-License-Identifier: Apache-2.0
// Stragglers: how often each replica arrived last at a round, and by how much.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <vector>

#include "core/trace/snapshot.hpp"

namespace dist {

// One replica that was the last to come to some of the rounds of one kind: of one tag, collective and
// group.
struct Straggler {
  char tag[DIST_MAX_TAG_BYTES];
  int32_t collective;
  int32_t group;
  GlobalReplica replica;  // kNoReplica: the worker, outside of its replicas
  int32_t worker;
  int64_t rounds;  // of this kind, whoever was last
  int64_t times_last;
  int64_t late_ns;  // in all: how long the others, which had all come, waited for it
  int64_t max_late_ns;

  int64_t mean_late_ns() const noexcept { return late_ns / times_last; }
};

// Counts rounds that ended well; of those with other workers, as this one knows them (attendance.hpp). The replica that was last most often comes first. Throws std::bad_alloc.
std::pmr::vector<Straggler> stragglers(const Snapshot& snapshot, Memory& memory);

}  // namespace dist
