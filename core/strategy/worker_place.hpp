// SPDX-License-Identifier: Apache-2.0
// WorkerPlace: which worker of its cluster a strategy is, and how many replicas each of them has. All of it is found
// without asking another worker.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/replicas.hpp"
#include "core/base/status.hpp"
#include "core/cluster/resolver.hpp"

namespace dist {

struct WorkerPlace {
  explicit WorkerPlace(Memory& memory) : replicas(1, 1, &memory), numbers(&memory) {}

  int me = 0;                      // among those that take part
  std::pmr::vector<int> replicas;  // of each of these
  std::pmr::vector<int> numbers;   // of each of these in the cluster, ascending; empty: all take part
  FoundText job;                   // not set: there is no cluster
  int32_t task = 0;
  bool is_chief = true;  // it saves, and writes summaries

  int number() const noexcept { return numbers.empty() ? me : numbers[static_cast<std::size_t>(me)]; }
  int num_workers() const noexcept { return static_cast<int>(replicas.size()); }
  ReplicaCount count() const noexcept;
};

// As TensorFlow's MultiWorkerMirroredStrategy finds it: a task of the cluster must be given, chief comes before the
// workers, and an evaluator stands alone. Without a cluster there is one worker.
Status find_place(ClusterResolver& resolver, WorkerPlace* out);

// Sets `replicas`: `given` of each worker, where it is not empty, else `own` of all. `own` 0: as given.
Status set_replicas(std::span<const int32_t> given, int32_t own, WorkerPlace* place);

}  // namespace dist
