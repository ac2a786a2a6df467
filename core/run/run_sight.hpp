// SPDX-License-Identifier: Apache-2.0
// RunSight: which versions (versions.hpp) the runs of a pool see.
//
// Invariant: the runs of a nested pool see the versions of the outermost run, and only the outermost pool has pins.
//
// | pool      | here()                                              |
// |-----------|-----------------------------------------------------|
// | outermost | its own pins, and the number of its latest run      |
// | nested    | the pins and number that look_through() last stored |
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/run/run_pins.hpp"

namespace dist {

// Identifies the outermost run that a run is part of.
struct Sight {
  RunPins* pins;
  uint32_t run;
};

class RunSight {
 public:
  RunSight(Memory& memory, bool nested) noexcept : pins_(memory), nested_(nested) {}

  // `run` is the latest run of the pool.
  Sight here(uint32_t run) const noexcept {
    if (!nested_) return {&pins_, run};
    return {seen_in_.load(std::memory_order_relaxed), seen_as_.load(std::memory_order_relaxed)};
  }
  // A run of a nested pool begins inside that run.
  void look_through(const Sight& outer) noexcept {
    seen_in_.store(outer.pins, std::memory_order_relaxed);
    seen_as_.store(outer.run, std::memory_order_relaxed);
  }
  // Whether the latest run of a nested pool began inside that run.
  bool is_inside(const Sight& outer) const noexcept {
    return seen_in_.load(std::memory_order_relaxed) == outer.pins &&
           seen_as_.load(std::memory_order_relaxed) == outer.run;
  }

  // Whether there are pins. The only cost for a run that never asks for a version.
  bool has_pins() const noexcept { return pins_.any(); }
  // Releases the pins of the runs for which `goes_on(sight)` is false.
  template <class GoesOn>
  void let_go(Unseen& out, GoesOn&& goes_on) noexcept {
    pins_.let_go(out, [&](uint32_t run) { return goes_on(Sight{&pins_, run}); });
  }

 private:
  mutable RunPins pins_;
  const bool nested_;
  // Atomic, because a thread that ends an outer run may read them while a run begins here.
  std::atomic<RunPins*> seen_in_{nullptr};
  std::atomic<uint32_t> seen_as_{0};
};

}  // namespace dist
