// SPDX-License-Identifier: Apache-2.0
// WorkerPlace: which worker of the cluster this process is, and how many replicas each worker has. It is
// computed without communication.
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

  int me = 0;                      // among the workers that take part
  std::pmr::vector<int> replicas;  // of each of these
  std::pmr::vector<int> numbers;   // number of each of these in the cluster, ascending; empty: all take part
  FoundText job;                   // not set if there is no cluster
  int32_t task = 0;
  bool is_chief = true;  // it saves checkpoints and writes summaries

  int number() const noexcept { return numbers.empty() ? me : numbers[static_cast<std::size_t>(me)]; }
  int num_workers() const noexcept { return static_cast<int>(replicas.size()); }
  ReplicaCount count() const noexcept;
};

// Finds the place like TensorFlow's MultiWorkerMirroredStrategy: a task of the cluster must be given, the
// chief comes before the workers, and an evaluator is on its own. Without a cluster there is one worker.
Status find_place(ClusterResolver& resolver, WorkerPlace* out);

// Sets `replicas` to `given`, or if that is empty, to `own` for every worker. `own` 0: as given.
Status set_replicas(std::span<const int32_t> given, int32_t own, WorkerPlace* place);

}  // namespace dist
