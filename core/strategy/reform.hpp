// SPDX-License-Identifier: Apache-2.0
// Re-forming: the workers that are there go on as a new generation, without those that are lost and with those that have
// come. Worker 0 says who takes part (core/engine/forming.hpp); where it is lost the job has ended.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"
#include "core/strategy/strategy.hpp"

namespace dist {

struct ReformOptions {
  int32_t min_workers = 0;  // 0: 1
  int64_t window_ns = 0;    // 0: a lease
  int64_t timeout_ns = 0;   // 0: the strategy's; < 0: none
};

// Between runs, with no group and no work left. Another formation takes the place of the strategy's: that of the new
// generation, or, where this fails, one in which nothing leads to the others. Either way this may be called again.
Status reform(Strategy& strategy, const ReformOptions& options, const char* call);

// Whether worker 0 has announced, with the end of the latest run, that the workers are to re-form: the same on all that have
// made the same runs. True where worker 0 is lost.
Status reform_due(Strategy& strategy, const char* call, bool* out) noexcept;

// Before a run of a strategy that re-forms by itself.
Status reform_before_run(Strategy& strategy, const char* call);

}  // namespace dist
