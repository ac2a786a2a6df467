// SPDX-License-Identifier: Apache-2.0
// Statistics about the requests of one instance: outcomes and times. Only the instance's thread writes; any
// thread reads.
#pragma once

#include "core/trace/histogram.hpp"
#include "dist/types.h"

namespace dist {

// How requests complete.
enum class RequestEnd : uint8_t { kCompleted, kFailed, kCancelled, kOverdue };
inline constexpr int kRequestEnds = 4;

inline RequestEnd end_of(dist_status status) noexcept {
  switch (status) {
    case DIST_OK: return RequestEnd::kCompleted;
    case DIST_CANCELLED: return RequestEnd::kCancelled;
    case DIST_DEADLINE_EXCEEDED: return RequestEnd::kOverdue;
    default: return RequestEnd::kFailed;
  }
}

// Why requests are refused.
enum class Refusal : uint8_t { kFull, kClosed, kCancelled, kOther };
inline constexpr int kRefusals = 4;

inline Refusal refusal_of(dist_status status) noexcept {
  switch (status) {
    case DIST_RESOURCE_EXHAUSTED: return Refusal::kFull;
    case DIST_UNAVAILABLE: return Refusal::kClosed;
    case DIST_CANCELLED: return Refusal::kCancelled;
    default: return Refusal::kOther;
  }
}

struct RequestNumbers {
  Sum ended[kRequestEnds];
  // Only requests whose function was called.
  Histogram queued;    // from dist_submit() to the call
  Histogram computed;  // duration of the call
  Histogram waited;    // both together
};

}  // namespace dist
