// SPDX-License-Identifier: Apache-2.0
// A oneTBB arena that survives a lack of memory. Only files that use oneTBB include this header, since
// oneTBB's own headers are large.
#pragma once

#include <oneapi/tbb/task_arena.h>

#include <atomic>
#include <new>
#include <utility>

namespace dist {

// Two steps of oneTBB cannot be repeated. If one of them runs out of memory, this process never uses oneTBB
// again: start() and enqueue() throw std::bad_alloc from then on, loops run on their callers, and no data is
// prepared ahead.
//
// - Its lazy initializations. After a failed one, every later use would wait forever. Therefore the first
//   arena of the process is special: once an arena has started, a failure concerns only the arena that
//   failed, and can be retried. The first call also determines the number of CPUs, so that
//   task_arena::automatic is a width like any other.
// - Starting a thread, which enqueue() and loops may do. oneTBB counts a thread that it could not start as
//   started. So there may be no thread for any arena, and later calls on this arena, including its
//   destructor, would wait forever. The task may have been queued, and may run much later or never.
class TbbArena {
 public:
  TbbArena() noexcept { new (&arena_) tbb::task_arena; }
  ~TbbArena() {
    if (!abandoned_.load(std::memory_order_relaxed)) arena_.~task_arena();
  }
  TbbArena(const TbbArena&) = delete;
  TbbArena& operator=(const TbbArena&) = delete;

  // Call this before any other function. Throws std::bad_alloc if there is no memory. Only one thread at a
  // time may start an arena.
  void start(int width);
  bool started() const noexcept { return arena_.is_active(); }

  // Returns false if this process no longer uses oneTBB.
  static bool usable() noexcept;

  // If this throws, the task may still run at any time, even after the arena was destroyed.
  template <class Task>
  void enqueue(Task&& task) {
    if (!usable()) throw std::bad_alloc();
    try {
      arena_.enqueue(std::forward<Task>(task));
    } catch (...) {
      abandon();
      throw;
    }
  }

  // Call this when a loop in this arena has thrown.
  void abandon() noexcept {
    abandoned_.store(true, std::memory_order_relaxed);
    give_up();
  }

  tbb::task_arena& get() noexcept { return arena_; }

 private:
  static void give_up() noexcept;

  union {
    tbb::task_arena arena_;
  };
  std::atomic<bool> abandoned_{false};
};

}  // namespace dist
