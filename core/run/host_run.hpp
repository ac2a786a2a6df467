// SPDX-License-Identifier: Apache-2.0
// HostRun: who takes part in a run on threads that the host lends, and how the run ends. A state machine without threads;
// all functions must be called under the run lock.
//
// Invariant: a run begins only if no turn has been taken, and a turn only if no thread is inside.
//
// | state    | entered by                | left by               | a member that has left               |
// |----------|---------------------------|-----------------------|--------------------------------------|
// | closed   | creation, close()         | open(), take_turn()   | returns with the outcome             |
// | open     | open()                    | close(), give_up()    | waits for the others                 |
// | given up | give_up()                 | close()               | returns with the report              |
// | turn     | take_turn()               | end_turn()            | none is inside                       |
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"

namespace dist {

class HostRun {
 public:
  // `num_members`: 0 if no thread is the host's. Throws std::bad_alloc.
  HostRun(Memory& memory, int num_members) : threads_(static_cast<std::size_t>(num_members), &memory) {}

  bool is_open() const noexcept { return open_; }
  // The open run was given up: no thread waits for its end.
  bool given_up() const noexcept { return given_up_; }
  // Whether `run` is the number of the open run, and the member has entered it.
  bool has_entered(int rank, uint32_t run) const noexcept { return open_ && thread(rank).entered == run; }
  uint32_t entered(int rank) const noexcept { return thread(rank).entered; }
  // A thread has entered as the member and has not yet returned from leaving.
  bool occupied(int rank) const noexcept { return thread(rank).occupied; }
  bool idle() const noexcept {
    return !turn_taken_ &&
           std::none_of(threads_.begin(), threads_.end(), [](const Thread& each) { return each.occupied; });
  }
  bool all_have_come() const noexcept { return come_ == threads_.size(); }

  void open() noexcept {
    open_ = true;
    given_up_ = false;
    come_ = 0;
    left_ = 0;
  }
  void come(int rank, uint32_t run) noexcept {
    ++come_;
    thread(rank).entered = run;
    thread(rank).occupied = true;
  }
  // The member's function has returned. Returns whether it is the last one.
  bool leave() noexcept { return ++left_ == threads_.size(); }
  void close() noexcept { open_ = false; }
  void give_up(const ErrorRecord& why) noexcept {
    given_up_ = true;
    end(Status(why.code), why);
  }
  // The outcome of the run, for its threads.
  void end(Status outcome, const ErrorRecord& why) noexcept {
    outcome_ = outcome;
    if (!outcome.ok()) why_ = why;
  }
  Status outcome() const noexcept { return outcome_.ok() ? kOk : fail(why_); }

  // The thread returns from leaving. Returns the reference that it must release once the lock is open, or NULL.
  Counted* go(int rank) noexcept {
    thread(rank).occupied = false;
    return std::exchange(thread(rank).keeps, nullptr);
  }
  // The strategy is shut down while the thread is inside: it takes over a reference.
  void keep(int rank, Counted& keeper) noexcept { thread(rank).keeps = &keeper; }

  // Turns that wait; no run begins before them.
  void want_turn() noexcept { ++turns_wanted_; }
  void stop_wanting_turn() noexcept { --turns_wanted_; }
  bool turn_wanted() const noexcept { return turns_wanted_ != 0; }
  void take_turn() noexcept { turn_taken_ = true; }
  void end_turn() noexcept { turn_taken_ = false; }
  bool turn_taken() const noexcept { return turn_taken_; }

 private:
  struct Thread {
    uint32_t entered = 0;      // the latest run that it took part in
    Counted* keeps = nullptr;  // reference that it releases when it leaves, after a shutdown
    bool occupied = false;
  };
  Thread& thread(int rank) noexcept { return threads_[static_cast<std::size_t>(rank)]; }
  const Thread& thread(int rank) const noexcept { return threads_[static_cast<std::size_t>(rank)]; }

  bool open_ = false;
  bool given_up_ = false;
  bool turn_taken_ = false;
  int turns_wanted_ = 0;
  std::size_t come_ = 0;
  std::size_t left_ = 0;
  Status outcome_;
  ErrorRecord why_;
  std::pmr::vector<Thread> threads_;  // by rank
};

}  // namespace dist
