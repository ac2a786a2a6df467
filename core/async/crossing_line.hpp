// SPDX-License-Identifier: Apache-2.0
// CrossingLine: sends a group's asynchronous collectives to the other workers once all members of this worker
// have arrived at them. They are sent in the order of their numbers, which is the same on all workers. At
// most kAtATime are in flight, and each uses a part of the staging memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>

#include "core/async/crossings.hpp"
#include "core/async/places.hpp"
#include "core/collective/worker_crossing.hpp"

namespace dist {

class CrossingLine final : public Crossings::Item {
 public:
  static constexpr std::size_t kAtATime = 4;

  // Receives the results of a line. Exactly one of these functions is called for each collective.
  class Landing {
   public:
    // All data have arrived. The callee does the remaining work, which completes the place's pack.
    virtual void here(Places::Place& place, uint32_t number, const Exchange& exchange) noexcept = 0;
    // The collective is complete, and no work remains.
    virtual void done(Places::Place& place, uint32_t number) noexcept = 0;
    // The collective has been abandoned.
    virtual void stopped(Places::Place& place, uint32_t number) noexcept = 0;

   protected:
    ~Landing() = default;
  };

  // Throws std::bad_alloc.
  CrossingLine(Memory& memory, Crossings& home, WorkerCommunicator& communicator, Group& group,
               Landing& landing, std::size_t cache_bytes);
  ~CrossingLine() override { home_.end(*this); }

  WorkerCommunicator& communicator() const noexcept { return communicator_; }
  // end_run() and begin_run() are called between runs, with no collective under way. After end_run(), no late
  // task accesses places. `first`: the number before the next run's first collective.
  void end_run() noexcept;
  void begin_run(uint32_t first) noexcept { first_ = first; }
  // Called by the last member of this worker to arrive.
  void add(Places::Chunk& chunk, uint32_t number) noexcept;
  void advance() noexcept { home_.advance(); }
  // Fails the collective on all workers.
  void fail(Places::Place& place, uint32_t number, Trouble trouble, int64_t waited_ns) noexcept;
  // Called by a member that gives up in an aborted group. Abandons the group's collectives that are in
  // flight.
  void let_go() noexcept { home_.stop(group()); }

  bool go_on() noexcept override;
  void stop() noexcept override;

 private:
  struct Slot {
    std::optional<WorkerCrossing> crossing;
    Places::Chunk* chunk = nullptr;  // NULL: unused
    uint32_t number = 0;
    Places::Place& place() const noexcept { return chunk->place(number); }
    bool landed = false;
  };

  void begin(Slot& slot, Places::Chunk& chunk, uint32_t number) noexcept;
  bool go_on(Slot& slot) noexcept;

  Crossings& home_;
  WorkerCommunicator& communicator_;
  Landing& landing_;
  uint32_t first_ = 0;
  std::array<Slot, kAtATime> slots_;
  // Collectives that wait for a slot.
  Places::Place* front_ = nullptr;
  Places::Place* back_ = nullptr;
};

}  // namespace dist
