// SPDX-License-Identifier: Apache-2.0
// Helpers: the threads beside the instances. One ends queued requests whose deadline is over; one calls the host's functions
// for requests that have ended. Each is started when it is first needed.
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
class Promise;

class Helpers {
 public:
  Helpers(Memory& memory, Instances& instances);
  ~Helpers();

  // Before a request that needs them is accepted.
  Status need_clock() noexcept;
  Status need_teller() noexcept;
  bool has_clock() const noexcept { return has_clock_.load(std::memory_order_acquire); }
  // The first deadline is another one now.
  void deadline_changed() noexcept { changed_.advance(); }
  // Takes over a use of a request, whose function for its end is called.
  void tell(Promise& promise) noexcept {
    untold_.fetch_add(1, std::memory_order_relaxed);
    ended_->add(promise, true);
  }
  // Whether the host has yet to be told of an end.
  bool has_untold() const noexcept { return untold_.load(std::memory_order_relaxed) != 0; }
  bool telling() const noexcept { return teller_id_.load(std::memory_order_relaxed) == this_thread(); }
  // No deadline counts any more.
  void stop_clock() noexcept;
  // Ends the threads, after what they have to do.
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
