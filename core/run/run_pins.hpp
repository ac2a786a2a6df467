// SPDX-License-Identifier: Apache-2.0
// RunPins: which version of each series the runs of one pool see, from the first of their members that asks until the run
// is over. Runs inside others see what those see.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/run/versions.hpp"

namespace dist {

class RunPins {
 public:
  explicit RunPins(Memory& memory) noexcept : memory_(memory) {}
  // No run is under way: lets go of all.
  ~RunPins();
  RunPins(const RunPins&) = delete;
  RunPins& operator=(const RunPins&) = delete;

  // A run in which nobody asks pays for this alone.
  bool any() const noexcept { return any_.load(std::memory_order_relaxed); }

  // A member of the run of this number asks. FAILED_PRECONDITION: there is no version. RESOURCE_EXHAUSTED: no memory.
  Status see(uint32_t run, Versions& series, Version** out) noexcept;

  // Lets go of what the runs see for which `goes_on(run)` is false. These are over.
  template <class GoesOn>
  void let_go(Unseen& out, GoesOn&& goes_on) noexcept {
    const std::lock_guard lock(mutex_);
    for (Pin** at = &first_; *at != nullptr;) {
      Pin& one = **at;
      if (goes_on(one.run)) {
        at = &one.next;
        continue;
      }
      out.let_go(*one.version);
      *at = one.next;
      one.next = spare_;
      spare_ = &one;
    }
    any_.store(first_ != nullptr, std::memory_order_relaxed);
  }

 private:
  struct Pin {
    Pin* next;
    Version* version;  // in use
    uint32_t run;
  };

  Memory& memory_;
  std::mutex mutex_;  // what follows
  Pin* first_ = nullptr;
  Pin* spare_ = nullptr;  // that serve again
  std::atomic<bool> any_{false};
};

}  // namespace dist
