// SPDX-License-Identifier: Apache-2.0
// WorkerSteps: connects a dataset with the workers of its strategy, so that all workers take the same steps.
#pragma once

#include <atomic>

#include "core/input/steps.hpp"

namespace dist {

class Strategy;

// Counted, because datasets may outlive their strategy.
class WorkerSteps final : public Steps {
 public:
  WorkerSteps(Memory& memory, Strategy& strategy) noexcept : Steps(memory), strategy_(&strategy) {}

  Status vote(const char* call, const Ballot& mine, Outcome* any) override;
  Status fail_all(const char* call, const ErrorRecord& why) override;
  // The strategy is being destroyed.
  void leave() noexcept { strategy_ = nullptr; }

 private:
  Status find_strategy(const char* call, Strategy** out) const noexcept;

  std::atomic<Strategy*> strategy_;
};

}  // namespace dist
