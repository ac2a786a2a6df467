// SPDX-License-Identifier: Apache-2.0
// Answers a call with a value, or with the error of a host function.
#pragma once

#include "core/base/status.hpp"
#include "core/net/calls.hpp"
#include "core/value/value.hpp"

namespace dist {

// Answers with a value, or with the reason why it cannot be sent. NULL stands for no value.
void answer_with(IncomingCall& call, Value* value) noexcept;
// Answers with the calling thread's latest error.
inline void answer_failure(IncomingCall& call, const Status& status) noexcept {
  call.answer(status.code(), last_error().message, {});
}

// Converts the status returned by a host function for another process, which must know the code and needs a
// message. The message is the function's own if this thread has recorded a failure since `failures_before`.
// `what` is for example "the method".
Status sendable(dist_status code, uint64_t failures_before, const char* what) noexcept;

}  // namespace dist
