// SPDX-License-Identifier: Apache-2.0
// Closing: whether a pool is being shut down, and which call of the host does it.
//
// Invariant: a pool that is closed stays closed.
//
// | state     | since      | effect                                                      |
// |-----------|------------|-------------------------------------------------------------|
// | open      | creation   | runs start                                                  |
// | announced | announce() | error() names the call; the pool's lock refuses its waiters |
// | begun     | begin()    | no run starts any more                                      |
#pragma once

#include <atomic>

#include "core/base/status.hpp"

namespace dist {

class Closing {
 public:
  // `call` is a literal that names the host's call.
  void announce(const char* call) noexcept { call_.store(call, std::memory_order_relaxed); }
  // seq_cst: precedes the cancellation that follows. A run that begins checks begun() after its groups are clean.
  void begin(const char* call) noexcept {
    announce(call);
    begun_.store(true, std::memory_order_seq_cst);
  }
  bool begun(std::memory_order order = std::memory_order_acquire) const noexcept {
    return begun_.load(order);
  }
  // The error for calls that are refused.
  Status error() const noexcept {
    return fail(DIST_CANCELLED, "`%s()` has shut down this strategy. Create a new one.",
                call_.load(std::memory_order_relaxed));
  }

 private:
  std::atomic<bool> begun_{false};
  std::atomic<const char*> call_{""};
};

}  // namespace dist
