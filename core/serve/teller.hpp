// SPDX-License-Identifier: Apache-2.0
// The thread that calls the host's `done` callbacks.
//
// | a future is | it is |
// |---|---|
// | completed, with a callback | in `ended_`, and counted in `untold_` |
// | told | delivered |
//
// Invariant: a future is counted as delivered after its callback has returned.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/base/memory.hpp"
#include "core/base/os/thread.hpp"
#include "core/base/status.hpp"
#include "core/run/replica_pool.hpp"
#include "core/serve/completions.hpp"
#include "core/serve/lifecycle.hpp"

namespace dist {

class Teller {
 public:
  // `by` counts the futures that were told.
  Teller(Memory& memory, const ReplicaPool& pool, Lifecycle& lifecycle, Endings& by)
      : pool_(pool), lifecycle_(lifecycle), by_(by), ended_(make_counted<Completions>(memory)) {}
  ~Teller() { stop(); }
  Teller(const Teller&) = delete;
  Teller& operator=(const Teller&) = delete;

  // Starts the thread on first use. Must be called before a future with a callback is accepted.
  Status need() noexcept;
  // Takes over a reference to a future.
  void tell(Future& future) noexcept {
    untold_.fetch_add(1, std::memory_order_relaxed);
    ended_->add(future, true);
  }
  // Whether some callback is yet to return.
  bool has_untold() const noexcept { return untold_.load(std::memory_order_relaxed) != 0; }
  // FAILED_PRECONDITION on the thread itself.
  Status check(const char* call) const noexcept;
  // Ends the thread after it has finished its work.
  void stop() noexcept;

 private:
  static void* run(void* self);

  const ReplicaPool& pool_;
  Lifecycle& lifecycle_;
  Endings& by_;
  std::mutex starting_;
  Thread thread_;
  std::atomic<bool> runs_{false};
  std::atomic<std::uintptr_t> id_{0};
  std::atomic<std::size_t> untold_{0};
  const Ref<Completions> ended_;
};

}  // namespace dist
