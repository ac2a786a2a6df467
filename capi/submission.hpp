// SPDX-License-Identifier: Apache-2.0
// Shared by requests and items of batches (serve.h, batch.h): reading their options.
#pragma once

#include "capi/guard.hpp"
#include "core/serve/completions.hpp"
#include "core/serve/promise.hpp"

namespace dist::capi {

static_assert(DIST_PRIORITY_MIN == kLeastPriority && DIST_PRIORITY_MAX == kGreatestPriority);

inline Completions* completions_of(dist_completions* handle) noexcept {
  return reinterpret_cast<Completions*>(handle);
}

inline void call_done(HostWork& work, void (*function)(), void* user_data) {
  (void)survived([&] { reinterpret_cast<dist_done_fn>(function)(wrap(&work), user_data); });
}

// Reads the fields that dist_submit_options and dist_item_options have in common. `name` is the name of the
// struct.
template <class Options>
Status read_asking(const Options& given, const char* name, Submission* out) noexcept {
  if (given.priority < DIST_PRIORITY_MIN || given.priority > DIST_PRIORITY_MAX) {
    return invalid_argument("%s.priority is %d, but must be %d to %d", name, given.priority,
                            DIST_PRIORITY_MIN, DIST_PRIORITY_MAX);
  }
  if (!require_timeout(given.timeout_ns, "timeout_ns").ok())
    return reworded("%s.%s", name, last_error().message);
  if (given.completions != nullptr && given.done != nullptr) {
    return invalid_argument("%s: completions and done are both set. Set one of them.", name);
  }
  out->priority = given.priority;
  out->timeout_ns = given.timeout_ns;
  out->cancel = unwrap(given.cancel);
  out->completions = completions_of(given.completions);
  if (given.done != nullptr) {
    out->done = call_done;
    out->done_function = reinterpret_cast<void (*)()>(given.done);
  }
  return kOk;
}

}  // namespace dist::capi
