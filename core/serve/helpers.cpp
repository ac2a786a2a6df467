// SPDX-License-Identifier: Apache-2.0
#include "core/serve/helpers.hpp"

namespace dist {

Status Helpers::start(const Submission& given, bool clock) noexcept {
  if (allowed_.load(std::memory_order_relaxed)) {
    if (clock || given.timeout_ns > 0) DIST_TRY(clock_.need());
    if (given.done != nullptr) DIST_TRY(teller_.need());
  } else if (given.done != nullptr) {
    return failed_precondition(
        "`done` needs a libdist thread, but a strategy with `DIST_THREADS_HOST` has none. Set "
        "`dist_instances_options.helper_threads`, or use completions.");
  }
  return kOk;
}

}  // namespace dist
