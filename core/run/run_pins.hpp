// SPDX-License-Identifier: Apache-2.0
// The version of each series that the runs of a pool see. A run pins the version when its first member asks
// for it and keeps it until no function of the run, or of a run nested in it, is still running. Nested runs
// see the versions of the outermost run.
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
  // No run may be in progress. Releases all pins.
  ~RunPins();
  RunPins(const RunPins&) = delete;
  RunPins& operator=(const RunPins&) = delete;

  // The only cost for a run that never asks for a version.
  bool any() const noexcept { return any_.load(std::memory_order_relaxed); }

  // For a member of run number `run`. FAILED_PRECONDITION if nothing was published, RESOURCE_EXHAUSTED if
  // there is no memory.
  Status see(uint32_t run, Versions& series, Version** out) noexcept;

  // Releases the pins of all runs for which `goes_on(run)` is false; these have ended.
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
  std::mutex mutex_;  // protects the members below
  Pin* first_ = nullptr;
  Pin* spare_ = nullptr;  // for reuse
  std::atomic<bool> any_{false};
};

}  // namespace dist
