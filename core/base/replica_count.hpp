// SPDX-License-Identifier: Apache-2.0
// How many replicas there are: in this process, whose components, copies and seats are counted so, and in all
// processes together, over which a sum is made. They are asked for by name, so that each use says which it means;
// what is done where there is one replica alone is mostly for one in all processes.
#pragma once

#include <cstdint>

namespace dist {

class ReplicaCount {
 public:
  // Replicas of one process.
  constexpr explicit ReplicaCount(int32_t local) noexcept : local_(local) {}

  constexpr int32_t local() const noexcept { return local_; }
  constexpr int32_t global() const noexcept { return local_ * processes_; }

 private:
  int32_t local_;
  int32_t processes_ = 1;
};

}  // namespace dist
