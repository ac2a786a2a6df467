// SPDX-License-Identifier: Apache-2.0
// ClosureQueue: which worker runs which closure, and when. A state machine without threads, network or clock:
// the caller reports events with their times, and asks what to do next.
//
// Closures are sent in the order of their numbers, each to the worker that has been idle for longest. If a
// worker is lost, its closures return to the queue. Each becomes due after a pause, which doubles with each
// loss, and goes to a different worker unless none has been available for some time.
//
// If a closure itself fails, the error is kept until the host retrieves it. Waiting closures are cancelled,
// and running ones run to completion.
//
// Invariant: every number gets exactly one end, and watermark() never decreases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory_resource>
#include <vector>

#include "core/base/memory.hpp"

namespace dist {

class ClosureQueue {
 public:
  static constexpr int64_t kFirstPauseNs = 100'000'000;
  static constexpr int64_t kLongestPauseNs = 10'000'000'000;
  // How many pauses a closure waits for a different worker than the one that was lost.
  static constexpr int64_t kPatience = 8;

  struct Assignment {
    int64_t id;
    int worker;
  };
  enum class Lost { kAgain, kTooOften };

  // `per_worker`: maximum number of closures of a worker at a time; `max_losses`: maximum number of lost
  // workers per closure.
  ClosureQueue(Memory& memory, int num_workers, int per_worker, int max_losses);

  // ---- Events ----
  // Adds a closure and returns its number, starting at 0.
  int64_t schedule();
  void worker_up(int worker);
  // The caller must report the worker's closures with lost().
  void worker_down(int worker) noexcept;
  // The closure has ended in any way.
  void done(int64_t id) noexcept;
  // The closure's worker was lost or could not run it. kTooOften: the closure has ended with this.
  Lost lost(int64_t id, int64_t now_ns);
  // Ends all waiting closures and returns their numbers.
  void cancel_waiting(std::pmr::vector<int64_t>* out);
  // Ends a waiting closure. Returns false if it is not waiting.
  bool cancel(int64_t id) noexcept;
  // Continues after a checkpoint: numbers below `next` have ended, and `next` is the next number.
  void resume(int64_t next) noexcept;

  // ---- Decisions ----
  // The next closure to send. Returns false if there is none, or no worker for it.
  bool next(int64_t now_ns, Assignment* out);
  // When to ask again even if nothing happens; INT64_MAX: never.
  int64_t ask_again_ns(int64_t now_ns) const noexcept;

  // ---- State ----
  // All closures below have ended.
  int64_t watermark() const noexcept { return watermark_; }
  int64_t next_id() const noexcept { return next_id_; }
  std::size_t num_waiting() const noexcept { return fresh_.size() + back_.size(); }
  std::size_t num_in_flight() const noexcept { return in_flight_.size(); }
  bool idle() const noexcept { return num_waiting() == 0 && in_flight_.empty(); }
  int64_t num_losses() const noexcept { return num_losses_; }
  bool is_up(int worker) const noexcept { return workers_[static_cast<std::size_t>(worker)].up; }
  int num_up() const noexcept { return num_up_; }
  // The number of closures that the worker has.
  int num_of(int worker) const noexcept { return workers_[static_cast<std::size_t>(worker)].busy; }

 private:
  // The free places of workers, as a queue of worker numbers with the longest idle first. All memory is
  // allocated in advance, so that ending a closure allocates nothing.
  class Places {
   public:
    Places(Memory& memory, std::size_t most) : ring_(most, &memory) {}
    std::size_t size() const noexcept { return size_; }
    int at(std::size_t i) const noexcept { return ring_[index(i)]; }
    void add(int worker) noexcept { ring_[index(size_++)] = worker; }
    void remove(std::size_t i) noexcept;
    void remove_all_of(int worker) noexcept;

   private:
    std::size_t index(std::size_t i) const noexcept { return (first_ + i) % ring_.size(); }

    std::pmr::vector<int> ring_;
    std::size_t first_ = 0;
    std::size_t size_ = 0;
  };
  struct Worker {
    bool up = false;
    int busy = 0;
  };
  struct Closure {
    int worker = -1;
    int losses = 0;
  };
  struct Back {
    int losses;
    int avoid;           // the worker that had it when it was lost
    int64_t due_ns;      // not sent before
    int64_t patient_ns;  // until then, `avoid` does not get it if there is another worker
  };

  void take(std::size_t place, int64_t id, int losses);
  void leave(int worker) noexcept;
  void ended(int64_t id) noexcept;

  const int per_worker_;
  const int max_losses_;
  std::pmr::vector<Worker> workers_;
  Places free_;
  std::pmr::deque<int64_t> fresh_;     // never sent
  std::pmr::map<int64_t, Back> back_;  // lost and returned
  std::pmr::map<int64_t, Closure> in_flight_;
  std::pmr::deque<bool> ended_;  // for each number from the watermark on: whether it has ended
  int64_t watermark_ = 0;
  int64_t next_id_ = 0;
  int64_t num_losses_ = 0;
  int num_up_ = 0;
};

}  // namespace dist
