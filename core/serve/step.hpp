// SPDX-License-Identifier: Apache-2.0
// A step of a batcher, which is queued as a request without a handle.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory_resource>
#include <vector>

#include "core/serve/batcher.hpp"

namespace dist {

class Batcher::Step final : public Request {
 public:
  Step(Memory& memory, Instances& home, Batcher& batcher)
      : Request(memory, home),
        batcher_(batcher),
        room_(static_cast<std::size_t>(batcher.options_.queue.max_items), nullptr, &memory) {}

  // Prepares it for the queue: for one instance, or for any.
  void begin_step(int instance, int32_t of) noexcept;
  void end(Status status, const ErrorRecord* why, Endings& by) noexcept override {
    batcher_.over(*this, status, why, by);
  }
  Batcher* batcher() noexcept override { return &batcher_; }
  void come_back() noexcept override { batcher_.back(*this); }

  bool is_taken = false;          // an instance has it
  int at = -1;                    // that instance
  uint64_t begun_at = 0;          // timestamp
  std::atomic<bool> left{false};  // abandoned: its items have ended, and another thread serves the instance
  Step* next_of_all = nullptr;
  std::span<BatchQueue::Entry*> room() noexcept { return room_; }
  std::span<BatchQueue::Entry* const> items() const noexcept { return std::span(room_).first(count_); }
  void set_count(std::size_t count) noexcept { count_ = count; }

 private:
  static dist_status call(Replica& replica, const Body& self);

  Batcher& batcher_;
  std::pmr::vector<BatchQueue::Entry*> room_;
  std::size_t count_ = 0;
};

// Called when items wait. Must be called under the mutex.
inline void Batcher::arm_waiting(int64_t now_ns) noexcept {
  if (!queue_.is_due(now_ns)) {
    by_name_ = false;
    return;
  }
  const int32_t priority = queue_.greatest_waiting();
  if (any_ == nullptr || any_->priority < priority) arm_for(priority, now_ns);
}

}  // namespace dist
