// SPDX-License-Identifier: Apache-2.0
// How a call is answered with a value, or with what a function of the host's failed with.
#pragma once

#include "core/base/status.hpp"
#include "core/engine/calls.hpp"
#include "core/value/value.hpp"

namespace dist {

// With a value (NULL: nothing), or why it cannot be sent.
void answer_with(IncomingCall& call, Value* value) noexcept;
// With the failure that is this thread's last one.
inline void answer_failure(IncomingCall& call, const Status& status) noexcept {
  call.answer(status.code(), last_error().message, {});
}

// What a function of the host's has returned, as another process may hear it: it has a name there, and words, which are the
// function's own where this thread has had a failure since `failures_before`. `what`: "the method".
Status sendable(dist_status code, uint64_t failures_before, const char* what) noexcept;

}  // namespace dist
