// SPDX-License-Identifier: Apache-2.0
// Iterator: one pass over a dataset, with prefetching by oneTBB.
//
// A task prepares a batch. If no task has started on it when it is needed, the calling thread prepares it. A
// pass therefore never waits for an oneTBB thread to become available, only for a batch that is already being
// prepared.
//
// Invariant: there is one maker at a time. A task makes batches only while its ticket is valid, and the
// iterator invalidates the ticket before it makes a batch itself or is destroyed.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/input/dataset.hpp"
#include "core/value/value.hpp"

namespace dist {

class Iterator final : public Counted {
 public:
  // Begin the dataset's next pass, or continue a pass at a position.
  static Status create(Dataset& dataset, Ref<Iterator>* out);
  static Status create_at(Dataset& dataset, const Position& position, Ref<Iterator>* out);
  // Releases the owner's reference and waits for a batch that is being prepared. Has no effect in a forked
  // child.
  static void close(Iterator* iterator) noexcept;

  Iterator(Memory& memory, Ref<Dataset> dataset, Ref<Pass> pass);

  // A check that can end the wait for a batch: next() returns its failure.
  struct Interrupt {
    Status (*check)(void* context) noexcept = nullptr;
    void* context = nullptr;
  };
  // Whether next() delivers a batch that is filled up (Pass::filled_up()), or ends the pass in its place.
  enum class FilledUp { kEnds, kIsDelivered };
  // Returns the next batch. After a failure of the source, including OUT_OF_RANGE at the end, every further
  // call returns the same failure. `call` is the host's function, for messages.
  Status next(const Interrupt& interrupt, const char* call, FilledUp filled_up, ValueRef* out);
  // Waits for the next batch without taking it. At the end of the pass it returns OK and *there is false.
  Status look(const Interrupt& interrupt, const char* call, bool* there);
  // A batch without examples, for a step in which only other workers have one; NULL if a batch cannot be
  // empty.
  Status empty(ValueRef* out);
  // Skips the rest of the pass.
  void end_pass();
  // Whether all workers have finished the pass, so that no further vote is needed.
  bool has_ended() const noexcept { return ended_; }
  // The position at which the next batch begins.
  Status position(Position* out);
  const Dataset& dataset() const noexcept { return *dataset_; }
  // The handle that the host has.
  LiveHandle& handle() noexcept { return handle_; }

 private:
  struct Ticket;
  struct Made {
    ValueRef batch;
    Position after;
    bool filled_up = false;
  };
  using Lock = std::unique_lock<std::mutex>;

  ~Iterator() override;
  void begin(uint64_t number);
  void make_ahead(const Lock&) noexcept;
  bool stop_task(const Lock&) noexcept;
  void make_batch(Lock& lock);
  Status await_batch(Lock& lock, const Interrupt& interrupt);
  Status prepare(Lock& lock, const Interrupt& interrupt, const char* call);
  void drop_rest(Lock& lock);
  static void run_task(Ticket& ticket) noexcept;

  const Ref<Dataset> dataset_;
  const std::shared_ptr<Ticket> ticket_;  // NULL: no prefetching
  Ref<Pass> pass_;                        // used by the maker; NULL once the pass has ended
  std::mutex mutex_;                      // protects the members below
  std::condition_variable made_;
  std::pmr::deque<Made> ready_;
  AheadChoice choice_;  // used if the dataset measures
  Position position_;   // after the last delivered batch
  bool ahead_ = false;  // a task is making the next batch, or will
  bool closing_ = false;
  bool ended_ = false;
  ValueRef empty_;   // with several workers: a batch without examples
  ErrorRecord end_;  // unless OK, the reason why no batches follow those in ready_
  LiveHandle handle_;
};

}  // namespace dist
