// SPDX-License-Identifier: Apache-2.0
// The state that an abandoned function keeps: it did not return although it was told to, and its replica has
// got a new thread. The old thread cleans up here when its function returns.
//
// | this object is used by | until |
// |---|---|
// | the thread that abandons the function | take_rest() |
// | the old thread | end(), which releases it |
#pragma once

#include <atomic>
#include <cstdint>

#include "core/run/inner_pool.hpp"
#include "core/serve/instances_options.hpp"
#include "core/serve/item.hpp"
#include "core/trace/recorder.hpp"

namespace dist {

class Stuck final : public Counted {
 public:
  // `keeps` stays allocated until end(), and with it `count`, which end() decrements. Throws std::bad_alloc.
  Stuck(Memory& memory, Counted& keeps, std::atomic<int>& count, const InstancesOptions& options)
      : Counted(memory),
        keeps_(Ref<Counted>::share(&keeps)),
        count_(count),
        options_(options),
        recorder_(memory, ReplicaCount(1)) {}

  // Takes over the pool that the function runs in. The new thread gets another one.
  void take(InnerPool* pool) noexcept { pool_ = pool; }
  // Records what else the function used: the items of its instance, linked by next_to_end, and its step (NULL
  // if it is a plain request). All of them have ended. The last call by the thread that abandons the
  // function.
  void take_rest(Item* items, Request* step) noexcept {
    items_ = items;
    step_ = step;
    has_all_.store(true, std::memory_order_release);
  }
  Recorder& recorder() noexcept { return recorder_[LocalReplica{0}]; }
  // Called on the thread that returned, outside of its run: destroys the instance's state and releases
  // everything.
  void end() noexcept;

 private:
  ~Stuck() override = default;

  const Ref<Counted> keeps_;
  std::atomic<int>& count_;
  InstancesOptions options_;  // a copy: the instances may have been reopened with others
  FlightRecorder recorder_;   // never read: the new thread writes to the replica's recorder
  InnerPool* pool_ = nullptr;
  Item* items_ = nullptr;
  Request* step_ = nullptr;
  std::atomic<bool> has_all_{false};
};

}  // namespace dist
