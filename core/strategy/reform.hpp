// SPDX-License-Identifier: Apache-2.0
// Re-forming: the available workers continue as a new generation, without lost workers and with new ones.
// Worker 0 decides which workers take part (core/net/forming.hpp). If worker 0 is lost, the job ends.
#pragma once

#include <cstdint>

#include "core/base/status.hpp"
#include "core/strategy/strategy.hpp"

namespace dist {

struct ReformOptions {
  int32_t min_workers = 0;  // 0: 1
  int64_t window_ns = 0;    // 0: the lease
  int64_t timeout_ns = 0;   // 0: the strategy's; < 0: none
};

// Must be called between runs, when no group and no work exists. Replaces the strategy's membership: on
// success by that of the new generation, otherwise by one without a connection to the others. Either way it
// may be called again.
Status reform(Strategy& strategy, const ReformOptions& options, const char* call);

// Whether worker 0 announced at the end of the latest run that the workers should re-form. All workers that
// made the same runs get the same answer. True if worker 0 is lost.
Status reform_due(Strategy& strategy, const char* call, bool* out) noexcept;

// Must be called before each run of a strategy that re-forms automatically.
Status reform_before_run(Strategy& strategy, const char* call);

}  // namespace dist
