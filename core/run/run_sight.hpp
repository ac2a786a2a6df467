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
#include "core/run/nesting.hpp"
#include "core/run/run_pins.hpp"

namespace dist {

class RunSight {
 public:
  // `run`: the number of the pool's latest run. `below`: the runs inside.
  RunSight(Memory& memory, bool nested, const uint32_t& run, const Nesting& below) noexcept
      : pins_(memory), nested_(nested), run_(run), below_(below) {}

  // For the threads that are in the pool's latest run.
  Sight here() const noexcept {
    if (!nested_) return {&pins_, run_};
    return {seen_in_.load(std::memory_order_relaxed), seen_as_.load(std::memory_order_relaxed)};
  }
  // A run of a nested pool begins inside that run.
  void look_through(const Sight& outer) noexcept {
    seen_in_.store(outer.pins, std::memory_order_relaxed);
    seen_as_.store(outer.run, std::memory_order_relaxed);
  }
  // Whether the latest run of a nested pool began inside that run. A later run that has not started yet counts as well,
  // which is safe.
  bool is_inside(const Sight& outer) const noexcept {
    return seen_in_.load(std::memory_order_relaxed) == outer.pins &&
           seen_as_.load(std::memory_order_relaxed) == outer.run;
  }

  // Whether there are pins. The only cost for a run that never asks for a version.
  bool has_pins() const noexcept { return pins_.any(); }
  // Must be called when no function of the pool's runs is running. Keeps the pins of runs whose nested runs still have
  // running functions.
  void let_go(Unseen& out) noexcept {
    pins_.let_go(out, [&](uint32_t run) { return below_.is_inside({&pins_, run}); });
  }

 private:
  mutable RunPins pins_;
  const bool nested_;
  const uint32_t& run_;
  const Nesting& below_;
  // Atomic, because a thread that ends an outer run may read them while a run begins here.
  std::atomic<RunPins*> seen_in_{nullptr};
  std::atomic<uint32_t> seen_as_{0};
};

}  // namespace dist
