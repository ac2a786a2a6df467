// SPDX-License-Identifier: Apache-2.0
// Stuck: what a function takes along that has not returned, though it was told to, when its replica gets another thread. Its
// own thread ends this when it comes back.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/run/inner_pool.hpp"
#include "core/serve/instances.hpp"
#include "core/serve/item.hpp"
#include "core/trace/recorder.hpp"

namespace dist {

class Stuck final : public Counted {
 public:
  // Throws std::bad_alloc.
  Stuck(Memory& memory, Instances& instances, const Instances::Options& options)
      : Counted(memory),
        instances_(Ref<Instances>::share(&instances)),
        options_(options),
        recorder_(memory, ReplicaCount(1)) {}

  // The pool that the function is in: the other thread gets another one.
  void take(InnerPool* pool) noexcept { pool_ = pool; }
  // All that the function has is known and has ended: its instance's items, by next_to_end, and the step that it is; NULL: it
  // is a request's. The last word of whoever leaves it alone.
  void take_rest(Item* items, Request* step) noexcept {
    items_ = items;
    step_ = step;
    has_all_.store(true, std::memory_order_release);
  }
  Recorder& recorder() noexcept { return recorder_[LocalReplica{0}]; }
  // On the thread that came back, out of its run: ends its state, and lets go of all.
  void end() noexcept;

 private:
  ~Stuck() override = default;

  const Ref<Instances> instances_;
  Instances::Options options_;  // as they were: the instances may have been opened anew with others
  FlightRecorder recorder_;     // nobody reads it: the replica's is written by its new thread
  InnerPool* pool_ = nullptr;
  Item* items_ = nullptr;
  Request* step_ = nullptr;
  std::atomic<bool> has_all_{false};
};

}  // namespace dist
