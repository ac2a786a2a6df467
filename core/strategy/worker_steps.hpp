// SPDX-License-Identifier: Apache-2.0
// WorkerSteps: what a dataset has of its strategy's workers, so that passes over it go on step by step on all of them.
#pragma once

#include <atomic>

#include "core/input/steps.hpp"

namespace dist {

class Strategy;

// Datasets may outlive their strategy.
class WorkerSteps final : public Steps {
 public:
  WorkerSteps(Memory& memory, Strategy& strategy) noexcept : Steps(memory), strategy_(&strategy) {}

  Status vote(const char* call, const Ballot& mine, Outcome* any) override;
  Status fail_all(const char* call, const ErrorRecord& why) override;
  // The strategy ends.
  void leave() noexcept { strategy_ = nullptr; }

 private:
  Status find_strategy(const char* call, Strategy** out) const noexcept;

  std::atomic<Strategy*> strategy_;
};

}  // namespace dist
