// SPDX-License-Identifier: Apache-2.0
#include "core/serve/lifecycle.hpp"

#include "core/base/os/thread.hpp"

namespace dist {

const char* Lifecycle::name() const noexcept {
  switch (phase()) {
    case Phase::kNever: return "not open yet";
    case Phase::kOpening: return "opening";
    case Phase::kOpen: return "open";
    case Phase::kClosing:
    case Phase::kEnding: return "closing";
    case Phase::kClosed: return "closed";
  }
  return "";
}

Status Lifecycle::refusal(const char* call) const noexcept {
  switch (phase()) {
    case Phase::kOpen: break;
    case Phase::kNever:
      return failed_precondition(
          "`%s()`: the strategy's instances are not open. Call `dist_instances_open()` first.", call);
    case Phase::kOpening:
      return fail(DIST_UNAVAILABLE, "`%s()`: the strategy's instances are being opened. Retry later.", call);
    case Phase::kClosing:
    case Phase::kEnding:
      return fail(DIST_UNAVAILABLE, "`%s()`: the strategy's instances are closing and accept no new requests",
                  call);
    case Phase::kClosed:
      return fail(
          DIST_UNAVAILABLE,
          "`%s()`: the strategy's instances are closed. Call `dist_instances_open()` to open them again.",
          call);
  }
  return kOk;
}

// While the instances are open, a request that waited for that may hold the lock for a moment.
std::unique_lock<std::mutex> Lifecycle::try_lock_to_change() noexcept {
  std::unique_lock changing(changing_, std::try_to_lock);
  while (!changing && phase() == Phase::kOpen) {
    yield_this_thread();
    (void)changing.try_lock();
  }
  return changing;
}

}  // namespace dist
