// SPDX-License-Identifier: Apache-2.0
// RequestNumbers: what the requests of one instance came to, and how long they took. Its thread writes; any reads.
#pragma once

#include "core/trace/histogram.hpp"
#include "dist/types.h"

namespace dist {

// How requests end.
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

// Why they are not accepted.
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
  // Of those that its function was called for.
  Histogram queued;    // from dist_submit() until then
  Histogram computed;  // its time
  Histogram waited;    // both
};

}  // namespace dist
