// SPDX-License-Identifier: Apache-2.0
#include "core/net/rpc/answer.hpp"

#include "core/net/rpc/message.hpp"

namespace dist {

void answer_with(IncomingCall& call, Value* value) noexcept {
  try {
    Ref<CallParts> parts;
    const Status written = write_message(call.memory(), {}, value, &parts);
    if (!written.ok()) return answer_failure(call, written);
    call.answer(DIST_OK, "", std::move(parts));
  } catch (const std::bad_alloc&) {
    call.answer(DIST_RESOURCE_EXHAUSTED, "the server is out of memory", {});
  }
}

Status sendable(dist_status code, uint64_t failures_before, const char* what) noexcept {
  const bool words = failures_on_this_thread() != failures_before && last_error().code == code;
  if (known_status_name(code) == nullptr) {
    // The same number may mean something else in another process.
    const ErrorRecord own = last_error();
    return fail(DIST_UNKNOWN, "%s failed with status %d, which libdist does not define%s%s", what, code,
                words ? ": " : "", words ? own.message : "");
  }
  if (code != DIST_OK && !words)
    return fail(code, "%s failed with %s and gave no reason", what, status_name(code));
  return Status(code);
}

}  // namespace dist
