// SPDX-License-Identifier: Apache-2.0
// Iterator: one pass, with batches made ahead by oneTBB.
//
// A batch is made by a task, or by the thread that asks for it while no task has begun it: a pass never waits
// for a thread of oneTBB to become free, only for a batch that is being made. There is one maker at a time: a
// task makes batches only while its ticket is valid, and the iterator takes the ticket back before it makes a
// batch itself or ends.
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
  // Begins the dataset's next pass, or continues one at a position.
  static Status create(Dataset& dataset, Ref<Iterator>* out);
  static Status create_at(Dataset& dataset, const Position& position, Ref<Iterator>* out);
  // Releases the owner's reference, and waits for a batch that is being made. In a forked child it does
  // nothing.
  static void close(Iterator* iterator) noexcept;

  Iterator(Memory& memory, Ref<Dataset> dataset, Ref<Pass> pass);

  // A check that may end the wait for a batch that is being made: next() returns its failure.
  struct Interrupt {
    Status (*check)(void* context) noexcept = nullptr;
    void* context = nullptr;
  };
  // The next batch. After a failure of the source's, OUT_OF_RANGE among them, the same one again. `call` is
  // the function's name in messages.
  Status next(const Interrupt& interrupt, const char* call, ValueRef* out);
  // Waits for it, and leaves it there. OK also where the pass is over: then *there is false.
  Status look(const Interrupt& interrupt, const char* call, bool* there);
  // A batch without examples in its place, where other workers have one; NULL where there can be none.
  Status empty(ValueRef* out);
  // Leaves out what is left of the pass.
  void end_pass();
  // Whether all workers have left it, and nobody is asked any more.
  bool has_ended() const noexcept { return ended_; }
  // Where the next batch begins.
  Status position(Position* out);
  const Dataset& dataset() const noexcept { return *dataset_; }

 private:
  struct Ticket;
  struct Made {
    ValueRef batch;
    Position after;
  };
  using Lock = std::unique_lock<std::mutex>;

  ~Iterator() override;
  void begin(uint64_t number);
  void make_ahead(const Lock&) noexcept;
  bool stop_task(const Lock&) noexcept;
  void make_batch(Lock& lock);
  Status await_batch(Lock& lock, const Interrupt& interrupt);
  Status prepare(Lock& lock, const Interrupt& interrupt, const char* call);
  static void run_task(Ticket& ticket) noexcept;

  const Ref<Dataset> dataset_;
  const std::shared_ptr<Ticket> ticket_;  // NULL: nothing is made ahead
  Ref<Pass> pass_;                        // the maker's; NULL when it is over
  std::mutex mutex_;                      // holds what follows
  std::condition_variable made_;
  std::pmr::deque<Made> ready_;
  AheadChoice choice_;  // where the dataset measures
  Position position_;   // after the last batch that was given out
  bool ahead_ = false;  // a task makes the next batch, now or later
  bool closing_ = false;
  bool ended_ = false;
  ValueRef empty_;   // of several workers: a batch without examples
  ErrorRecord end_;  // why there are no more batches than ready_, where its code is not OK
};

}  // namespace dist
