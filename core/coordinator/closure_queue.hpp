// SPDX-License-Identifier: Apache-2.0
// ClosureQueue: which worker does which closure, and when. A state machine: it knows no thread, no network and no clock; it is
// told what happens, and when, and says what to do next.
//
// Closures go out in the order of their numbers, each to the worker that has been free for longest. A closure whose worker is
// lost comes back: it is due after a pause, which doubles each time, and goes to another worker, unless there has been none for
// some time. An error of a closure's own is kept until somebody takes it; closures that wait are cancelled then, those that are
// under way come to their ends.
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
  // How long, in pauses, a closure waits for another worker than the one that it was lost with.
  static constexpr int64_t kPatience = 8;

  struct Assignment {
    int64_t id;
    int worker;
  };
  enum class Lost { kAgain, kTooOften };

  // `per_worker`: closures that a worker has at a time; `max_losses`: with how many workers one may be lost.
  ClosureQueue(Memory& memory, int num_workers, int per_worker, int max_losses);

  // ---- What happens ----
  // The next closure; its number, from 0 on.
  int64_t schedule();
  void worker_up(int worker);
  // Its closures are the caller's to report, by lost().
  void worker_down(int worker) noexcept;
  // It has an end, whatever it is.
  void done(int64_t id) noexcept;
  // Its worker was lost, or could not do it. kTooOften: it has an end with that.
  Lost lost(int64_t id, int64_t now_ns);
  // What waits has an end: their numbers.
  void cancel_waiting(std::pmr::vector<int64_t>* out);
  // One that waits has an end: false where it does not wait.
  bool cancel(int64_t id) noexcept;
  // Numbers below `mark` are over, and the next one is `next`: of a coordinator that goes on with a checkpoint.
  void resume(int64_t next) noexcept;

  // ---- What to do ----
  // The next closure to go out: false where there is none, or no worker for it.
  bool next(int64_t now_ns, Assignment* out);
  // When to ask again, though nothing happens; INT64_MAX: never.
  int64_t ask_again_ns(int64_t now_ns) const noexcept;

  // ---- What is so ----
  // All below have an end.
  int64_t mark() const noexcept { return mark_; }
  int64_t next_id() const noexcept { return next_id_; }
  std::size_t num_waiting() const noexcept { return fresh_.size() + back_.size(); }
  std::size_t num_in_flight() const noexcept { return in_flight_.size(); }
  bool idle() const noexcept { return num_waiting() == 0 && in_flight_.empty(); }
  int64_t num_losses() const noexcept { return num_losses_; }
  bool is_up(int worker) const noexcept { return workers_[static_cast<std::size_t>(worker)].up; }
  int num_up() const noexcept { return num_up_; }
  // Closures that it has.
  int num_of(int worker) const noexcept { return workers_[static_cast<std::size_t>(worker)].busy; }

 private:
  // Places of workers that are free, a worker's number each, free for longest first. There is room for all from the
  // beginning, so that the end of a closure takes no memory.
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
    int avoid;           // the worker that it was lost with
    int64_t due_ns;      // not before
    int64_t patient_ns;  // until then `avoid` does not get it, while there is another
  };

  void take(std::size_t place, int64_t id, int losses);
  void leave(int worker) noexcept;
  void ended(int64_t id) noexcept;

  const int per_worker_;
  const int max_losses_;
  std::pmr::vector<Worker> workers_;
  Places free_;
  std::pmr::deque<int64_t> fresh_;     // that no worker has had
  std::pmr::map<int64_t, Back> back_;  // that were lost
  std::pmr::map<int64_t, Closure> in_flight_;
  std::pmr::deque<bool> ended_;  // of each from the mark on, whether it has an end
  int64_t mark_ = 0;
  int64_t next_id_ = 0;
  int64_t num_losses_ = 0;
  int num_up_ = 0;
};

}  // namespace dist
