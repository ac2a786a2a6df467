// SPDX-License-Identifier: Apache-2.0
// Shared by requests and items of batches (serve.h, batch.h): reading their options.
#pragma once

#include <cstdio>

#include "capi/guard.hpp"
#include "core/serve/completions.hpp"
#include "core/serve/future.hpp"

namespace dist::capi {

static_assert(DIST_PRIORITY_MIN == kLeastPriority && DIST_PRIORITY_MAX == kGreatestPriority);

inline Completions* completions_of(dist_completions* handle) noexcept {
  return reinterpret_cast<Completions*>(handle);
}

inline void call_done(RequestHandle& work, void (*function)(), void* user_data) {
  (void)survived([&] { reinterpret_cast<dist_done_fn>(function)(wrap_request(&work), user_data); });
}

// The reason why read_asking() fails.
[[gnu::noinline, gnu::cold]] inline Status bad_asking(int32_t priority, int64_t timeout_ns,
                                                      const char* name) noexcept {
  if (priority < DIST_PRIORITY_MIN || priority > DIST_PRIORITY_MAX) {
    return invalid_argument("`%s.priority` is %d, but must be %d to %d", name, priority, DIST_PRIORITY_MIN,
                            DIST_PRIORITY_MAX);
  }
  char field[64];
  std::snprintf(field, sizeof field, "%s.timeout_ns", name);
  DIST_TRY(require_timeout(timeout_ns, field));
  return invalid_argument("`%s`: `completions` and `done` are both set. Set one of them.", name);
}

// Reads the fields that dist_submit_options and dist_item_options have in common. `name` is the name of the
// struct.
template <class Options>
Status read_asking(const Options& given, const char* name, Submission* out) noexcept {
  if (given.priority < DIST_PRIORITY_MIN || given.priority > DIST_PRIORITY_MAX ||
      given.timeout_ns < DIST_NO_TIMEOUT || (given.completions != nullptr && given.done != nullptr))
      [[unlikely]]
    return bad_asking(given.priority, given.timeout_ns, name);
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
