// SPDX-License-Identifier: Apache-2.0
// PreemptionHandler: what a training loop has so that a job that is about to lose a machine saves a checkpoint first, as
// TensorFlow's PreemptionCheckpointHandler has it. One worker's notice reaches worker 0 with the end of a run, and worker 0
// announces it with the end of a later one, so that all workers save between the same two runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/strategy/strategy.hpp"
#include "core/value/variable.hpp"

namespace dist {

enum class PreemptionState : int32_t { kNone = 0, kSaved = 1, kOver = 2 };

struct PreemptionOptions {
  const char* path = nullptr;  // NULL: the host saves
  std::span<Variable* const> variables;
  int64_t grace_ns = 0;  // from the notice to the end; 0: the job ends at once
};

class PreemptionHandler final : public Counted {
 public:
  // Loads the checkpoint, where there is one. The strategy outlives the handler.
  static Status create(Strategy& strategy, const PreemptionOptions& options, Ref<PreemptionHandler>* out);
  PreemptionHandler(Memory& memory, Strategy& strategy, const PreemptionOptions& options);

  Strategy& strategy() const noexcept { return strategy_; }
  // Any thread, also a signal's handler.
  void notify() noexcept { notified_.store(true, std::memory_order_relaxed); }
  // Between runs. Saves where the job is preempted, the first time and when the grace is over. `cancel`, which may be NULL,
  // ends the wait for worker 0.
  Status save_if_preempted(const char* call, Cancel* cancel, PreemptionState* out);
  void count_run() noexcept { total_run_calls_.fetch_add(1, std::memory_order_relaxed); }
  // Of earlier starts too, as far as they had been saved.
  int64_t total_run_calls() const noexcept { return total_run_calls_.load(std::memory_order_relaxed); }
  Status over(const char* call) const noexcept;

 private:
  ~PreemptionHandler() override = default;
  Status load();
  Status agree();
  Status save(const char* call);
  Status hear(const char* call, Cancel* cancel, bool* preempted, bool* grace_over) noexcept;

  Strategy& strategy_;
  std::pmr::string path_;
  std::pmr::vector<Ref<Variable>> variables_;
  const std::pmr::vector<Variable*> named_;  // the same
  const int64_t grace_ns_;
  std::atomic<bool> notified_{false};
  std::atomic<int64_t> total_run_calls_{0};
  PreemptionState state_ = PreemptionState::kNone;
  int64_t preempted_ns_ = 0;  // worker 0: when it has heard of it; 0: it has not
};

}  // namespace dist
