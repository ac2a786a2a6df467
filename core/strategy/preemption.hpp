// SPDX-License-Identifier: Apache-2.0
// PreemptionHandler: saves a checkpoint before a job loses a machine, like TensorFlow's
// PreemptionCheckpointHandler.
//
// Invariant: all workers save between the same two runs. A worker that is notified tells worker 0 at the end
// of a run, and worker 0 announces it to all at the end of a later run.
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

enum class PreemptionState : int32_t { kNone, kSaved, kOver };

struct PreemptionOptions {
  const char* path = nullptr;  // NULL: the host saves
  std::span<Variable* const> variables;
  int64_t grace_ns = 0;  // from the notice to the end of the job; 0: it ends at once
};

class PreemptionHandler final : public Counted {
 public:
  // Loads the checkpoint if it exists. The strategy must outlive the handler.
  static Status create(Strategy& strategy, const PreemptionOptions& options, Ref<PreemptionHandler>* out);
  PreemptionHandler(Memory& memory, Strategy& strategy, const PreemptionOptions& options);

  Strategy& strategy() const noexcept { return strategy_; }
  // Callable from any thread and from a signal handler.
  void notify() noexcept { notified_.store(true, std::memory_order_relaxed); }
  // Must be called between runs. Saves when the job is preempted: at the first call that learns of it, and
  // when the grace period ends. `cancel` (may be NULL) ends the wait for worker 0.
  Status save_if_preempted(const char* call, Cancel* cancel, PreemptionState* out);
  void count_run() noexcept { total_run_calls_.fetch_add(1, std::memory_order_relaxed); }
  // Includes the runs of earlier starts that were saved.
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
  const std::pmr::vector<Variable*> named_;  // the same variables
  const int64_t grace_ns_;
  std::atomic<bool> notified_{false};
  std::atomic<int64_t> total_run_calls_{0};
  PreemptionState state_ = PreemptionState::kNone;
  int64_t preempted_ns_ = 0;  // on worker 0: when it learned of the preemption; 0: it has not
};

}  // namespace dist
