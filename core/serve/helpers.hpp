// SPDX-License-Identifier: Apache-2.0
// The threads that serve instances besides the replicas: the clock thread, which ends queued requests whose
// deadline has expired and detects stuck functions, and the teller, which calls `done` callbacks. Each is
// started on first use.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/base/memory.hpp"
#include "core/base/os/thread.hpp"
#include "core/base/status.hpp"
#include "core/comm/word.hpp"
#include "core/serve/completions.hpp"

namespace dist {

class Instances;
class Future;

class Helpers {
 public:
  Helpers(Memory& memory, Instances& instances);
  ~Helpers();

  // Must be called before a request that needs the thread is accepted.
  Status need_clock() noexcept;
  Status need_teller() noexcept;
  bool has_clock() const noexcept { return has_clock_.load(std::memory_order_acquire); }
  // The earliest deadline has changed.
  void deadline_changed() noexcept { changed_.advance(); }
  // Takes over a reference to a future, whose `done` callback the teller will call.
  void tell(Future& future) noexcept {
    untold_.fetch_add(1, std::memory_order_relaxed);
    ended_->add(future, true);
  }
  // Whether some `done` callback is yet to be called.
  bool has_untold() const noexcept { return untold_.load(std::memory_order_relaxed) != 0; }
  bool telling() const noexcept { return teller_id_.load(std::memory_order_relaxed) == this_thread(); }
  // Deadlines are ignored from now on.
  void stop_clock() noexcept;
  // Ends the threads after they have finished their work.
  void stop() noexcept;

 private:
  static void* watch_clock(void* self);
  static void* tell_host(void* self);
  Status start(Thread& thread, void* (*main)(void*), const char* name) noexcept;

  Instances& instances_;
  std::mutex starting_;
  Thread clock_;
  Thread teller_;
  std::atomic<bool> has_clock_{false};
  std::atomic<bool> has_teller_{false};
  std::atomic<std::uintptr_t> teller_id_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<std::size_t> untold_{0};
  Word changed_;
  Ref<Completions> ended_;
};

}  // namespace dist
