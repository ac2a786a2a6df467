// SPDX-License-Identifier: Apache-2.0
// RunLimits: what ends a run early.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

#include "core/base/cancel.hpp"
#include "core/base/replicas.hpp"
#include "core/base/status.hpp"
#include "core/base/text.hpp"

namespace dist {

// The time of the host's clock at which a timeout expires, or the maximum if that time cannot be represented.
inline int64_t deadline_after(int64_t start_ns, int64_t timeout_ns) noexcept {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  return start_ns + std::min(timeout_ns, kNever - std::max<int64_t>(start_ns, 0));
}

struct RunLimits {
  int64_t timeout_ns = 0;         // includes waiting for earlier runs; not positive: none
  Cancel* cancel = nullptr;       // may be NULL
  const char* call = "dist_run";  // the host's call, for messages
  int64_t deadline_ns = 0;        // when timeout_ns expires, if it started before this call; 0: it starts now
  bool uncounted = false;         // takes no threads from a budget
  const std::atomic<bool>* cancel_asked =
      nullptr;  // set if a cancellation was requested before the run could be linked to it; may be NULL
};

// The error for a run that was cancelled before its functions started. `reason` is NULL if dist_strategy_cancel() gave
// none.
inline Status cancelled_early(const Naming& naming, const char* reason) noexcept {
  return fail(DIST_CANCELLED, "the %s was cancelled before it started: %s", naming.run(),
              reason != nullptr ? reason : "`dist_strategy_cancel()`"_m);
}

}  // namespace dist
