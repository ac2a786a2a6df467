// SPDX-License-Identifier: Apache-2.0
// ReplicaNumbers: the global numbers of this process's replicas. They change when the workers re-form, and
// objects that already exist then use the new numbers. The number of replicas in this process does not
// change.
#pragma once

#include <atomic>

#include "core/base/memory.hpp"
#include "core/base/replicas.hpp"

namespace dist {

class ReplicaNumbers final : public Counted {
 public:
  ReplicaNumbers(Memory& memory, ReplicaCount count) noexcept
      : Counted(memory), local_(count.local()), others_(pack(count)) {}

  int32_t local() const noexcept { return local_; }
  ReplicaCount count() const noexcept {
    const uint64_t others = others_.load(std::memory_order_relaxed);
    return {local_, GlobalReplica{static_cast<int32_t>(others >> 32)}, static_cast<int32_t>(others)};
  }
  void change(ReplicaCount count) noexcept { others_.store(pack(count), std::memory_order_relaxed); }

 private:
  static uint64_t pack(ReplicaCount count) noexcept {
    return static_cast<uint64_t>(static_cast<uint32_t>(number(count.first()))) << 32 |
           static_cast<uint32_t>(count.global());
  }

  const int32_t local_;
  std::atomic<uint64_t> others_;
};

}  // namespace dist
