// SPDX-License-Identifier: Apache-2.0
// WorkerLayout: the number of replicas of each worker, if several workers read a dataset together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "core/base/memory.hpp"

namespace dist {

class WorkerLayout final : public Counted {
 public:
  WorkerLayout(Memory& memory, std::span<const int> replicas)
      : Counted(memory), replicas_(replicas.begin(), replicas.end(), &memory) {}

  int32_t num_workers() const noexcept { return static_cast<int32_t>(replicas_.size()); }
  int64_t replicas(int64_t worker) const noexcept { return replicas_[static_cast<std::size_t>(worker)]; }
  // The number of replicas of the workers before `worker`.
  int64_t first(int64_t worker) const noexcept {
    return std::accumulate(replicas_.begin(), replicas_.begin() + worker, int64_t{0});
  }
  int64_t all() const noexcept { return first(num_workers()); }
  bool is_even() const noexcept {
    return std::all_of(replicas_.begin(), replicas_.end(), [&](int n) { return n == replicas_[0]; });
  }
  // The index of a worker's replica if workers take turns: the first replicas of all workers come first, then
  // the second replicas of the workers that have one, and so on.
  int64_t place_in_turns(int64_t worker, int64_t replica) const noexcept {
    int64_t before = 0;
    for (int64_t w = 0; w < num_workers(); ++w) {
      before += std::min(replicas(w), replica + (w < worker ? 1 : 0));
    }
    return before;
  }

 private:
  std::pmr::vector<int> replicas_;
};

}  // namespace dist
